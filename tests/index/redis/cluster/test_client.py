"""Behavior of a client when others stop, when servers lose unreplicated writes, and when the log is full."""

import os
import secrets
import signal
from functools import partial

import pytest

import likewise
from likewise.errors import ForkedError, InvalidInput, InvalidParameter, LostWrites, StoreError
from likewise.index.redis import client as client_module
from likewise.index.redis.client import BeyondRepair, Client, Options
from likewise.index.redis.index import RedisIndex
from likewise.index.redis.log import LogServer, PartReply
from likewise.index.redis.nodes import Nodes
from tests.index.redis.cluster.model_rule import ModelRule, payload_of
from tests.index.redis.cluster.test_histories import LOSE, SAVE
from tests.index.store.cluster_model import ADD, CHECK, REMOVE, TEXTS

pytestmark = pytest.mark.rounds

NUM = 3
# Only the operations themselves.
NO_UPKEEP = Options(advance_every=10_000, tidy_every=10_000, wait_s=0.0, doubt_s=0.05)


class Killed(BaseException):
    """A client stops."""


class Group:
    """Clients of one index with the model's rule."""

    def __init__(self, running):
        self.running, self.prefix, self.nodes = running, secrets.token_hex(4).encode(), []
        self.save, self.lose = running.client.register_script(SAVE), running.client.register_script(LOSE)
        LogServer(self.connect(), self.prefix).create(NUM, {})

    def connect(self):
        self.nodes.append(Nodes(self.running.url))
        return self.nodes[-1]

    def client(self, options=None):
        return Client(self.connect(), self.prefix, NUM, ModelRule(NUM), options)

    def saved(self, part=None):
        """Return the content of the log or a partition, for `restore`."""
        tag = b"{%s}:*" % self.prefix if part is None else b"{%s.%d}.*" % (self.prefix, part)
        return [tag, *self.save(args=[tag])]

    def restore(self, saved):
        self.lose(args=saved)

    def head(self, part):
        return self.running.client.hgetall(b"{%s.%d}.head" % (self.prefix, part))

    def fold_of(self, part):
        return int(self.running.client.hget(b"{%s.%d}.head" % (self.prefix, part), "fold") or 0)


@pytest.fixture
def group(running):
    group = Group(running)
    yield group
    for nodes in group.nodes:
        nodes.close()


def add(client, *ids):
    return client.operate(ADD, payload_of(ADD, tuple((i, TEXTS[i % len(TEXTS)]) for i in ids)))


def remove(client, doc_id):
    return client.operate(REMOVE, payload_of(REMOVE, (doc_id,)))


def look(client, text=0):
    return client.ask(payload_of(CHECK, (TEXTS[text],)))


def stop_before(client, verb):
    """Make a client stop before one script of the log."""
    ask = client._log.ask

    def stopping(asked, *arguments, writes=False):
        if asked == verb:
            raise Killed
        return ask(asked, *arguments, writes=writes)

    client._log.ask = stopping


# Clients that stop.


def test_an_operation_whose_client_stopped_before_marking_it_does_not_hold_w_back(group):
    stopped = group.client()
    stop_before(stopped, "written")
    with pytest.raises(Killed):
        add(stopped, 1)
    other = group.client(Options(wait_s=0.05))
    for i in range(300):
        add(other, i % 6)
    log = other.log()
    assert log.end - log.mark < 100
    assert other.num_helped == 1


def test_an_operation_that_failed_after_its_verdict_is_completed_by_the_next_ones(group):
    client = group.client(Options(wait_s=1000.0))
    write, client._write_effects = client._write_effects, None
    with pytest.raises(TypeError):
        add(client, 1)
    client._write_effects = write
    for i in range(8):
        add(client, i % 6)
    assert client.log().mark >= 8


