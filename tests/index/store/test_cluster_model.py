"""The model of the cluster protocol: random and complete sets of schedules, and each safeguard omitted in turn.

`LIKEWISE_CLUSTER_SCHEDULES=1000000` runs that many random schedules, from `LIKEWISE_CLUSTER_SEED` on.
"""

import os
import random
import re
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.index.store import cluster_model as cluster
from tests.index.store.cluster_model import ADD, BITS, CHECK, REMOVE, SWEEP, TEXTS, WITHIN, Options, Plan, Rule, State
from tests.index.store.model import ModelIndex, Refused
from tests.oracle import decide

pytestmark = pytest.mark.rounds

SEED = int(os.environ.get("LIKEWISE_CLUSTER_SEED", "1"))
NUM = int(os.environ.get("LIKEWISE_CLUSTER_SCHEDULES", "1500"))

# The rule.


class Numbers(ModelIndex):
    """The model of the index on texts that are their own fingerprints, none of which is short."""

    def __init__(self, ttl):
        super().__init__(decide.Recipe(method="simhash", measure=None, bits=BITS, within=WITHIN), ttl)

    def _document(self, text):
        return decide.Document(-1, dict.fromkeys(range(decide.SHORT), 1), text, (False, text, None))


def expected_answer(index, kind, docs, second):
    """Return the answer of the index model to an operation, in the form of the rule."""
    index.expire(second)
    row_of = {row.doc_id: row.row for row in index.rows if not row.gone}
    try:
        if kind == REMOVE:
            removal = index.remove(docs[0])
            kept = dict(removal.moved) | dict.fromkeys(removal.promoted)
            rows = sorted((row_of[doc_id], doc_id) for doc_id in kept)
            leaders = [(doc_id, None if kept[doc_id] is None else row_of[kept[doc_id]]) for _, doc_id in rows]
            return ((docs[0], int(removal.was_kept)), *leaders)
        verdicts = index.check_and_add_batch([doc_id for doc_id, _ in docs], [text for _, text in docs], second)
    except Refused as refused:
        return -1, refused.args[0]
    evidence = [index.rows[verdict.seq - 1].evidence for verdict in verdicts]
    return tuple(
        (
            verdict.doc_id,
            int(verdict.added),
            verdict.seq - 1,
            against and against.kept_row,
            against and against.distance,
        )
        for verdict, against in zip(verdicts, evidence, strict=True)
    )


DOCUMENTS = st.tuples(st.integers(0, 5), st.sampled_from(TEXTS))
OPERATIONS = st.one_of(
    st.tuples(st.just(ADD), st.lists(DOCUMENTS, min_size=1, max_size=3).map(tuple)),
    st.tuples(st.just(REMOVE), st.tuples(st.integers(0, 5))),
    st.tuples(st.just(SWEEP), st.just(())),
)


def additions(*texts):
    """Return operations that add one document each."""
    return [((ADD, ((doc_id, text),)), 0) for doc_id, text in enumerate(texts)]


# A copy of a duplicate gets its evidence, although a nearer document was kept later; and the nearest of two.
@example(operations=additions(15, 3, 1, 3), ttl=None)
@example(operations=[*additions(15, 1, 3), ((REMOVE, (1,)), 0), ((REMOVE, (0,)), 0)], ttl=None)
@given(operations=st.lists(st.tuples(OPERATIONS, st.integers(0, 4)), max_size=20), ttl=st.sampled_from([None, 2, 6]))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_its_rule_is_that_of_the_index(operations, ttl):
    index, state, second = Numbers(ttl), State(), 0
    for (kind, docs), later in operations:
        second += later
        row = len(index.rows)
        if kind == SWEEP:
            # No later answer depends on it.
            Rule(ttl).decide(state, kind, docs, second, row)
            continue
        answer, _ = Rule(ttl).decide(state, kind, docs, second, row)
        assert answer == expected_answer(index, kind, docs, second)
        for text in TEXTS:
            leader, bits, _ = Rule(ttl).look(state, text, Rule(ttl).since(second))
            verdict = index.check(text)
            assert (leader is None) == verdict.is_new
            assert bits == verdict.distance
            assert leader is None or index.rows[leader].doc_id == verdict.kept_id


# Schedules.


