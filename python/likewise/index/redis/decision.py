"""The decision on documents in order of arrival, from data that was read from the index."""

import json
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.index.redis.arrivals import Arrivals
from likewise.index.redis.layout import EMPTY, GONE, ID_ENTRY, KEPT, SHORT, STANDS, Layout
from likewise.index.redis.search import Hits, Reader, Record, Records, ShortSet, State, has_leader
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe

# Documents of the current batch are numbered from here, after all rows of the index.
BATCH = 1 << 40
_NOBODY = 1 << 62


@dataclass(eq=False)
class Seen:
    """The data read from the index for some arrivals.

    Parameters
    ----------
    state : State
        State of the index that was read.
    hits : Hits
        Kept documents within the radius, and documents at distance 0 that represent their class.
    records : Records
        Records of the rows in `hits`, of their leaders, and of the rows in `known`.
    short_sets : dict of int to ShortSet
        Features of the short documents among them.
    known : dict of int to int
        Arrivals whose id already exists: number -> row, or `BATCH` + number of the same id earlier in the batch.
    """

    state: State
    hits: Hits
    records: Records
    short_sets: dict[int, ShortSet]
    known: dict[int, int] = field(default_factory=dict)

    @property
    def least_row(self) -> int:
        """The oldest row that a decision may rely on."""
        rows = [*self.hits.row[:1].tolist(), *self.records]
        if self.state.empty_row is not None:
            rows.append(self.state.empty_row)
        return min((row for row in rows if row >= self.state.watermark), default=self.state.num_rows)


def see(reader: Reader, arrivals: Arrivals, ids: list[str] | None, hashes: NDArray[np.uint64] | None) -> Seen:
    """Read the data that the decision on some arrivals needs.

    Raises
    ------
    InvalidInput
        If an id exists with a different text.
    """
    texts = np.flatnonzero(~arrivals.is_empty)
    state, hits, buckets = reader.look(np.ascontiguousarray(arrivals.raw[texts]), hashes)
    hits = Hits(texts[hits.query], hits.row, hits.distance, hits.is_kept)
    candidates = {} if ids is None or hashes is None else candidates_of_ids(buckets, hashes, state)
    wanted = {*hits.row.tolist(), *(row for rows in candidates.values() for row in rows)}
    if state.empty_row is not None and arrivals.is_empty.any():
        wanted.add(state.empty_row)
    seen = Seen(state, hits, Records(), {})
    add_records(reader, seen, reader.records(wanted))
    if ids is not None:
        _find_known(seen, arrivals, ids, candidates)
    return seen


def add_records(reader: Reader, seen: Seen, records: dict[int, Record]) -> None:
    """Add records to `seen`, with the leaders that they name and the features of short documents."""
    seen.records.update(records)
    leaders = {record.leader for record in records.values() if not record.flags & KEPT and has_leader(record)}
    seen.records.update(reader.records(leaders - set(seen.records)))
    seen.short_sets.update(reader.short_sets(records))


def catch_up(
    reader: Reader, seen: Seen, arrivals: Arrivals, encoded: list[bytes], num_rows: int, layout: Layout
) -> None:
    """Add to `seen` the documents that arrived since, up to `num_rows`: about as many as a few batches contain.

    Raises
    ------
    InvalidInput
        If an id was meanwhile added with a different text.
    """
    start = seen.state.num_rows
    fixed, ids = reader.added(start, num_rows)
    flags = fixed["flags"]
    kept_empty = np.flatnonzero(flags & (EMPTY | KEPT) == EMPTY | KEPT)
    empty = start + int(kept_empty[0]) if len(kept_empty) else seen.state.empty_row
    seen.state = seen.state._replace(num_rows=num_rows, empty_row=empty)
    standing = np.flatnonzero(flags & (STANDS | EMPTY) == STANDS)
    query, which, distance = _join(arrivals, layout, layout.fingerprint_words(fixed["fingerprint"][standing]))
    is_kept = (flags[standing[which]] & KEPT).astype(bool)
    inside = is_kept | (distance == 0)
    new = Hits(query[inside], start + standing[which[inside]], distance[inside], is_kept[inside])
    seen.hits = Hits.joined([seen.hits, new])
    mine = {*encoded}
    again = {doc_id: start + i for i, doc_id in enumerate(ids) if doc_id in mine}
    wanted = {*new.row.tolist(), *again.values()}
    if empty is not None and empty >= start and arrivals.is_empty.any():
        wanted.add(empty)
    add_records(reader, seen, reader.records(wanted))
    if again:
        for i, doc_id in enumerate(encoded):
            if doc_id in again:
                _know(seen, arrivals, i, again[doc_id])


