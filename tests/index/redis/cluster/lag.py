"""Replicas that lag for seconds and then take over, while processes add documents at a given rate.

Each round begins an index on three masters and three replicas. The replica of the log's master, or of a partition's,
gets no more writes for some seconds; then it takes over by an operator's order, or its master is killed and the nodes
elect it. Afterward each acknowledged document must be in the index, or its loss must be reported.

    python -m tests.index.redis.cluster.lag --rounds 20 --lag 4 --rate 200
"""

import argparse
import contextlib
import faulthandler
import json
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from likewise.errors import LostWrites, StoreError
from likewise.index.redis.index import RedisIndex
from tests.index.redis.cluster.servers import Cluster

RECIPE = {"method": "simhash", "within": 3, "weights": "none", "tokens": "word"}
ORDERS = ("order", "election")
WORDS = [f"word{number}" for number in range(5000)]


def add(number, folder, url, prefix, rate):
    """Add documents until the round is over, and write which were acknowledged, which loss was told, and errors."""
    # Shows where a client hangs.
    faulthandler.register(signal.SIGUSR1)
    rng = random.Random(number)
    with (
        (folder / f"{prefix}-{number}").open("w", buffering=1) as file,
        RedisIndex(url, prefix=prefix, timeout_s=0.5, failover_s=30, threads=1) as index,
    ):
        due, doc = time.monotonic(), 0
        is_last = False
        while not is_last:
            is_last = (folder / f"{prefix}-over").exists()
            doc += 1
            doc_id = f"{number}-{doc}"
            try:
                index.check_and_add(doc_id, " ".join(rng.choices(WORDS, k=30)))
                file.write(json.dumps(["added", doc_id, time.time()]) + "\n")
            except LostWrites as error:
                file.write(json.dumps(["told", error.doc_ids]) + "\n")
                is_last = False
            except StoreError as error:
                file.write(json.dumps(["error", str(error)]) + "\n")
                time.sleep(0.1)
            due += 1 / rate
            time.sleep(max(0.0, due - time.monotonic()))


class Lag:
    """A cluster, processes that add, and rounds on it."""

    def __init__(self, program, folder, seed, *, clients=4):
        self.cluster, self.folder = Cluster(program, folder / "servers"), folder
        self.rng, self.num_clients = random.Random(seed), clients

    def close(self):
        self.cluster.close()

    def play(self, how, target, lag_s, rate):
        """Run one round. Return its counts; raise AssertionError if a loss is not reported, or the index is given up.

        `target` is "log" or "partition".
        """
        cluster = self.cluster
        prefix = next(prefix for prefix in iter(lambda: secrets.token_hex(4), "") if self.is_apart(prefix))
        with RedisIndex(cluster.url, prefix=prefix, partitions=6, **RECIPE):
            pass
        common = {"prefix": prefix, "folder": self.folder, "url": cluster.url, "rate": rate / self.num_clients}
        self.workers = workers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.index.redis.cluster.lag"]
                + [f"--{name}={value}" for name, value in {"client": number, **common}.items()]
            )
            for number in range(self.num_clients)
        ]
        try:
            # Beyond the first folds.
            self.wait(prefix, 200)
            master = cluster.owner(prefix.encode() if target == "log" else self.part(prefix))
            replica = cluster.replica_of(master)
            begun, before = time.monotonic(), self.num_added(prefix)
            replica.cut(master)
            time.sleep(lag_s)
            # A slow machine takes longer for as many operations.
            self.wait(prefix, before + int(lag_s * rate))
            num_lag, seconds = self.num_added(prefix) - before, time.monotonic() - begun
            if how == "election":
                master.kill()
            else:
                replica.client.execute_command("CLUSTER FAILOVER TAKEOVER")
            cluster.fail_over(master)
            replica.rejoin()
            if how == "election":
                master.start()
            cluster.wait_healthy()
            self.wait(prefix, self.num_added(prefix) + 200)
            (self.folder / f"{prefix}-over").touch()
            for worker in workers:
                assert worker.wait(120) == 0, "a client stopped with an error"
        finally:
            for worker in workers:
                worker.kill()
                worker.wait()
        return {"lag_operations": num_lag, "rate": round(num_lag / seconds), **self.check(prefix)}

    def is_apart(self, prefix):
        """Return whether the log's master has none of the first partition, and not all others."""
        return self.cluster.port_of(prefix.encode()) != self.cluster.port_of(self.part(prefix))

    @staticmethod
    def part(prefix):
        return f"{prefix}.0".encode()

    def lines(self, prefix):
        for path in self.folder.glob(f"{prefix}-*"):
            # The last line may be incomplete.
            for line in path.read_text().splitlines():
                with contextlib.suppress(ValueError):
                    yield json.loads(line)

    def num_added(self, prefix):
        return sum(kind == "added" for kind, *_ in self.lines(prefix))

    def wait(self, prefix, num):
        until = time.monotonic() + 900
        while self.num_added(prefix) < num:
            errors = [text for kind, text, *_ in self.lines(prefix) if kind == "error"]
            if time.monotonic() > until:
                for worker in self.workers:
                    worker.send_signal(signal.SIGUSR1)
                time.sleep(1)
                raise AssertionError(f"{self.num_added(prefix)} of {num} documents in time; {errors[-3:]}")
            assert not errors or "rebuild" not in errors[-1], errors[-1]
            time.sleep(0.1)

    def check(self, prefix):
        added = [doc_id for kind, doc_id, *_ in self.lines(prefix) if kind == "added"]
        told = {doc_id for kind, ids, *_ in self.lines(prefix) if kind == "told" for doc_id in ids}
        errors = [text for kind, text, *_ in self.lines(prefix) if kind == "error"]
        assert not [text for text in errors if "rebuild" in text], errors[:2]
        with RedisIndex(self.cluster.url, prefix=prefix) as index:
            index.compact()
            reported = {doc_id for loss in index.losses() for doc_id in loss.doc_ids}
            there = set(index.ids())
            lost = {*added} - there
            findings = [text for text in index.verify(full=True) if "a failover lost operation" not in text]
        assert not lost - told - reported, f"lost without a report: {len(lost - told - reported)}"
        assert not findings, findings[:3]
        return {"added": len(added), "lost": len(lost), "told": len(told), "errors": len(errors)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, kind, default in (("rounds", int, 20), ("lag", float, 4.0), ("rate", float, 200.0), ("seed", int, 1)):
        parser.add_argument(f"--{name}", type=kind, default=default)
    parser.add_argument("--server", default="redis-server")
    for name in ("client", "prefix", "folder", "url"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client is not None:
        add(int(given.client), Path(given.folder), given.url, given.prefix, given.rate)
        return
    with tempfile.TemporaryDirectory(prefix="lag-") as folder:
        one = Lag(given.server, Path(folder), given.seed)
        try:
            for number in range(given.rounds):
                for how in ORDERS:
                    target = ("partition", "log")[number % 2]
                    print(number, how, target, one.play(how, target, given.lag, given.rate), flush=True)
        finally:
            one.close()


if __name__ == "__main__":
    main()