def test_marks_that_a_client_has_are_not_returned_again(group):
    stopped, client = group.client(), group.client(NO_UPKEEP)
    stop_before(stopped, "written")
    with pytest.raises(Killed):
        add(stopped, 1)
    for i in range(20):
        add(client, i % 6)
    replies, call = [], client._log._call

    def recorded(*arguments, writes=False):
        replies.append(call(*arguments, writes=writes))
        return replies[-1]

    client._log._call = recorded
    log = client._again()
    # Only the operation without marks.
    assert [len(reply[12]) for reply in replies] == [3]
    assert [operation.marks is None for operation in log.operations] == [True] + [False] * 20
    client._complete(log, 0, log.there(0).nonce)
    assert client._again().there(0).marks == group.client()._again().there(0).marks is not None


@pytest.mark.parametrize("is_kept", [True, False])
def test_a_removal_that_others_finished_and_trimmed_is_not_repeated(group, is_kept):
    client, other = group.client(NO_UPKEEP), group.client(NO_UPKEEP._replace(horizon=0, bound=2))
    add(client, 1)
    complete = client._complete

    def paused(log, position, nonce):
        client._complete = complete
        other.settle()
        add(other, 1)
        for _ in range(2):
            add(other, 2)
            other.settle()
        assert other.log().low > position
        if not is_kept:
            group.running.client.hdel(b"{%s}:answers" % group.prefix, client._name)
        return complete(log, position, nonce)

    client._complete = paused
    if is_kept:
        assert remove(client, 1) == ((1, 1),)
    else:
        with pytest.raises(StoreError, match="may or may not have been applied"):
            remove(client, 1)
    assert look(other, 1) is not None
    assert remove(client, 1)


# Servers that lose unreplicated writes.


def test_all_writes_that_a_partition_lost_are_written_again_at_once(group):
    client = group.client(NO_UPKEEP)
    saved = [group.saved(part) for part in range(NUM)]
    for i in range(30):
        add(client, i % 6, (i + 1) % 6)
    for one in saved:
        group.restore(one)
    log = client._move(client._again())
    assert log.mark == log.end == 30


@pytest.mark.parametrize("bound", [0, 4097])
def test_a_log_longer_than_the_marks_of_a_partition_is_rejected(group, bound):
    with pytest.raises(InvalidParameter, match="bound"):
        group.client(Options(bound=bound))


def test_folds_are_as_far_below_w_as_the_horizon(group):
    client = group.client(Options(bound=512))
    for i in range(450):
        add(client, i % 6)
        if i % 64 == 63:
            log = client.log()
            assert all(group.fold_of(part) <= max(0, log.mark - 128) for part in range(NUM))
    # The log keeps more than that, from which a partition that lost folds is repaired.
    assert (log.low, log.end) == (64, 448)
    assert all(group.fold_of(part) > 100 for part in range(NUM))


@pytest.mark.parametrize("what", ["advance", "written"])
def test_a_log_that_lost_only_a_move_of_w_catches_up_with_the_folds(group, what):
    client, other = group.client(NO_UPKEEP), group.client(NO_UPKEEP)
    for i in range(5):
        add(client, i)
    if what == "written":
        stopped = group.client()
        stop_before(stopped, "written")
        with pytest.raises(Killed):
            add(stopped, 5)
    saved = group.saved()
    other._fold(other.settle(), 5 + (what == "written"))
    assert all(group.fold_of(part) >= 5 for part in range(NUM))
    group.restore(saved)
    for i in range(5):
        look(client, i % len(TEXTS))
        add(client, i)
    assert client.settle().mark == client.log().end >= 10


def test_a_log_that_lost_a_final_operation_is_beyond_repair(group):
    client, other = group.client(NO_UPKEEP), group.client(NO_UPKEEP)
    saved = group.saved()
    add(client, 1)
    other._fold(other.settle(), 1)
    group.restore(saved)
    with pytest.raises(BeyondRepair):
        add(other, 1)


def test_losses_are_named_also_when_the_log_cannot_be_reached_meanwhile(group):
    client = group.client(NO_UPKEEP)
    add(client, 0)
    saved = group.saved()
    for i in range(1, 5):
        add(client, i)
    group.restore(saved)
    ask, left = client._log.ask, [2]

    def failing(*arguments, writes=False):
        if not left[0]:
            raise StoreError("away")
        left[0] -= 1
        return ask(*arguments, writes=writes)

    client._log.ask = failing
    with pytest.raises(StoreError, match="away"):
        add(client, 5)
    client._log.ask = ask
    with pytest.raises(LostWrites) as caught:
        add(client, 5)
    assert list(caught.value.doc_ids) == ["1", "2", "3", "4"]
    assert add(client, 5)


