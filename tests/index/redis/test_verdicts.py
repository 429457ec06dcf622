"""P3 on servers: the verdicts of many clients are those of `Index` in a directory, and of `dedup`, for the log's order.

`LIKEWISE_ORDERS` sets the number of orders of the long tests, and `LIKEWISE_FAILOVERS` that of failovers.
"""

import contextlib
import itertools
import json
import os
import random
import secrets
import tempfile
import threading
import time

import pytest

import likewise
from likewise.errors import LostWrites
from likewise.redis import RedisIndex
from tests.index.redis.test_conformance import BUSY, EXPECTED
from tests.index.store.conformance import evidence
from tests.index.store.test_batch_and_online import batch_verdicts

# Long: `make test` leaves them out, `.ci/run` runs them.
pytestmark = pytest.mark.rounds

ORDERS = int(os.environ.get("LIKEWISE_ORDERS", "20"))
FAILOVERS = int(os.environ.get("LIKEWISE_FAILOVERS", "4"))
MOST_CLIENTS = 8
MOST_DOCUMENTS = 600
# Short English texts, long Chinese ones, HTML, and Java.
SETS = {"en-cpp-errors": "text", "zh-docs-tidb": "text", "html-kafka-javadoc": "html", "code-irplag": "text"}
RECIPES = {
    "minhash": likewise.Recipe.minhash(threshold=0.7),
    "simhash": likewise.Recipe.simhash(within=3),
    "exact": likewise.Recipe.simhash(within=0, bits=128),
}
EVERYTHING = [pytest.param(recipe, name, id=f"{recipe}-{name}") for recipe in RECIPES for name in SETS]


class Order:
    """Documents of a set in a random order, added by some clients at once: each takes the next batch."""

    def __init__(self, documents, recipe, seed):
        self.rng = random.Random(seed)
        self.recipe = recipe
        self.num_clients = 1 + seed % MOST_CLIENTS
        rows = self.rng.sample(documents, min(len(documents), MOST_DOCUMENTS))
        self.texts = dict(rows)
        batches, start = [], 0
        while start < len(rows):
            size = self.rng.choice([1, 2, 7, 20, 60])
            batches.append([doc_id for doc_id, _ in rows[start : start + size]])
            start += size
        self.num_batches = len(batches)
        self.batches = iter(batches)
        self.num_begun = self.num_told = 0
        self.lock = threading.Lock()
        self.verdicts = {}
        self.faults = []

    def next(self):
        with self.lock:
            self.num_begun += 1
            return next(self.batches, None)

    def add(self, index, names):
        """Add documents, and again those of which the client was told that they are lost."""
        waiting = [names]
        while waiting:
            try:
                found = index.check_and_add_batch(waiting[-1], [self.texts[name] for name in waiting[-1]])
            except LostWrites as lost:
                again = lost.doc_ids
                with self.lock:
                    self.num_told += 1
                    for name in again:
                        self.verdicts.pop(name, None)
                waiting.append(again)
                continue
            waiting.pop()
            with self.lock:
                self.verdicts |= {verdict.doc_id: verdict for verdict in found}

    def run_client(self, index):
        try:
            while (names := self.next()) is not None:
                self.add(index, names)
        except BaseException as error:
            self.faults.append(error)
            raise

    def play(self, url, *, midway=None, creation=None, **options):
        """Add all documents, with `midway` called once after half of the batches, and compare."""
        prefix = secrets.token_hex(4)
        creation = {"expected": EXPECTED, "partitions": self.rng.choice([1, 2, 3, 5]), **(creation or {})}
        with contextlib.ExitStack() as stack:
            index = stack.enter_context(RedisIndex(url, self.recipe, prefix=prefix, **creation, **options))
            # Opened here, since opening one fails while a master is dead.
            clients = [
                stack.enter_context(RedisIndex(url, prefix=prefix, threads=1, **options))
                for _ in range(self.num_clients)
            ]
            threads = [threading.Thread(target=self.run_client, args=(client,)) for client in clients]
            for thread in threads:
                thread.start()
            if midway is not None:
                while self.num_begun < self.num_batches / 2:
                    time.sleep(0.001)
                midway(prefix.encode(), creation["partitions"], self.rng)
            for thread in threads:
                thread.join()
            assert not self.faults, self.faults
            self.compare(index)

    def compare(self, index):
        assert set(self.verdicts) == set(self.texts)
        names = sorted(self.texts, key=lambda name: self.verdicts[name].seq)
        assert [self.verdicts[name].seq for name in names] == [*range(1, len(names) + 1)]
        found = {name: evidence(self.verdicts[name]) for name in names}
        texts = [self.texts[name] for name in names]
        with likewise.Index.in_memory(self.recipe) as alone, tempfile.TemporaryDirectory() as folder:
            start = 0
            while start < len(names):
                part = slice(start, start + self.rng.choice([1, 50, 400]))
                for verdict in alone.add_batch(names[part], texts[part]):
                    assert found[verdict.doc_id] == evidence(verdict), verdict
                start = part.stop
            assert stored(index, f"{folder}/server") == stored(alone, f"{folder}/directory")
        assert {name: one for name, one in found.items() if one} == batch_verdicts(names, texts, self.recipe)


