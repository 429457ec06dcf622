"""A model of the protocol of docs/developers/cluster.md: a log, partitions, clients, and a scheduler with failures.

Servers are immutable states; a script is a function of a state and its arguments that returns the next state and a
reply. Clients are generators: each `yield` is one call of one script, so a schedule is a list of which client runs next
and what fails. All values are numbers, so that schedules are the same in every process.

`off` names omitted safeguards, to show that the model finds the resulting faults:

    a: arrival times from the clock of the deciding client  b: a caller's own verdict instead of the stored one
    a-before: an arrival time may be below that of an earlier operation
    b-order: a verdict is stored although an earlier one is missing
    b-again: a request of a writer that the log forgot is appended, also if it was sent long ago
    c: entries at or above W count                          c-fold: a fold above W does not reject the view
    d: writes below the fold are accepted                   e: journal entries count regardless of their nonce
    e-late: a repeated request has the same nonce in another history
    e-chain: the chain value of a fold is not compared      f-verify: W moves without checking the partitions
    f-read: a read does not check the confirmed mark        f-written: W passes decided, unwritten operations
    f-last: a client does not send its last answer          f-report: effects of lost operations are not reported
    g: append has no bound                                  g-trim: the log is trimmed before partitions are folded
    h: no client helps                                      h-wait: clients help at once
    f-advance: W passes operations whose marks a failover dropped between the check and the script
    f-confirmed: W moves without checking the mark that was confirmed before
    f-again: operations that are not in a log read before the partition count as lost
    f-wait: WAIT on a connection that did not write counts as a confirmation
    f-reconfirm: a repaired partition is confirmed although W moved meanwhile
    f-doubt: a loss beyond repair is reported without reading again
    g-confirm: operations are folded although no replica of the log has them
    g-keep: the log is trimmed to the previous folds, however few operations are left
    f-kept: a partition forgets the losses that it purged      f-forget: it does so before their reports are final
"""

import functools
import operator
import random
from typing import NamedTuple

ADD, REMOVE, CHECK = range(3)
SWEEP = 10
# Rows that one sweep deletes.
SWEPT = 2
ADD_ID, DELETE_ID, ADD_TEXT, DELETE_TEXT, ADD_RECORD, SET_RECORD, GONE = range(7)
LOG = 0
WITHIN = 2
# Shares of the bound of the log: what is folded although a replica of the log may lack it, and what is kept in the log.
FOLDED, KEPT = 0.5, 0.75
BITS = 4
# Fingerprints of documents: some within the radius of each other, some not, and 3 equally near to 0 and 15.
TEXTS = (0, 1, 3, 15)

LOST, FULL, OLD, BEHIND, GONE_BACK, OK = "lost", "full", "old", "behind", "gone back", "ok"
ANSWERED, FORGOTTEN = "answered", "forgotten"


first = operator.itemgetter(0)


class Fault(Exception):
    """A violation of a guarantee."""


class Fatal(Exception):
    """A client found that more was lost than can be restored. It reports this and stops."""


def distance(text, other):
    return (text ^ other).bit_count()


# The rule of the online index, on one state.


class Record(NamedTuple):
    id: int
    text: int
    second: int
    leader: int | None
    distance: int | None
    stands: bool


class State:
    """All data that a decision can read."""

    def __init__(self, records=None, ids=None, texts=None):
        self.records, self.ids, self.texts = records or {}, ids or {}, texts or {}

    def copy(self):
        return State(dict(self.records), dict(self.ids), dict(self.texts))

    def apply(self, effects):
        for effect in effects:
            kind, key, value = effect
            if kind == ADD_RECORD:
                self.records[key] = value
            elif kind == SET_RECORD:
                if key in self.records:
                    self.records[key] = self.records[key]._replace(leader=value[0], distance=value[1], stands=value[2])
            elif kind == GONE:
                self.records.pop(key, None)
            elif kind == ADD_ID:
                self.ids[key] = value
            elif kind == DELETE_ID:
                if self.ids.get(key) == value:
                    del self.ids[key]
            elif kind == ADD_TEXT:
                rows = self.texts.get(key, ())
                self.texts[key] = rows if value in rows else (*rows, value)
            elif value in self.texts.get(key, ()):
                self.texts[key] = tuple(row for row in self.texts[key] if row != value)

    def content(self, since):
        """Return the data that decisions depend on, once documents that arrived before a second have expired."""
        records = {row: record for row, record in self.records.items() if record.second >= since}
        ids = {doc_id: row for doc_id, row in self.ids.items() if row in records}
        texts = {text: tuple(sorted({*rows} & {*records})) for text, rows in self.texts.items()}
        return records, ids, {text: rows for text, rows in texts.items() if rows}


class Rule:
    """The decision with a ttl. With `bias`, a client decides differently from all others."""

    def __init__(self, ttl=None, bias=False):
        self.ttl, self.bias = ttl, bias

    def since(self, second):
        return -1 if self.ttl is None else second - self.ttl

    def decide(self, state, kind, docs, second, row):
        """Return answer and effects of an operation on the state before it, which is changed."""
        if kind == REMOVE:
            return self._remove(state, docs[0], second)
        if kind == SWEEP:
            return self._sweep(state, second)
        since = self.since(second)
        answers, effects = [], []
        for doc_id, text in docs:
            known = state.records.get(state.ids.get(doc_id, -1))
            if known is not None and known.second >= since and known.text != text:
                return (-1, doc_id), ()
        given = {}
        for doc_id, text in docs:
            if given.setdefault(doc_id, text) != text:
                return (-1, doc_id), ()
        for doc_id, text in docs:
            at = state.ids.get(doc_id, -1)
            known = state.records.get(at)
            if known is not None and known.second >= since:
                answers.append((doc_id, 0, at, known.leader, known.distance))
                continue
            leader, bits, collapses = self.look(state, text, since)
            record = Record(doc_id, text, second, leader, bits, not collapses)
            new = [(ADD_RECORD, row, record), (ADD_ID, doc_id, row)]
            if not collapses:
                new.append((ADD_TEXT, text, row))
            state.apply(new)
            effects += new
            answers.append((doc_id, 1, row, leader, bits))
            row += 1
        return tuple(answers), tuple(effects)

    def look(self, state, text, since):
        """Return leader, distance, and whether the document collapses into one that represents its class."""
        there = lambda row: row in state.records and state.records[row].second >= since  # noqa: E731
        of_class = sorted(row for row in state.texts.get(text, ()) if there(row))
        for row in of_class:
            if state.records[row].leader is None:
                return row, 0, True
        for row in of_class:
            if there(state.records[row].leader):
                return state.records[row].leader, state.records[row].distance, True
        return (*self._best(state, text, since, None), False)

    def _best(self, state, text, since, but):
        best = None
        for other in TEXTS if not self.bias else ():
            bits = distance(text, other)
            if bits > WITHIN:
                continue
            for row in state.texts.get(other, ()):
                record = state.records.get(row)
                if record is None or record.second < since or record.leader is not None or row == but:
                    continue
                if best is None or (bits, row) < best:
                    best = (bits, row)
        return (None, None) if best is None else (best[1], best[0])

    def _sweep(self, state, second):
        """Delete the first documents that expired so long ago that no document that counts refers to them."""
        if self.ttl is None:
            return (), ()
        old = [
            (row, record)
            for row, record in sorted(state.records.items())
            if record.second < self.since(second) - self.ttl
        ]
        effects = []
        for row, record in old[:SWEPT]:
            effects += [(GONE, row, 0), (DELETE_ID, record.id, row)]
            if record.stands:
                effects.append((DELETE_TEXT, record.text, row))
        state.apply(effects)
        return tuple((record.id, row) for row, record in old[:SWEPT]), tuple(effects)

    def _remove(self, state, doc_id, second):
        since = self.since(second)
        row = state.ids.get(doc_id, -1)
        gone = state.records.get(row)
        if gone is None or gone.second < since:
            return (-1, doc_id), ()
        effects = [(GONE, row, 0), (DELETE_ID, doc_id, row)]
        if gone.stands:
            effects.append((DELETE_TEXT, gone.text, row))
        state.apply(effects)
        answers = [(doc_id, int(gone.leader is None))]
        if gone.leader is not None:
            return tuple(answers), tuple(effects)
        members = [at for at, record in state.records.items() if record.leader == row and record.second >= since]
        for member in sorted(members):
            record = state.records[member]
            leader, bits = self._best(state, record.text, since, member)
            stands = record.stands or leader is None
            new = [(SET_RECORD, member, (leader, bits, stands))]
            if stands and not record.stands:
                new.append((ADD_TEXT, record.text, member))
            state.apply(new)
            effects += new
            answers.append((record.id, leader))
        return tuple(answers), tuple(effects)


