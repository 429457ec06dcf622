"""Client processes on a cluster of servers with injected failures, round by round."""

import json
import random
import secrets
import select
import signal
import subprocess
import sys
import time

import redis

from likewise.errors import StoreError
from likewise.index.redis.client import BeyondRepair, Options
from likewise.index.redis.log import LogServer
from likewise.index.redis.nodes import Nodes
from tests.index.redis.cluster.history import History, Recording, Wrong
from tests.index.redis.cluster.model_rule import ModelRule
from tests.index.redis.cluster.servers import Cluster
from tests.index.redis.cluster.worker import gathered

# Failures that may lose writes that were not confirmed by a replica, and all failures.
LOSING = ("kill master", "pause master", "kill and start again", "take over")
WRONG = (
    *LOSING,
    "kill client",
    "kill replica",
    "pause client",
    "close sockets",
    "move slots",
    "memory full",
    "fail over",
)


class Worker:
    """One client process."""

    def __init__(self, number, folder):
        self.number, self.folder = number, folder
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.index.redis.cluster.worker", str(self.number), str(self.folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.is_playing = False

    def play(self, task):
        self.process.stdin.write(json.dumps(task).encode() + b"\n")
        self.process.stdin.flush()
        self.is_playing = True

    def wait(self):
        """Wait for the end of its round, unless it was killed."""
        if self.is_playing:
            assert select.select([self.process.stdout], [], [], 180)[0], "a client hangs"
            assert self.process.stdout.readline() == b"done\n", "a client stopped with an error"
        self.is_playing = False

    def kill(self):
        self.process.kill()
        self.close()

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()


