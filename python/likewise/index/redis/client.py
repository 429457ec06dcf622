"""The steps of a client, as specified in docs/developers/cluster.md.

``tests/index/store/cluster_model.py`` is a model of the same steps, run by a scheduler that injects failures.
"""

import contextlib
import itertools
import secrets
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, NamedTuple, NoReturn, TypeVar

from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, LostWrites, StoreError
from likewise.index.redis import log as logs
from likewise.index.redis.nodes import Nodes

# Number of acknowledged ids that a client remembers, so that it can name lost ones.
MAX_IDS = 50_000
# The scripts keep 8,192 marks of each partition and 8,192 chain values: enough for the log and for upkeep in between.
MAX_BOUND = 4096
# Bytes of one operation or verdict. Redis limits one string to 512 MB.
MAX_BYTES = 128 << 20
# Rows that one operation sweeps, and sweeps after one call.
SWEPT_ROWS = 2048
_SWEEPS = 32
# Operations whose effects are written again at once.
_REPAIRED_AT_ONCE = 64
# Shares of the bounds of the log: what is folded although a replica of the log may lack it, and what the log keeps.
_FOLDED_SHARE = 0.5
_KEPT_SHARE = 0.75
_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.1
_NOBODY = b"\0" * 8
_BELOW = struct.Struct("<8sII")

Answer = TypeVar("Answer")


class Options(NamedTuple):
    """Bounds and times of the protocol."""

    # Operations that the log may hold, at most 4,096, and their bytes
    bound: int = 4096
    bound_bytes: int = 64 << 20
    # Operations below W that no partition folds, and half of the bound while a replica of the log may lack them
    horizon: int = 128
    # Seconds that a client waits for the verdict of another client before it decides itself
    wait_s: float = 2.0
    # Number of operations between moves of W, and between folds
    advance_every: int = 4
    tidy_every: int = 64
    # Seconds during which a loss beyond repair is read again: a replaced server may still reply for a moment.
    doubt_s: float = 5.0


class BeyondRepair(StoreError):
    """The servers lost more than the log can restore."""


class _Undecidable(Exception):
    """The rule raised an error on an operation. Its cause is the error."""


class Answered(NamedTuple):
    """An acknowledged operation: the position and chain value after it, its ids, its kind, and its second."""

    position: int
    chain: bytes
    doc_ids: list[str]
    kind: int
    second: int


