"""The log's script on a server replies, call by call, like the model's log."""

import random
import secrets
import struct
import time

import pytest

from likewise.errors import StoreError
from likewise.index.redis.log import MARK, START, LogServer, Loss, packed_loss
from likewise.index.redis.nodes import Nodes, Script
from tests.index.store import cluster_model as cluster
from tests.index.store.cluster_model import ADD, REMOVE, Log, Options

pytestmark = pytest.mark.rounds

OPTIONS = Options(partitions=2, bound=4, kept=2)
# Of a request that was never sent before: an end of the log, and its chain value.
FRESH = (0, START)


class Both:
    """A log on a server and in the model, for calls of both."""

    def __init__(self, url, client, *, kept=None):
        name = secrets.token_hex(4)
        self.prefix = f"{{{name}}}:"
        self.nodes = Nodes(url)
        self.server = LogServer(self.nodes, name.encode())
        if kept is not None:
            source = self.server._script.source.replace(b" = 1024, 4096, 1", b" = %d, 4096, 1" % kept)
            assert source != self.server._script.source
            self.server._script = Script.of(source)
        self.server.create(OPTIONS.partitions, {"recipe": "of a test"})
        self.client = client
        self.log = Log(0, 0, (), (0,), ((0, 0),) * OPTIONS.partitions, 0)
        self.chain = {0: START}  # chain values of the model -> those of the server
        self.nonces = {}  # nonces of the model -> those of the server
        self.last = self.saved = None

    def run(self, verb, *arguments):
        return self.server._call(verb, 0, 0, 0, b"", *arguments)

    def mark(self, mark):
        return b"%08x%s" % (mark[0], b"%016d" % mark[1])

    def value(self, number):
        return self.chain.get(number, b"another chain...")

    def call(self, script, *arguments, server):
        before = self.log
        self.log, reply = script(self.log, OPTIONS, 0, *arguments)
        found = self.run(script.__name__, *server)
        assert found[0].decode().replace("conflict", "ok") == reply[0], script
        if script in (cluster.advance, cluster.reconfirm, cluster.trim):
            assert (found[0] == b"conflict") == (self.log is before)
        if reply[0] == cluster.ANSWERED:
            kept = reply[3]
            packed = b"" if kept.answer is None else bytes(8) + repr(kept.answer).encode()
            assert found[13] == kept.position
            assert found[15][8:] == packed[8:]
        self.compare(found)
        return found, reply

    def compare(self, found):
        _, low, mark, end, row, value, _, _, _, confirmed, start, before, items = found[:13]
        log = self.log
        assert (low, mark, end, row) == (log.low, log.mark, log.end, log.row)
        assert self.chain.setdefault(log.chains[-1], value) == value
        assert start == log.low
        assert self.chain.setdefault(log.chains[start], before) == before
        assert len(items) == 3 * len(log.operations)
        for at in range(0, len(items), 3):
            operation, verdict, marks = items[at : at + 3]
            expected = log.operations[at // 3]
            assert self.nonces.setdefault(expected.nonce, operation[:8]) == operation[:8]
            assert operation[17:25] == b"%08d" % expected.writer
            assert (verdict is None) == (expected.answer is None)
            if verdict is not None:
                rows = struct.pack("<II", expected.row, cluster.num_rows(expected.answer))
                assert verdict == rows + repr(expected.answer).encode()
            assert (marks is None) == (expected.marks is None)
        assert [confirmed[at : at + MARK] for at in range(0, len(confirmed), MARK)] == [*map(self.mark, log.confirmed)]


NAMES = ["begin", "append", "store", "written", "advance", "reconfirm", "trim", "touch", "report", "save", "lose"]
WEIGHTS = [2, 6, 8, 6, 4, 2, 3, 1, 1, 1, 1]


@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_the_model_says(running, seed):
    rng = random.Random(seed)
    calls = [(name, rng.randrange(6), rng.randrange(4)) for name in rng.choices(NAMES, WEIGHTS, k=80)]
    both = Both(running.url, running.client, kept=OPTIONS.kept)
    appended = []
    for number, (name, at, other) in enumerate(calls):
        log = both.log
        position = log.low + at % (len(log.operations) + 1)
        nonce = log.at(position).nonce if log.at(position) else 99
        nonce = 98 if other == 3 else nonce
        of_server = both.nonces.get(nonce, b"%08d" % nonce)
        known = (both.last[0], both.value(both.last[1])) if both.last else ("", "")
        if name == "begin":
            _, reply = both.call(cluster.begin, both.last, server=known)
            both.last = None if reply[0] == cluster.GONE_BACK else (position, log.chains[position])
        elif name == "append":
            kind, docs = (REMOVE, (1,)) if other == 0 else (ADD, ((1, 1),) * other)
            counter = number - number % 3  # sometimes that of the previous operation
            writer, since = at, (position, log.chains[position])
            if appended and rng.random() < 0.3:
                # A request that was sent before.
                writer, counter, kind, docs, since = rng.choice(appended)
            appended.append((writer, counter, kind, docs, since))
            server = (
                *known,
                b"%08d" % writer,
                counter,
                b"%08d" % number,
                kind,
                0 if kind == REMOVE else len(docs),
                b"x" * at,
                4,
                1 << 20,
                0,
                since[0],
                both.value(since[1]),
            )
            both.call(cluster.append, both.last, since, number, writer, counter, kind, docs, server=server)
        elif name == "store":
            num = other % 3
            answer = ((number, 1, 0, None, None),) * num or ((number, 1),)
            row = log.row + (at == 5)  # sometimes that of another state
            server = (position, of_server, row, repr(answer), num, 1, 0, 0)
            both.call(cluster.store, position, nonce, row, answer, (), server=server)
        elif name == "written":
            both.call(cluster.written, position, nonce, ((0, (number, 1)),), server=(position, of_server, "0"))
        elif name == "advance":
            to = min(log.mark + other, log.end)
            chain = log.chains[to] if at else 1
            confirmed = ((number, 1), log.confirmed[1])
            if to > log.mark:
                server = (log.mark, to, both.value(chain), "0", both.mark((number, 1)))
                both.call(cluster.advance, log.mark, to, chain, confirmed, server=server)
        elif name == "reconfirm":
            old = log.confirmed[1] if at else (77, 1)
            mark = log.mark - (other == 3)
            server = ("1", mark, both.mark(old), both.mark((number, 1)))
            both.call(cluster.reconfirm, 1, mark, old, (number, 1), server=server)
        elif name == "trim":
            chain = log.chains[position] if other else 1
            both.call(cluster.trim, position, chain, server=(position, both.value(chain)))
        elif name == "touch":
            both.call(cluster.touch, other, position, server=(other, position))
            assert tuple(both.run("touch")[13:]) == both.log.replicas
        elif name == "report":
            both.call(cluster.report, (at,), server=(packed_loss(Loss(0, b"%08d" % at, ("a",))),))
            reports = [(int(loss.nonce), end) for loss, end in both.server.reports().items()]
            assert reports == [*both.log.losses]
        elif name == "save":
            keys = both.client.keys(both.prefix.replace("[", "\\[") + "*")
            both.saved = log, {key: both.client.dump(key) for key in keys}
        elif both.saved:
            # A failover that drops all later writes.
            both.log = both.saved[0]
            for key in both.client.keys(both.prefix + "*"):
                both.client.delete(key)
            for key, value in both.saved[1].items():
                both.client.restore(key, 0, value)

    both.nodes.close()


@pytest.fixture
def both(running):
    both = Both(running.url, running.client)
    yield both
    both.nodes.close()


def test_a_log_that_was_deleted_is_absent(both):
    both.client.delete(both.prefix + "log")
    with pytest.raises(StoreError, match="was deleted or replaced"):
        both.run("begin", "", "")
    with pytest.raises(StoreError, match="was deleted or replaced"):
        both.server.losses()


def test_it_is_created_once_and_described(both):
    assert not both.server.create(5, {"recipe": "another"})
    fields = both.server.fields()
    assert fields[b"recipe"] == b"of a test"
    assert len(both.client.get(both.prefix + "confirmed")) == MARK * OPTIONS.partitions


@pytest.mark.parametrize("bytes_given", [10, 100])
def test_bytes_are_bounded_and_given_back(both, bytes_given):
    def append(counter):
        nonce = b"%08d" % counter
        return both.run("append", "", "", b"a writer", counter, nonce, 0, 1, b"x" * bytes_given, 100, 250, 0, *FRESH)

    appended = 0
    while (reply := append(appended))[0] == b"ok":
        position, nonce = reply[13:]
        appended += 1
        both.run("store", position, nonce, appended - 1, b"v", 1, 1, 0, 0)
        both.run("written", position, nonce, b"m")
        chain = reply[5]
    assert reply[0] == b"full"
    # With a verdict and marks of one byte each.
    assert appended == (250 - bytes_given) // (bytes_given + 2) + 1
    assert both.run("advance", 0, appended, chain)[0] == b"ok"
    assert both.run("trim", appended, chain)[0] == b"ok"
    assert both.client.hget(both.prefix + "log", "bytes") == b"0"
    # The last operation of each writer is kept.
    assert both.client.hgetall(both.prefix + "counters") == {
        b"": b"",
        b"a writer": b"%d:%d" % (appended - 1, appended - 1),
    }
    assert append(appended)[0] == b"ok"


def test_the_last_operations_of_the_last_writers_are_kept(both):
    def append(writer, counter, kind=REMOVE, since=FRESH):
        arguments = counter, b"%08d" % writer, kind, 0, b"x", 4000, 1 << 20, 0, *since
        return both.run("append", "", "", b"%08d" % writer, *arguments)

    num = 1030
    for writer in range(num):
        position, nonce = append(writer, 7)[13:]
        both.run("store", position, nonce, 0, b"verdict %d" % writer, 0, 0, 0, 0)
        chain = both.run("written", position, nonce, b"m")[5]
    assert both.run("answered", b"%08d" % 0, 7)[0] == b"lost"
    both.run("advance", 0, num, chain)
    assert both.run("trim", num, chain)[0] == b"ok"
    assert both.client.hlen(both.prefix + "answers") == both.client.hlen(both.prefix + "counters") == 1025
    found = both.run("answered", b"%08d" % 1029, 7)
    assert found[0] == b"answered"
    assert found[13:] == [1029, chain, bytes(8) + b"verdict 1029"]
    for writer, counter in [(5, 7), (1029, 8)]:
        assert both.run("answered", b"%08d" % writer, counter)[0] == b"lost"
    # Repeated, late and next requests.
    assert append(1029, 7)[13:] == found[13:]
    assert append(1029, 6)[0] == b"lost"
    assert append(1029, 8)[13] == num
    assert not both.client.hexists(both.prefix + "answers", b"%08d" % 1029)
    # A writer that is not kept: its request may be one that was appended.
    assert both.client.hget(both.prefix + "log", "forgotten") == b"6"
    for since in (FRESH, (5, found[11]), (num, b"another chain..."), (9000, chain)):
        assert append(5, 7, since=since)[0] == b"forgotten"
    assert append(5, 7, since=(num, chain))[13] == num + 1


def test_a_removal_with_a_large_answer_is_not_appended_again(both):
    def append():
        return both.run("append", "", "", b"a writer", 7, b"00000001", 1, 0, b"x", 100, 1 << 20, 0, *FRESH)

    position, nonce = append()[13:]
    both.run("store", position, nonce, 0, bytes(5000), 0, 0, 0, 0)
    chain = both.run("written", position, nonce, b"m")[5]
    both.run("advance", 0, 1, chain)
    assert both.run("trim", 1, chain)[0] == b"ok"
    again = append()
    assert (again[0], again[13:]) == (b"answered", [0, chain, b""])


def test_a_request_that_comes_late_is_not_appended(both):
    def append(counter, nonce):
        return both.run("append", "", "", b"a writer", counter, nonce, 0, 1, b"x", 100, 250, 0, *FRESH)

    first = append(5, b"00000001")[13:]
    assert first[0] == 0
    assert append(5, b"00000002")[13:] == first
    assert append(4, b"00000003")[0] == b"lost"
    assert append(6, b"00000004")[13] == 1


def test_a_request_that_is_repeated_after_a_failover_gets_another_nonce(both):
    def append():
        return both.run("append", "", "", b"a writer", 5, b"00000001", 0, 1, b"x", 100, 250, 0, *FRESH)[13:]

    keys = both.client.keys(both.prefix + "*")
    saved = {key: both.client.dump(key) for key in keys}
    nonces = []
    for _ in range(3):
        nonces.append(append()[1])
        assert append()[1] == nonces[-1]
        both.client.delete(*both.client.keys(both.prefix + "*"))
        for key, value in saved.items():
            both.client.restore(key, 0, value)
    assert len(set(nonces)) == 3
    # All operations of a move begin with the same bytes.
    assert {nonce[:2] for nonce in nonces} == {b"00"}
    assert {len(nonce) for nonce in nonces} == {8}


def test_no_operation_arrives_before_its_documents_or_an_earlier_one(both):
    def append(counter, given):
        both.run("append", "", "", b"a writer", counter, b"%08d" % counter, 9, 1, b"x", 100, 250, given, *FRESH)
        return both.server.ask("begin", b"", b"").log.operations[-1].second

    ahead = 2**32 - 100
    assert append(0, 5) == pytest.approx(time.time(), abs=60)
    assert append(1, ahead) == ahead
    assert append(2, 0) == append(3, ahead - 50) == ahead
    assert both.run("begin", "", "")[6] == b"%d" % ahead


def test_a_client_that_was_away_for_long_is_not_told_that_its_answer_is_lost(both):
    """The ring keeps the chain values of 8,192 positions."""
    first = both.run("append", "", "", b"a writer", 0, b"%08d" % 0, 0, 1, b"x", 9000, 1 << 20, 0, *FRESH)
    nonce = first[14]
    for counter in range(1, 8192):
        both.run("store", counter - 1, nonce, counter - 1, b"v", 1, 1, 0, 0)
        both.run("written", counter - 1, nonce, b"m")
        arguments = counter, b"%08d" % counter, 0, 1, b"x", 9000, 1 << 20, 0, *FRESH
        nonce = both.run("append", "", "", b"a writer", *arguments)[14]
        if counter % 64 == 0:
            chain = both.run("begin", counter, "")[5]
            log = both.server.ask("begin", b"", b"").log
            both.run("advance", log.mark, counter, log.chain(counter))
            both.run("trim", counter, log.chain(counter))
    assert both.run("begin", 1, first[5])[0] == b"ok"
    assert both.run("begin", 1, chain)[0] == b"gone back"
    both.run("append", "", "", b"a writer", 9000, b"00009000", 0, 1, b"x", 9000, 1 << 20, 0, *FRESH)
    assert both.run("begin", 1, first[5])[0] == b"aged"


def test_losses_are_bounded_and_each_is_there_once(both):
    losses = [Loss(i, b"%08d" % i, ("a", f"b{i}")) for i in range(1100)]
    for loss in losses:
        for _ in range(2):
            both.run("report", packed_loss(loss))
    assert both.server.losses() == losses[-1024:]


VERDICT = struct.pack("<II", 0, 1) + b"verdict"


def test_what_a_reader_has_is_not_sent_again(both):
    appended = both.run("append", "", "", b"a writer", 0, b"00000001", 0, 1, b"payload", 100, 250, 0, *FRESH)
    nonce = appended[14]
    both.run("store", 0, nonce, 0, b"verdict", 1, 1, 0, 0)
    version = both.run("begin", "", "")[8]
    everything = both.server._call("begin", 0, 0, 0, version, "", "")
    known = both.server._call("begin", 0, 1, 0, version, "", "")
    decided = both.server._call("begin", 0, 1, 1, version, "", "")
    assert everything[9] == known[9] == b""
    assert [len(reply[12][0]) for reply in (everything, known, decided)] == [32, 25, 25]
    assert [reply[12][1] for reply in (everything, known, decided)] == [VERDICT, VERDICT, b""]


def test_reports_of_one_operation_are_one_loss(both):
    def report(*losses):
        both.run("report", *map(packed_loss, losses))

    report(Loss(5, b"00000005", ()), Loss(6, b"00000006", ("a",)))
    report(Loss(5, b"00000005", ("b", "c")), Loss(5, b"00000007", ("a",)))
    report(Loss(5, b"00000005", ("c", "", "d", "b")), Loss(5, b"00000005", ("d\0e", "", "e")))
    assert both.server.losses() == [
        Loss(5, b"00000005", ("b", "c", "", "d", "d\0e", "e")),
        Loss(6, b"00000006", ("a",)),
        Loss(5, b"00000007", ("a",)),
    ]


def test_losses_are_bounded_by_bytes_too(both):
    losses = [Loss(i, b"%08d" % i, ("a" * (1 << 20),)) for i in range(20)]
    for loss in losses:
        both.run("report", packed_loss(loss))
    assert both.server.losses() == losses[-15:]


def test_row_numbers_do_not_start_again(both):
    both.client.hset(both.prefix + "log", "row", 2**32 - 10)

    def append(counter, num):
        return both.run("append", "", "", b"a writer", counter, b"%08d" % counter, 0, num, b"x", 100, 250, 0, *FRESH)

    assert append(0, 10)[0] == b"exhausted"
    status, *_, nonce = append(0, 8)
    assert status == b"ok"
    # Documents without a verdict may need a row each; those that are there already do not.
    assert append(1, 2)[0] == b"exhausted"
    both.run("store", 0, nonce, 2**32 - 10, b"verdict", 1, 1, 0, 0)
    assert append(1, 9)[0] == b"exhausted"
    assert append(1, 8)[0] == b"ok"


def test_rows_follow_from_the_verdicts_before(both):
    nonces = [
        both.run("append", "", "", b"a writer", i, b"%08d" % i, 0, 2, b"payload", 100, 250, 0, *FRESH)[14]
        for i in range(3)
    ]
    assert both.run("store", 0, nonces[0], 1, b"verdict", 2, 1, 0, 0)[0] == b"behind"
    for i, (row, num) in enumerate([(0, 2), (2, 0), (2, 1)]):
        assert both.run("store", i, nonces[i], row, b"verdict", num, 1, 0, 0)[0] == b"ok"
    log = both.server.ask("begin", b"", b"").log
    assert [(one.row, one.num) for one in log.operations] == [(0, 2), (2, 0), (2, 1)]
    assert [log.row_at(at) for at in range(4)] == [0, 2, 2, 3]
    assert log.row == 3


def test_time_does_not_go_back(both):
    both.client.hset(both.prefix + "log", "second", 2**32 - 1)
    assert both.run("begin", "", "")[6] == b"4294967295"


def test_what_is_pending_is_returned_first_and_without_payload(both):
    nonces = [
        both.run("append", "", "", b"a writer", i, b"%08d" % i, 0, 1, b"payload", 100, 250, 0, *FRESH)[14]
        for i in range(4)
    ]
    both.run("store", 0, nonces[0], 0, b"first", 1, 1, 0, 0)
    both.run("store", 1, nonces[1], 1, b"verdict", 0, 0, 0, 0)
    both.run("written", 1, nonces[1], b"m")
    found = both.server._call("begin", "3,1,2", 3, 1, b"", "", "")
    assert found[10] == 3
    assert found[12][:6] == [b"", b"\1" + bytes(7) + b"verdict", b"m", b"", None, None]
    assert len(found[12]) == 9
    assert found[12][6].endswith(b"payload")