class Campaign:
    """A cluster, clients, and rounds on it, each with a new index."""

    def __init__(self, program, folder, seed, *, appends=False, clients=8):
        folder.mkdir(exist_ok=True)
        self.folder, self.rng, self.appends = folder, random.Random(seed), appends
        self.cluster = Cluster(program, folder / "servers", appends=appends)
        self.workers = [Worker(i, folder) for i in range(clients)]
        self.number = 0
        self.counts = dict.fromkeys(("rounds", "answers", "lost", "told", "reported", "beyond", "errors"), 0)

    def close(self):
        for worker in self.workers:
            worker.kill()
        self.cluster.close()

    def prefix(self, num, *, apart):
        """Return a prefix, and whether the log's node has none of the partitions, which `apart` requests."""
        for _ in range(40):
            prefix = secrets.token_hex(4).encode()
            of_parts = {self.cluster.port_of(b"%s.%d" % (prefix, part)) for part in range(num)}
            is_apart = self.cluster.port_of(prefix) not in of_parts
            if is_apart or not apart:
                break
        return prefix, is_apart

    def play(self, what, *, replicas=None, seconds=1.0):
        """Run one round. Raise Wrong unless its history is one sequence with all losses reported."""
        self.number += 1
        rng = self.rng
        num = rng.choice((2, 2, 3, 5))
        replicas = rng.choice((0, 0, 1)) if replicas is None else replicas
        if what == "kill and start again" and not self.appends:
            # A replica follows its master even if that returns empty.
            replicas = 0
        prefix, is_apart = self.prefix(num, apart=rng.random() < 0.7)
        horizon = rng.choice((16, 128))
        options = Options(
            bound=horizon + rng.choice((8, 64)),
            horizon=horizon,
            wait_s=rng.choice((0.05, 0.3)),
            advance_every=rng.choice((1, 4)),
            tidy_every=rng.choice((2, 8, 16)),
        )
        task = {
            "round": self.number,
            "url": self.cluster.url,
            "prefix": prefix.decode(),
            "num": num,
            "replicas": replicas,
            "patience_s": 20,
            "pause_s": rng.choice((0.0, 0.02, 0.1)),
            "options": options,
        }
        nodes = Nodes(self.cluster.url, 2.0, 60.0, replicas)
        try:
            LogServer(nodes, prefix).create(num, {})
            for worker in self.workers:
                worker.play(task)
            time.sleep(seconds * (0.5 + rng.random()))
            target = self.cluster.owner(prefix if rng.random() < 0.6 else b"%s.%d" % (prefix, rng.randrange(num)))
            loses_log = target is self.cluster.owner(prefix)
            getattr(self, what.replace(" ", "_"))(target, prefix, num)
            time.sleep(seconds * rng.random())
            self.cluster.wait_healthy()
            (self.folder / f"{self.number}-over").touch()
            for worker in self.workers:
                worker.wait()
            self.check(
                Recording(History(), nodes, prefix, num, ModelRule(num), options),
                loses=what in LOSING,
                is_replicated=replicas > 0,
                loses_log=loses_log and is_apart,
            )
        finally:
            nodes.close()

    def check(self, auditor, *, loses, is_replicated, loses_log):
        content = final = None
        beyond = ""
        try:
            content, final = auditor.content()
        except BeyondRepair as error:
            beyond = str(error)
        except StoreError as error:
            if "was deleted or replaced" not in str(error):
                raise
            beyond = str(error)
        paths = [*self.folder.glob(f"{self.number}-*-*")]
        history, dead, errors, ended = gathered(paths)
        history.seen |= auditor.history.seen
        self.counts["rounds"] += 1
        self.counts["answers"] += len(history.said)
        self.counts["told"] += len(history.told)
        self.counts["errors"] += len(errors)
        if beyond or ended:
            if not loses or is_replicated:
                raise Wrong(f"nothing was lost, and clients say: {beyond or ended[0]}")
            self.counts["beyond"] += 1
            return
        reported = {loss.nonce for loss in auditor.losses()}
        self.counts["reported"] += len(reported)
        history.num_lost = {"log": int(loses), "partition": int(loses and not loses_log)}
        history.check(final, content, reported, dead)
        self.counts["lost"] += history.num_void
        if is_replicated and history.num_void:
            raise Wrong("an answer that a replica had is lost")

    # Failures.

    def kill_client(self, target, prefix, num):
        worker = self.rng.choice(self.workers)
        worker.kill()
        time.sleep(0.5)
        worker.start()

    def pause_client(self, target, prefix, num):
        process = self.rng.choice(self.workers).process
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)

    def cut(self, target):
        """Let a master write without replication, and return its replica, which is paused."""
        replica = self.cluster.replica_of(target)
        replica.pause()
        target.client.execute_command("CLIENT KILL", "TYPE", "replica")
        time.sleep(0.1 + 0.5 * self.rng.random())
        return replica

    def kill_master(self, target, prefix, num):
        replica = self.cut(target)
        target.kill()
        replica.go_on()
        self.cluster.fail_over(target)
        target.start()

    def kill_replica(self, target, prefix, num):
        replica = next(node for node in self.cluster.nodes if node.port not in self.cluster.ports())
        replica.kill()
        time.sleep(0.5)
        replica.start()

    def pause_master(self, target, prefix, num):
        replica = self.cut(target)
        target.pause()
        replica.go_on()
        try:
            self.cluster.fail_over(target)
            time.sleep(self.rng.random())
        finally:
            target.go_on()

    def kill_and_start_again(self, target, prefix, num):
        """Without a file, a master that restarts at once is empty, and its replica follows."""
        target.kill()
        target.start()

    def take_over(self, target, prefix, num):
        """After a disconnection, a replica takes over without the agreement of the others."""
        replica = self.cut(target)
        replica.client.close()
        command = b"*3\r\n$7\r\nCLUSTER\r\n$8\r\nFAILOVER\r\n$8\r\nTAKEOVER\r\n"
        connection = redis.connection.Connection("127.0.0.1", replica.port, socket_timeout=5, protocol=2)
        replica.go_on()
        connection.connect()
        connection._sock.sendall(command)
        connection.read_response()
        connection.disconnect()
        self.cluster.fail_over(target)

    def fail_over(self, target, prefix, num):
        self.cluster.replica_of(target).client.execute_command("CLUSTER FAILOVER")
        self.cluster.fail_over(target)

    def close_sockets(self, target, prefix, num):
        for _ in range(10):
            for node in self.cluster.nodes:
                node.client.execute_command("CLIENT KILL", "TYPE", "normal", "SKIPME", "yes")
            time.sleep(0.1)

    def move_slots(self, target, prefix, num):
        tags = [prefix, *(b"%s.%d" % (prefix, part) for part in range(num))]
        self.rng.shuffle(tags)
        for tag in tags[:3]:
            self.cluster.move_slot(tag, self.rng.random() * 0.03)
            self.cluster.wait_healthy()

    def memory_full(self, target, prefix, num):
        target.client.execute_command("CONFIG SET", "maxmemory", 1)
        time.sleep(0.7)
        target.client.execute_command("CONFIG SET", "maxmemory", 0)
