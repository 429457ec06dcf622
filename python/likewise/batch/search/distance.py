"""Candidates by Hamming distance: over all fingerprints at once, or slab by slab if their tables are too large.

A slab of positions is searched against the earlier ones when its first position is requested. By then, verdicts on the
earlier ones are known, so only kept documents enter the tables, and pairs with a removed document are never stored.
Kept documents are further apart than the radius, so few pairs result, whereas a join on disk would list all pairs of a
cluster. The work grows with the square of the number of slabs, so fewer threads are preferred to a second slab.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import frozen, places_of, slices
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.search import Candidates, Search
from likewise.recipe.methods import SimHash
from likewise.stages.groups import REMOVED


class DistanceSearch(Search):
    """Candidates by Hamming distance of SimHash fingerprints; exact."""

    def __init__(self, documents: Documents, collapsed: Collapsed, near: SimHash, threads: int) -> None:
        self._tables = _native.HammingTables(
            documents.sketches, near.bits, collapsed.order, within=near.radius, threads=threads
        )
        self._threads = threads

    @property
    def predicted_seconds(self) -> float:
        """Predicted duration of the search in seconds."""
        return self._tables.predicted_seconds / self._threads

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        later, earlier, distance, end = self._tables.candidates_up_to(
            low, high, states, max_pairs, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), len(later), end)


# Positions filtered at once by verdict, and later positions per call.
_AT_ONCE = 1 << 20
_RANGE = 1 << 16
# Minimum positions of a slab; smaller slabs are inefficient.
_LEAST_POSITIONS = 1 << 12
# Maximum number of stored pairs, 12 bytes each. If documents of one template are near each other without matching, a
# slab is processed in parts.
_MOST_PUT_ASIDE = 1 << 26
# Bytes per position: its number, its row, its state.
_POSITION_BYTES = 16


def table_bytes(near: SimHash) -> int:
    """Return the bytes per fingerprint in memory: its code, and a row of each table on a block of 16 bits."""
    words = near.num_words
    return 8 * words + near.bits // 16 * (8 + 8 * words)


def slab_length(near: SimHash, tables_bytes: int) -> int:
    """Return the number of positions of a slab, given that tables contain two slabs at once."""
    return max(_LEAST_POSITIONS, tables_bytes // (2 * (table_bytes(near) + _POSITION_BYTES)))


@dataclass(frozen=True, eq=False)
class _Found:
    """Pairs of one slab with some earlier positions, sorted by (later, earlier); in files if memory is limited."""

    later: NDArray[np.uint32]
    earlier: NDArray[np.uint32]
    distance: NDArray[np.uint32]

    def between(self, low: int, high: int) -> "_Found":
        """Return the pairs with later positions in low..high."""
        start, stop = places_of([low, high], self.later).tolist()
        return _Found(self.later[start:stop], self.earlier[start:stop], self.distance[start:stop])


class SlabSearch(Search):
    """Candidates by Hamming distance of SimHash fingerprints; exact, and the same as those of DistanceSearch.

    Positions are divided into slabs. When the first position of a slab is requested, all verdicts before it are known:
    the slab is compared with earlier documents that were not removed, a slab's worth at a time, and the pairs are
    stored. Pairs within the slab are found on request.
    """

    def __init__(
        self, documents: Documents, collapsed: Collapsed, near: SimHash, threads: int, num_positions: int
    ) -> None:
        self._documents, self._order = documents, collapsed.order
        self._near, self._threads = near, threads
        self._num_positions = num_positions
        self._begin = self._end = self._from = 0
        self._before: list[_Found] = []
        self._own = self._tables(self._order[:num_positions])
        # Every slab is compared with all earlier ones.
        num_slabs = -(-len(self._order) // num_positions)
        self._predicted_seconds = self._own.predicted_seconds * num_slabs**2 / threads
        self._end = min(num_positions, len(self._order))

    @property
    def predicted_seconds(self) -> float:
        """Predicted duration of the search in seconds."""
        return self._predicted_seconds

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones.

        Ranges must be requested in order.
        """
        if not self._from <= low < self._end:
            self._load(low, states, max_pairs)
        begin = self._begin
        own_states = None if states is None else states[begin : self._end]
        own_later, own_earlier, own_distance, own_end = self._own.candidates_up_to(
            low - begin, min(high, self._end) - begin, own_states, max_pairs, threads=self._threads
        )
        end = self._fitting(low, own_end + begin, max_pairs)
        later, earlier = np.asarray(own_later) + np.uint32(begin), np.asarray(own_earlier) + np.uint32(begin)
        cut = int(places_of(end, later))
        own = _Found(later[:cut], earlier[:cut], np.asarray(own_distance)[:cut])
        # Pairs with positions before the slab precede pairs within it.
        parts = [*(found.between(low, end) for found in self._before), own]
        later = np.concatenate([part.later for part in parts])
        order = np.argsort(later, kind="stable")
        return Candidates(
            later[order],
            np.concatenate([part.earlier for part in parts])[order],
            np.concatenate([part.distance for part in parts])[order],
            len(order),
            end,
        )

    def _fitting(self, low: int, high: int, max_pairs: int) -> int:
        """Return the end of the range whose stored pairs are within the limit, after at least one position."""
        most = max(1, max_pairs // max(1, len(self._before)))
        for found in self._before:
            start = int(places_of(low, found.later))
            if start + most < len(found.later):
                high = min(high, max(low + 1, int(found.later[start + most])))
        return high

    def _tables(self, order: NDArray[np.uint32]) -> _native.HammingTables:
        return _native.HammingTables(
            self._documents.sketches, self._near.bits, order, within=self._near.radius, threads=self._threads
        )

    def _load(self, low: int, states: NDArray[np.uint8] | None, max_pairs: int) -> None:
        """Prepare the slab of a position, starting at that position."""
        # Free its memory for the tables of two slabs.
        del self._own
        self._before = []
        self._begin = low // self._num_positions * self._num_positions
        self._from = low
        self._end = min(self._begin + self._num_positions, len(self._order))
        # All pieces except the last are full.
        most = max(1, _MOST_PUT_ASIDE // max(1, self._begin // self._num_positions))
        for earlier in self._pieces_before(states):
            found, self._end = self._against(earlier, max_pairs, most)
            self._before.append(found)
        self._own = self._tables(self._order[self._begin : self._end])

    def _pieces_before(self, states: NDArray[np.uint8] | None) -> Any:
        """Yield the positions before the slab that were not removed, ascending, in pieces of the size of a slab."""
        held: list[NDArray[np.uint32]] = []
        num_held = 0
        for some in slices(self._begin, min(_AT_ONCE, self._num_positions)):
            part = np.arange(some.start, some.stop, dtype=np.uint32)
            if states is not None:
                part = part[states[some] != REMOVED]
            while num_held + len(part) >= self._num_positions:
                room = self._num_positions - num_held
                yield np.concatenate([*held, part[:room]])
                held, num_held, part = [], 0, part[room:]
            held.append(part)
            num_held += len(part)
        if num_held:
            yield np.concatenate(held)

    def _against(self, before: NDArray[np.uint32], max_pairs: int, most: int) -> tuple[_Found, int]:
        """Return the pairs of the slab with some positions before it, and the end of the positions processed."""
        space = self._documents.room.space
        columns = [space.growing(np.uint32) for _ in range(3)]
        num_before, num_own = len(before), self._end - self._from
        tables = self._tables(np.concatenate([self._order[before], self._order[self._from : self._end]]))
        # Pairs within the slab are found later, when verdicts are available.
        states = np.zeros(num_before + num_own, np.uint8)
        states[num_before:] = REMOVED
        low = num_before
        while low < len(states) and len(columns[0]) < most:
            later, earlier, distance, low = tables.candidates_up_to(
                low, min(low + _RANGE, len(states)), frozen(states), max_pairs, threads=self._threads
            )
            columns[0].append(np.asarray(later) - np.uint32(num_before) + np.uint32(self._from))
            columns[1].append(before[np.asarray(earlier)])
            columns[2].append(np.asarray(distance))
        return _Found(*(column.take() for column in columns)), self._from + low - num_before


def open_distance_search(
    documents: Documents, collapsed: Collapsed, near: SimHash, threads: int
) -> DistanceSearch | SlabSearch:
    """Return the search over all fingerprints at once, or slab by slab if memory does not suffice for their tables."""
    bound = documents.room.tables_bytes
    if bound is None or len(collapsed.order) * table_bytes(near) <= bound:
        return DistanceSearch(documents, collapsed, near, threads)
    return SlabSearch(documents, collapsed, near, threads, slab_length(near, bound))