def test_documents_that_were_rejected_are_not_lost(running):
    prefix = secrets.token_hex(4)
    recipe = likewise.Recipe.simhash(within=3, weights="none")
    save, lose = running.client.register_script(SAVE), running.client.register_script(LOSE)
    with RedisIndex(running.url, recipe, prefix=prefix) as index:
        index.add("a", "one fine day in spring")
        saved = save(args=[f"{{{prefix}}}:*"])
        index.add("b", "another day in autumn, quite late")
        with pytest.raises(InvalidInput):
            index.add("a", "something else altogether")
        lose(args=[f"{{{prefix}}}:*", *saved])
        with pytest.raises(LostWrites) as caught:
            index.check("one fine day in spring")
        assert list(caught.value.doc_ids) == ["b"]


def test_a_lost_operation_is_reported_once_with_all_its_ids(group):
    client, other = group.client(NO_UPKEEP), group.client(NO_UPKEEP)
    add(client, 5)
    other.settle()
    saved = group.saved()
    add(client, 0, 1, 2, 3, 4)
    remove(client, 5)
    group.restore(saved)
    for _ in range(2):
        other.operate(ADD, payload_of(ADD, ()))
    log = other._move(other._again())
    other._fold(log, log.mark)
    assert [(loss.position, sorted(loss.doc_ids)) for loss in sorted(other.losses())] == [
        (1, ["0", "1", "2", "3", "4"]),
        (2, ["5"]),
    ]


def test_a_report_that_a_failover_dropped_is_made_again(group):
    client, other = group.client(NO_UPKEEP), group.client(NO_UPKEEP)
    for i in range(4):
        add(other, i)
    other.settle()
    saved = group.saved()
    add(client, 4, 5)
    group.restore(saved)
    ask, before = other._log.ask, []

    def saving(verb, *arguments, writes=False):
        if verb == "report":
            before.append(group.saved())
        return ask(verb, *arguments, writes=writes)

    other._log.ask = saving
    add(other, 0, 1, 2, 3)
    other.settle()
    assert [sorted(loss.doc_ids) for loss in other.losses()] == [["4", "5"]]
    group.restore(before[0])
    assert other.losses() == []
    # The partitions forget it only once they are folded beyond the report.
    for is_final in (False, True):
        log = other.settle()
        other._fold(log, log.mark)
        assert [sorted(loss.doc_ids) for loss in other.losses()] == [["4", "5"]]
        purged = [key for part in range(NUM) for key in group.head(part) if key.startswith(b"purged ")]
        assert (not purged) == is_final
        add(other, 1)


def fill(client, num):
    """Add new documents."""
    first = client.log().end
    for i in range(first, first + num):
        add(client, i)


def test_a_partition_that_lost_many_folds_is_repaired_from_the_log(group):
    client, other = group.client(Options(bound=64, horizon=4, tidy_every=4)), group.client(NO_UPKEEP)
    fill(client, 40)
    saved = [group.saved(part) for part in range(NUM)]
    # Several folds, and half of what the log keeps.
    fill(client, 24)
    for part, one in enumerate(saved):
        assert group.fold_of(part) >= 56
        group.restore(one)
    fill(other, 6)
    assert look(client, 1) is not None
    assert client.settle().mark == client.log().end == 70
    assert [add(client, i)[0][1] for i in range(70)] == [0] * 70
    assert other.num_repaired + client.num_repaired >= NUM


class Confirming:
    """Replicas of the log, as many as a test says, and whether they confirm."""

    def __init__(self, monkeypatch, *, num=1):
        self.num, self.confirmed = num, num
        monkeypatch.setattr(Nodes, "confirmations", lambda nodes, key, field: (self.num, self.confirmed))


