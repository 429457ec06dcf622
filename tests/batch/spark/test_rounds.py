"""Decisions in rounds on the cluster give the verdicts of the local rule and of a plain oracle."""

import shutil

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import Recipe
from likewise.progress import Warned
from likewise.stages.groups import choose_leaders
from tests.batch.spark.test_killed import finished
from tests.batch.spark.test_spark import check_same
from tests.oracle.leaders import leaders

pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

# Limits of open pairs on the driver: none, some, all.
NO_PAIR, SOME_PAIRS, ALL_PAIRS = 0, 200 * 150, 1 << 30


def random_graph(rng, num, num_pairs, similarities):
    sides = rng.integers(0, num, (num_pairs, 2))
    sides = np.unique(np.sort(sides[sides[:, 0] != sides[:, 1]], axis=1), axis=0)
    return [(int(b), int(a), float(rng.choice(similarities)), int(rng.integers(0, 9))) for a, b in sides]


def chain(num):
    """Return the pairs of versions of one document, each of which matches the next."""
    return [(rank, rank - 1, 0.9, 1) for rank in range(1, num)]


def graphs():
    rng = np.random.default_rng(26)
    # Few distinct similarities, so that many are equal.
    ties = [0.5, 0.75, 1.0]
    star, early = 40, 60
    return [
        random_graph(rng, 60, 40, ties),
        random_graph(rng, 60, 150, ties),
        random_graph(rng, 25, 250, ties),
        chain(7),
        # The center is before its neighbors, after them, or in the middle.
        [(rank, 0, 0.6, 3) for rank in range(1, star)],
        [(star, rank, 0.6, 3) for rank in range(star)],
        [(max(rank, 20), min(rank, 20), 0.6, 3) for rank in range(star) if rank != 20],
        # A removed document is more similar than the kept one.
        [(early, early - 1, 1.0, 0), (early, 0, 0.5, 4), (early - 1, 0, 0.7, 2)],
        # Two kept documents are equally similar.
        [(2, 0, 0.8, 1), (2, 1, 0.8, 5)],
    ]


def beside(parts, apart=100):
    """Return the union of graphs, each with separate ranks, with shuffled pairs."""
    pairs = [
        (later + place * apart, earlier + place * apart, similarity, distance)
        for place, part in enumerate(parts)
        for later, earlier, similarity, distance in part
    ]
    np.random.default_rng(1).shuffle(pairs)
    return [
        (int(later), int(earlier), float(similarity), int(distance)) for later, earlier, similarity, distance in pairs
    ]


def decide(spark, pairs, directory, memory_bytes, told=None):
    """Return verdicts by rounds, and the counts of the decision."""
    from likewise.batch.spark.deciding import leader_verdicts, removed_ranks
    from likewise.batch.spark.stages import Stages

    kinds = {"later": pa.int64(), "earlier": pa.int64(), "similarity": pa.float64(), "distance": pa.int32()}
    columns = zip(*pairs, strict=True) if pairs else [[]] * len(kinds)
    table = pa.table(
        [pa.array(column, kind) for column, kind in zip(columns, kinds.values(), strict=True)], list(kinds)
    )
    stages = Stages(spark, str(directory))
    edges, _ = stages.frame("edges", lambda: stages.of_table(table))
    end = 1 + max((pair[0] for pair in pairs), default=0)
    report = [] if told is None else told
    removed, counts = removed_ranks(edges, stages, end, memory_bytes=memory_bytes, progress=report.append)
    verdicts = leader_verdicts(edges, removed).toArrow().to_pylist()
    found = {row["rank"]: (row["kept_rank"], row["similarity"], row["distance"]) for row in verdicts}
    assert len(found) == len(verdicts)
    return found, counts


