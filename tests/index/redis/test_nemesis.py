"""Several client processes on real servers that are rolled back, failed over and paused, with clocks that jump.

The answers to clients are compared with the final index: all acknowledged writes are in it, or were reported as lost to
their client. The index is what the model computes for one sequence of writes.
"""

import json
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import pytest

import likewise
from tests.index.redis.conftest import Running
from tests.index.redis.nemesis_client import NUM_TEXTS, text_of
from tests.index.store.model import ModelIndex
from tests.recipes import oracle_recipe

RECIPE = likewise.Recipe.simhash(within=3, shingle=1, short_threshold=0.5)
PREFIX = b"{likewise}:"
NUM_CLIENTS = 3
TTL_S = 10
# Minimum number of documents that a rollback loses: more than clients can have in flight.
NUM_LOST = 70
TIMES = ("roll back", "fail over", "pause")


def wait_for(condition, what):
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, what
        time.sleep(0.01)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@pytest.fixture
def folder():
    """A directory with a short name, since the path of a socket has at most a hundred characters."""
    with tempfile.TemporaryDirectory(prefix="nemesis-") as name:
        yield Path(name)


class Campaign:
    """A server that clients know by the name `current`, and the faults injected into it."""

    def __init__(self, program, folder, seed, *, removes=False, ttl=None):
        from likewise.redis import RedisIndex

        self.program, self.folder, self.chance = program, folder, random.Random(seed)
        self.servers, self.clients = [], []
        self.removes, self.ttl = removes, ttl
        self.current = self.serve()
        self.name(self.current)
        with RedisIndex(f"unix://{self.folder / 'current'}", RECIPE, ttl=ttl, threads=1):
            pass
        for number in range(NUM_CLIENTS):
            command = [sys.executable, "-m", "tests.index.redis.nemesis_client", folder, number, seed * 100 + number]
            self.clients.append(subprocess.Popen([*map(str, command), "1" if removes else "0"]))

    def serve(self):
        folder = self.folder / f"server-{len(self.servers)}"
        folder.mkdir()
        self.servers.append(Running(self.program, folder, "--port", str(free_port()), "--bind", "127.0.0.1"))
        return self.servers[-1]

    def name(self, server):
        new = self.folder / "new"
        new.symlink_to(server.socket)
        new.replace(self.folder / "current")

    def num_rows(self):
        return int(self.current.client.hget(PREFIX + b"meta", "rows"))

    def grow(self, num):
        least = self.num_rows() + num
        wait_for(lambda: self.num_rows() >= least, "no documents come")

    def do(self, what):
        self.grow(20)
        getattr(self, what.replace(" ", "_"))()

    def roll_back(self):
        dump, kept = self.current.folder / "dump.rdb", self.current.folder / "kept.rdb"
        self.current.client.save()
        shutil.copy(dump, kept)
        self.grow(NUM_LOST)
        self.current.stop(kill=True)
        shutil.copy(kept, dump)
        self.current.start()

    def fail_over(self):
        port = self.current.client.config_get("port")["port"]
        replica = self.serve()
        replica.client.replicaof("127.0.0.1", port)
        wait_for(
            lambda: replica.client.info("replication")["master_link_status"] == "up", "the replica does not come up"
        )
        is_stopped = self.chance.random() < 0.5
        if is_stopped:
            replica.process.send_signal(signal.SIGSTOP)
        else:
            # Disconnect from the primary, which continues.
            replica.client.replicaof("NO", "ONE")
        self.grow(NUM_LOST)
        self.current.stop(kill=True)
        if is_stopped:
            replica.process.send_signal(signal.SIGCONT)
            replica.client.replicaof("NO", "ONE")
        self.current = replica
        self.name(replica)

    def pause(self):
        if self.chance.random() < 0.3:
            self.current.client.client_pause(self.chance.randrange(100, 900), all=self.chance.random() < 0.5)
            return
        self.current.process.send_signal(signal.SIGSTOP)
        time.sleep(self.chance.uniform(0.1, 0.9))
        self.current.process.send_signal(signal.SIGCONT)

    def clock(self):
        (self.folder / "new-clock").write_text(str(self.chance.choice([0, 3, -7, 2 * TTL_S, -3 * TTL_S])))
        (self.folder / "new-clock").replace(self.folder / "clock")

    def end(self):
        self.grow(20)
        (self.folder / "stop").touch()
        for client in self.clients:
            assert client.wait(120) == 0
        logs = [(self.folder / f"client-{number}.jsonl").read_text("utf-8") for number in range(NUM_CLIENTS)]
        return [[json.loads(line) for line in log.splitlines()] for log in logs]

    def close(self):
        for client in self.clients:
            client.kill()
            client.wait()
        for server in self.servers:
            if server.process.poll() is None:
                server.process.send_signal(signal.SIGCONT)
                server.stop(kill=True)


