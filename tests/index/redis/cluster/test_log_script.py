"""The log's script on a server says, call by call, what the model's log says."""

import random
import secrets
from pathlib import Path

import pytest

from tests.index.store import cluster_model as cluster
from tests.index.store.cluster_model import ADD, REMOVE, Log, Options

SCRIPT = (Path(__file__).parent / "log.lua").read_text("ascii")
OPTIONS = Options(partitions=2, bound=4)


class Both:
    """A log on a server and in the model; each call goes to both."""

    def __init__(self, client):
        self.prefix = f"{{{secrets.token_hex(4)}}}:"
        self.run = client.register_script(SCRIPT)
        client.hset(self.prefix + "log", mapping={"low": 0, "mark": 0, "end": 0, "row": 0, "second": 0, "bytes": 0})
        client.setrange(self.prefix + "chains", 0, b"\0" * 16)
        for partition in range(OPTIONS.partitions):
            client.hset(self.prefix + "confirmed", str(partition), "0:")
        self.client = client
        self.log = Log(0, 0, (), (0,), ((0, 0),) * OPTIONS.partitions, 0)
        self.chain = {0: b"\0" * 16}  # values of the model -> of the server
        self.last = self.saved = None

    def value(self, number):
        return self.chain.get(number, b"another chain...")

    def call(self, script, *arguments, server):
        before = self.log
        self.log, reply = script(self.log, OPTIONS, 0, *arguments)
        found = self.run([self.prefix], [script.__name__, *server])
        assert found[0].decode().replace("conflict", "ok") == reply[0]
        if script in (cluster.advance, cluster.reconfirm, cluster.trim):
            assert (found[0] == b"conflict") == (self.log is before)
        self.compare(found)
        return found, reply

    def compare(self, found):
        _, low, mark, end, row, value, _, confirmed, operations = found[:9]
        log = self.log
        assert (low, mark, end, row) == (log.low, log.mark, log.end, log.row)
        assert self.chain.setdefault(log.chains[-1], value) == value
        assert [operation[0] for operation in operations] == list(range(max(log.mark, log.low), log.end))
        for position, operation, verdict, marks, _ in operations:
            expected = log.at(position)
            assert operation[:8] == b"%08d" % expected.nonce
            assert int.from_bytes(operation[8:12], "little") == expected.row
            assert (verdict is None) == (expected.answer is None)
            assert verdict is None or verdict == repr(expected.answer).encode()
            assert (marks is None) == (expected.marks is None)
        assert [int(one.split(b":")[0]) for one in confirmed[1::2]] == [count for count, _ in log.confirmed]


NAMES = ["begin", "append", "store", "written", "advance", "reconfirm", "trim", "save", "lose"]
WEIGHTS = [2, 6, 8, 6, 4, 2, 2, 1, 1]


@pytest.mark.parametrize("seed", range(40))
def test_it_says_what_the_model_says(running, seed):
    rng = random.Random(seed)
    calls = [(name, rng.randrange(6), rng.randrange(4)) for name in rng.choices(NAMES, WEIGHTS, k=80)]
    both = Both(running.client)
    for number, (name, at, other) in enumerate(calls):
        log = both.log
        position = log.low + at % (len(log.operations) + 1)
        nonce = log.at(position).nonce if log.at(position) else 99
        nonce = 98 if other == 3 else nonce
        known = (both.last[0], both.value(both.last[1])) if both.last else ("", "")
        if name == "begin":
            _, reply = both.call(cluster.begin, both.last, server=("", *known))
            both.last = None if reply[0] == cluster.GONE_BACK else (position, log.chains[position])
        elif name == "append":
            kind, docs = (REMOVE, (1,)) if other == 0 else (ADD, ((1, 1),) * other)
            counter = number - number % 3  # now and then that of the operation before
            server = (
                *known,
                at,
                counter,
                b"%08d" % number,
                kind,
                0 if kind == REMOVE else other,
                b"x" * at,
                4,
                1 << 20,
                0,
            )
            both.call(cluster.append, both.last, number, at, counter, kind, docs, server=server)
        elif name == "store":
            answer = (number,)
            server = (position, b"%08d" % nonce, repr(answer))
            both.call(cluster.store, position, nonce, answer, (), server=server)
        elif name == "written":
            both.call(cluster.written, position, nonce, ((0, (number, 1)),), server=(position, b"%08d" % nonce, "0"))
        elif name == "advance":
            to = min(log.mark + other, log.end)
            chain = log.chains[to] if at else 1
            confirmed = ((number, 1), log.confirmed[1])
            if to > log.mark:
                server = (log.mark, to, both.value(chain), "0", f"{number}:1")
                both.call(cluster.advance, log.mark, to, chain, confirmed, server=server)
        elif name == "reconfirm":
            old = log.confirmed[1] if at else (77, 1)
            server = ("1", f"{old[0]}:{old[1] or ''}", f"{number}:1")
            if old[1] or not old[0]:
                both.call(cluster.reconfirm, 1, old, (number, 1), server=server)
        elif name == "trim":
            chain = log.chains[position] if other else 1
            both.call(cluster.trim, position, chain, server=(position, both.value(chain)))
        elif name == "save":
            keys = both.client.keys(both.prefix.replace("[", "\\[") + "*")
            both.saved = log, {key: both.client.dump(key) for key in keys}
        elif both.saved:
            # A failover that drops all since.
            both.log = both.saved[0]
            for key in both.client.keys(both.prefix + "*"):
                both.client.delete(key)
            for key, value in both.saved[1].items():
                both.client.restore(key, 0, value)


def test_a_log_that_was_deleted_is_absent(running):
    both = Both(running.client)
    running.client.delete(both.prefix + "log")
    assert both.run([both.prefix], ["begin", "", "", ""]) == [b"absent"]


@pytest.mark.parametrize("bytes_given", [10, 100])
def test_bytes_are_bounded_and_given_back(running, bytes_given):
    both = Both(running.client)

    def append(counter):
        nonce = b"%08d" % counter
        found = both.run([both.prefix], ["append", "", "", "w", counter, nonce, 0, 1, b"x" * bytes_given, 100, 250, 0])
        return found[0], found[3] - 1, nonce, found[5]

    appended = 0
    while (reply := append(appended))[0] == b"ok":
        appended += 1
        both.run([both.prefix], ["store", reply[1], reply[2], b"v"])
        both.run([both.prefix], ["written", reply[1], reply[2], b"m"])
        chain = reply[3]
    assert appended == 250 // (bytes_given + 1)
    assert both.run([both.prefix], ["advance", 0, appended, chain])[0] == b"ok"
    assert both.run([both.prefix], ["trim", appended, chain])[0] == b"ok"
    assert running.client.hget(both.prefix + "log", "bytes") == b"0"
    assert append(appended)[0] == b"ok"