def test_random_schedules_equal_one_sequence_and_losses_are_reported():
    played, num_fatal, found = cluster.search(SEED, NUM)
    assert found is None, cluster.shrink(*found[:2])
    assert played == NUM
    # Most losses must be repairable.
    assert num_fatal < NUM / 20


def test_nothing_answered_is_lost_where_writes_are_replicated():
    rng = random.Random(SEED)
    num_lost = 0
    for _ in range(300):
        plan = cluster.random_plan(rng)
        plan = plan._replace(options=plan.options._replace(replicated=True))
        schedule, fault, world = cluster.random_schedule(rng, plan)
        assert fault is None, (plan, schedule)
        assert not world.void
        assert not world.is_fatal
        num_lost += sum(world.num_lost.values())
    assert num_lost > 20


ONE = (ADD, ((0, 0),))
TWO = (ADD, ((1, 1),))
THREE = (ADD, ((2, 15),))
SMALL = Options(partitions=1, horizon=0, eager=0)


@pytest.mark.parametrize(
    ("tasks", "options", "failures", "least"),
    [
        (((ONE,), (TWO,)), SMALL, {}, 600),
        (((ONE,), (ONE,)), SMALL._replace(partitions=2), {}, 5_000),
        (((ONE, (REMOVE, (0,))), (TWO,)), SMALL, {}, 20_000),
        (((ONE,), ((CHECK, (1,)),)), SMALL, {}, 60),
        (((ONE,), (TWO,)), SMALL, {"kills": 1}, 3_000),
        (((ONE,), ((CHECK, (1,)),)), SMALL, {"losses": 1, "most_lost": 2}, 1_000),
        (((ONE,), (TWO,)), SMALL, {"losses": 1, "most_lost": 1}, 300_000),
    ],
)
def test_all_schedules_of_small_plans(tasks, options, failures, least):
    num_schedules, _ = cluster.explore(Plan(tasks, options), **failures)
    assert num_schedules > least


def failed_over_while_folding():
    """A client stops during a fold, the log is rolled back, and others continue without the first partition."""
    tasks = (
        ((ADD, ((0, 0), (1, 3))), (REMOVE, (0,)), (ADD, ((1, 3),)), (ADD, ((1, 3),))),
        ((ADD, ((2, 15),)), (ADD, ((2, 15),))),
        ((ADD, ((0, 0),)),),
    )
    plan = Plan(tasks, Options(partitions=3, horizon=0, bound=4, eager=2))
    for num in range(12, 30):
        for num_lost in range(1, 10):
            stopped = [*([("run", 0)] * num), ("kill", 0), ("lose", cluster.LOG, num_lost)]
            yield plan, [*stopped, *([("run", 1)] * 60), *([("run", 2)] * 40)]


def test_a_log_older_than_what_is_final():
    assert all(cluster.fault_of(plan, schedule) is None for plan, schedule in failed_over_while_folding())


# Faults that the model finds.

GUARANTEES = [
    *("a", "a-before", "b", "b-again", "c", "c-fold", "d", "e", "f-verify", "f-read", "f-written", "f-last"),
    *("f-report", "f-advance", "f-confirmed", "f-again", "f-wait", "f-doubt", "g", "g-trim", "h", "h-wait"),
]

# Schedules that random ones contain too rarely.
FOUND = {
    # Two operations, the first without a verdict when the second is decided.
    "b-order": (
        Plan((((ADD, ((1, 0),)),), (), ((ADD, ((0, 0), (2, 15))),)), Options(bound=3, horizon=2, kept=1, eager=0)),
        [("kill-after", 2), *[("run", 0)] * 4, ("lose", cluster.LOG, 1)],
    ),
    # A client restores a partition up to an old W, while another one moves W without a change of the mark.
    "f-reconfirm": (
        Plan(
            (((ADD, ((1, 3),)), (ADD, ((1, 3),))), ((ADD, ((0, 1),)), (CHECK, (1,)))), Options(partitions=1, horizon=2)
        ),
        [*[("run", 0)] * 5, *[("run", 1)] * 6, *[("run", 0)] * 7, ("run", 1), ("lose", 1, 2), *[("run", 1)] * 3],
    ),
    # The log lost an operation with effects, and its first request arrives again.
    "e-late": (
        Plan((((ADD, ((0, 3), (0, 3))),), ((ADD, ((3, 1), (2, 1))),), ((ADD, ((3, 3), (1, 15))),)), Options()),
        [*[("run", 0)] * 4, *[("run", 1)] * 6, ("lose", cluster.LOG, 9), ("run", 1), ("run", 2), ("late", 1, 5)],
    ),
}