def _join(
    arrivals: Arrivals, layout: Layout, others: NDArray[np.uint64] | None
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs within the radius: (arrival, other, distance), or (later, earlier, distance) without `others`."""
    texts = np.flatnonzero(~arrivals.is_empty)
    mine = np.ascontiguousarray(arrivals.words[texts]).reshape(-1)
    theirs = None if others is None else (np.ascontiguousarray(others).reshape(-1), None)
    num = len(texts) * (len(texts) if others is None else len(others))
    rows, distances = _native.join_fingerprints(
        (mine, None), theirs, layout.bits, within=layout.within, max_pairs=max(1, num)
    )
    pairs = np.asarray(rows).reshape(-1, 2)
    distance = np.asarray(distances).astype(np.int64)
    if others is not None:
        return texts[pairs[:, 0]], pairs[:, 1].astype(np.int64), distance
    order = np.lexsort((pairs[:, 0], pairs[:, 1]))
    return texts[pairs[order, 1]], texts[pairs[order, 0]], distance[order]


def candidates_of_ids(buckets: list[bytes | None], hashes: NDArray[np.uint64], state: State) -> dict[int, list[int]]:
    """Return the rows by number of the id, for ids that share the low 32 bits of their hash."""
    parts = [bucket or b"" for bucket in buckets]
    counts = np.fromiter(map(len, parts), np.int64, len(parts)) // ID_ENTRY.itemsize
    entries = np.frombuffer(b"".join(parts), ID_ENTRY)
    query = np.repeat(np.arange(len(parts)), counts)
    same = np.flatnonzero(entries["hash"] == (hashes >> np.uint64(16)).astype(np.uint16)[query])
    found: dict[int, list[int]] = {}
    for i, row in zip(query[same].tolist(), entries["row"][same].tolist(), strict=True):
        if state.watermark <= row < state.num_rows:
            found.setdefault(i, []).append(row)
    return found


def _find_known(seen: Seen, arrivals: Arrivals, ids: list[str], candidates: dict[int, list[int]]) -> None:
    first: dict[str, int] = {}
    for i, doc_id in enumerate(ids):
        for row in candidates.get(i, ()):
            record = seen.records.get(row)
            if record is not None and record.doc_id == doc_id and not record.flags & GONE:
                _know(seen, arrivals, i, row)
        j = first.setdefault(doc_id, i)
        if j != i:
            digest = None if arrivals.digests is None else int(arrivals.digests[j])
            if not arrivals.is_same_text(i, digest, arrivals.raw[j].tobytes()):
                raise _another_text(doc_id, i)
            if j not in seen.known:
                seen.known[i] = BATCH + j


def _know(seen: Seen, arrivals: Arrivals, i: int, row: int) -> None:
    record = seen.records[row]
    if not arrivals.is_same_text(i, record.digest, record.fingerprint):
        raise _another_text(record.doc_id, i)
    seen.known[i] = row


def _another_text(doc_id: str, row: int) -> InvalidInput:
    """Return the same error as the index in a directory."""
    name = json.dumps(doc_id, ensure_ascii=False)
    reason = "already exists with a different text; remove it first, or use another id"
    return InvalidInput(f"the id {name} {reason}", row=row)


class Evidence(NamedTuple):
    """The kept document that a document matches (a row, or `BATCH` + number), and whether the document collapses."""

    leader: int
    distance: int
    collapses: bool = True


class Decision:
    """Verdicts on arrivals in their order.

    Parameters
    ----------
    arrivals : Arrivals
    seen : Seen
    recipe : Recipe
    layout : Layout
    alone : bool
        Whether to decide each document as if it were the only one, as a check does. Otherwise, each counts as added
        before the next one is decided.

    Attributes
    ----------
    leader : ndarray of shape (n,), int64
        Row of the kept document, `BATCH` + number if it is in this batch, -1 for a new document.
    distance : ndarray of shape (n,), int64
        Distance to the kept document.
    flags : ndarray of shape (n,), uint8
        Flags as in a record.
    """

    def __init__(self, arrivals: Arrivals, seen: Seen, recipe: Recipe, layout: Layout, *, alone: bool = False) -> None:
        self._arrivals, self._seen, self._method = arrivals, seen, recipe.method_as(SimHashDistance)
        num = len(arrivals)
        self.leader = np.full(num, -1, np.int64)
        self.distance = np.zeros(num, np.int64)
        self.flags = np.full(num, KEPT | STANDS, np.uint8)
        self.flags[arrivals.is_empty] |= EMPTY
        self.flags[[i for i, short in enumerate(arrivals.sets) if short is not None]] |= SHORT
        none = np.zeros(0, np.int64)
        later, earlier, distance = (none, none, none) if alone or num < 2 else _join(arrivals, layout, None)
        self._pairs = earlier, distance
        self._pair_starts = np.searchsorted(later, np.arange(num + 1)).tolist()
        self._hit_starts = np.searchsorted(seen.hits.query, np.arange(num + 1)).tolist()
        self._first_empty = seen.state.empty_row
        looked_at = {*seen.hits.query.tolist(), *later.tolist(), *np.flatnonzero(arrivals.is_empty).tolist()}
        for i in sorted(looked_at - set(seen.known)):
            evidence = self._evidence(i, alone=alone)
            if evidence is not None:
                self.leader[i], self.distance[i] = evidence.leader, evidence.distance
                self.flags[i] &= ~np.uint8(KEPT | STANDS) if evidence.collapses else ~np.uint8(KEPT)

    def _evidence(self, i: int, *, alone: bool) -> Evidence | None:
        if self._arrivals.is_empty[i]:
            if self._first_empty is not None:
                return Evidence(self._first_empty, 0)
            if not alone:
                self._first_empty = BATCH + i
            return None
        near = self._near(i)
        return self._of_class(i, near) or self._best(i, near)

    def _near(self, i: int) -> list[tuple[int, int]]:
        """Return (distance, row) of the documents near document `i` that represent their class, best first."""
        old = slice(self._hit_starts[i], self._hit_starts[i + 1])
        near = list(zip(self._seen.hits.distance[old].tolist(), self._seen.hits.row[old].tolist(), strict=True))
        start, stop = self._pair_starts[i], self._pair_starts[i + 1]
        if start < stop:
            earlier, distance = self._pairs[0][start:stop], self._pairs[1][start:stop]
            stands = (self.flags[earlier] & STANDS).astype(bool)
            if self._seen.known:
                stands &= [j not in self._seen.known for j in earlier.tolist()]
            near += zip(distance[stands].tolist(), (earlier[stands] + BATCH).tolist(), strict=True)
        return sorted(near)

    def _flags_of(self, row: int) -> int:
        return int(self.flags[row - BATCH]) if row >= BATCH else self._seen.records[row].flags

    def _set_of(self, row: int) -> ShortSet | None:
        return self._arrivals.sets[row - BATCH] if row >= BATCH else self._seen.short_sets.get(row)

    def _of_class(self, i: int, near: list[tuple[int, int]]) -> Evidence | None:
        """Return the evidence of the document that represents the class of document `i`, which collapses into it."""
        mine = self._arrivals.sets[i]
        taken = None
        for distance, row in near:
            if distance:
                break
            flags = self._flags_of(row)
            if bool(flags & SHORT) != (mine is not None):
                continue
            if mine is not None:
                theirs = self._set_of(row)
                if theirs is None or theirs.digest != mine.digest:
                    continue
            if flags & KEPT:
                return Evidence(row, 0)
            # Several documents represent a class only after removals. One whose leader has expired has no evidence.
            taken = taken or self._taken_from(row)
        return taken

    def _taken_from(self, row: int) -> Evidence | None:
        """Return the evidence of a duplicate, which applies to a document that collapses into it."""
        if row >= BATCH:
            return Evidence(int(self.leader[row - BATCH]), int(self.distance[row - BATCH]))
        record = self._seen.records[row]
        if record.leader < self._seen.state.watermark:
            return None
        return Evidence(record.leader, record.distance)

    def _best(self, i: int, near: list[tuple[int, int]]) -> Evidence | None:
        for distance, row in near:
            if self._flags_of(row) & KEPT and self._is_alike(i, row):
                return Evidence(row, distance, collapses=False)
        return None

    def _is_alike(self, i: int, row: int) -> bool:
        """Return whether a pair within the radius passes the check of short documents."""
        mine = self._arrivals.sets[i]
        return are_alike(mine, self._set_of(row), is_short=bool(self._flags_of(row) & SHORT), near=self._method)

    def nearest(self, i: int, k: int) -> list[tuple[int, int, bool]]:
        """Return the `k` nearest kept documents of the index as (distance, row, whether they match), in order."""
        if self._arrivals.is_empty[i]:
            return [] if self._first_empty is None else [(0, self._first_empty, True)]
        kept = [(d, row) for d, row in self._near(i) if self._flags_of(row) & KEPT][:k]
        return [(d, row, self._is_alike(i, row)) for d, row in kept]


def are_alike(mine: ShortSet | None, theirs: ShortSet | None, *, is_short: bool, near: SimHashDistance) -> bool:
    """Return whether two documents within the radius match: by the Jaccard similarity if either has under 64 features.

    A document that is not short has too many features to reach the threshold with a document of under 64.
    """
    if mine is None and not is_short:
        return True
    if mine is None or not is_short:
        short = mine if mine is not None else theirs
        return short is not None and not near.is_short(len(short.features))
    if theirs is None:
        return False
    if not near.is_short(min(len(mine.features), len(theirs.features))):
        return True
    shared = len(np.intersect1d(mine.features, theirs.features, assume_unique=True))
    return shared / (len(mine.features) + len(theirs.features) - shared) >= near.short_threshold