def num_rows(answer):
    """Return the number of documents that an answer added."""
    return 0 if answer[:1] == (-1,) else sum(said[1] for said in answer if len(said) == 5)


# Servers: their states and scripts.


class Operation(NamedTuple):
    nonce: int
    writer: int
    counter: int
    kind: int
    docs: tuple
    second: int
    answer: tuple | None = None
    row: int | None = None  # its first row, once it is decided
    effects: tuple | None = None
    marks: tuple | None = None


class Kept(NamedTuple):
    """The last operation of a writer, after it was trimmed. Only the answers to removals are kept."""

    writer: int
    counter: int
    position: int
    nonce: int
    answer: tuple | None


class Log(NamedTuple):
    low: int  # H
    mark: int  # W
    operations: tuple  # from H on
    chains: tuple  # from position 0 on: the value before each position
    confirmed: tuple  # the mark of each partition
    row: int  # the number of rows that the stored answers added
    second: int = 0  # of the last operation
    kept: tuple = ()  # by position
    forgotten: int = 0  # the position after the last one whose writer is not kept any more
    losses: tuple = ()  # the nonce of each loss, and the end of the log when it was reported
    replicas: tuple = (1, 0)  # those that confirmed the log last, and its end then

    @property
    def end(self):
        return len(self.chains) - 1

    def at(self, position):
        """Return an operation, or None if the log does not contain it."""
        index = position - self.low
        return self.operations[index] if 0 <= index < len(self.operations) else None

    def has(self, position, nonce):
        operation = self.at(position)
        return operation is not None and operation.nonce == nonce

    def last_of(self, writer):
        """Return the last operation of a writer with its position, or what is kept of it, or None."""
        for index in reversed(range(len(self.operations))):
            operation = self.operations[index]
            if operation.writer == writer:
                return Kept(writer, operation.counter, self.low + index, operation.nonce, None)
        return next((kept for kept in self.kept if kept.writer == writer), None)

    def newest(self, share, options):
        """Return the first position of the newest operations, which are at most a share of the bound."""
        return max(self.low, self.end - int(share * options.bound))

    def row_at(self, position):
        """Return the first row of an operation, once all earlier ones are decided."""
        before = self.at(position - 1)
        if before is not None:
            return before.row + num_rows(before.answer)
        operation = self.at(position)
        return self.row if operation is None or operation.row is None else operation.row

    def changed(self, position, operation, **fields):
        index = position - self.low
        operations = (*self.operations[:index], operation, *self.operations[index + 1 :])
        return self._replace(operations=operations, **fields)


class Partition(NamedTuple):
    history: tuple  # chain values of marks, from 0 writes on
    fold: int
    chain: int  # chain value of the log at the fold
    base: State
    journal: tuple  # (position, nonce, effects)
    before: int = 0  # the previous fold
    lost: tuple = ()  # nonces of purged operations, until the reports of their losses are final

    @property
    def here(self):
        return len(self.history) - 1, self.history[-1]

    def contains(self, mark):
        return mark[0] < len(self.history) and self.history[mark[0]] == mark[1]

    def then(self, *what, **fields):
        return self._replace(history=(*self.history, hash((self.history[-1], *what))), **fields)


class Options(NamedTuple):
    """One setting of the protocol.

    `horizon` is the number of operations kept below W, `patience` the number of steps that a client waits before it
    helps, `kept` the number of writers whose last operations are kept. `ahead` is added to the clock by the first
    client, which gives its operations arrival times.
    """

    partitions: int = 2
    bound: int = 4
    horizon: int = 1
    patience: int = 0
    ttl: int | None = None
    replicated: bool = False
    kept: int = 8
    ahead: int = 0
    eager: int = 1  # after each answer: 0 nothing, 1 W is advanced, 2 partitions are also folded
    off: frozenset = frozenset()


def is_in_history(log, last):
    position, chain = last
    return position <= log.end and log.chains[position] == chain


def begin(log, options, clock, last):
    clock = max(clock, log.second)
    if "f-last" not in options.off and last is not None and not is_in_history(log, last):
        return log, (GONE_BACK, log, clock)
    return log, (OK, log, clock)


def append(log, options, clock, last, since, nonce, writer, counter, kind, docs, given=0, moment=0):
    """Append an operation. `since` is an end of the log, with its chain value, before its first request was sent.

    `given` is the last arrival time of its documents, `moment` a number that no other call has.
    """
    log, reply = begin(log, options, clock, last)
    if reply[0] is not OK:
        return log, (*reply, None)
    before = log.last_of(writer)
    if before is None:
        # It may be a repeated request, unless it was first sent after all that is forgotten.
        is_new = since[0] >= log.forgotten and is_in_history(log, since)
        if log.forgotten and not is_new and "b-again" not in options.off:
            return log, (FORGOTTEN, *reply[1:], None)
    elif before.counter == counter:
        if before.position >= log.low:
            return log, (*reply, before.position)
        return log, (ANSWERED, *reply[1:], before)
    elif counter < before.counter:
        return log, (LOST, *reply[1:], None)
    if len(log.operations) >= options.bound and "g" not in options.off:
        return log, (FULL, *reply[1:], None)
    second = max(clock, given, 0 if "a-before" in options.off else log.second)
    if "e-late" not in options.off:
        # Its effects in the history that a failover dropped must not match.
        nonce = hash((log.chains[-1], nonce, moment))
    operation = Operation(nonce, writer, counter, kind, docs, second)
    position = log.end
    log = log._replace(
        operations=(*log.operations, operation),
        chains=(*log.chains, hash((log.chains[-1], nonce))),
        second=second,
        kept=tuple(kept for kept in log.kept if kept.writer != writer),
    )
    return log, (OK, log, max(clock, second), position)


