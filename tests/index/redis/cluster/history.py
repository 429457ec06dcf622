"""The operations and answers of clients of a real index, and a check that they form one sequence with losses reported.

The chain of the log identifies each operation with all before it, so each answer is compared with the model's answer
to its own history, even if a failover dropped that history later.
"""

import threading
from typing import NamedTuple

from likewise.errors import LostWrites
from likewise.index.redis.client import Client
from likewise.index.redis.log import START, next_chain
from tests.index.redis.cluster.model_rule import ALL, content_of, payload_of
from tests.index.store.cluster_model import ADD, CHECK, Record, Rule, State, added, num_rows

NUM_IDS = 6


class Seen(NamedTuple):
    before: bytes  # the chain value before it
    position: int
    nonce: bytes
    kind: int
    docs: tuple
    second: int


class Said(NamedTuple):
    number: int  # in order of time
    client: bytes
    chain: bytes  # the chain value after it
    answer: tuple
    reported: frozenset  # nonces of losses that were reported by then


class Checked(NamedTuple):
    chain: bytes
    text: int
    second: int
    found: tuple


class Wrong(AssertionError):
    """A violation of a guarantee."""


class History:
    def __init__(self, ttl=None):
        self.ttl = ttl
        self.lock = threading.Lock()
        self.seen, self.said, self.checked = {}, [], []
        self.reports = set()  # nonces of all reports of losses, also of reports that the log lost later
        self.told = {}  # chain value of an answer -> number of the event that reported its loss to its client
        self.number = 0
        self.num_lost = {"log": 0, "partition": 0}
        self._states = {START: (State(), None, 0)}

    def log_seen(self, log):
        # What comes before an operation was seen with it.
        first = next((i for i in reversed(range(len(log.operations))) if log.chains[i + 1] in self.seen), -1) + 1
        for i, operation in enumerate(log.operations[first:], first):
            chain = log.chains[i + 1]
            if chain not in self.seen:
                assert next_chain(log.chains[i], operation.nonce) == chain
                kind, docs = content_of(operation.payload)
                self.seen[chain] = Seen(log.chains[i], log.low + i, operation.nonce, kind, docs, operation.second)

    def next(self):
        with self.lock:
            self.number += 1
            return self.number

    # After the end.

    def path(self, chain):
        """Return the chain values that lead to one, oldest first."""
        found = []
        while chain != START:
            if chain not in self.seen:
                raise Wrong("an operation that no client saw before it was trimmed")
            found.append(chain)
            chain = self.seen[chain].before
        return found[::-1]

    def state(self, chain):
        """Return the model's state, answer and number of rows after an operation."""
        for one in self.path(chain):
            if one not in self._states:
                before, _, _, kind, docs, second = self.seen[one]
                state, _, row = self._states[before]
                state = state.copy()
                answer, _ = Rule(self.ttl).decide(state, kind, docs, second, row)
                self._states[one] = state, answer, row + num_rows(answer)
        return self._states[chain]

    def check(self, final, content, reported, dead=frozenset()):
        """Raise Wrong if a guarantee is violated.

        `final` is the chain value at the end, `content` the contents of the tables, `reported` the nonces of reported
        losses, and `dead` the stopped clients, which could not get reports.
        """
        there = {START, *self.path(final)}
        for said in self.said:
            expected = self.state(said.chain)[1]
            if said.answer != expected:
                raise Wrong(f"position {self.seen[said.chain].position}: {said.answer}, the sequence says {expected}")
        for chain, text, second, found in self.checked:
            rule = Rule(self.ttl)
            expected = rule.look(self.state(chain)[0], text, rule.since(second))[:2]
            if found != expected:
                raise Wrong(f"a check says {found}, the sequence {expected}")
        self._check_losses(there, reported, dead)
        since = Rule(self.ttl).since(self.seen[final].second) if final != START else -1
        expected = self.state(final)[0].content(since)
        if content is not None and State(*content).content(since) != expected:
            raise Wrong(f"tables {State(*content).content(since)}, the sequence says {expected}")

    def _check_losses(self, there, reported, dead):
        void = [said for said in self.said if said.chain not in there]
        self.num_void, self.num_reported = len(void), len(reported)
        if void and not self.num_lost["log"]:
            raise Wrong("answers are lost, and the log was not")
        nonces = {self.seen[chain].nonce for chain in there - {START}}
        if nonces & reported:
            raise Wrong("an operation that is there was reported as lost")
        if there & {*self.told}:
            raise Wrong("a client was told that an answer is lost that is there")
        for one in void:
            nonce = self.seen[one.chain].nonce
            if one.client not in dead and one.chain not in self.told:
                raise Wrong("a client goes on and was not told that an answer of its own is lost")
            if not added(one.answer) or self.num_lost["partition"]:
                continue
            if nonce not in reported and one.chain not in self.told:
                raise Wrong("a lost answer was not reported")
            if self.seen[one.chain].kind != ADD:
                continue
            for other in self.said:
                is_second = (
                    other.chain in there
                    and other.number > one.number
                    and self.seen[other.chain].kind == ADD
                    and self.seen[other.chain].position >= self.seen[one.chain].position
                    and added(other.answer) & added(one.answer)
                )
                was_told = self.told.get(one.chain, other.number) < other.number
                # A second failover may have dropped the report, until the next fold.
                was_told |= nonce in self.reports and self.num_lost["log"] > 1
                if is_second and not was_told and nonce not in other.reported:
                    raise Wrong("a second answer to a document, and the loss of the first was not reported")


class Recording(Client):
    """A client whose answers, and all operations that it sees, are recorded."""

    def __init__(self, history, *arguments):
        super().__init__(*arguments)
        self.history = history
        ask = self._log.ask

        def recorded(verb, *arguments, writes=False):
            if verb == "report":
                history.reports |= {packed[8:16] for packed in arguments}
            reply = ask(verb, *arguments, writes=writes)
            history.log_seen(reply.log)
            return reply

        self._log.ask = recorded

    def add(self, kind, docs):
        before = [*self._answered]
        try:
            answer = self.operate(kind, payload_of(kind, docs))
        except LostWrites:
            number = self.history.next()
            for one in before:
                if one not in self._answered:
                    self.history.told[one.chain] = number
            raise
        reported = frozenset()
        if self.history.num_lost["log"]:
            reported = frozenset(loss.nonce for loss in self.losses())
        said = Said(self.history.next(), self._name, self._answered[-1].chain, answer, reported)
        with self.history.lock:
            self.history.said.append(said)

    def look(self, text):
        before = [*self._answered]
        try:
            found = self.ask(payload_of(CHECK, (text,)))
        except LostWrites:
            number = self.history.next()
            self.history.told |= {one.chain: number for one in before if one not in self._answered}
            raise
        self.history.checked.append(Checked(self.at[0], text, self.at[1], found))

    def _decision(self, log, position, payload, row, second, nonce):
        if nonce == b"\0" * 8:
            self.at = log.chain(position), second
        return super()._decision(log, position, payload, row, second, nonce)

    def content(self):
        """Return the contents of the tables when all operations are final, and the chain value at the end.

        After this, all losses are reported.
        """
        while True:
            try:
                log = self.settle()
                most = log.row
                records, ids, texts = self.ask(payload_of(ALL, (NUM_IDS, most)))
                records = {row: Record(*record) for row, record in records.items()}
                self._fold(log, log.mark)
                replies = self._partitions.call([self._partitions.verify(part, []) for part in range(self.rule.num)])
                if any(reply.fold < log.mark for reply in replies):
                    continue
                return (records, ids, texts), self._again().chains[-1]
            except LostWrites:
                continue
