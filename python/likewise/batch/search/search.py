"""Searches: candidate pairs of positions, one range of later positions at a time, and pairs that are left out."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from likewise.batch.read.documents import Collapsed

# An exact join stops after this many pairs until they are decided, since most are then removed and not visited; with
# 65,536, 30,000 documents of few forms took a third longer.
PAIRS_BETWEEN_VERDICTS = 1 << 14


@dataclass(eq=False)
class Candidates:
    """Candidate pairs, sorted by (later, earlier)."""

    later: NDArray[np.uint32]
    earlier: NDArray[np.uint32]
    # Hamming distances; None for bands
    distance: NDArray[np.uint32] | None
    # Number of distinct pairs before any filter (bands), or of listed pairs
    num_considered: int
    # End of the later positions that were searched
    end: int

    def select(self, which: slice | NDArray[np.bool_]) -> "Candidates":
        """Return the selected pairs."""
        distance = None if self.distance is None else self.distance[which]
        return Candidates(self.later[which], self.earlier[which], distance, self.num_considered, self.end)


_NONE = np.zeros(0, np.uint32)


class Search(ABC):
    """Candidate pairs of the positions of a run, with defaults for optional features of searches."""

    # Whether later positions may be requested without earlier ones: a run continues after the logged verdicts.
    can_begin_late: bool = True
    # Number of times that a document reached a full last level, counted per band
    num_capped: int = 0
    # Number of documents that reached a full bucket
    num_crowded: int = 0
    # Positions, ascending, among which an exact join finds every pair that matches
    joined: NDArray[np.uint32] = _NONE

    @abstractmethod
    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs with later positions in low..high, and the end of the range."""

    def pass_over(self, high: int) -> None:
        """Treat positions up to `high` as earlier ones only, instead of requesting their candidates."""
        return

    def in_buckets(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return candidates as :meth:`candidates` does, without pairs of :attr:`joined` that only the join finds."""
        return self.candidates(low, high, states, max_pairs)


class NoSearch(Search):
    """No candidates: matching documents have already collapsed (method exact)."""

    can_begin_late = False

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return no pairs."""
        return Candidates(_NONE, _NONE, None, 0, high)


class BeyondReferences(Search):
    """A search whose later positions start after those of the reference documents."""

    def __init__(self, search: Search, num_positions: int) -> None:
        self._inner = search
        self._num_positions = num_positions
        self.can_begin_late = search.can_begin_late
        self.num_capped, self.num_crowded = search.num_capped, search.num_crowded

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high; none for reference documents."""
        if low >= self._num_positions:
            return self._inner.candidates(low, high, states, max_pairs)
        end = min(high, self._num_positions)
        self._inner.pass_over(end)
        return Candidates(_NONE, _NONE, None, 0, end)


class Splits:
    """Consecutive parts of a collection."""

    def __init__(self, starts: Sequence[int]) -> None:
        self.starts = np.array(starts, np.int64)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def rows(self) -> list[slice]:
        """Return the rows of each split."""
        return [slice(first, end) for first, end in pairwise(self.starts.tolist())]

    def of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the split number of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1


class Across(BeyondReferences):
    """A search without pairs within one split."""

    def __init__(self, search: Search, collapsed: Collapsed, splits: Splits) -> None:
        self._first, self._last = _numbers(collapsed, splits)
        super().__init__(search, int(np.count_nonzero(self._last == 0)))

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs between two splits with later positions in low..high."""
        found = super().candidates(low, high, states, max_pairs)
        first = np.minimum(self._first[found.later], self._first[found.earlier])
        last = np.maximum(self._last[found.later], self._last[found.earlier])
        return found.select(first < last)


def first_split_first(collapsed: Collapsed, splits: Splits) -> Collapsed:
    """Return positions ordered so that those with documents of the first split only, never compared, come first."""
    order = np.argsort(_numbers(collapsed, splits)[1] > 0, kind="stable")
    places = np.empty(len(order) + 1, np.int64)
    places[order], places[-1] = np.arange(len(order)), -1
    return collapsed._replace(order=collapsed.order[order], position=places[collapsed.position])


def _numbers(collapsed: Collapsed, splits: Splits) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the first and the last split that has a document at each position."""
    first, last = (np.zeros(len(collapsed.order), np.int32) for _ in range(2))
    parts = list(enumerate(splits.rows()))
    for of_position, order in ((last, parts), (first, parts[::-1])):
        for number, rows in order:
            position = collapsed.position[rows]
            of_position[position[position >= 0]] = number
    return first, last