def store(log, options, clock, position, nonce, row, answer, effects):
    operation = log.at(position)
    if operation is None or operation.nonce != nonce:
        return log, (LOST, log, clock)
    is_behind = any(earlier.answer is None for earlier in log.operations[: position - log.low])
    is_behind |= operation.answer is None and row != log.row
    if is_behind and "b-order" not in options.off:
        return log, (BEHIND, log, clock)
    if operation.answer is None:
        changed = operation._replace(answer=answer, effects=effects, row=row)
        log = log.changed(position, changed, row=row + num_rows(answer))
    elif "b" in options.off:
        log = log.changed(position, operation._replace(answer=answer, effects=effects))
    return log, (OK, log, clock)


def written(log, options, clock, position, nonce, marks):
    operation = log.at(position)
    if operation is None or operation.nonce != nonce or operation.answer is None:
        return log, (LOST, log, clock)
    log = log.changed(position, operation._replace(marks=marks))
    return log, (OK, log, clock)


def advance(log, options, clock, mark, to, chain, confirmed):
    same = log.mark == mark and to <= log.end and log.chains[to] == chain
    # A failover may have dropped the marks but not the operations.
    passed = log.operations[mark - log.low : to - log.low]
    if same and ({"f-written", "f-advance"} & options.off or all(operation.marks is not None for operation in passed)):
        log = log._replace(mark=to, confirmed=confirmed)
    return log, (OK, log, clock)


def reconfirm(log, options, clock, partition, mark, old, new):
    is_same = log.mark == mark or "f-reconfirm" in options.off
    if is_same and log.confirmed[partition] == old:
        confirmed = (*log.confirmed[:partition], new, *log.confirmed[partition + 1 :])
        log = log._replace(confirmed=confirmed)
    return log, (OK, log, clock)


def trim(log, options, clock, low, chain):
    if log.low < low <= log.mark and log.chains[low] == chain:
        kept = list(log.kept)
        for position in range(log.low, low):
            operation = log.at(position)
            last = log.last_of(operation.writer)
            if last.position == position:
                kept.append(last._replace(answer=operation.answer if operation.kind == REMOVE else None))
        num = max(0, len(kept) - options.kept)
        forgotten = max(log.forgotten, kept[num - 1].position + 1) if num else log.forgotten
        operations = log.operations[low - log.low :]
        log = log._replace(low=low, operations=operations, kept=tuple(kept[num:]), forgotten=forgotten)
    return log, (OK, log, clock)


def report(log, options, clock, nonces):
    known = dict(log.losses)
    new = tuple((nonce, log.end) for nonce in nonces if nonce not in known)
    if new:
        log = log._replace(losses=log.losses + new)
    return log, (OK, log, clock)


def confirm(state, options, clock, is_connected):
    """WAIT: writes on this connection are on the replica, unless a failover has closed the connection meanwhile."""
    return state, OK if is_connected else LOST


def touch(log, options, clock, num_confirmed, end):
    return log._replace(replicas=(num_confirmed, end)), (OK, log, clock)


def replicas(log, options, clock, is_cut):
    """Return the number of replicas that confirm all writes until now."""
    return log, (OK, log, int(not is_cut))


def read(partition, options, clock, mark):
    is_whole = "f-read" in options.off or partition.contains(mark)
    return partition, (OK if is_whole else LOST, partition)


def write(partition, options, clock, position, nonce, effects):
    if position < partition.fold and "d" not in options.off:
        return partition, (OLD, partition)
    is_new = all(entry[:2] != (position, nonce) for entry in partition.journal)
    if "e" in options.off:
        is_new = all(entry[0] != position for entry in partition.journal)
    if is_new:
        journal = (*partition.journal, (position, nonce, effects))
        partition = partition.then(position, nonce, journal=journal)
    return partition, (OK, partition)


def verify(partition, options, clock, marks):
    return partition, (OK, partition, tuple(mark for mark in marks if not partition.contains(mark)))


def fold(partition, options, clock, mark, to, chain, nonces):
    """Fold operations below `to`, given by `nonces` as pairs of position and nonce."""
    if not (partition.contains(mark) or "f-read" in options.off):
        return partition, (LOST, partition)
    if partition.fold >= to:
        return partition, (OK, partition)
    valid = dict(nonces)
    below = sorted((entry for entry in partition.journal if entry[0] < to), key=first)
    if "e" not in options.off and any(valid.get(position) != nonce for position, nonce, _ in below):
        return partition, (BEHIND, partition)
    base = partition.base.copy()
    for _, _, effects in below:
        base.apply(effects)
    journal = tuple(entry for entry in partition.journal if entry[0] >= to)
    # The reply is the state before the fold.
    after = partition.then(-1, to, chain, fold=to, chain=chain, base=base, journal=journal, before=partition.fold)
    return after, (OK, partition)


def purge(partition, options, clock, position, nonce):
    journal = tuple(entry for entry in partition.journal if entry[:2] != (position, nonce))
    if len(journal) == len(partition.journal):
        return partition, (OK, partition)
    lost = () if "f-kept" in options.off else (*partition.lost, nonce)
    return partition.then(-2, position, nonce, journal=journal, lost=lost), (OK, partition)


def forget(partition, options, clock, nonces):
    """Forget purged losses whose reports are final."""
    lost = tuple(nonce for nonce in partition.lost if nonce not in nonces)
    if lost == partition.lost:
        return partition, (OK, partition)
    return partition.then(-3, *nonces, lost=lost), (OK, partition)


IDS, BY_TEXT, RECORDS = range(3)


