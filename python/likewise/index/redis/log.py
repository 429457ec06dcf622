"""The client side of the log: requests to its script, and their replies.

A client keeps the operations that it has seen and requests only new ones. The chain over all nonces proves that the
kept operations are those on the server.
"""

import contextlib
import hashlib
import struct
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeAlias

from likewise import _native
from likewise.errors import LikewiseError, StoreError
from likewise.index.redis.nodes import Nodes, Request, Script

# Kinds of operations. A sweep deletes documents that expired long ago.
ADD, REMOVE, RESTORE, SWEEP = 0, 1, 9, 10
MARK = 24
CHAIN = 16
START = b"0" * CHAIN
_HEAD = struct.Struct("<8sIIB8s")
_LISTED = struct.Struct("<Q8s")
_ROWS = struct.Struct("<II")
_NAMES = ("log", "operations", "verdicts", "marks", "chains", "confirmed", "counters", "losses", "answers")
_LOSS = struct.Struct("<Q8s")
_REPORTED_AT = struct.Struct("<Q")
_LENGTH = struct.Struct("<I")

# Statuses returned by the scripts.
OK, LOST, BEHIND, FULL, GONE_BACK = b"ok", b"lost", b"behind", b"full", b"gone back"
AGED, CONFLICT, EXHAUSTED, ANSWERED, FORGOTTEN = b"aged", b"conflict", b"exhausted", b"answered", b"forgotten"

Marks: TypeAlias = dict[int, bytes]

# Names of fewer bytes are read in the script, which saves a transaction.
_LEAST_BYTES = 256
_PART_NAMES = ("head", "marks", "journal", "changes")
OLD, CLASH, STALE = b"old", b"clash", b"stale"


class Operation(NamedTuple):
    """One batch of documents, one removal, or one sweep; rows are 0, and `verdict` and `marks` None, until stored."""

    nonce: bytes
    row: int
    num: int
    second: int
    kind: int
    writer: bytes
    payload: bytes
    verdict: bytes | None
    marks: bytes | None


class Loss(NamedTuple):
    """An answered operation that a failover removed from the log, and the ids to add again."""

    position: int
    nonce: bytes
    doc_ids: tuple[str, ...]


def next_chain(chain: bytes, nonce: bytes) -> bytes:
    """Return the value of the chain after an operation."""
    return hashlib.sha1(chain + nonce, usedforsecurity=False).hexdigest()[:CHAIN].encode()


def packed_marks(marks: Marks) -> bytes:
    """Return marks by partition as the log stores them."""
    return b"".join(struct.pack("<H", part) + mark for part, mark in sorted(marks.items()))


def marks_of(packed: bytes) -> Marks:
    """Return marks by partition from what the log stores."""
    return {
        int.from_bytes(packed[at : at + 2], "little"): packed[at + 2 : at + 2 + MARK]
        for at in range(0, len(packed), 2 + MARK)
    }


class Log(NamedTuple):
    """The state of the log after one reply, with the operations from `low` (H) on."""

    low: int
    mark: int
    row: int
    second: int
    num_bytes: int
    version: bytes
    confirmed: list[bytes]
    operations: list[Operation]
    chains: list[bytes]
    listed: bytes

    @property
    def end(self) -> int:
        """The position of the next operation."""
        return self.low + len(self.operations)

    def at(self, position: int) -> Operation | None:
        """Return an operation, or None if the log does not contain the position."""
        return self.operations[position - self.low] if self.low <= position < self.end else None

    def there(self, position: int) -> Operation:
        """Return an operation that the log contains."""
        if not self.low <= position < self.end:
            raise IndexError(position)
        return self.operations[position - self.low]

    def has(self, position: int, nonce: bytes) -> bool:
        """Return whether the operation at a position has this nonce."""
        operation = self.at(position)
        return operation is not None and operation.nonce == nonce

    def chain(self, position: int) -> bytes | None:
        """Return the chain value before a position, or None if it is not known."""
        return self.chains[position - self.low] if self.low <= position <= self.end else None

    def listed_below(self, position: int) -> bytes:
        """Return the list of the operations below a position."""
        return self.listed[: (position - self.low) * _LISTED.size]

    def newest(self, most: int, most_bytes: int) -> int:
        """Return the first position from which on the log has at most so many operations and bytes."""
        first = max(self.low, self.end - most)
        for position in reversed(range(first, self.end)):
            operation = self.there(position)
            most_bytes -= len(operation.payload) + len(operation.verdict or b"") + len(operation.marks or b"")
            if most_bytes < 0:
                return position + 1
        return first

    def row_at(self, position: int) -> int:
        """Return the first row of an operation, or of the next one. All earlier verdicts must be stored."""
        before = self.at(position - 1)
        if before is not None:
            return before.row + before.num
        operation = self.at(position)
        return self.row if operation is None or operation.verdict is None else operation.row


