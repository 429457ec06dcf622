"""Reading: documents of the index within the radius of some fingerprints, and their records."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import StoreError
from likewise.index.redis.acknowledged import Acknowledged, Expected
from likewise.index.redis.layout import HAS_DIGEST, NO_ROW, ROWS_A_CHUNK, SHORT, Layout
from likewise.index.redis.server import Server

# Keys requested at once, whose replies are held in memory.
_KEYS_AT_ONCE = 16384
# Bytes before the features of a short document: the digest of its weighted set.
_SET_DIGEST_BYTES = 16


class State(NamedTuple):
    """The state that a decision is based on: the rows from `watermark` up to `num_rows`, at a removal `epoch`.

    `num_kept` counts kept documents, including expired ones but not removed ones. `mark` identifies the history of all
    writes up to this state, `steps` is their number.
    """

    num_rows: int
    epoch: bytes
    watermark: int
    empty_row: int | None
    num_kept: int
    steps: bytes
    mark: bytes


class Record(NamedTuple):
    """The record of a document. `leader` of a kept document is its newest member."""

    row: int
    doc_id: str
    fingerprint: bytes
    leader: int
    digest: int | None
    flags: int
    distance: int
    arrival_s: int


class Unreadable(StoreError):
    """Referenced documents are missing: the index changed during the read, or is damaged."""


class Records(dict[int, Record]):
    """Records by row. Access to a missing row raises Unreadable."""

    def __missing__(self, row: int) -> Record:
        raise Unreadable(
            f"document {row} of the index is missing: the index changed during the read, or keys were lost; "
            "repeat the call, or check the index with verify"
        )


class ShortSet(NamedTuple):
    """The features of a short document: digest of the weighted set, sorted features."""

    digest: bytes
    features: NDArray[np.uint64]


@dataclass(frozen=True, eq=False)
class Hits:
    """Documents near some fingerprints, sorted by (fingerprint, row).

    Parameters
    ----------
    query : ndarray, int64
        Number of the fingerprint.
    row : ndarray, int64
        Row of the document.
    distance : ndarray, int64
        Hamming distance.
    is_kept : ndarray, bool
        Whether the document is kept. Otherwise it represents its class, at distance 0.
    """

    query: NDArray[np.int64]
    row: NDArray[np.int64]
    distance: NDArray[np.int64]
    is_kept: NDArray[np.bool_]

    @staticmethod
    def joined(parts: "list[Hits]") -> "Hits":
        """Return the distinct hits of several parts."""
        parts = [part for part in parts if len(part.query)] or parts[:1]
        query, row, distance, is_kept = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("query", "row", "distance", "is_kept")
        )
        _, first = np.unique(query << 32 | row, return_index=True)
        return Hits(query[first], row[first], distance[first], is_kept[first])


# The mask that flips no bit.
_ITSELF = np.zeros(1, np.uint16)
NO_HITS = Hits(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0, bool))


class Reader:
    """Reads of one index.

    Parameters
    ----------
    server : Server
    layout : Layout
    identity : bytes
        Identity of the index. Another index under the same prefix is rejected.
    name : bytes
        Name of this client, under which the server stores the client's last write.
    acknowledged : Acknowledged
        The client's last writes, compared with the server's record whenever a state is read.
    now_s : int, optional
        The time in seconds, instead of the server's clock.
    """

    def __init__(
        self,
        server: Server,
        layout: Layout,
        identity: bytes,
        name: bytes,
        acknowledged: Acknowledged,
        now_s: int | None = None,
    ) -> None:
        self._server, self._layout, self._identity = server, layout, identity
        self._name, self._acknowledged = name, acknowledged
        self.now_s = now_s

    @property
    def now(self) -> str:
        """The time as scripts expect it: empty for the server's clock."""
        return "" if self.now_s is None else str(self.now_s)

    def begin(self) -> State:
        """Return the current state.

        Raises
        ------
        LostWrites
            If the server has lost writes that this client had acknowledged.
        """
        return self.follow(None)[0]

    def follow(self, before: State | None) -> tuple[State, bool]:
        """Return the current state, and whether the server's history contains a state that was read before."""
        self._server.check_now_and_then()
        expected = self._acknowledged.expected
        reply = self._server.run(*self._question(before))
        return self._state(reply, expected), bool(reply[9])

    def _question(self, before: State | None) -> tuple[Any, ...]:
        seen = (b"", b"") if before is None else (before.steps, before.mark)
        return ("begin", self.now, self._name, *seen)

    def _state(self, reply: list[bytes], expected: Expected) -> State:
        if reply[0] != self._identity:
            raise StoreError(f"the index on {self._server.name} was deleted or replaced; open it again")
        self._acknowledged.check(self._server.name, reply[8], expected)
        empty = int(reply[4])
        watermark = int(reply[3])
        empty_row = empty if empty >= watermark else None
        return State(int(reply[1]), reply[2], watermark, empty_row, int(reply[5]), reply[6], reply[7])

    def look(
        self, raw: NDArray[np.uint8], hashes: NDArray[np.uint64] | None, state: State | None = None
    ) -> tuple[State, Hits, list[bytes | None]]:
        """Return the state, the documents near the fingerprints, and the buckets of the hashed ids.

        The state is read first: documents that are added later are left out, and a removal meanwhile changes the epoch.
        """
        asks_ids = hashes is not None and len(hashes) > 0
        expected = self._acknowledged.expected
        first: list[tuple[Any, ...]] = []
        if state is None:
            self._server.check_now_and_then()
            first.append(self._server.command(*self._question(None)))
        if hashes is not None and asks_ids:
            head, packed = self._server.prefix + b"i", hashes.tobytes()
            first.append(("MGET", *(head + packed[i : i + 2] for i in range(0, len(packed), 8))))
        # The first requests are sent with the first part: one round trip to the server for a small batch.
        a_fingerprint = 1 + (
            len(self._layout.blocks) if self._layout.is_classic else sum(map(len, self._layout.probes))
        )
        step = max(1, _KEYS_AT_ONCE // a_fingerprint)
        parts = [NO_HITS]
        buckets: list[bytes | None] = []
        for start in range(0, max(1, len(raw)), step):
            some = raw[start : start + step]
            replies = self._server.calls([*first, *self._questions(some)])
            if first:
                state = state if state is not None else self._state(replies[0], expected)
                buckets = replies[len(first) - 1] if asks_ids else []
                replies, first = replies[len(first) :], []
            assert state is not None
            part = self._answers(some, replies)
            inside = (part.row < state.num_rows) & (part.row >= state.watermark)
            query, row, distance = (column[inside] for column in (part.query, part.row, part.distance))
            parts.append(Hits(query + start, row, distance, part.is_kept[inside]))
        assert state is not None
        return state, Hits.joined(parts), buckets

    def _questions(self, raw: NDArray[np.uint8]) -> list[tuple[Any, ...]]:
        """Return the commands that read all documents that may be near."""
        layout = self._layout
        if not len(raw):
            return []
        commands: list[tuple[Any, ...]] = [("MGET", *self._keys(b"r", raw, 0, _ITSELF))]
        if not layout.is_classic:
            return commands + [
                ("MGET", *self._keys(b"b%d" % (block + 1), raw, block, masks))
                for block, masks in enumerate(layout.probes)
                if len(masks)
            ]
        ones = np.bitwise_count(raw).sum(axis=1).tolist()
        for block in range(len(layout.blocks)):
            keys = self._keys(b"z%d" % (block + 1), raw, block, _ITSELF)
            commands += [
                ("ZRANGEBYSCORE", key, num - layout.within, num + layout.within)
                for key, num in zip(keys, ones, strict=True)
            ]
        return commands

    def _answers(self, raw: NDArray[np.uint8], replies: list[Any]) -> Hits:
        """Return the documents near the fingerprints, from the replies to :meth:`_questions`."""
        if not len(raw):
            return NO_HITS
        parts = [self._entries(replies[0], raw, 0, _ITSELF, 0, is_kept=False)]
        if self._layout.is_classic:
            parts.append(self._rows_of_members(raw, replies[1:]))
        else:
            probed = [(block, masks) for block, masks in enumerate(self._layout.probes) if len(masks)]
            for (block, masks), reply in zip(probed, replies[1:], strict=True):
                parts.append(self._entries(reply, raw, block, masks, self._layout.within, is_kept=True))
        return Hits.joined(parts)

    def tables(self, raw: NDArray[np.uint8], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each block's table contains each kept row, of shape (n, blocks)."""
        holds = np.zeros((len(raw), len(self._layout.blocks)), bool)
        for block in range(len(self._layout.blocks)):
            if self._layout.is_classic:
                keys = self._keys(b"z%d" % (block + 1), raw, block, _ITSELF)
                members = [row.tobytes() for row in raw]
                scores = self._server.calls([("ZSCORE", *pair) for pair in zip(keys, members, strict=True)])
                holds[:, block] = [score is not None for score in scores]
                continue
            buckets = self._server.call("MGET", *self._keys(b"b%d" % (block + 1), raw, block, _ITSELF))
            found = self._entries(buckets, raw, block, _ITSELF, 0, is_kept=True)
            same = found.row == rows[found.query]
            holds[found.query[same], block] = True
        return holds

    def _keys(self, name: bytes, raw: NDArray[np.uint8], block: int, masks: NDArray[np.uint16]) -> list[bytes]:
        at = self._layout.blocks[block]
        values = np.ascontiguousarray(raw[:, at : at + 2]).view("<u2") ^ masks[None, :]
        packed, head = values.tobytes(), self._server.prefix + name
        return [head + packed[i : i + 2] for i in range(0, len(packed), 2)]

    def _entries(
        self,
        buckets: list[bytes | None],
        raw: NDArray[np.uint8],
        block: int,
        masks: NDArray[np.uint16],
        within: int,
        *,
        is_kept: bool,
    ) -> Hits:
        """Return the entries within a distance from packed buckets, one bucket per fingerprint and mask."""
        length = self._layout.entry_bytes
        parts = [bucket or b"" for bucket in buckets]
        counts = np.fromiter(map(len, parts), np.int64, len(parts)) // length
        total = int(counts.sum())
        if not total:
            return NO_HITS
        # A word is read at each 8 bytes of the rest. The last one may extend over the row and beyond the end.
        packed = np.frombuffer(b"".join([*parts, bytes(8)]), np.uint8)
        rest_bytes = length - 4
        mine = self._layout.without_block(raw, block)
        source = np.repeat(np.arange(len(parts)), counts)
        distance = np.bitwise_count(masks).astype(np.int64)[source % len(masks)]
        query = source // len(masks)
        for at in range(0, rest_bytes, 8):
            used = min(8, rest_bytes - at)
            words = np.ndarray(total, "<u8", packed, at, (length,))
            padded = np.zeros((len(mine), 8), np.uint8)
            padded[:, :used] = mine[:, at : at + used]
            different = words ^ padded.view("<u8").reshape(-1)[query]
            if used < 8:
                different &= np.uint64((1 << 8 * used) - 1)
            distance += np.bitwise_count(different)
        near = np.flatnonzero(distance <= within)
        rows = np.ndarray(total, "<u4", packed, rest_bytes, (length,))[near].astype(np.int64)
        return Hits(query[near], rows, distance[near], np.full(len(near), is_kept))

    def _rows_of_members(self, raw: NDArray[np.uint8], replies: list[list[bytes]]) -> Hits:
        """Return the rows within the radius from the members of sorted sets."""
        num, num_bytes = len(raw), self._layout.num_bytes
        counts = np.fromiter(map(len, replies), np.int64, len(replies))
        members = b"".join(member for reply in replies for member in reply)
        query = np.repeat(np.tile(np.arange(num), len(self._layout.blocks)), counts)
        theirs = np.frombuffer(members, np.uint8).reshape(-1, num_bytes)
        distance = np.bitwise_count(theirs ^ raw[query]).sum(axis=1).astype(np.int64)
        near = np.flatnonzero(distance <= self._layout.within)
        if not len(near):
            return NO_HITS
        found = [members[i * num_bytes : (i + 1) * num_bytes] for i in near.tolist()]
        head = self._server.prefix + b"f"
        rows = self._server.calls([("HGET", head + member[:2], member) for member in found])
        each = [np.frombuffer(row or b"", "<u4") for row in rows]
        repeated = np.repeat(near, [len(row) for row in each])
        total = len(repeated)
        return Hits(query[repeated], np.concatenate(each).astype(np.int64), distance[repeated], np.ones(total, bool))

    def records(self, rows: "set[int] | range") -> Records:
        """Return the records of rows, without those that have expired."""
        by_chunk: dict[int, list[int]] = {}
        for row in rows:
            by_chunk.setdefault(row // ROWS_A_CHUNK, []).append(row)
        records = Records()
        if not by_chunk:
            return records
        chunks = self._server.call("MGET", *(self._server.prefix + b"d%d" % chunk for chunk in by_chunk))
        for of_chunk, chunk in zip(by_chunk.values(), chunks, strict=True):
            if chunk is None:
                continue
            fixed = np.frombuffer(chunk, self._layout.record, ROWS_A_CHUNK)
            for row in of_chunk:
                records[row] = self._record(row, chunk, fixed)
        return records

    def added(self, start: int, stop: int) -> tuple[NDArray[np.void], list[bytes]]:
        """Return the raw records of the rows ``start:stop``, and their ids.

        Raises
        ------
        Unreadable
            If a record is missing.
        """
        chunks = range(start // ROWS_A_CHUNK, -(-stop // ROWS_A_CHUNK))
        packed = self._server.call("MGET", *(self._server.prefix + b"d%d" % chunk for chunk in chunks))
        first = self._layout.chunk_bytes
        records, ids = [], []
        for number, chunk in zip(chunks, packed, strict=True):
            if chunk is None:
                raise Unreadable(f"documents up to {stop} of the index are missing; repeat the call")
            fixed = np.frombuffer(chunk, self._layout.record, ROWS_A_CHUNK)
            low = max(0, start - number * ROWS_A_CHUNK)
            high = min(ROWS_A_CHUNK, stop - number * ROWS_A_CHUNK)
            ends = [0, *fixed["end"].tolist()]
            ids += [chunk[first + ends[i] : first + ends[i + 1]] for i in range(low, high)]
            records.append(fixed[low:high])
        return np.concatenate(records), ids

    def _record(self, row: int, chunk: bytes, fixed: NDArray[np.void]) -> Record:
        i = row % ROWS_A_CHUNK
        raw = fixed[i]
        start = int(fixed["end"][i - 1]) if i else 0
        first = self._layout.chunk_bytes
        flags = int(raw["flags"])
        return Record(
            row,
            chunk[first + start : first + int(raw["end"])].decode("utf-8", "surrogatepass"),
            raw["fingerprint"].tobytes(),
            int(raw["leader"]),
            int(raw["digest"]) if flags & HAS_DIGEST else None,
            flags,
            int(raw["distance"]),
            int(raw["arrival_s"]),
        )

    def short_sets(self, records: dict[int, Record]) -> dict[int, ShortSet]:
        """Return the features of the short documents among some records."""
        rows = [row for row, record in records.items() if record.flags & SHORT]
        if not rows:
            return {}
        found = self._server.call("MGET", *(self._server.prefix + b"s%d" % row for row in rows))
        return {row: unpacked_set(packed) for row, packed in zip(rows, found, strict=True) if packed is not None}

    def members(self, leader: int, state: State) -> list[int]:
        """Return the members of a leader that still exist, as ascending rows."""
        packed = self._server.run("members", leader, state.watermark)
        return sorted(np.frombuffer(packed, "<u4").tolist())


def has_leader(record: Record) -> bool:
    """Return whether a document names a leader."""
    return record.leader != NO_ROW


def unpacked_set(packed: bytes) -> ShortSet:
    """Return a short document's set from its bytes on the server."""
    return ShortSet(packed[:_SET_DIGEST_BYTES], np.frombuffer(packed, "<u8", offset=_SET_DIGEST_BYTES))