class Sketched:
    """Distances between the texts of ids, by the batch sketches."""

    def __init__(self):
        self.words = likewise.sketch([text_of(f"any-{i}") for i in range(NUM_TEXTS)], RECIPE).array

    def of(self, doc_id):
        return int(self.words[int(doc_id.rsplit("-", 1)[1])])

    def distance(self, a, b):
        return (self.of(a) ^ self.of(b)).bit_count()


PRESENT, GONE, UNKNOWN = "present", "gone", "unknown"


class Told:
    """The answers to one client, replayed line by line. `state` is what the index must contain at the end."""

    def __init__(self, sketched, *, exact):
        self.sketched, self.exact = sketched, exact
        self.state, self.verdicts, self.counts = {}, {}, Counter()

    def replay(self, lines):
        assert lines[-1]["op"] == "done"
        for line in lines:
            assert "raw" not in line, line
            if line.get("error") == "LostWrites":
                self.lose(line)
            elif "error" in line:
                self.fail(line)
            elif "answer" in line:
                getattr(self, line["op"])(line)
        return self

    def lose(self, line):
        assert line["is_complete"]
        assert line["lost"] or line["lost_removals"]
        self.counts["lost"] += len(line["lost"])
        for doc_id in line["lost_removals"]:
            assert doc_id in self.verdicts
            self.state[doc_id] = PRESENT
        for doc_id in line["lost"]:
            assert doc_id in self.verdicts
            # Other clients may have added it, too.
            self.state[doc_id] = UNKNOWN if doc_id.startswith("shared") else GONE

    def fail(self, line):
        self.counts[line["error"]] += 1
        if line["error"] == "InvalidInput":
            assert "no document with id" in line["message"], line
            assert self.ttl_passed() or self.state.get(line["ids"][0]) != PRESENT, line
            return
        assert line["error"] == "StoreError", line
        assert "is not there" not in line["message"], line
        if line["op"] in ("add", "remove"):
            for doc_id in line["ids"]:
                if line["op"] == "remove" or self.state.get(doc_id) != PRESENT:
                    self.state[doc_id] = UNKNOWN

    def ttl_passed(self):
        return not self.exact and self.counts["ttl"]

    def near(self, doc_id, other, distance):
        """Check that a verdict is true of the two texts, at any time."""
        if other is not None:
            assert self.sketched.distance(doc_id, other) == distance <= RECIPE.sketch.within

    def add(self, line):
        self.counts["added"] += len(line["ids"])
        assert [one[0] for one in line["answer"]] == line["ids"]
        for doc_id, kept_id, distance, seq, added in line["answer"]:
            self.near(doc_id, kept_id, distance)
            before = self.state.get(doc_id)
            if before == PRESENT and not self.ttl_passed():
                assert not added, line
                assert seq == self.verdicts[doc_id][2], line
            if before == GONE:
                assert added, line
            self.state[doc_id], self.verdicts[doc_id] = PRESENT, (kept_id, distance, seq)

    def remove(self, line):
        self.counts["removed"] += 1
        self.state[line["ids"][0]] = GONE

    def check(self, line):
        known = {self.sketched.of(i) for i, state in self.state.items() if state == PRESENT} if self.exact else set()
        for doc_id, (kept_id, distance) in zip(line["ids"], line["answer"], strict=True):
            self.near(doc_id, kept_id, distance)
            assert kept_id is not None or self.sketched.of(doc_id) not in known, line

    def get(self, line):
        (doc_id,) = line["ids"]
        if self.state[doc_id] == PRESENT and not self.ttl_passed():
            assert line["answer"] is not None, line
            assert line["answer"][3] == self.verdicts[doc_id][2], line
            if self.exact:
                assert tuple(line["answer"][1:]) == self.verdicts[doc_id], line
        if line["answer"] is not None:
            self.near(doc_id, *line["answer"][1:3])

    def group(self, line):
        (doc_id,) = line["ids"]
        leader, _, members = line["answer"]
        assert doc_id in {leader, *members}, line
        assert len(set(members)) == len(members), line
        if self.exact:
            assert leader == (self.verdicts[doc_id][0] or doc_id) or self.state[doc_id] != PRESENT, line

    def neighbors(self, line):
        (doc_id,) = line["ids"]
        for other, distance in line["answer"]:
            self.near(doc_id, other, distance)
        assert line["answer"] or self.state[doc_id] != PRESENT or not self.exact, line