@pytest.mark.parametrize("memory_bytes", [NO_PAIR, SOME_PAIRS, ALL_PAIRS])
def test_verdicts_are_those_of_the_oracle_and_of_a_local_run(spark, tmp_path, memory_bytes):
    pairs = beside(graphs())
    told = []
    found, counts = decide(spark, pairs, tmp_path, memory_bytes, told)
    assert found == leaders(pairs)
    local = choose_leaders(1000, np.array([pair[:2] for pair in pairs]), np.array([pair[2] for pair in pairs]))
    assert sorted(found) == np.flatnonzero(~local.kept).tolist()
    for rank, (kept_rank, similarity, _) in found.items():
        assert (kept_rank, similarity) == (local.leader[rank], local.similarity[rank])
    if memory_bytes == ALL_PAIRS:
        assert counts == {"num_rounds": 0, "num_pairs_on_driver": len(pairs)}
        assert told == []
        return
    assert counts["num_rounds"] >= (3 if memory_bytes == NO_PAIR else 1)
    assert counts["num_pairs_on_driver"] <= memory_bytes // 200
    if memory_bytes == SOME_PAIRS:
        (event,) = told
        assert isinstance(event, Warned)
        assert event.message.endswith(f"of {len(pairs):,} matching pairs; the driver decides the others")


def test_a_long_chain_is_finished_on_the_driver(spark, tmp_path):
    """Each round decides two pairs, so it would take 50,000 rounds without the driver."""
    num, told = 100_000, []
    # One pair too many for the driver, so there is one round, which is reported.
    found, counts = decide(spark, chain(num), tmp_path, 200 * (num - 2), told)
    assert counts == {"num_rounds": 1, "num_pairs_on_driver": num - 3}
    assert sorted(found) == list(range(1, num, 2))
    assert all(found[rank] == (rank - 1, 0.9, 1) for rank in found)
    (event,) = told
    assert event.message == ("1 round on the cluster decided 2 of 99,999 matching pairs; the driver decides the others")


@pytest.mark.slow
def test_rounds_that_decide_little_are_reported(spark, tmp_path):
    told = []
    found, counts = decide(spark, chain(30), tmp_path, 200 * 26, told)
    assert counts == {"num_rounds": 2, "num_pairs_on_driver": 25}
    assert sorted(found) == list(range(1, 30, 2))
    assert told[0].message == (
        "round 1 decided 2 of 29 pairs, because the order has long chains of matching documents; to decide all of them "
        "on the driver, set driver_memory to 0.0GB"
    )
    assert len(told) == 2


def test_no_pair(spark, tmp_path):
    assert decide(spark, [], tmp_path, NO_PAIR) == ({}, {"num_rounds": 0, "num_pairs_on_driver": 0})


@pytest.mark.slow
def test_a_run_continues_between_rounds(frame, table, tmp_path, monkeypatch):
    from likewise.batch.spark import deciding
    from likewise.spark import dedup

    recipe = Recipe.minhash(0.7, bands=2, rows=16, keep="longest")
    a_round, rounds = deciding._round, []

    def broken(pairs):
        rounds.append(pairs)
        if len(rounds) == 2:
            raise RuntimeError("killed")
        return a_round(pairs)

    with monkeypatch.context() as context:
        context.setattr(deciding, "_round", broken)
        # No pair fits.
        context.setattr(deciding, "_BYTES_A_PAIR", 1 << 60)
        with pytest.raises(RuntimeError, match="killed"):
            dedup(frame, recipe, checkpoint_dir=str(tmp_path))
    before = finished(tmp_path)
    assert "round-1" in before
    assert "round-2" not in before
    # With more memory, no round would be needed, but one is finished.
    found = dedup(frame, recipe, checkpoint_dir=str(tmp_path))
    # The decisions of the driver, verdicts, removed documents.
    assert found.summary["num_stages_made"] == 3
    assert found.summary["num_rounds"] == 1
    check_same(found, likewise.dedup(table, recipe))
    after = finished(tmp_path)
    assert {name: after[name] for name in before} == before
    # Less memory does not add rounds to a finished decision either.
    monkeypatch.setattr(deciding, "_BYTES_A_PAIR", 1 << 60)
    shutil.rmtree(tmp_path / "verdicts.done")
    again = dedup(frame, recipe, checkpoint_dir=str(tmp_path))
    assert again.summary["num_stages_made"] == 1
    assert again.summary["num_rounds"] == 1