class Client:
    """One client of an index. Threads can share it; they take turns."""

    def __init__(
        self,
        nodes: Nodes,
        prefix: bytes,
        num_partitions: int,
        rule: _native.ClusterRule,
        options: Options | None = None,
        identity: bytes = b"",
    ) -> None:
        self.rule, self.options = rule, options or Options()
        if not 1 <= self.options.bound <= MAX_BOUND:
            raise InvalidParameter("bound", f"{self.options.bound} is not between 1 and {MAX_BOUND}")
        self._nodes = nodes
        self._log = logs.LogServer(nodes, prefix, identity)
        self._partitions = logs.Partitions(nodes, prefix, num_partitions)
        self._place = nodes.name
        self._name = secrets.token_bytes(8)
        self._counter = 0
        self._answered: deque[Answered] = deque()
        self._num_ids = 0
        self._forgotten: Answered | None = None
        self._seen: dict[bytes, float] = {}
        self._rests_until = 0.0
        self._pace_s = 0.0
        self._below = (0, 0, logs.START, b"")
        self._is_in_doubt = False
        self._is_sweep_due = False
        self._lock = threading.Lock()
        self.tag, self.sweeps = b"", True
        self.num_helped = self.num_repaired = self.num_searched = self.num_candidates = 0

    # Operations.

    def operate(self, kind: int, payload: bytes, second: int = 0) -> Any:
        """Add or restore documents, or remove one, and return the answer of the rule.

        No operation arrives before `second`, the last arrival time of documents to restore, or before an earlier one.
        """
        if len(payload) > MAX_BYTES:
            raise InvalidInput(f"a batch of {len(payload)} bytes is above {MAX_BYTES} bytes; use smaller batches")
        with self._turn():
            answer = self._operate(kind, payload, second)
            if self._is_sweep_due:
                # The operation is answered regardless of errors here.
                self._is_sweep_due = False
                try:
                    self._sweep(_SWEEPS)
                except BeyondRepair:
                    self._is_in_doubt = True
                except StoreError:
                    pass
            return answer

    def sweep(self) -> int:
        """Delete documents that expired more than the age limit ago, on which no answer depends; return how many."""
        with self._turn():
            return self._sweep()

    def _sweep(self, limit: int | None = None) -> int:
        """Sweep until nothing is left, in at most so many operations."""
        if self.rule.sweep(0, SWEPT_ROWS) is None:
            return 0
        num, answered = 0, self._answered
        try:
            # Lost answers are reported by the next call of the user.
            self._answered = deque()
            for _ in range(limit) if limit is not None else itertools.count():
                # Raises if the index was deleted or replaced.
                self._log.ask("begin", b"", b"")
                first = int(self._log.fields()[b"swept"])
                payload = self.rule.sweep(first, SWEPT_ROWS)
                if payload is None or self._ask(payload)[0] == first:
                    break
                num += self._operate(logs.SWEEP, payload)[1]
        finally:
            self._answered, self._is_sweep_due = answered, False
        return num

    def _operate(self, kind: int, payload: bytes, given: int = 0) -> Any:
        self._counter += 1
        if kind == logs.REMOVE:
            # Only a recent end of the log shows that the request is new.
            self._log.ask("begin", b"", b"")
        since = self._log.known_end
        while True:
            nonce = self.tag + secrets.token_bytes(8 - len(self.tag))
            bounds = self.options.bound, self.options.bound_bytes
            num = self.rule.num_rows(payload)
            status, log, more = self._log.ask(
                "append", *self._last, self._name, self._counter, nonce, kind, num, payload, *bounds, given, *since
            )
            if status == logs.GONE_BACK:
                self._raise_lost()
            if status == logs.FULL:
                low, end = log.low, log.end
                while log.low == low and log.end >= end:
                    log = self._surely(lambda: self._tidy(is_full=True))
                continue
            if status == logs.EXHAUSTED:
                raise StoreError("the index has no row numbers left; rebuild it")
            if status == logs.FORGOTTEN and kind == logs.REMOVE:
                self._raise_unknown(payload)
            if status in (logs.LOST, logs.FORGOTTEN) or (status == logs.ANSWERED and kind != logs.REMOVE):
                # The ids of a new operation show whether the documents were added.
                self._counter += 1
                since = self._log.known_end
                continue
            second = log.second
            if status != logs.ANSWERED:
                position, nonce = more
                log, operation = self._completed(log, position, nonce)
                if operation is not None:
                    second = operation.second
                    more = [position, log.chain(position + 1), logs.packed_verdict(operation)]
                elif kind != logs.REMOVE or position >= log.low:
                    # A failover dropped it, or others finished and trimmed it. The ids of an addition show which.
                    continue
                else:
                    status, log, more = self._log.ask("answered", self._name, self._counter)
                    if status != logs.ANSWERED:
                        more = [position, b"", b""]
            position, chain, packed = more
            if not packed:
                self._raise_unknown(payload)
            row, _, verdict = logs.verdict_of(packed)
            doc_ids, refusal, answer = self.rule.ids(payload), None, None
            try:
                answer = self.rule.answer(payload, row, verdict)
            except (InvalidInput, StoreError) as error:
                # Nothing was changed, so nothing can be lost.
                doc_ids, refusal = [], error
            if chain and kind != logs.SWEEP:
                self._remember(Answered(position + 1, chain, doc_ids, kind, second))
            self._after(log, position)
            if refusal is not None:
                raise refusal
            return answer

    def _raise_unknown(self, payload: bytes) -> NoReturn:
        raise StoreError(
            f"the removal of {self.rule.ids(payload)} may or may not have been applied: the log "
            "does not contain its answer any more. Look up the id before you repeat the call"
        )

    def ask(self, payload: bytes) -> Any:
        """Return the answer to a read-only operation at the end of the log."""
        with self._turn():
            return self._ask(payload)

    def _ask(self, payload: bytes) -> Any:
        return self._surely(lambda: self._look(payload))

    def _look(self, payload: bytes) -> Any:
        while True:
            log = self._begun()
            end, second, chain = log.end, log.second, log.chains[-1]
            while log.mark <= end <= log.end and log.chain(end) == chain:
                if any(log.there(at).verdict is None for at in range(log.mark, end)):
                    log = self._decide_next(log, end - 1)
                    continue
                try:
                    log, decision = self._decision(log, end, payload, log.row_at(end), second, _NOBODY)
                except _Undecidable as error:
                    raise error.__cause__ or error from None
                if decision is not None:
                    return decision.answer()

    def settle(self, *, is_final: bool = False) -> logs.Log:
        """Finish all operations, and move W past them. If `is_final`, fold what the replicas of the log have."""
        with self._turn():
            log = self._surely(self._tidy)
            while log.mark < log.end:
                log = self._surely(self._tidy)
            return self._surely(lambda: self._fold(self._again(), log.mark)) if is_final else log

    def losses(self) -> list[logs.Loss]:
        """Return the lost operations that any client found."""
        with logs.readable(self._place):
            return self._log.losses()

    def log(self) -> logs.Log:
        """Return the log as it is now."""
        with self._turn():
            return self._begun()

    def _begun(self) -> logs.Log:
        """Return the log; raise LostWrites if it lacks an operation that this client knows as acknowledged."""
        status, log, _ = self._log.ask("begin", *self._last)
        if status == logs.GONE_BACK:
            self._raise_lost()
        return log

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock. A forked process must not wait for it, since a thread may have held it during the fork."""
        self._nodes.check_process()
        with self._lock:
            if self._is_in_doubt:
                try:
                    self._surely(lambda: self._tidy(finishes=False))
                except BeyondRepair:
                    raise
                except StoreError:
                    # It says nothing about the loss, which the next upkeep finds again.
                    pass
                self._is_in_doubt = False
            with logs.readable(self._place):
                yield

    def _surely(self, step: Callable[[], Answer]) -> Answer:
        """Return what a step returns, repeated while it finds a loss beyond repair that is not certain yet."""
        until = None
        while True:
            try:
                return step()
            except BeyondRepair:
                now = time.monotonic()
                if until is not None and now >= until:
                    raise
                until = until or now + self.options.doubt_s
            time.sleep(min(self.options.doubt_s, _LONGEST_PAUSE_S))
            self._nodes.look_again()
            self._log.doubt()

    # Acknowledged operations.

    @property
    def _last(self) -> tuple[int, bytes] | tuple[bytes, bytes]:
        return self._answered[-1][:2] if self._answered else (b"", b"")

    def _remember(self, answered: Answered) -> None:
        self._answered.append(answered)
        self._num_ids += max(1, len(answered.doc_ids))
        while self._num_ids > MAX_IDS and len(self._answered) > 1:
            self._forgotten = self._answered.popleft()
            self._num_ids -= max(1, len(self._forgotten.doc_ids))

    def _raise_lost(self) -> NoReturn:
        """Raise LostWrites for answers that the log no longer contains, and forget them."""
        # A failover drops a suffix. Answers are forgotten only after all replies have arrived.
        num, end = 0, len(self._answered)
        while num < end:
            middle = (num + end) // 2
            if self._log.ask("begin", *self._answered[middle][:2]).status == logs.GONE_BACK:
                end = middle
            else:
                num = middle + 1
        lost = list(self._answered)[num:]
        for one in lost:
            self._answered.pop()
            self._num_ids -= max(1, len(one.doc_ids))
        doc_ids = [doc_id for one in lost if one.kind == logs.ADD for doc_id in one.doc_ids]
        removed = [doc_id for one in lost if one.kind == logs.REMOVE for doc_id in one.doc_ids]
        left, is_complete = self._answered[-1] if self._answered else self._forgotten, True
        if left is not None and left is self._forgotten and self._log.ask("begin", *left[:2]).status == logs.GONE_BACK:
            left = self._forgotten = None
            is_complete = False
        since_s = None if left is None else left.second
        raise LostWrites(self._place, [*dict.fromkeys(doc_ids)], removed, since_s, is_complete)

    def _after(self, log: logs.Log, position: int) -> None:
        """Move W or fold the partitions if due. The operation is answered regardless of errors here."""
        is_move = (position + 1) % self.options.advance_every == 0
        is_large = log.num_bytes > _KEPT_SHARE * self.options.bound_bytes
        is_tidy = (position + 1) % self.options.tidy_every == 0 or (is_move and is_large)
        begun = time.monotonic()
        if not (is_move or is_tidy) or begun < self._rests_until:
            return
        try:
            self._help(log)
            if is_tidy:
                # Leave pending operations to their clients: under load, there is always one.
                self._tidy(finishes=False)
                self._is_sweep_due = self.sweeps
        except BeyondRepair:
            self._is_in_doubt = True
        except StoreError:
            # Attempts with an unreachable partition take at most half of the time.
            self._rests_until = 2 * time.monotonic() - begun

    def _help(self, log: logs.Log) -> logs.Log:
        """Move W, after completing operations whose clients stopped."""
        log = self._move(log)
        is_helping = False
        while (position := _unwritten(log, log.end)) is not None:
            operation = log.there(position)
            if operation.writer != self._name:
                if not self._is_overdue(operation.nonce):
                    break
                self.num_helped += operation.verdict is not None
            log = self._complete(log, position, operation.nonce)[0]
            is_helping = True
        return self._move(log) if is_helping else log

    # Steps.

    def _again(self, *, is_whole: bool = False) -> logs.Log:
        if is_whole:
            self._log.doubt()
        return self._log.ask("begin", b"", b"").log

    def _completed(self, log: logs.Log, position: int, nonce: bytes) -> tuple[logs.Log, logs.Operation | None]:
        """Return the result of :meth:`_complete`, from this log first; repeat it as :meth:`_surely` does."""
        first = [log]

        def step() -> tuple[logs.Log, logs.Operation | None]:
            return self._complete(first.pop() if first else self._again(), position, nonce)

        return self._surely(step)

    def _complete(self, log: logs.Log, position: int, nonce: bytes) -> tuple[logs.Log, logs.Operation | None]:
        """Decide, store and write an operation. Return None for it if the log does not contain it."""
        is_own = False
        while True:
            operation = log.at(position)
            if operation is None or operation.nonce != nonce:
                return log, None
            if operation.verdict is None:
                log = self._decide_next(log, position)
                continue
            # WAIT covers only writes of its own connection, so marks stored by another client are stored again.
            if operation.marks is not None and is_own:
                return log, operation
            if operation.marks is None:
                written = self._write_effects(log, {position: operation})
                if not isinstance(written, dict):
                    log = self._again()
                    if written is not None and log.has(position, nonce) and log.mark <= position:
                        raise BeyondRepair(
                            f"operation {position} is final in a partition, and the log does not have its verdict"
                        )
                    continue
                packed = logs.packed_marks(written[position])
            else:
                packed = operation.marks
            status, log, _ = self._log.ask("written", position, nonce, packed, writes=True)
            if status == logs.LOST:
                return self._again(is_whole=True), None
            is_own = True

    def _write_effects(
        self, log: logs.Log, operations: dict[int, logs.Operation], only: Collection[int] | None = None
    ) -> dict[int, logs.Marks] | bytes | None:
        """Write the effects of operations, by position; return the marks, OLD below a fold, or None to try again."""
        parts, requests = [], []
        for position, operation in operations.items():
            assert operation.verdict is not None
            for part, *rest in self.rule.effects(
                operation.payload, (operation.row, operation.second, operation.nonce), operation.verdict
            ):
                if only is None or part in only:
                    parts.append((position, part))
                    requests.append(self._partitions.write(part, position, operation.nonce, tuple(rest)))
        replies = self._partitions.call(requests)
        marks: dict[int, logs.Marks] = {position: {} for position in operations}
        for (position, part), reply in zip(parts, replies, strict=True):
            nonce = operations[position].nonce
            if reply.status == logs.CLASH:
                self._check_depth(log, part, reply)
                self._report(self._again(), [(part, logs.entry_of(reply.more[0]))])
                return None
            # If the fold is of this history, it contains the operation, whose marks were lost.
            if reply.status == logs.OLD and not (log.has(position, nonce) and _fits(log, reply)):
                return logs.OLD
            marks[position][part] = reply.mark
        return marks

    def _decide_next(self, log: logs.Log, limit: int) -> logs.Log:
        """Decide and store the first operation without a verdict, up to position `limit`."""
        position = next(at for at in range(log.mark, limit + 1) if log.there(at).verdict is None)
        operation = log.there(position)
        if operation.writer != self._name:
            if not self._has_waited(operation.nonce, 1 + limit - position):
                return self._again()
            self.num_helped += 1
        row = log.row_at(position)
        begun = time.monotonic()
        try:
            log, decision = self._decision(log, position, operation.payload, row, operation.second, operation.nonce)
            with _deciding():
                verdict = decision.verdict() if decision is not None else b""
            if len(verdict) > MAX_BYTES:
                raise _Undecidable(f"the verdict has {len(verdict)} bytes, above {MAX_BYTES} bytes")
        except _Undecidable as error:
            # An operation without a verdict would stop the log.
            verdict = self.rule.rejected(
                f"no decision is possible on operation {position} of client {operation.writer.hex()}, which changed "
                f"nothing: {error.__cause__ or error}"
            )
        if not verdict:
            return log
        counts = self.rule.counts(verdict)
        status, log, _ = self._log.ask("store", position, operation.nonce, row, verdict, *counts)
        self._pace_s = (time.monotonic() - begun + self._pace_s) / 2
        if status in (logs.BEHIND, logs.LOST):
            return self._again(is_whole=True)
        return log

    def _has_waited(self, nonce: bytes, num: int) -> bool:
        """Return whether another client's verdict, the first of `num` that are missing, is overdue. If not, sleep."""
        if self._is_overdue(nonce):
            return True
        # Verdicts are stored in turn. Each request costs the client and the log's server as much as some documents.
        expected_s = max(self._pace_s * (num - 1) / 2, (time.monotonic() - self._seen[nonce]) / 8)
        time.sleep(min(_LONGEST_PAUSE_S, max(_FIRST_PAUSE_S, expected_s)))
        return False

    def _is_overdue(self, nonce: bytes) -> bool:
        """Return whether this client has known for at least `wait_s` that an operation is pending."""
        now = time.monotonic()
        if len(self._seen) > 2 * self.options.bound:
            self._seen.clear()
        return now - self._seen.setdefault(nonce, now) >= self.options.wait_s

    def _decision(
        self, log: logs.Log, position: int, payload: bytes, row: int, second: int, nonce: bytes
    ) -> tuple[logs.Log, _native.ClusterDecision | None]:
        """Decide on the state before a position. Return None if it must be tried again with the returned log."""
        tail = []
        for at in range(log.mark, position):
            one = log.there(at)
            assert one.verdict is not None
            tail.append((at, one.nonce, one.kind, one.row, one.num, one.second, one.payload, one.verdict))
        with _deciding():
            decision = self.rule.decide(
                payload, (row, second, nonce), tail, log.row_at(log.mark), self._rows_below(log)
            )
        while True:
            with _deciding():
                wanted = decision.wanted()
            if not wanted:
                break
            replies = self._partitions.call(
                [self._partitions.read(part, log.confirmed[part], tables, records) for part, tables, records in wanted]
            )
            stale: list[tuple[int, logs.Entry]] = []
            for (part, *_), reply in zip(wanted, replies, strict=True):
                self._check_depth(log, part, reply)
                if reply.status == logs.LOST:
                    self._repair(part)
                    return self._again(), None
                if not _is_current(log, reply):
                    return self._catch_up(part, reply), None
                journal, flat, records, *strings = reply.more
                # A partition mostly has the operations in the order of the log.
                if journal not in log.listed:
                    stale += [(part, entry) for entry in logs.entries_of(journal) if not log.has(*entry)]
                changes = sorted((logs.entry_of(field), packed) for field, packed in _pairs(flat) if field)
                below_mark = [packed for entry, packed in changes if entry.position < log.mark]
                with _deciding():
                    decision.take(part, strings[0] if strings else [], records, below_mark)
            if stale:
                now = self._again()
                if self._report(now, stale) or any(entry.position < log.end for _, entry in stale):
                    return self._again(), None
                # The stale entries are of operations that were appended after this view, so it ignores them.
        num_searched, num_candidates = decision.searched()
        self.num_searched += num_searched
        self.num_candidates += num_candidates
        return log, decision

    def _rows_below(self, log: logs.Log) -> bytes:
        """Return nonce, first row and number of rows of each operation below W, packed."""
        low, mark, chain, packed = self._below
        if not low <= log.low <= mark <= log.mark or log.chain(mark) != chain:
            low, mark, packed = log.low, log.low, b""
        new = log.operations[mark - log.low : log.mark - log.low]
        packed = packed[_BELOW.size * (log.low - low) :] + b"".join(
            [_BELOW.pack(one.nonce, one.row, one.num) for one in new]
        )
        self._below = log.low, log.mark, log.chains[log.mark - log.low], packed
        return packed

    # Losses.

    def _check_depth(self, log: logs.Log, part: int, reply: logs.PartReply) -> None:
        if reply.fold < log.low:
            raise BeyondRepair(f"partition {part} lost writes that the log does not have any more; rebuild the index")

    def _report(self, log: logs.Log, stale: list[tuple[int, logs.Entry]]) -> bool:
        """Report and purge effects of operations that the log, read after them, lacks. Return whether there are any."""
        lost = [one for one in stale if one[1].position >= log.low and not log.has(*one[1])]
        if not lost:
            return False
        replies = self._partitions.call([self._partitions.records_of(*one) for one in lost])
        ids: dict[logs.Entry, list[str]] = {}
        of_parts = [self.rule.lost_ids(reply.more[0]) for reply in replies]
        for (_, entry), of_part in zip(lost, of_parts, strict=True):
            ids.setdefault(entry, []).extend(of_part)
        # Report before purging: if this client stops in between, another one finds the effects again.
        self._tell(ids)
        requests = [
            self._partitions.purge(*one, logs.packed_ids(of_part)) for one, of_part in zip(lost, of_parts, strict=True)
        ]
        self._partitions.call(requests)
        return True

    def _tell(self, ids: dict[logs.Entry, list[str]]) -> None:
        """Add losses of these documents to those that the log reports."""
        losses = [logs.Loss(*entry, tuple(dict.fromkeys(of_entry))) for entry, of_entry in ids.items()]
        self._log.ask("report", *map(logs.packed_loss, losses), writes=True)

    def _check_reports(self, purged: dict[int, dict[logs.Entry, bytes]], to: int) -> None:
        """Report purged losses again whose reports a failover dropped, and forget those with final reports."""
        reported = {logs.Entry(*loss[:2]): end for loss, end in self._log.reports().items()}
        missing: dict[logs.Entry, list[str]] = {}
        for of_part in purged.values():
            for entry, packed in of_part.items():
                if entry not in reported:
                    missing.setdefault(entry, []).extend(logs.ids_of(packed))
        if missing:
            self._tell(missing)
        requests = []
        for part, of_part in purged.items():
            # A failover that drops such a report also drops operations that are final here, which everyone finds.
            final = [entry for entry in of_part if reported.get(entry, to) < to]
            if final:
                requests.append(self._partitions.forget(part, final))
        self._partitions.call(requests)

    def _catch_up(self, part: int, reply: logs.PartReply) -> logs.Log:
        """Return the log after a partition that does not match this client's view; W moves again after a failover."""
        log = self._again()
        _must_fit(log, part, reply)
        if reply.fold <= log.mark:
            return log
        log = self._again(is_whole=True)
        while (position := _unwritten(log, reply.fold)) is not None:
            operation = log.there(position)
            if operation.verdict is None:
                raise BeyondRepair(
                    f"operation {position} is final in partition {part}, and the log does not have its verdict; "
                    "rebuild the index"
                )
            log = self._complete(log, position, operation.nonce)[0]
            _must_fit(log, part, reply)
        return self._move(log)

    def _repair(self, part: int) -> None:
        """Rewrite the effects below W that a partition lost."""
        log = self._again()
        old = log.confirmed[part]
        reply = self._partitions.call([self._partitions.verify(part, [old])])[0]
        if not reply.more[0]:
            return
        self._check_depth(log, part, reply)
        if not _fits(log, reply):
            _must_fit(self._again(), part, reply)
            return
        marks: list[bytes] = []
        for start in range(reply.fold, log.mark, _REPAIRED_AT_ONCE):
            some = range(start, min(log.mark, start + _REPAIRED_AT_ONCE))
            found = self._write_effects(log, {position: log.there(position) for position in some}, only=(part,))
            if not isinstance(found, dict):
                return
            marks += [mark for of_position in found.values() for mark in of_position.values()]
        reply = self._partitions.call([self._partitions.verify(part, marks)])[0]
        if not reply.more[0]:
            self.num_repaired += 1
            self._log.ask("reconfirm", part, log.mark, old, reply.mark, writes=True)

    # Upkeep.

    def _move(self, log: logs.Log, *, is_repeated: bool = False) -> logs.Log:
        """Move W past the written operations, after rewriting the effects that a failover dropped."""
        to = log.mark
        while (operation := log.at(to)) is not None and operation.marks is not None:
            to += 1
        if to == log.mark:
            return log
        of_part: dict[int, dict[bytes, list[int]]] = {}
        for position in range(log.mark, to):
            for part, mark in logs.marks_of(log.there(position).marks or b"").items():
                of_part.setdefault(part, {}).setdefault(mark, []).append(position)
        replies = self._partitions.call(
            [self._partitions.verify(part, [log.confirmed[part], *marks]) for part, marks in of_part.items()]
        )
        confirmed: list[Any] = []
        dropped: dict[int, set[int]] = {}
        for (part, marks), reply in zip(of_part.items(), replies, strict=True):
            self._check_depth(log, part, reply)
            if reply.fold > to or not _fits(log, reply):
                return self._catch_up(part, reply)
            missing = reply.more[0]
            if log.confirmed[part] in missing:
                self._repair(part)
                return self._again()
            for mark in missing:
                for position in marks[mark]:
                    dropped.setdefault(position, set()).add(part)
            confirmed += [part, reply.mark]
        if dropped:
            for position, parts in sorted(dropped.items()):
                self._write_again(log, position, parts)
            log = self._again(is_whole=True)
            return log if is_repeated else self._move(log, is_repeated=True)
        chain = log.chain(to)
        assert chain is not None
        status, log, _ = self._log.ask("advance", log.mark, to, chain, *confirmed, writes=True)
        return self._again(is_whole=True) if status == logs.CONFLICT else log

    def _write_again(self, log: logs.Log, position: int, parts: Collection[int]) -> None:
        operation = log.there(position)
        found = self._write_effects(log, {position: operation}, only=parts)
        if isinstance(found, dict):
            marks = logs.marks_of(operation.marks or b"") | found[position]
            self._log.ask("written", position, operation.nonce, logs.packed_marks(marks), writes=True)

    def _tidy(self, *, finishes: bool = True, is_full: bool = False) -> logs.Log:
        """Finish pending operations, move W, fold the partitions, and trim the log."""
        log = self._again()
        for position in range(log.mark, log.end if finishes else log.mark):
            operation = log.there(position)
            if operation.marks is None:
                return self._complete(log, position, operation.nonce)[0]
        log = self._move(log)
        low, to = log.low, max(log.mark - self.options.horizon, self._newest(log, _FOLDED_SHARE))
        if to > low:
            log = self._fold(log, min(to, log.mark))
        if is_full and log.low == low < log.mark:
            # Only this frees space: a second fold, after which the log is not needed up to the first one.
            return self._fold(log, to + 1 if low < to < log.mark else log.mark, is_full=True)
        return log

    def _newest(self, log: logs.Log, share: float) -> int:
        """Return the first position of the newest operations, which are at most a share of the bounds."""
        return log.newest(int(share * self.options.bound), int(share * self.options.bound_bytes))

    def _fold(self, log: logs.Log, to: int, *, is_full: bool = False) -> logs.Log:
        """Fold all partitions up to a position, and trim the log."""
        # Final data must not be ahead of the log that a failover restores.
        _, log, (before, confirmed_end) = self._log.ask("touch", writes=True)
        num, num_confirmed = self._log.confirmations()
        least = self._newest(log, _FOLDED_SHARE)
        is_confirmed = num_confirmed >= max(num, before)
        if not is_confirmed:
            to = min(to, least + is_full)
        if is_confirmed or confirmed_end < least:
            # No fold can wait for a replica that lags so much, or is gone.
            self._log.ask("touch", num_confirmed, log.end, writes=True)
        chain = log.chain(to)
        if not log.low < to <= log.mark or chain is None:
            return log
        packed = log.listed_below(to)
        replies = self._partitions.call(
            [
                self._partitions.fold(part, log.confirmed[part], to, chain, packed)
                for part in range(self._partitions.num)
            ]
        )
        stale = [
            (part, logs.entry_of(field))
            for part, reply in enumerate(replies)
            if reply.status == logs.STALE
            for field in reply.more[0]
        ]
        if stale:
            # Reported together, so that the loss of an operation names all its ids.
            log = self._again()
            self._report(log, stale)
            return log
        for part, reply in enumerate(replies):
            self._check_depth(log, part, reply)
            if reply.status == logs.LOST:
                self._repair(part)
                return self._again()
            if not _is_current(log, reply):
                return self._catch_up(part, reply)
        purged = {part: reply.more[1] for part, reply in enumerate(replies) if reply.more[1]}
        if purged:
            of_parts = {
                part: {logs.entry_of(field): ids for field, ids in _pairs(flat)} for part, flat in purged.items()
            }
            self._check_reports(of_parts, to)
        # Trim only to the previous folds, so that a partition that loses its last fold can be repaired.
        low = min(int(reply.more[0]) for reply in replies)
        if not is_full:
            # A partition that lost its newest writes is repaired from the log.
            low = min(low, self._newest(log, _KEPT_SHARE))
        elif low <= log.low:
            low = to
        value = log.chain(low)
        if low > log.low and value is not None:
            return self._log.ask("trim", low, value, writes=True).log
        return log