def parts_of(effects, num):
    """Return effects by partition."""
    parts = {}
    for effect in effects:
        parts.setdefault((min(effect[0] // 2, RECORDS) + effect[1]) % num, []).append(effect)
    return {part: tuple(of_part) for part, of_part in sorted(parts.items())}


def parts_to_look_at(kind, docs, num):
    """Return the partitions with the ids of an addition, and with texts within the radius of an addition or check."""
    texts = docs if kind == CHECK else [text for _, text in docs]
    parts = {(BY_TEXT + other) % num for text in texts for other in TEXTS if distance(text, other) <= WITHIN}
    return parts if kind == CHECK else parts | {(IDS + doc_id) % num for doc_id, _ in docs}


def parts_of_records(state, kind, docs, num):
    """Return the partitions with the records that ids and texts name, and with their leaders."""
    texts = docs if kind == CHECK else [text for _, text in docs]
    near = {other for text in texts for other in TEXTS if distance(text, other) <= WITHIN}
    rows = {row for text in near for row in state.texts.get(text, ())}
    if kind == ADD:
        rows |= {state.ids[doc_id] for doc_id, _ in docs if doc_id in state.ids}
    rows |= {state.records[row].leader for row in rows if row in state.records} - {None}
    return {(RECORDS + row) % num for row in rows}


# Clients.


class Client:
    """One client, which runs `tasks` in order. `world` receives its answers and reports."""

    def __init__(self, name, tasks, world, rule):
        self.name, self.tasks, self.world, self.rule = name, tasks, world, rule
        self.options = world.options
        self.last = None
        self.earlier = []  # earlier values of `last`
        self.num_nonces = self.counter = 0
        self.since = 0, 0  # an end of the log with its chain value

    def run(self):
        for kind, docs in self.tasks:
            if kind == CHECK:
                yield from self.check(docs[0])
            else:
                yield from self.operate(kind, docs)

    def operate(self, kind, docs):
        self.counter += 1
        if kind == REMOVE:
            # Only a recent end shows that the request is new.
            log = yield from self.again()
            self.since = log.end, log.chains[-1]
        since = self.since
        while True:
            self.num_nonces += 1
            nonce = self.name * 1000 + self.num_nonces
            given = self.world.clock + self.options.ahead if self.name == 0 else 0
            status, log, clock, found = yield (
                *(LOG, append, self.last, since, nonce),
                *(self.name, self.counter, kind, docs, given),
            )
            self.since = log.end, log.chains[-1]
            if status is GONE_BACK:
                self.find_lost(log)
                continue
            if status is FULL:
                yield from self.surely(lambda: self.tidy(is_full=True))
                continue
            if kind == REMOVE and status is FORGOTTEN:
                # It may or may not have been applied, which the caller gets as an error.
                return
            if status in (LOST, FORGOTTEN) or (status is ANSWERED and kind != REMOVE):
                # The ids of a new operation show whether documents were added.
                self.counter += 1
                since = self.since
                continue
            if status is ANSWERED:
                position, nonce, answer = found.position, found.nonce, found.answer
            else:
                position = found
                nonce = log.at(position).nonce
                log, answer = yield from self.finished(log, clock, position, nonce)
            if answer is None:
                # Lost, or finished and trimmed by others.
                continue
            self.earlier.append(self.last)
            self.last = (position + 1, log.chains[position + 1])
            self.world.answered(self, position, nonce, answer)
            if self.options.eager:
                yield from self.surely(functools.partial(self.move, log) if self.options.eager == 1 else self.tidy)
            return

    def finished(self, log, clock, position, nonce):
        """Complete an operation. Read the log again if it seems beyond repair."""
        logs = [log]

        def step():
            log = logs.pop() if logs else (yield from self.again())
            return (yield from self.complete(log, clock, position, nonce))

        return (yield from self.surely(step))

    def surely(self, step):
        """Run a step, and once more if it finds a loss beyond repair."""
        try:
            return (yield from step())
        except Fatal:
            if "f-doubt" in self.options.off:
                raise
        yield from self.again()
        return (yield from step())

    def find_lost(self, log):
        self.world.own_lost(self, log)
        # Earlier answers may still be in the log, and the last of them must be sent from now on.
        while self.last is not None and not is_in_history(log, self.last):
            self.last = self.earlier.pop() if self.earlier else None

    def complete(self, log, clock, position, nonce):
        """Decide, store and write the operation at a position. Return (log, answer), with None if it is not there."""
        own = None
        while True:
            if not log.has(position, nonce):
                return log, None
            operation = log.at(position)
            if operation.answer is None:
                log, clock, decided = yield from self.decide_next(log, clock, position)
                if decided is not None and decided[0] == position:
                    own = decided[1:]
                continue
            answer, effects = operation.answer, operation.effects
            if "b" in self.options.off and own is not None:
                answer, effects = own
            if operation.marks is None:
                marks = yield from self.write_effects(log, position, nonce, effects)
                if marks is None or marks is OLD:
                    log = yield from self.again()
                    if marks is OLD and log.has(position, nonce) and log.mark <= position:
                        # The operation is final in a partition, and the log does not have its verdict.
                        raise Fatal
                    continue
                status, log, clock = yield (LOG, written, position, nonce, marks)
                if status is LOST:
                    return log, None
            elif self.options.replicated:
                # Written by another client: WAIT covers only writes of its own connection, so write it again.
                status, log, clock = yield (LOG, written, position, nonce, operation.marks)
                if status is LOST:
                    return log, None
            if self.options.replicated:
                connection = self.world.connections[LOG]
                if (yield (LOG, confirm, connection)) is LOST:
                    log = yield from self.again()
                    continue
            return log, answer

    def write_effects(self, log, position, nonce, effects, only=None):
        """Return marks by partition, OLD if the position is below a fold, or None after a failover."""
        marks = []
        for part, of_part in parts_of(effects, self.options.partitions).items():
            if only is not None and part not in only:
                continue
            status, partition = yield (1 + part, write, position, nonce, of_part)
            # If the fold is of this history, it contains the operation, whose marks were lost.
            if status is OLD and not (log.has(position, nonce) and self.fits(log, partition)):
                return OLD
            if self.options.replicated:
                connection = self.world.connections[1 + part]
                if (yield (1 + part, confirm, connection)) is LOST:
                    return None
            marks.append((part, partition.here))
        return tuple(marks)

    def decide_next(self, log, clock, limit):
        """Decide and store the first operation without a verdict, up to `limit`. Return the log after that."""
        options = self.options
        position = next(at for at in range(log.mark, limit + 1) if log.at(at).answer is None)
        operation = log.at(position)
        if operation.writer != self.name:
            waited = clock - operation.second
            if "h" in options.off or ("h-wait" not in options.off and waited < options.patience):
                _, log, clock = yield (LOG, begin, None)
                return log, clock, None
            if waited < options.patience:
                raise Fault("a client helped without waiting")
        log, state = yield from self.view(log, position, operation.kind, operation.docs)
        if state is None:
            return log, clock, None
        second = self.world.clock if "a" in options.off else operation.second
        row = log.row_at(position)
        answer, effects = self.rule.decide(state, operation.kind, operation.docs, second, row)
        _, log, clock = yield (LOG, store, position, operation.nonce, row, answer, effects)
        return log, clock, (position, answer, effects)

    def view(self, log, position, kind=None, docs=()):
        """Return the state before a position: partitions at W, then stored effects; None if it must be tried again.

        Only data that the operation needs is read: first by ids and texts, then the records that these name.
        """
        num = self.options.partitions
        state, was_read, stale = State(), set(), []
        needed = {*range(num)} if kind in (None, REMOVE, SWEEP) else parts_to_look_at(kind, docs, num)
        while True:
            for part in sorted(needed - was_read):
                status, partition = yield (1 + part, read, log.confirmed[part])
                was_read.add(part)
                if partition.fold < log.low:
                    raise Fatal
                if status is LOST:
                    yield from self.repair(part)
                    return (yield from self.again()), None
                if not self.is_current(log, partition):
                    return (yield from self.catch_up(partition)), None
                if not {"e", "f-report"} & self.options.off:
                    stale += [(part, *entry[:2]) for entry in partition.journal if not log.has(*entry[:2])]
                merge(state, partition, log, self.options)
            if stale:
                now = log
                if "f-again" not in self.options.off:
                    now = yield from self.again()
                is_lost = yield from self.report(now, stale)
                if is_lost or any(position < log.end for _, position, _ in stale):
                    return (yield from self.again()), None
                # The stale entries are of operations that were appended after this view, so it ignores them.
                stale = []
            if len(was_read) == num:
                break
            seen = state.copy()
            for at in range(log.mark, position):
                seen.apply(log.at(at).effects)
            needed = parts_of_records(seen, kind, docs, num)
            if needed <= was_read:
                break
        for at in range(log.mark, position):
            state.apply(log.at(at).effects)
        return log, state

    def again(self):
        _, log, _ = yield (LOG, begin, None)
        return log

    def is_current(self, log, partition):
        """Return whether a partition belongs to the history of this log and is not ahead of it."""
        if partition.fold > log.mark:
            return "c-fold" in self.options.off
        if "e-chain" in self.options.off:
            return True
        return log.chains[partition.fold] == partition.chain

    def must_fit(self, log, partition):
        """Check a partition against a log that was read after it.

        Raises
        ------
        Fatal
            If the log is older than the final data of the partition.
        """
        if partition.fold > log.end or log.chains[partition.fold] != partition.chain:
            raise Fatal

    def catch_up(self, partition):
        """Return the log after a partition that does not match a client's view of the log.

        A failover may have dropped moves of W and earlier marks. Final operations are written, so W moves again.
        """
        log = yield from self.again()
        self.must_fit(log, partition)
        for position in range(log.mark, partition.fold):
            if (operation := log.at(position)).marks is None:
                if operation.answer is None:
                    raise Fatal
                yield from self.complete(log, 0, position, operation.nonce)
                return (yield from self.again())
        if partition.fold > log.mark:
            log = yield from self.move(log)
        return log

    def fits(self, log, partition):
        """Return whether a partition belongs to the history of this log, even if the log lost a move of W."""
        return "e-chain" in self.options.off or (
            partition.fold <= log.end and log.chains[partition.fold] == partition.chain
        )

    def report(self, log, stale):
        """Report and purge effects of operations that are not in this log, which was read after them."""
        lost = [entry for entry in stale if entry[1] >= log.low and not log.has(*entry[1:])]
        if lost:
            yield from self.tell(tuple(dict.fromkeys(nonce for _, _, nonce in lost)))
        for part, position, nonce in lost:
            yield (1 + part, purge, position, nonce)
        return bool(lost)

    def tell(self, nonces):
        yield (LOG, report, nonces)
        for nonce in nonces:
            self.world.reported(nonce)

    def check_reports(self, lost, to):
        """Report again what a failover dropped. `lost` are nonces by partition, `to` the position of its last fold."""
        log = yield from self.again()
        reports = dict(log.losses)
        missing = tuple(dict.fromkeys(nonce for nonces in lost.values() for nonce in nonces if nonce not in reports))
        if missing:
            yield from self.tell(missing)
        for part, nonces in lost.items():
            # A failover that drops such a report also drops operations that are final here, which everyone finds.
            final = tuple(nonce for nonce in nonces if "f-forget" in self.options.off or reports.get(nonce, to) < to)
            if final:
                yield (1 + part, forget, final)

    def repair(self, part):
        """Rewrite the effects below W that a partition lost."""
        log = yield from self.again()
        _, partition, missing = yield (1 + part, verify, (log.confirmed[part],))
        if not missing:
            return
        if partition.fold < log.low:
            raise Fatal
        if not self.fits(log, partition):
            log = yield from self.again()
            self.must_fit(log, partition)
            return
        marks = []
        for position in range(partition.fold, log.mark):
            operation = log.at(position)
            found = yield from self.write_effects(log, position, operation.nonce, operation.effects, only=(part,))
            if found is None or found is OLD:
                return
            marks += [mark for _, mark in found]
        _, partition, missing = yield (1 + part, verify, tuple(marks))
        if not missing:
            yield (LOG, reconfirm, part, log.mark, log.confirmed[part], partition.here)

    def move(self, log):
        """Move W past the written operations."""
        options = self.options
        to = log.mark
        while (operation := log.at(to)) is not None and (
            operation.marks is not None or ("f-written" in options.off and operation.answer is not None)
        ):
            to += 1
        if to == log.mark:
            return log
        confirmed = list(log.confirmed)
        for part in range(options.partitions):
            marks = {}
            for position in range(log.mark, to):
                marks |= {mark: position for at, mark in log.at(position).marks or () if at == part}
            if not marks:
                continue
            before = () if "f-confirmed" in options.off else (log.confirmed[part],)
            _, partition, missing = yield (1 + part, verify, (*before, *marks))
            if partition.fold < log.low:
                raise Fatal
            if partition.fold > to or not self.fits(log, partition):
                return (yield from self.catch_up(partition))
            if "f-verify" in options.off:
                missing = ()
            if log.confirmed[part] in missing:
                yield from self.repair(part)
                return (yield from self.again())
            if missing:
                position = marks[missing[0]]
                yield from self.write_again(log, position, part)
                return (yield from self.again())
            confirmed[part] = partition.here
        _, log, _ = yield (LOG, advance, log.mark, to, log.chains[to], tuple(confirmed))
        return log

    def write_again(self, log, position, part):
        operation = log.at(position)
        found = yield from self.write_effects(log, position, operation.nonce, operation.effects, only=(part,))
        if found is not None and found is not OLD:
            marks = tuple(sorted((dict(operation.marks) | dict(found)).items()))
            yield (LOG, written, position, operation.nonce, marks)

    def tidy(self, is_full=False):
        """Finish pending operations, move W, fold the partitions, and trim the log."""
        options = self.options
        _, log, clock = yield (LOG, begin, None)
        for position in range(log.mark, log.end):
            if (operation := log.at(position)).marks is None:
                if "h" in options.off and operation.writer != self.name:
                    return
                yield from self.complete(log, clock, position, operation.nonce)
                return
        log = yield from self.move(log)
        low, to = log.low, max(log.mark - options.horizon, log.newest(FOLDED, options))
        if "g-trim" in options.off and to > log.low:
            yield (LOG, trim, to, log.chains[to])
        if to > low:
            log = yield from self.fold_all(log, min(to, log.mark))
        if is_full and log is not None and log.low == low < log.mark:
            # Only this frees space: a second fold, after which the log is not needed up to the first one.
            yield from self.fold_all(log, to + 1 if low < to < log.mark else log.mark, is_full=True)

    def fold_all(self, log, to, is_full=False):
        """Fold all partitions and trim the log. Return the log, or None if it must be tried again."""
        options = self.options
        _, log, num_confirmed = yield (LOG, replicas)
        before, confirmed_end = log.replicas
        least = log.newest(FOLDED, options)
        is_confirmed = num_confirmed >= before
        if not is_confirmed and "g-confirm" not in options.off:
            to = min(to, least + is_full)
        if is_confirmed or confirmed_end < least:
            # No fold can wait for a replica that lags so much, or is gone.
            _, log, _ = yield (LOG, touch, num_confirmed, log.end)
        if not log.low < to <= log.mark:
            return log
        if options.replicated:
            # Final data must not be ahead of the log that a failover restores.
            connection = self.world.connections[LOG]
            if (yield (LOG, confirm, connection)) is LOST:
                return
        nonces = tuple((position, log.at(position).nonce) for position in range(log.low, to))
        before, lost = [], {}
        for part in range(options.partitions):
            status, partition = yield (1 + part, fold, log.confirmed[part], to, log.chains[to], nonces)
            if partition.fold < log.low:
                raise Fatal
            if status is LOST:
                yield from self.repair(part)
                return
            if status is BEHIND:
                log = yield from self.again()
                stale = [(part, *entry[:2]) for entry in partition.journal if not log.has(*entry[:2])]
                yield from self.report(log, stale)
                return
            if not self.is_current(log, partition):
                yield from self.catch_up(partition)
                return
            if options.replicated:
                connection = self.world.connections[1 + part]
                if (yield (1 + part, confirm, connection)) is LOST:
                    return
            before.append(partition.before if partition.fold >= to else partition.fold)
            if partition.lost:
                lost[part] = partition.lost
        if lost:
            yield from self.check_reports(lost, to)
        # Trim only to the previous folds, so that a partition that loses its last fold can be repaired.
        low = min(before)
        if not is_full:
            # A partition that lost its newest writes is repaired from the log.
            low = low if "g-keep" in options.off else min(low, log.newest(KEPT, options))
        elif low <= log.low:
            low = to
        if low > log.low:
            _, log, _ = yield (LOG, trim, low, log.chains[low])
        return log

    def check(self, text):
        yield from self.surely(functools.partial(self.look, text))

    def look(self, text):
        while True:
            status, log, clock = yield (LOG, begin, self.last)
            if status is GONE_BACK:
                self.find_lost(log)
                continue
            end, chain, second = log.end, log.chains[-1], clock
            while True:
                if log.end < end or log.chains[end] != chain or log.low > end:
                    break
                if any(log.at(at).answer is None for at in range(log.mark, end)):
                    log, clock, _ = yield from self.decide_next(log, clock, end - 1)
                    continue
                if log.mark > end:
                    break
                log, state = yield from self.view(log, end, CHECK, (text,))
                if state is None:
                    continue
                leader, bits, _ = self.rule.look(state, text, self.rule.since(second))
                self.world.checked(end, chain, text, second, (leader, bits))
                return


def merge(state, partition, log, options):
    """Add the data of one partition below W to a state."""
    state.records.update(partition.base.records)
    state.ids.update(partition.base.ids)
    for text, rows in partition.base.texts.items():
        state.texts[text] = (*state.texts.get(text, ()), *rows)
    for position, nonce, effects in sorted(partition.journal, key=first):
        if (position < log.mark or "c" in options.off) and ("e" in options.off or log.has(position, nonce)):
            state.apply(effects)


class Auditor(Client):
    """Finishes everything after a schedule, and compares the tables with the rule."""

    def run(self):
        for _ in range(60):
            log = yield from self.again()
            if log.mark == log.end:
                log, state = yield from self.view(log, log.end)
                if state is not None and (yield from self.fold_all(log, log.mark)) is not None:
                    self.world.audited(log, state)
                    return
                continue
            yield from self.tidy()
        raise Fault("the auditor did not finish")


# The scheduler.

# Scripts that change something, so that a late request may do harm.
WRITING = {append, store, written, advance, reconfirm, trim, touch, report, write, fold, purge, forget}


@functools.lru_cache(1 << 16)
def sequence_state(ttl, operations):
    """Return state, answer, and number of rows after a sequence of (kind, docs, second)."""
    if not operations:
        return State(), None, 0
    state, _, row = sequence_state(ttl, operations[:-1])
    state = state.copy()
    answer, _ = Rule(ttl).decide(state, *operations[-1], row)
    return state, answer, row + num_rows(answer)


class World:
    """Servers, clients and answers; `do` is one step of a schedule.

    Steps: ("run", client), ("kill", client) between two calls, ("kill-after", client) before the reply of one,
    ("repeat", client) a call that is sent twice, ("late", client, number) a call that is sent again after so many later
    ones, ("lose", server, writes) a failover that drops writes, ("clock", LOG, ticks) a change of the log's clock,
    ("away", server) and ("back", server); ("cut", server) a replica that gets no writes any more, ("take over", server)
    a failover to it; ("stale", client, writes) a read that a server of a partition answers although it was replaced so
    many writes ago.
    """

    def __init__(self, plans, options, biased=(), is_compared=False):
        self.options = options
        self.is_compared = is_compared  # whether worlds are compared by the replies to each client
        nothing = Partition((0,), 0, 0, State(), ())
        log = Log(0, 0, (), (0,), ((0, 0),) * options.partitions, 0)
        self.servers = [log, *(nothing for _ in range(options.partitions))]
        self.past = [[state] for state in self.servers]
        self.safe = [0] * len(self.servers)
        self.connections = [0] * len(self.servers)  # a number that each failover increases
        self.away = set()
        self.cut = {}  # server -> number of its writes that its replica has, and the end of the log then
        self.clock = self.skew = self.moment = 0
        self.ticks = options.ttl is not None or options.patience > 0
        self.sequence = []  # (nonce, kind, docs, second) of each position of the log
        self.requested = []  # (writer, counter) of each position
        self.void, self.told, self.own_told = {}, set(), set()
        self.answers = {}  # nonce -> (position, client, answer)
        self.said = {}  # id -> (row, leader) of its answers
        self.biased = biased
        self.num_lost = {"log": 0, "partition": 0}
        self.is_fatal = False
        self.clients, self.requests, self.prints, self.sent = [], [], [], []
        for name, tasks in enumerate(plans):
            self.join(Client(name, tasks, self, Rule(options.ttl, bias=name in biased)))

    def join(self, client):
        client.steps = client.run()
        self.clients.append(client)
        self.requests.append(None)
        self.prints.append(0)
        self.sent.append([])
        self._alive = None
        self._resume(len(self.clients) - 1, None)

    def _resume(self, i, reply):
        if self.is_compared:
            self.prints[i] = hash((self.prints[i], digest(reply)))
        try:
            self.requests[i] = self.clients[i].steps.send(reply)
        except StopIteration:
            self._stop(i)
        except Fatal:
            if not any(self.num_lost.values()):
                raise Fault("reported as lost, but nothing was") from None
            if self.options.replicated:
                raise Fault("replicated, but more was lost than can be restored") from None
            if self.is_whole():
                raise Fault("a client gives up an index that is whole") from None
            self.is_fatal = True

    def is_whole(self):
        """Return whether the log can restore all partitions, and is not older than their final data."""
        log, *partitions = self.servers
        return all(
            log.low <= partition.fold <= log.end
            and log.chains[partition.fold] == partition.chain
            and all(log.at(position).answer is not None for position in range(log.low, partition.fold))
            for partition in partitions
        )

    def _stop(self, i):
        self.requests[i] = self._alive = None

    def alive(self):
        """Return the clients with a pending call."""
        if self._alive is None:
            self._alive = [i for i, request in enumerate(self.requests) if request is not None]
        return self._alive

    def _call(self, i, request=None, age=0):
        server, script, *arguments = request or self.requests[i]
        if request is None and script in WRITING:
            self.sent[i].append(self.requests[i])
        before = self.servers[server]
        if age and server != LOG and script in (read, verify):
            before = self.past[server][-min(1 + age, len(self.past[server]))]
        if script is replicas:
            arguments = (server in self.cut,)
        if script is confirm:
            arguments = ("f-wait" in self.options.off or arguments[0] == self.connections[server],)
            if arguments[0]:
                self.safe[server] = len(self.past[server]) - 1
        if self.ticks:
            self.clock += 1
        clock = max(0, self.clock + self.skew) if server == LOG else self.clock
        if script is append:
            # Worlds that are compared have no late requests.
            self.moment += not self.is_compared
            arguments.append(self.moment)
        state, reply = script(before, self.options, clock, *arguments)
        if state is not before:
            self.servers[server] = state
            self.past[server].append(state)
            if server == LOG:
                self._log_changed(before, state)
            elif len(state.journal) > 4 * self.options.bound + 8:
                raise Fault("a journal grows without bound")
        return reply

    def _log_changed(self, before, log):
        if len(log.operations) > self.options.bound:
            raise Fault("the log grew over its bound")
        if log.end > before.end:
            operation = log.operations[-1]
            if self.sequence and operation.second < self.sequence[-1][3]:
                raise Fault("an operation arrived before an earlier one")
            if (operation.writer, operation.counter) in self.requested:
                raise Fault("one operation is in the log twice")
            self.sequence.append((operation.nonce, operation.kind, operation.docs, operation.second))
            self.requested.append((operation.writer, operation.counter))

    def do(self, step):
        """Run one step, or do nothing if it does not apply."""
        kind, who = step[0], step[1]
        if kind == "lose":
            self._lose(who, step[2])
        elif kind == "clock":
            self.skew = step[2]
        elif kind == "late":
            if who < len(self.sent) and len(self.sent[who]) >= step[2]:
                request = self.sent[who][-step[2]]
                if request[0] not in self.away:
                    self._call(who, request)
        elif kind == "cut":
            self.cut.setdefault(who, (len(self.past[who]), self.servers[LOG].end))
        elif kind == "take over":
            self._lose(who, len(self.past[who]) - self.cut.pop(who)[0])
        elif kind == "away":
            self.away.add(who)
        elif kind == "back":
            self.away.discard(who)
        elif who < len(self.requests) and self.requests[who] is not None:
            if kind == "kill":
                self._stop(who)
            elif self.requests[who][0] not in self.away:
                reply = self._call(who, age=step[2] if kind == "stale" else 0)
                if kind == "kill-after":
                    self._stop(who)
                    return
                if kind == "repeat":
                    reply = self._call(who)
                self._resume(who, reply)

    def _lose(self, server, num):
        past = self.past[server]
        left = max(len(past) - 1 - num, self.safe[server] if self.options.replicated else 0)
        if left == len(past) - 1:
            return
        del past[left + 1 :]
        self.safe[server] = min(self.safe[server], left)
        self.servers[server] = past[-1]
        self.connections[server] += 1
        self.num_lost["log" if server == LOG else "partition"] += 1
        if server != LOG:
            return
        for nonce, *_ in self.sequence[past[-1].end :]:
            if nonce in self.answers:
                position, client, answer = self.answers[nonce]
                self.void[nonce] = (position, client, answer)
                if self.options.replicated:
                    raise Fault("an answer was lost although it was on a replica")
        del self.sequence[past[-1].end :]
        del self.requested[past[-1].end :]

    # Answers and reports of clients.

    def answered(self, client, position, nonce, answer):
        if position >= len(self.sequence) or self.sequence[position][0] != nonce:
            # Lost between the last reply and this answer.
            raise Fault("answered an operation that is not in the log")
        if not self.biased:
            operations = tuple(operation[1:] for operation in self.sequence[: position + 1])
            expected = sequence_state(self.options.ttl, operations)[1]
            if answer != expected:
                raise Fault(f"position {position}: {answer}, the sequence says {expected}")
        _, kind, docs, _ = self.sequence[position]
        if kind == ADD and not self.num_lost["partition"]:
            ids = {doc_id for doc_id, _ in docs}
            for lost, (at, _, old) in self.void.items():
                if at <= position and lost not in self.told and added(old) & ids:
                    raise Fault("a second answer to a document, and the loss of the first was not reported")
        if any(name == client.name and lost not in self.told for lost, (_, name, _) in self.void.items()):
            raise Fault("a client goes on and was not told that an answer of its own is lost")
        if self.biased and kind == ADD:
            for doc_id, _, row, leader, _ in answer:
                if self.said.setdefault(doc_id, (row, leader)) != (row, leader):
                    raise Fault("two answers to one document")
        self.answers[nonce] = (position, client.name, answer)

    def checked(self, end, chain, text, second, found):
        log = self.servers[LOG]
        if self.biased or log.end < end or log.chains[end] != chain:
            return
        state = sequence_state(self.options.ttl, tuple(operation[1:] for operation in self.sequence[:end]))[0]
        rule = Rule(self.options.ttl)
        if rule.look(state, text, rule.since(second))[:2] != found:
            raise Fault("a check differs from the sequence")

    def reported(self, nonce):
        if nonce in self.answers and nonce not in self.void:
            raise Fault("an operation that is there was reported as lost")
        self.told.add(nonce)

    def own_lost(self, client, log):
        for nonce, (_, name, _) in self.void.items():
            if name == client.name:
                self.told.add(nonce)
                self.own_told.add(nonce)

    def audited(self, log, state):
        if self.biased:
            return
        operations = tuple(operation[1:] for operation in self.sequence)
        expected = sequence_state(self.options.ttl, operations)[0]
        since = Rule(self.options.ttl).since(operations[-1][2]) if operations else -1
        if state.content(since) != expected.content(since):
            raise Fault(f"tables {state.content(since)}, the sequence says {expected.content(since)}")
        told = self.own_told | dict(self.servers[LOG].losses).keys()
        for nonce, (_, _, answer) in self.void.items():
            if nonce not in told and not self.num_lost["partition"] and added(answer):
                raise Fault("a lost answer was not reported")

    def finish(self, limit=4000):
        """Let the remaining clients run in turn, then the auditor."""
        self.away.clear()
        for _ in range(2):
            while not self.is_fatal and (alive := self.alive()):
                for i in alive:
                    if not self.is_fatal:
                        self.do(("run", i))
                        limit -= 1
                if limit < 0:
                    raise Fault("nobody gets on")
            if self.is_fatal or isinstance(self.clients[-1], Auditor):
                return
            self.join(Auditor(900, (), self, Rule(self.options.ttl)))

    def print(self, can_lose):
        """Return a number for states with the same possible futures: servers, replies to clients, answers."""
        pasts = tuple(tuple(digest(state) for state in (past if can_lose else past[-1:])) for past in self.past)
        running = tuple(request is not None for request in self.requests)
        said = (frozenset(self.void) - self.told, frozenset(self.answers))
        return hash((pasts, tuple(self.prints), running, said, self.is_fatal))


def digest(reply):
    """Return a hashable form of a reply. The history of a partition determines its contents."""
    if isinstance(reply, Partition):
        return reply.history, reply.fold
    if isinstance(reply, tuple) and reply and isinstance(reply[-1], Partition):
        return (*reply[:-1], digest(reply[-1]))
    if isinstance(reply, tuple) and len(reply) == 3 and isinstance(reply[1], Partition):
        return reply[0], digest(reply[1]), reply[2]
    return reply


def added(answer):
    """Return the ids that an answer added or removed."""
    if answer[:1] == (-1,):
        return set()
    return {said[0] for said in answer if len(said) == 2 or said[1]}


class Plan(NamedTuple):
    """Tasks of each client, the setting, and clients that decide differently."""

    tasks: tuple
    options: Options
    biased: tuple = ()


def play(plan, schedule):
    """Run a schedule to its end and return the world, or raise a Fault."""
    world = World(plan.tasks, plan.options, plan.biased)
    for step in schedule:
        world.do(step)
        if world.is_fatal:
            return world
    world.finish()
    return world


def fault_of(plan, schedule):
    """Return the fault of a schedule, or None."""
    try:
        play(plan, schedule)
    except Fault as fault:
        return str(fault)
    except (KeyError, AttributeError, IndexError, TypeError, RecursionError) as error:
        return f"{type(error).__name__} {error}"
    return None


def random_plan(rng, off=frozenset(), biased=False):
    """Return random tasks and a random setting."""
    documents = [(doc_id, rng.choice(TEXTS)) for doc_id in range(4)]

    def task():
        kind = rng.random()
        if kind < 0.15:
            return CHECK, (rng.choice(TEXTS),)
        if kind < 0.3 and not biased:
            return (SWEEP, ()) if rng.random() < 0.4 else (REMOVE, (rng.randrange(4),))
        num = 1 if rng.random() < 0.6 else 2
        docs = [rng.choice(documents) for _ in range(num)]
        if rng.random() < 0.1 and not biased:
            docs[0] = (docs[0][0], rng.choice(TEXTS))
        return ADD, tuple(docs)

    clients = rng.choice((2, 2, 2, 3))
    tasks = tuple(tuple(task() for _ in range(rng.choice((1, 1, 2, 3)))) for _ in range(clients))
    options = Options(
        partitions=rng.choice((1, 2, 2, 3)),
        bound=rng.choice((2, 3, 4)),
        horizon=rng.choice((0, 1, 2)),
        patience=rng.choice((0, 0, 6)),
        ttl=rng.choice((None, None, 5, 15)) if not biased else None,
        replicated=rng.random() < 0.25,
        kept=rng.choice((1, 1, 2, 8)),
        ahead=rng.choice((0, 0, 20)) if not biased else 0,
        eager=rng.choice((0, 1, 1, 2)),
        off=off,
    )
    return Plan(tasks, options, (rng.randrange(clients),) if biased else ())


def random_schedule(rng, plan, length=60):
    """Run steps with a few failures as they are chosen. Return (schedule, fault or None, world)."""
    world = World(plan.tasks, plan.options, plan.biased)
    schedule = []
    servers = 1 + plan.options.partitions
    failures = rng.choice((0, 1, 1, 2, 3))
    focus = rng.random()
    current = 0
    try:
        for _ in range(length):
            alive = world.alive()
            if not alive or world.is_fatal:
                break
            chance = rng.random()
            if chance < 0.08 and failures:
                failures -= 1
                who, server = rng.choice(alive), rng.randrange(servers)
                if focus < 0.3:
                    server = LOG
                step = rng.choice(
                    (
                        ("kill", who),
                        ("kill-after", who),
                        ("repeat", who),
                        ("lose", server, rng.randint(1, 4)),
                        ("lose", server, rng.randint(1, 9)),
                        ("away", server),
                        ("stale", who, rng.randint(1, 9)),
                        ("late", who, rng.randint(1, 12)),
                        ("late", rng.randrange(len(world.sent)), rng.randint(1, 30)),
                        ("clock", LOG, rng.choice((-10, -3, 5))),
                    )
                )
                if step[0] == "lose" and plan.biased:
                    # A repeated decision is the same only if all clients decide alike.
                    continue
                if step[0] == "kill" and len(alive) == 1:
                    continue
            elif chance < 0.12 and world.away:
                step = ("back", min(world.away))
            else:
                # Bursts of one client, so that others are paused for a long time.
                if current not in alive or rng.random() < 0.25:
                    current = rng.choice(alive)
                step = ("run", current)
            schedule.append(step)
            world.do(step)
        if not world.is_fatal:
            world.finish()
    except Fault as fault:
        return schedule, str(fault), world
    except (KeyError, AttributeError, IndexError, TypeError, RecursionError) as error:
        return schedule, f"{type(error).__name__} {error}", world
    return schedule, None, world


def lagging_plan(rng, off=frozenset()):
    """Return tasks that fill the log several times, with upkeep after each one."""
    bound = 24
    options = Options(bound=bound, horizon=2, eager=2, off=off)
    tasks = tuple(
        tuple((ADD, ((rng.randrange(4), rng.choice(TEXTS)),)) for _ in range(rng.randint(20, 30))) for _ in range(2)
    )
    return Plan(tasks, options)


def lagging_schedule(rng, plan, server):
    """Run a schedule in which a replica takes over that lags as far as the log can repair. Return (schedule, world)."""
    world = World(plan.tasks, plan.options)
    # A partition may lose what the log keeps of folded operations; the log what no partition folds meanwhile.
    share = FOLDED if server == LOG else KEPT - FOLDED
    limit = int(share * plan.options.bound) - 2 - len(plan.tasks)
    schedule, current, cut_at = [], 0, rng.randint(0, 40)
    while alive := world.alive():
        if current not in alive or rng.random() < 0.25:
            current = rng.choice(alive)
        lag = world.servers[LOG].end - world.cut[server][1] if server in world.cut else -1
        if lag < 0 and cut_at is not None and world.servers[LOG].end >= cut_at:
            step, cut_at = ("cut", server), None
        elif lag >= limit:
            step = ("take over", server)
        else:
            step = ("run", current)
        schedule.append(step)
        world.do(step)
        if world.is_fatal:
            return schedule, world
    world.finish()
    return schedule, world


def explore(plan, losses=0, kills=0, most_lost=6):
    """Run all schedules of a small plan. Return (schedules, distinct states), or raise a Fault with its schedule.

    Schedules that lead to the same state continue alike, so each state is run once, and its schedules are counted.
    """
    counts = {}

    def replayed(schedule):
        world = World(plan.tasks, plan.options, plan.biased, is_compared=True)
        for step in schedule:
            world.do(step)
        return world

    def choices(world, left):
        alive = world.alive()
        steps = [(("run", i), left) for i in alive]
        if left[0]:
            for server, past in enumerate(world.past):
                for num in range(1, min(most_lost, len(past) - 1) + 1):
                    steps.append((("lose", server, num), (left[0] - 1, left[1])))
        if left[1] and len(alive) > 1:
            steps += [((kind, i), (left[0], left[1] - 1)) for i in alive for kind in ("kill", "kill-after")]
        return steps

    def count(schedule, left, world):
        alive = world.alive()
        key = (world.print(left[0] > 0), left)
        if key in counts:
            return counts[key]
        if world.is_fatal or not alive:
            if not world.is_fatal:
                world.finish()
            counts[key] = 1
            return 1
        total = 0
        for number, (step, then) in enumerate(choices(world, left)):
            after = replayed(schedule) if number else world
            try:
                after.do(step)
                total += count([*schedule, step], then, after)
            except Fault as fault:
                if len(fault.args) == 1:
                    fault.args = (*fault.args, [*schedule, step])
                raise
        counts[key] = total
        return total

    schedules = count([], (losses, kills), replayed([]))
    return schedules, len(counts)


def shrink(plan, schedule):
    """Return a failing plan and schedule from which no step or task can be omitted."""
    before = None
    while before != (plan, schedule):
        before = plan, schedule
        size = max(1, len(schedule) // 2)
        while size:
            at = 0
            while at < len(schedule):
                shorter = schedule[:at] + schedule[at + size :]
                if fault_of(plan, shorter):
                    schedule = shorter
                else:
                    at += size
            size //= 2
        for client, of_client in enumerate(plan.tasks):
            for at in reversed(range(len(of_client))):
                left = plan.tasks[client][:at] + plan.tasks[client][at + 1 :]
                shorter = plan._replace(tasks=(*plan.tasks[:client], left, *plan.tasks[client + 1 :]))
                if fault_of(shorter, schedule):
                    plan = shorter
    return plan, schedule


def search(seed, num, off=frozenset(), biased=False, fixed=None):
    """Run random schedules of one plan or of random plans.

    Returns
    -------
    (schedules run, schedules ended by a report that too much was lost, (plan, schedule, fault) or None)
    """
    rng = random.Random(seed)
    num_fatal = 0
    for played in range(num):
        plan = fixed or random_plan(rng, off, biased)
        schedule, fault, world = random_schedule(rng, plan)
        num_fatal += world.is_fatal
        if fault:
            return played + 1, num_fatal, (plan, schedule, fault)
    return num, num_fatal, None
