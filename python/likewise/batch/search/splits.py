"""Candidate pairs if some are left out: those of two references, and those inside one split."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.search import Candidates, Search


class BeyondReferences(Search):
    """A search whose later positions start after those of the reference documents."""

    def __init__(self, search: Search, num_positions: int) -> None:
        self._inner = search
        self._num_positions = num_positions
        self.can_begin_late = search.can_begin_late

    @property
    def num_capped(self) -> int:
        """Number of times that a document reached a full last level, counted per band."""
        return self._inner.num_capped

    @property
    def num_crowded(self) -> int:
        """Number of documents that reached a full bucket."""
        return self._inner.num_crowded

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high; none for reference documents."""
        if low >= self._num_positions:
            return self._inner.candidates(low, high, states, max_pairs)
        end = min(high, self._num_positions)
        self._inner.pass_over(end)
        nothing = np.zeros(0, np.uint32)
        return Candidates(nothing, nothing, None, 0, end)


def beyond_references(search: Search, documents: Documents, collapsed: Collapsed) -> Search:
    """Return the search, or one that excludes pairs of reference documents if there are any."""
    if not documents.num_references:
        return search
    # Reference documents precede all others.
    return BeyondReferences(search, int(np.count_nonzero(collapsed.order < documents.num_references)))


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
    return replace(collapsed, order=collapsed.order[order], position=places[collapsed.position])


def _numbers(collapsed: Collapsed, splits: Splits) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Return the first and the last split that has a document at each position."""
    first, last = (np.zeros(len(collapsed.order), np.int32) for _ in range(2))
    parts = list(enumerate(splits.rows()))
    for of_position, order in ((last, parts), (first, parts[::-1])):
        for number, rows in order:
            position = collapsed.position[rows]
            of_position[position[position >= 0]] = number
    return first, last