def compare(campaign, logs):
    """Compare the answers to clients with the contents of the index."""
    from likewise.redis import RedisIndex

    sketched = Sketched()
    exact = not campaign.removes and campaign.ttl is None
    told = []
    for lines in logs:
        one = Told(sketched, exact=exact)
        one.counts["ttl"] = campaign.ttl or 0
        told.append(one.replay(lines))
    given = {doc_id for lines in logs for line in lines if line["op"] == "add" for doc_id in line["ids"]}
    path = campaign.folder / "export.jsonl"
    with RedisIndex(f"unix://{campaign.folder / 'current'}", threads=1) as index:
        assert index.verify(full=True) == []
        index.export(path)
    stored = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    by_id = {line["doc_id"]: line for line in stored}
    assert len(by_id) == len(stored)
    assert set(by_id) <= given
    for line in stored:
        assert int.from_bytes(bytes.fromhex(line["sketch"]), "little") == sketched.of(line["doc_id"])
        if line.get("kept_id") is not None:
            assert sketched.distance(line["doc_id"], line["kept_id"]) == line["distance"] <= RECIPE.sketch.within
    if campaign.ttl is None:
        for one in told:
            for doc_id, state in one.state.items():
                if state == PRESENT:
                    assert by_id[doc_id]["seq"] == one.verdicts[doc_id][2]
                if state == GONE:
                    assert doc_id not in by_id
    if exact:
        assert [line["seq"] for line in stored] == list(range(1, len(stored) + 1))
        model = ModelIndex(oracle_recipe(RECIPE))
        for line in stored:
            expected = model.check_and_add(line["doc_id"], text_of(line["doc_id"]))
            assert (expected.kept_id, expected.distance) == (line.get("kept_id"), line.get("distance"))
        for one in told:
            for doc_id, state in one.state.items():
                if state == PRESENT:
                    assert one.verdicts[doc_id][:2] == (by_id[doc_id].get("kept_id"), by_id[doc_id].get("distance"))
    return sum((one.counts for one in told), Counter())


def run(program, folder, seed, kinds, **options):
    campaign = Campaign(program, folder, seed, **options)
    try:
        for what in kinds:
            campaign.do(what)
        logs = campaign.end()
        counts = compare(campaign, logs)
    finally:
        campaign.close()
    if {"roll back", "fail over"} & {*kinds} and campaign.ttl is None:
        assert counts["lost"] > 0
    return counts


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="no SIGSTOP here")
class TestNemesis:
    def test_a_few_rounds(self, program, folder):
        counts = run(program, folder, 1, ["pause", "roll back", "fail over"])
        assert counts["added"] > 2 * NUM_LOST

    def test_a_few_rounds_with_removals_and_a_clock_that_jumps(self, program, folder):
        run(program, folder, 3, ["clock", "roll back", "clock"], removes=True, ttl=TTL_S)

    @pytest.mark.slow
    @pytest.mark.timeout(600)
    @pytest.mark.parametrize("seed", range(12))
    def test_many_rounds(self, program, folder, seed):
        chance = random.Random(seed)
        removes, ttl = seed % 3 > 0, TTL_S if seed % 3 == 2 else None
        kinds = TIMES if ttl is None else (*TIMES, "clock")
        counts = run(program, folder, 100 + seed, [chance.choice(kinds) for _ in range(6)], removes=removes, ttl=ttl)
        print(dict(counts))