def stored(index, path):
    """Return the exported documents, except their times of arrival."""
    index.export(path)
    with open(path, encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    for row in rows:
        row.pop("arrival_s", None)
    return rows


@pytest.fixture
def order(labeled):
    """Return a random order of a set."""
    loaded = {}

    def begin(recipe, name, seed):
        if name not in loaded:
            ids, texts, _ = labeled(name, SETS[name])
            loaded[name] = [*zip(ids, texts, strict=True)]
        return Order(loaded[name], RECIPES[recipe], seed)

    return begin


def say(what, orders):
    """Report what was compared; pytest shows it with -rP."""
    documents = sum(len(one.texts) for one in orders)
    duplicates = sum(not verdict.is_new for one in orders for verdict in one.verdicts.values())
    told = sum(one.num_told for one in orders)
    print(f"{what}: {len(orders)} orders, {documents} documents, {duplicates} duplicates, {told} losses told, 0 differ")


@pytest.mark.parametrize(("recipe", "name"), [EVERYTHING[0], EVERYTHING[5], EVERYTHING[11]])
def test_many_clients_get_the_verdicts_of_one_sequence(running, order, recipe, name):
    order(recipe, name, 3).play(running.url)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("recipe", "name"), EVERYTHING)
def test_many_clients_get_the_verdicts_of_one_sequence_in_many_orders(running, order, monkeypatch, recipe, name):
    orders = []
    for seed in range(ORDERS):
        # Each number of clients occurs with and without frequent folds.
        is_busy = seed // MOST_CLIENTS % 2 == 1
        monkeypatch.setattr(RedisIndex, "_options", BUSY if is_busy else type(BUSY)())
        orders.append(order(recipe, name, seed))
        orders[-1].play(running.url)
        running.client.flushall()
    say("one server", orders)


@pytest.fixture(scope="module")
def cluster(program):
    """Start a cluster of three masters and three replicas."""
    from tests.index.redis.cluster.servers import Cluster

    with tempfile.TemporaryDirectory(prefix="likewise-cluster-") as folder:
        servers = Cluster(program, f"{folder}/servers")
        yield servers
        servers.close()


def play_failover(cluster, one):
    """Run an order on a replicated index, and kill a master after half of the batches."""

    def kill_master(prefix, partitions, rng):
        tags = [prefix, *(b"%s.%d" % (prefix, part) for part in range(partitions))]
        target = cluster.owner(rng.choice(tags))
        target.kill()
        cluster.fail_over(target)
        target.start()

    cluster.wait_healthy()
    one.play(cluster.url, midway=kill_master, creation={"durability": "replicated"}, timeout_s=2.0, failover_s=120.0)
    cluster.wait_healthy()


def test_a_master_of_a_replicated_index_dies(cluster, order):
    one = order("minhash", "en-cpp-errors", 3)
    play_failover(cluster, one)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("recipe", "name"), EVERYTHING)
def test_a_master_of_a_replicated_index_dies_in_many_orders(cluster, order, recipe, name):
    # 1, 8, 3, 6 clients and so on.
    seeds = itertools.islice(itertools.cycle([0, 7, 2, 5, 1, 6, 3, 4]), FAILOVERS)
    orders = [order(recipe, name, seed + MOST_CLIENTS * number) for number, seed in enumerate(seeds)]
    for one in orders:
        play_failover(cluster, one)
    say("cluster with a failover", orders)