@contextlib.contextmanager
def _deciding() -> Iterator[None]:
    """Distinguish errors of the rule from those of the servers."""
    try:
        yield
    except (InvalidInput, StoreError) as error:
        raise _Undecidable from error


def _pairs(flat: list[bytes]) -> Iterable[tuple[bytes, bytes]]:
    return zip(flat[::2], flat[1::2], strict=True)


def _is_current(log: logs.Log, reply: logs.PartReply) -> bool:
    """Return whether a partition belongs to the history of the log and is not ahead of it."""
    return reply.fold <= log.mark and log.chain(reply.fold) == reply.chain


def _fits(log: logs.Log, reply: logs.PartReply) -> bool:
    """Return whether a partition belongs to the history of the log, even if the log lost a move of W."""
    return log.chain(reply.fold) == reply.chain


def _unwritten(log: logs.Log, end: int) -> int | None:
    """Return the position of the first operation from W up to a position that is not written."""
    return next((at for at in range(log.mark, min(end, log.end)) if log.there(at).marks is None), None)


def _must_fit(log: logs.Log, part: int, reply: logs.PartReply) -> None:
    """Raise BeyondRepair if the log, read after a partition, is older than the final data there."""
    is_known = reply.fold >= log.low
    if reply.fold > log.end or (is_known and log.chain(reply.fold) != reply.chain):
        raise BeyondRepair(f"the log lost operations that are final in partition {part}; rebuild the index")