def is_shortest(plan, schedule):
    """Return whether no step of a failing schedule can be omitted."""
    assert cluster.fault_of(plan, schedule)
    return not any(cluster.fault_of(plan, schedule[:at] + schedule[at + 1 :]) for at in range(len(schedule)))


@pytest.mark.parametrize("off", GUARANTEES)
def test_without_a_guarantee_a_fault_is_found(off):
    # One client decides differently: only then does it matter whose verdict applies.
    is_biased = off == "b"
    _, _, found = cluster.search(1, 5000, frozenset([off]), is_biased)
    assert found is not None
    plan, schedule = cluster.shrink(*found[:2])
    assert is_shortest(plan, schedule)
    # The omitted safeguard is the only cause.
    assert cluster.fault_of(plan._replace(options=plan.options._replace(off=frozenset())), schedule) is None


def without(off, plan):
    return plan._replace(options=plan.options._replace(off=frozenset([off])))


def num_beyond_repair(off, server):
    """Return how many of some replicas that take over with a lag within the bound cost the whole index."""
    rng, num = random.Random(SEED), 0
    for _ in range(12):
        plan = cluster.lagging_plan(rng, frozenset(off))
        num += cluster.lagging_schedule(rng, plan, server)[1].is_fatal
    return num


@pytest.mark.parametrize(("server", "off"), [(cluster.LOG, "g-confirm"), (1, "g-keep"), (2, "g-keep")])
def test_a_replica_that_lags_within_the_bound_never_costs_the_index(server, off):
    assert num_beyond_repair((), server) == 0
    assert num_beyond_repair((off,), server) > 0


@pytest.mark.parametrize("off", FOUND)
def test_without_a_guarantee_a_rare_schedule_fails(off):
    plan, schedule = FOUND[off]
    assert is_shortest(without(off, plan), schedule)
    assert cluster.fault_of(plan, schedule) is None


def test_without_the_chain_of_a_fold_a_fault_is_found():
    assert any(cluster.fault_of(without("e-chain", plan), schedule) for plan, schedule in failed_over_while_folding())


def reports_dropped():
    """A failover drops an answer, a client reports this, and a second failover drops the report."""
    tasks = (((ADD, ((3, 0),)), (ADD, ((0, 0),))), ((ADD, ((2, 15),)), (ADD, ((2, 15),)), (ADD, ((1, 3),))))
    plan = Plan(tasks, Options(partitions=1, eager=2))
    for num in range(8, 30):
        for num_lost in range(2, 7):
            reported = [*[("run", 0)] * 14, ("lose", cluster.LOG, 3), *[("run", 1)] * num]
            yield plan, [*reported, ("lose", cluster.LOG, num_lost)]


def test_a_report_that_a_failover_dropped_is_made_again():
    assert all(cluster.fault_of(plan, schedule) is None for plan, schedule in reports_dropped())
    for off in ("f-kept", "f-forget"):
        assert any(cluster.fault_of(without(off, plan), schedule) for plan, schedule in reports_dropped())


def test_a_client_that_decides_otherwise_is_overruled():
    _, _, found = cluster.search(1, 500, biased=True)
    assert found is None


def test_each_guarantee_of_the_page_is_left_out_once():
    page = (Path(__file__).parents[3] / "docs/developers/cluster.md").read_text(encoding="utf-8")
    letters = re.findall(r"^\| ([a-h]) \|", page, re.MULTILINE)
    assert letters == sorted({name[0] for name in [*GUARANTEES, *FOUND]})


def test_a_client_that_lost_its_last_answer_still_names_the_one_before():
    tasks = ((), ((REMOVE, (2,)), (ADD, ((2, 3), (1, 15))), (ADD, ((0, 1),))))
    plan = Plan(tasks, Options(bound=4, horizon=2))
    schedule = [*[("run", 1)] * 14, ("lose", cluster.LOG, 4), *[("run", 1)] * 3, ("lose", cluster.LOG, 7)]
    assert cluster.fault_of(plan, schedule) is None