@contextlib.contextmanager
def readable(place: str) -> Iterator[None]:
    """Raise StoreError for records of an index that cannot be read."""
    try:
        yield
    except LikewiseError:
        raise
    except (ValueError, LookupError, struct.error) as error:
        raise StoreError(f"the index on {place} has damaged records ({error}); rebuild the index") from error


class Reply(NamedTuple):
    """The status, the log, and the values specific to the script."""

    status: bytes
    log: Log
    more: list[Any]


class LogServer:
    """Calls of the log script for one client. Not thread-safe."""

    def __init__(self, nodes: Nodes, prefix: bytes, identity: bytes = b"") -> None:
        self._nodes = nodes
        self.identity, self.prefix = identity, prefix
        tag = b"{" + prefix + b"}:"
        self._keys = tuple(tag + name.encode() for name in _NAMES)
        self._script = Script.read("log")
        self._known: Log | None = None
        self._is_doubted = False

    def _call(self, verb: str, *arguments: Any, writes: bool = False) -> list[Any]:
        script = verb.encode() + (b" " + self.identity if self.identity else b"")
        request = Request(self._script, self._keys, (script, *arguments), writes)
        reply: list[Any] = self._nodes.call([request])[0]
        if reply[0] == b"absent":
            raise StoreError(f"the index on {self._nodes.name} was deleted or replaced; open it again")
        return reply

    def create(self, partitions: int, fields: dict[str, str | bytes | int]) -> bool:
        """Create the log of a new index with fields that describe it. Return False if it exists."""
        flat = [part for name, value in fields.items() for part in (name, value)]
        return bool(self._call("create", partitions, *flat, writes=True)[0] == OK)

    def fields(self) -> dict[bytes, bytes]:
        """Return the fields of an index, or an empty dict if it does not exist."""
        key = self._keys[0]
        flat = self._nodes.call([Request(_FIELDS, (key,), ())])[0]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    def losses(self) -> list[Loss]:
        """Return the losses found so far, oldest first."""
        return [*self.reports()]

    def reports(self) -> dict[Loss, int]:
        """Return the losses found so far, oldest first, each with the end of the log when it was reported."""
        found = {}
        for packed in self._call("losses", 0, 0, 0, b"")[1]:
            if packed:
                position, nonce = _LOSS.unpack_from(packed)
                (end,) = _REPORTED_AT.unpack_from(packed, _LOSS.size)
                ids = ids_of(packed[_LOSS.size + _REPORTED_AT.size :])
                found[Loss(position, nonce, ids)] = end
        return found

    @property
    def known_end(self) -> tuple[int, bytes]:
        """The end of the log and its chain value, as far as this client knows it."""
        return (0, START) if self._known is None else (self._known.end, self._known.chains[-1])

    def ask(self, verb: str, *arguments: Any, writes: bool = False) -> Reply:
        """Call a script and return its status with the log after the call."""
        known = self._known
        asked, pending = self._asked(known)
        reply = self._call(verb, *asked, *arguments, writes=writes)
        self._is_doubted = False
        log = self._heard(known, reply, pending)
        if log is None:
            whole = self._call("begin", 0, 0, 0, b"", b"", b"")
            log = self._heard(None, whole, [])
            if log is None:
                raise StoreError("the log of the index is damaged: its chain does not lead to its end")
        self._known = log
        return Reply(reply[0], log, reply[13:])

    def confirmations(self) -> tuple[int, int]:
        """Return the number of replicas of the log, and of those that have all its writes until now."""
        return self._nodes.confirmations(self._keys[0], b"touched")

    def doubt(self) -> None:
        """Request the verdicts and marks of all operations with the next call, since others may have replaced them."""
        self._is_doubted = True

    def _asked(self, known: Log | None) -> tuple[tuple[Any, ...], list[int]]:
        """Return what to request (first position, missing ones, known ends and version), and the missing positions."""
        if known is None:
            return (0, 0, 0, b""), []
        pending = [
            known.low + at
            for at in range(max(known.mark - known.low, 0), len(known.operations))
            if known.operations[at].marks is None
        ]
        decided = next((at for at in pending if known.there(at).verdict is None), known.end)
        if self._is_doubted:
            return (known.low, known.end, decided, known.version), []
        first = ",".join(map(str, [known.end, *pending]))
        return (first, known.end, decided, known.version), pending

    @staticmethod
    def _heard(known: Log | None, reply: list[Any], pending: list[int]) -> Log | None:
        """Return the log after a reply, or None if the known operations are not those on the server."""
        _, low, mark, end, row, chain, second, num_bytes, version, confirmed, start, value, items = reply[:13]
        if known is None:
            if start != low:
                return None
            operations, chains, listed = [], [value], b""
        else:
            if low < known.low or not known.low <= start <= known.end or known.chain(start) != value:
                return None
            operations = known.operations[low - known.low : start - known.low]
            chains = known.chains[low - known.low : start - known.low + 1]
            listed = known.listed_below(start)[(low - known.low) * _LISTED.size :]
        there = [at for at in pending if low <= at < start]
        for position, verdict, marks in zip(there, items[1::3], items[2::3], strict=False):
            before = operations[position - low]
            operations[position - low] = _with_verdict(before._replace(marks=marks), verdict, before)
        items = items[3 * len(there) :]
        entries: list[bytes] = []
        for at in range(0, len(items), 3):
            packed, verdict, marks = items[at : at + 3]
            nonce, _, second_of, kind, writer = _HEAD.unpack_from(packed)
            payload = packed[_HEAD.size :]
            before = known.at(start + at // 3) if known is not None else None
            if not payload or verdict == b"":
                if before is None or before.nonce != nonce:
                    return None
                payload = payload or before.payload
            operation = Operation(nonce, 0, 0, second_of, kind, writer, payload, None, marks)
            operations.append(_with_verdict(operation, verdict, before))
            chains.append(next_chain(chains[-1], nonce))
            entries.append(_LISTED.pack(start + len(entries), nonce))
        if low + len(operations) != end or chains[-1] != chain:
            return None
        if confirmed:
            marks = [confirmed[at : at + MARK] for at in range(0, len(confirmed), MARK)]
        elif known is not None and known.version == version:
            marks = known.confirmed
        else:
            return None
        listed += b"".join(entries)
        return Log(low, mark, row, int(second), num_bytes, version, marks, operations, chains, listed)


def packed_verdict(operation: Operation) -> bytes:
    """Return the verdict of a decided operation as the log stores it."""
    assert operation.verdict is not None
    return _ROWS.pack(operation.row, operation.num) + operation.verdict


def verdict_of(packed: bytes) -> tuple[int, int, bytes]:
    """Return the first row, the number of rows, and the verdict from what the log stores."""
    return *_ROWS.unpack_from(packed), packed[_ROWS.size :]


def _with_verdict(operation: Operation, packed: bytes | None, known: Operation | None) -> Operation:
    """Return an operation with its stored verdict. Empty bytes stand for the verdict that is known."""
    if packed is None:
        return operation._replace(row=0, num=0, verdict=None)
    if packed == b"" and known is not None:
        return operation._replace(row=known.row, num=known.num, verdict=known.verdict)
    row, num, verdict = verdict_of(packed)
    return operation._replace(row=row, num=num, verdict=verdict)


def packed_loss(loss: Loss) -> bytes:
    """Return a loss as the log takes it."""
    return _LOSS.pack(loss.position, loss.nonce) + packed_ids(loss.doc_ids)


def packed_ids(doc_ids: Iterable[str]) -> bytes:
    """Return ids, each after its length."""
    encoded = [doc_id.encode("utf-8", "surrogateescape") for doc_id in doc_ids]
    return b"".join(_LENGTH.pack(len(one)) + one for one in encoded)


def ids_of(packed: bytes) -> tuple[str, ...]:
    """Return the ids that `packed_ids` packed."""
    found, at = [], 0
    while at < len(packed):
        begin = at + _LENGTH.size
        at = begin + _LENGTH.unpack_from(packed, at)[0]
        found.append(packed[begin:at].decode("utf-8", "surrogateescape"))
    return tuple(found)


_FIELDS = Script.of(b"return redis.call('HGETALL', KEYS[1])")


class Entry(NamedTuple):
    """One operation of a journal."""

    position: int
    nonce: bytes


def entry_of(field: bytes) -> Entry:
    """Return the operation of a journal field."""
    return Entry(int(field[:-8]), field[-8:])


def entries_of(packed: bytes) -> Iterator[Entry]:
    """Yield the operations in the list of a journal."""
    return map(Entry._make, _LISTED.iter_unpack(packed))


class PartReply(NamedTuple):
    """The status, the current mark, the fold with its chain value, and the values specific to the script."""

    status: bytes
    mark: bytes
    fold: int
    chain: bytes
    more: list[Any]


def tag_of(prefix: bytes, part: int) -> bytes:
    """Return what all keys of a partition begin with."""
    # The log of another index may have the same tag but not the same keys, since a colon follows its tag.
    return b"{%s.%d}." % (prefix, part)


class Partitions:
    """Requests to the partitions of an index. `call` sends several at once."""

    def __init__(self, nodes: Nodes, prefix: bytes, num: int) -> None:
        self.num = num
        self._nodes = nodes
        self._tags = [tag_of(prefix, part) for part in range(num)]
        self._keys = [tuple(tag + name.encode() for name in _PART_NAMES) for tag in self._tags]
        self._script = Script.read("partition")

    def call(self, requests: list[Request]) -> list[PartReply]:
        """Return the replies, in the order of the requests."""
        return [
            PartReply(status, mark, fold, chain, more)
            for status, mark, fold, chain, *more in self._nodes.call(requests)
        ]

    def _request(self, part: int, *arguments: Any, writes: bool = False) -> Request:
        return Request(self._script, self._keys[part], (self._tags[part], *arguments), writes)

    def read(self, part: int, mark: bytes, tables: bytes, records: bytes) -> Request:
        """Read entries and records. The reply contains the list of the journal, changes, records and entries."""
        if len(tables) < _LEAST_BYTES:
            return self._request(part, "read", mark, tables, records)
        request = self._request(part, "read", mark, b"", records)
        gets = _native.cluster_gets(self._tags[part], tables)
        return request._replace(gets=gets, in_script=(self._tags[part], "read", mark, tables, records))

    def write(self, part: int, position: int, nonce: bytes, effects: tuple[Any, ...]) -> Request:
        """Add the effects of an operation once."""
        return self._request(part, "write", position, nonce, *effects, writes=True)

    def verify(self, part: int, marks: list[bytes]) -> Request:
        """Find out which marks are missing."""
        return self._request(part, "verify", *marks)

    def fold(self, part: int, mark: bytes, to: int, chain: bytes, packed: bytes) -> Request:
        """Make effects below position `to` final. `packed` are all operations of the log below it.

        The reply contains the previous fold, and the purged operations, each followed by its ids.
        """
        return self._request(part, "fold", mark, to, chain, packed, writes=True)

    def records_of(self, part: int, entry: Entry) -> Request:
        """Read the records that an operation added."""
        return self._request(part, "purge", entry.position, entry.nonce, 0)

    def purge(self, part: int, entry: Entry, packed_ids: bytes) -> Request:
        """Delete the effects of an operation that is not in the log, and keep the ids in its records for `fold`."""
        return self._request(part, "purge", entry.position, entry.nonce, 1, packed_ids, writes=True)

    def forget(self, part: int, entries: list[Entry]) -> Request:
        """Forget purged operations whose losses are reported for good."""
        return self._request(part, "forget", *(b"%d%s" % entry for entry in entries), writes=True)