@pytest.mark.parametrize("is_linked", [False, True])
def test_no_partition_folds_what_a_lagging_replica_of_the_log_lacks(group, monkeypatch, is_linked):
    replicas = Confirming(monkeypatch)
    client = group.client(Options(bound=64, horizon=4, tidy_every=4))
    fill(client, 20)
    assert {group.fold_of(part) for part in range(NUM)} == {16}
    # Connected and late, or not connected at all.
    replicas.num, replicas.confirmed = int(is_linked), 0
    saved = group.saved()
    fill(client, 24)
    assert {group.fold_of(part) for part in range(NUM)} == {16}
    # It takes over: what it lacks is lost, and reported.
    group.restore(saved)
    with pytest.raises(LostWrites):
        look(client)
    fill(client, 6)
    assert client.settle().mark == client.log().end == 26


def test_a_replica_of_the_log_that_is_gone_holds_back_few_folds(group, monkeypatch):
    replicas = Confirming(monkeypatch)
    client = group.client(Options(bound=64, horizon=4, tidy_every=4))
    fill(client, 20)
    replicas.num = replicas.confirmed = 0
    fill(client, 80)
    assert {group.fold_of(part) for part in range(NUM)} == {96}


def test_a_server_without_replicas_folds_at_once(group):
    client = group.client(Options(bound=64, horizon=4, tidy_every=4))
    fill(client, 20)
    assert {group.fold_of(part) for part in range(NUM)} == {16}


def test_a_server_that_was_replaced_is_asked_again_before_a_loss_is_reported(group):
    options = NO_UPKEEP._replace(horizon=0, bound=2, doubt_s=1000.0)
    client, other = group.client(options), group.client(options)
    # The client knows a view in which nothing is final.
    for i in range(6):
        add(other, i)
        other.settle()
    assert other.log().low > 0
    call, num = client._partitions.call, []

    def replaced(requests):
        """A master that a replica has replaced shows an empty partition, until it knows."""
        replies = call(requests)
        if len(num) < 2:
            num.append(1)
            replies = [reply._replace(fold=0, chain=b"0" * 16) for reply in replies]
        return replies

    client._partitions.call = replaced
    assert look(client, 1) is not None
    assert len(num) == 2
    num.clear()
    assert add(client, 1)
    num.clear()
    client.settle()
    assert add(client, 2)


def test_a_loss_that_upkeep_found_is_looked_at_again_by_the_next_call(group):
    client = group.client(Options(advance_every=1, doubt_s=0.05))
    move = client._move

    def fails(log, *, is_repeated=False):
        client._move = move
        raise BeyondRepair("deep")

    client._move = fails
    assert add(client, 1)
    assert add(client, 2)
    assert look(client, 1) is not None


# Upkeep.


def test_an_answer_does_not_depend_on_upkeep(group):
    client = group.client(Options(advance_every=1))

    def fails(log, *, is_repeated=False):
        raise StoreError("a partition is away")

    client._move = fails
    assert add(client, 1)
    assert remove(client, 1)


def test_what_is_beyond_repair_is_reported_by_the_next_call(group):
    client = group.client(Options(advance_every=1, doubt_s=0.05))

    def fails(log, *, is_repeated=False):
        raise BeyondRepair("deep")

    client._move = fails
    assert add(client, 1)
    for call in (add, look):
        with pytest.raises(BeyondRepair, match="deep"):
            call(client, 1)


def test_a_repeated_fold_does_not_trim_to_the_last_fold(group, monkeypatch):
    monkeypatch.setattr(client_module, "_KEPT_SHARE", 0)
    client = group.client(NO_UPKEEP._replace(horizon=0))
    for _ in range(2):
        for i in range(4):
            add(client, i)
        log = client.settle()
    assert log.low == 4
    for part in range(NUM):
        assert group.fold_of(part) == 8
    log = client._fold(log, 8)
    assert log.low == 4


