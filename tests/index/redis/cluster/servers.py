"""A cluster of three masters and three replicas on this machine, and its failures."""

import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import redis
from redis.crc import key_slot

from tests.waiting import LIMIT_S

NODE_TIMEOUT_MS = 700
NUM_MASTERS = 3
SLOTS = 16384


def free_port():
    """Return a free port for which the port of the cluster bus, 10,000 higher, is also free."""
    while True:
        port = random.SystemRandom().randrange(12_000, 30_000)
        try:
            for number in (port, port + 10_000):
                with socket.socket() as taken:
                    taken.bind(("127.0.0.1", number))
        except OSError:
            continue
        return port


def wait_for(condition, what, limit_s=LIMIT_S):
    until = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(what)
        time.sleep(0.02)


class Node:
    """One server of the cluster."""

    def __init__(self, program, folder, *, appends):
        self.program, self.folder, self.appends = program, Path(folder), appends
        self.port = free_port()
        self.folder.mkdir(parents=True)
        self.start()
        self.id = self.client.execute_command("CLUSTER MYID").decode()

    def start(self):
        options = {
            "port": self.port,
            "bind": "127.0.0.1",
            "dir": self.folder,
            "save": "",
            "appendonly": "yes" if self.appends else "no",
            # Before a reply, and before the replica gets the write. With `everysec`, a write may wait for a slow disk.
            "appendfsync": "always",
            "cluster-enabled": "yes",
            "cluster-config-file": "nodes.conf",
            "cluster-node-timeout": NODE_TIMEOUT_MS,
            "cluster-require-full-coverage": "no",
            "cluster-replica-validity-factor": "0",
            "repl-diskless-sync": "yes",
            "repl-diskless-sync-delay": "0",
            "repl-ping-replica-period": "1",
        }
        arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
        self.process = subprocess.Popen([self.program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.STDOUT)
        self.client = redis.Redis("127.0.0.1", self.port, socket_timeout=2, socket_connect_timeout=2, protocol=2)
        # Unparsed replies, in every version of the client.
        self.client.response_callbacks.clear()
        wait_for(self.replies, "a node does not come up")

    def replies(self):
        try:
            return self.client.ping()
        except redis.exceptions.RedisError:
            return False

    def is_linked(self):
        """Return whether this is a master with a replica that has caught up, or such a replica."""
        try:
            role = self.client.execute_command("ROLE")
            state = self.client.execute_command("CLUSTER INFO")
        except redis.exceptions.RedisError:
            return False
        if b"cluster_state:ok" not in state:
            return False
        return role[3] == b"connected" if role[0] == b"slave" else len(role[2]) >= 1

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.client.close()

    def cut(self, master):
        """Let this replica get no more writes of its master, although all nodes reach each other."""
        self.client.config_set("masterauth", "not the master's")
        master.client.execute_command("CLIENT KILL", "TYPE", "replica")

    def rejoin(self):
        """Let it replicate again, as a master's replica."""
        self.client.config_set("masterauth", "")

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self):
        self.process.send_signal(signal.SIGCONT)


class Cluster:
    """Three masters, each with a replica."""

    def __init__(self, program, folder, *, appends=False):
        self.nodes = [Node(program, Path(folder) / str(i), appends=appends) for i in range(2 * NUM_MASTERS)]
        first = self.nodes[0]
        for i, node in enumerate(self.nodes):
            node.client.execute_command("CLUSTER SET-CONFIG-EPOCH", i + 1)
        for node in self.nodes[1:]:
            node.client.execute_command("CLUSTER MEET", "127.0.0.1", first.port)
        for i, node in enumerate(self.nodes[:NUM_MASTERS]):
            low, high = i * SLOTS // NUM_MASTERS, (i + 1) * SLOTS // NUM_MASTERS
            node.client.execute_command("CLUSTER ADDSLOTS", *range(low, high))
        wait_for(
            lambda: all(
                node.client.execute_command("CLUSTER NODES").count(b" connected") == len(self.nodes)
                for node in self.nodes
            ),
            "the nodes do not meet",
        )
        for i, node in enumerate(self.nodes[NUM_MASTERS:]):
            master = self.nodes[i].id
            wait_for(lambda node=node, master=master: self.replicates(node, master), "a replica is not accepted")
        self.wait_healthy()

    @staticmethod
    def replicates(node, master):
        try:
            node.client.execute_command("CLUSTER REPLICATE", master)
        except redis.exceptions.ResponseError:
            return False
        return True

    @property
    def url(self):
        return f"redis://127.0.0.1:{self.nodes[0].port}"

    def masters(self):
        """Return ranges of slots with the port of their master, from the first node that replies."""
        for node in self.nodes:
            owners = self.owners(node)
            if owners:
                return owners
        raise AssertionError("no node replies")

    @staticmethod
    def owners(node):
        try:
            ranges = node.client.execute_command("CLUSTER SLOTS")
        except redis.exceptions.RedisError:
            return []
        return sorted((first, last, master[1]) for first, last, master, *_ in ranges)

    def ports(self):
        """Return the ports of the masters."""
        return {port for _, _, port in self.masters()}

    def port_of(self, tag):
        """Return the port of the master of a tag."""
        slot = key_slot(tag)
        return next(port for first, last, port in self.masters() if first <= slot <= last)

    def owner(self, tag):
        """Return the master of a tag."""
        port = self.port_of(tag)
        return next(node for node in self.nodes if node.port == port)

    def is_healthy(self):
        if not all(node.process.poll() is None and node.is_linked() for node in self.nodes):
            return False
        views = [self.owners(node) for node in self.nodes]
        return all(view == views[0] for view in views) and sum(last + 1 - first for first, last, _ in views[0]) == SLOTS

    def wait_healthy(self):
        wait_for(self.is_healthy, "the cluster does not recover", 60)

    # Changes of the cluster.

    def replica_of(self, master):
        """Return the replica of a master."""
        return next(
            node
            for node in self.nodes
            if (role := node.client.execute_command("ROLE"))[0] == b"slave" and role[2] == master.port
        )

    def fail_over(self, node):
        """Wait until another node has taken over from a node."""
        wait_for(lambda: node.port not in self.ports(), "no replica takes over", 60)

    def move_slot(self, tag, pause_s=0.01):
        """Move one slot to another master, some keys at a time."""
        slot, source = key_slot(tag), self.owner(tag)
        ports = self.ports() - {source.port}
        target = next(node for node in self.nodes if node.port in ports)
        target.client.execute_command("CLUSTER SETSLOT", slot, "IMPORTING", source.id)
        source.client.execute_command("CLUSTER SETSLOT", slot, "MIGRATING", target.id)
        while keys := source.client.execute_command("CLUSTER GETKEYSINSLOT", slot, 3):
            source.client.execute_command("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            time.sleep(pause_s)
        for node in (target, source):
            node.client.execute_command("CLUSTER SETSLOT", slot, "NODE", target.id)

    def close(self):
        for node in self.nodes:
            node.go_on()
            node.kill()
            shutil.rmtree(node.folder, ignore_errors=True)
