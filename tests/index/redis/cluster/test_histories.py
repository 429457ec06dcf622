"""Clients of the protocol on a real server: random histories with lost replies, stopped clients and lost suffixes.

The rule is that of the model, and each history is compared with the model. `LIKEWISE_CLUSTER_ROUNDS` sets their number.
"""

import os
import random
import secrets
import threading
import time

import pytest

from likewise.errors import LostWrites, StoreError
from likewise.index.redis.client import BeyondRepair, Options
from likewise.index.redis.log import LogServer
from likewise.index.redis.nodes import Nodes
from tests.index.redis.cluster.history import NUM_IDS, History, Recording
from tests.index.redis.cluster.model_rule import ModelRule
from tests.index.store.cluster_model import ADD, REMOVE, TEXTS

# Long: `make test` leaves them out, `.ci/run` runs them.
pytestmark = pytest.mark.rounds

ROUNDS = int(os.environ.get("LIKEWISE_CLUSTER_ROUNDS", "12"))
SEED = int(os.environ.get("LIKEWISE_CLUSTER_SEED", "1"))

SAVE = """
local found = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  found[#found + 1] = key
  found[#found + 1] = redis.call('DUMP', key)
end
return found
"""
LOSE = """
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
for i = 2, #ARGV, 2 do redis.call('RESTORE', ARGV[i], 0, ARGV[i + 1]) end
"""


class Killed(BaseException):
    """A client stops at any point."""


class Unreliable(Nodes):
    """Connections of one client that is stopped or paused, loses replies, and sends requests again later."""

    def __init__(self, url, rng, chance):
        super().__init__(url)
        self.rng, self.chance = rng, chance
        self.sent = []

    def _round(self, requests, replies, left):
        left = [*left]
        what = self.rng.random() / self.chance if self.chance else 9
        if what < 0.1:
            raise Killed
        if what < 0.5:
            # Run the calls twice.
            super()._round(requests, [None] * len(replies), left)
            if what < 0.2:
                raise Killed
        elif what < 0.7 and self.sent:
            late = self.rng.choice(self.sent)
            super()._round(late, [None] * len(late), range(len(late)))
        elif what < 1:
            time.sleep(self.rng.random() * 0.03)
        self.sent.append([requests[i] for i in left])
        return super()._round(requests, replies, left)


class Round:
    """One index, its clients, and its failures."""

    def __init__(self, url, client, seed):
        self.url, self.client, self.rng = url, client, random.Random(seed)
        rng = self.rng
        self.prefix = secrets.token_hex(4).encode()
        self.num = rng.choice((1, 2, 3))
        self.ttl = rng.choice((None, None, 0, 1))
        self.options = Options(
            bound=rng.choice((3, 8, 40)),
            horizon=rng.choice((0, 4, 16)),
            wait_s=rng.choice((0.0, 0.02, 0.1)),
            advance_every=rng.choice((1, 2, 4)),
            tidy_every=rng.choice((1, 3, 8)),
        )
        self.num_clients = rng.choice((1, 2, 3, 5, 8))
        self.chance = rng.choice((0, 0.02, 0.1))
        self.losses = rng.choice((0, 0, 1, 3))
        self.history = History(self.ttl)
        self.dead, self.alive, self.faults, self.beyond = set(), [], [], False
        self.is_over = threading.Event()
        self.nodes = [Nodes(url)]

    def close(self):
        for nodes in self.nodes:
            nodes.close()

    def connect(self, rng, chance):
        self.nodes.append(Unreliable(self.url, rng, chance))
        return Recording(
            self.history,
            self.nodes[-1],
            self.prefix,
            self.num,
            ModelRule(self.num, self.ttl),
            self.options,
        )

    def tag(self, server):
        return b"{%s}:*" % self.prefix if server is None else b"{%s.%d}.*" % (self.prefix, server)

    def run_client(self, seed, num):
        rng = random.Random(seed)
        client = self.connect(rng, self.chance)
        done = 0
        while done < num and not self.beyond:
            done += 1
            kind = rng.random()
            try:
                if kind < 0.15:
                    client.look(rng.choice(TEXTS))
                elif kind < 0.2 and self.ttl is not None:
                    client.sweep()
                elif kind < 0.3:
                    client.add(REMOVE, (rng.randrange(NUM_IDS),))
                else:
                    docs = [(doc_id, TEXTS[doc_id % 4]) for doc_id in rng.choices(range(NUM_IDS), k=rng.choice((1, 2)))]
                    if rng.random() < 0.1:
                        docs[0] = docs[0][0], rng.choice(TEXTS)
                    client.add(ADD, tuple(docs))
            except LostWrites:
                pass
            except Killed:
                self.dead.add(client._name)
                client = self.connect(rng, self.chance)
            except BeyondRepair:
                self.beyond = True
            except StoreError as error:
                # A removal that other clients finished and trimmed.
                if "may or may not have been applied" not in str(error):
                    self.faults.append(error)
                    raise
            except BaseException as error:
                self.faults.append(error)
                raise
        self.alive.append(client)

    def say_goodbye(self, client):
        """Make a last call, which reports lost answers to a client."""
        client._log._nodes.chance = 0
        while not self.beyond:
            try:
                client.look(0)
                return
            except LostWrites:
                continue
            except BeyondRepair:
                self.beyond = True

    def lose(self):
        """Save states of the servers, and restore some of them."""
        save, lose = self.client.register_script(SAVE), self.client.register_script(LOSE)
        saved = {server: [] for server in (None, *range(self.num))}
        left = self.losses
        while left and not self.is_over.wait(self.rng.random() * 0.03):
            server = self.rng.choice((None, None, *range(self.num)))
            tag = self.tag(server)
            if saved[server] and self.rng.random() < 0.4:
                at = -self.rng.randint(1, min(3, len(saved[server])))
                left -= 1
                self.history.num_lost["log" if server is None else "partition"] += 1
                lose(args=[tag, *saved[server][at]])
                saved[server] = saved[server][: len(saved[server]) + at + 1]
                self.observe()
            else:
                saved[server].append(save(args=[tag]))
                self.observe()

    def observe(self):
        self.history.log_seen(LogServer(self.nodes[0], self.prefix).ask("begin", b"", b"").log)

    def play(self):
        """Run the round to its end, and return whether the index was repaired."""
        LogServer(self.nodes[0], self.prefix).create(self.num, {})
        nemesis = threading.Thread(target=self.lose)
        threads = [
            threading.Thread(target=self.run_client, args=(self.rng.random(), self.rng.randint(4, 15)))
            for _ in range(self.num_clients)
        ]
        for thread in (nemesis, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        self.is_over.set()
        nemesis.join()
        for client in self.alive:
            self.say_goodbye(client)
        assert not self.faults, self.faults
        if not self.beyond:
            auditor = self.connect(self.rng, 0)
            try:
                content, final = auditor.content()
            except BeyondRepair:
                self.beyond = True
        if self.beyond:
            # Only after a loss that the log cannot restore.
            assert any(self.history.num_lost.values())
            return False
        reported = {loss.nonce for loss in auditor.losses()}
        self.history.check(final, content, reported, self.dead)
        return True


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
def test_histories_are_one_sequence_and_losses_are_reported(running, seed):
    one = Round(running.url, running.client, seed)
    try:
        one.play()
    finally:
        one.close()