def test_the_payload_is_not_sent_while_the_log_is_full(group):
    stopped = [group.client(NO_UPKEEP) for _ in range(8)]
    for one in stopped:
        stop_before(one, "store")
        with pytest.raises(Killed):
            add(one, 1)
    client = group.client(NO_UPKEEP._replace(bound=8))
    verbs, ask = [], client._log.ask

    def counted(verb, *arguments, writes=False):
        verbs.append(verb)
        return ask(verb, *arguments, writes=writes)

    client._log.ask = counted
    add(client, 1)
    assert verbs.count("append") == 2


# Operations without a decision.


class Selective(ModelRule):
    """A rule that cannot decide on one operation."""

    def __init__(self, payload):
        super().__init__(NUM)
        self.payload = payload

    def decide(self, payload, *arguments):
        if payload == self.payload:
            raise StoreError("a record is damaged")
        return super().decide(payload, *arguments)


class Unread(Selective):
    """A rule whose decision on one operation has no verdict."""

    def decide(self, payload, *arguments):
        decision = ModelRule.decide(self, payload, *arguments)
        if payload == self.payload:
            decision.verdict = partial(Selective.decide, self, payload)
        return decision


@pytest.mark.parametrize("kind", [Selective, Unread])
def test_an_operation_that_cannot_be_decided_is_rejected_and_the_index_stays_usable(group, kind):
    payload = payload_of(ADD, ((1, TEXTS[1]),))
    client, other = group.client(), group.client(Options(wait_s=0.0))
    client.rule = other.rule = kind(payload)
    before = client.log().end
    message = f"operation {before} of client {client._name.hex()}, which changed nothing: a record is damaged"
    with pytest.raises(StoreError, match=message):
        client.operate(ADD, payload)
    for one in (client, other):
        assert add(one, 2)[0][0] == 2
    assert client.settle().mark == before + 3
    assert client.log().row == 1
    # One that stopped before it could reject its operation.
    stop_before(client, "store")
    with pytest.raises(Killed):
        client.operate(ADD, payload)
    assert add(other, 3)
    client.rule = other.rule = ModelRule(NUM)
    assert add(other, 1)[0][1:3] == (1, 2)


def test_a_question_without_a_decision_raises_the_error(group):
    client = group.client()
    client.rule = Selective(payload_of(CHECK, (TEXTS[0],)))
    with pytest.raises(StoreError, match="a record is damaged"):
        look(client)
    assert client.log().end == 0


def test_a_verdict_that_is_too_long_is_rejected(group, monkeypatch):
    client = group.client()
    monkeypatch.setattr(client_module, "MAX_BYTES", 100)
    with pytest.raises(StoreError, match="the verdict has"):
        add(client, 1, 2, 3)
    with pytest.raises(InvalidInput, match="use smaller batches"):
        add(client, *range(40))
    assert remove(client, 7)


# Other clients at the same time.


def test_a_question_is_answered_while_others_write(group):
    client, other = group.client(NO_UPKEEP), group.client(Options(advance_every=1))
    add(other, 0, 1, 2, 3, 4)
    call, num = client._partitions.call, 0

    def overtaken(requests):
        nonlocal num
        num += 1
        assert num < 20, "it is decided again for each operation of others"
        # In all partitions.
        add(other, *range(10 * num, 10 * num + 6))
        return call(requests)

    client._partitions.call = overtaken
    assert look(client) is not None


def test_a_clash_with_a_partition_that_is_too_old_is_beyond_repair(group):
    client = group.client(NO_UPKEEP._replace(horizon=0, bound=2))
    for i in range(2):
        add(client, i)
        client.settle()
    log = client.log()
    assert log.low == 1
    client._partitions.call = lambda requests: [
        PartReply(b"clash", b"0" * 24, 0, b"0" * 16, [b"0" + b"x" * 8]) for _ in requests
    ]
    with pytest.raises(BeyondRepair):
        client._write_effects(log, {1: log.there(1)})


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_process_that_was_forked_during_a_call_does_not_hang(group):
    client = group.client()
    with client._lock:
        child = os.fork()
        if not child:
            signal.alarm(10)
            try:
                look(client)
            except ForkedError:
                os._exit(0)
            os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
