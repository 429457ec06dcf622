"""Candidates where the first documents are references, which are never compared with each other."""

import numpy as np
from numpy.typing import NDArray

from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.search import Candidates, Search


class BeyondReferences(Search):
    """A search whose later positions begin behind those of the reference documents.

    Parameters
    ----------
    search : Search
        Of all positions.
    num_positions : int
        The first ones are of reference documents.
    """

    def __init__(self, search: Search, num_positions: int) -> None:
        self._inner = search
        self._num_positions = num_positions
        self.can_begin_late = search.can_begin_late

    @property
    def num_capped(self) -> int:
        """Documents that met a full last level, once for each band."""
        return self._inner.num_capped

    @property
    def num_crowded(self) -> int:
        """Documents that came to a full bucket."""
        return self._inner.num_crowded

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; none for reference documents."""
        if low >= self._num_positions:
            return self._inner.candidates(low, high, states, max_pairs)
        end = min(high, self._num_positions)
        if self._inner.needs_all_ranges:
            end = self._inner.candidates(low, end, states, max_pairs).end
        nothing = np.zeros(0, np.uint32)
        return Candidates(nothing, nothing, None, 0, end)


def beyond_references(search: Search, documents: Documents, collapsed: Collapsed) -> Search:
    """Return the search, or one that leaves out pairs of reference documents where there are any."""
    if not documents.num_references:
        return search
    # They stand before all others.
    return BeyondReferences(search, int(np.count_nonzero(collapsed.order < documents.num_references)))


class Across(Search):
    """A search without pairs of two references, or of two other documents.

    Parameters
    ----------
    search : Search
        Of all positions.
    documents : Documents
        References first.
    collapsed : Collapsed
        Equal documents of both sides have one position.
    """

    def __init__(self, search: Search, documents: Documents, collapsed: Collapsed) -> None:
        self._inner = search
        self.can_begin_late, self.needs_all_ranges = search.can_begin_late, search.needs_all_ranges
        num_positions, first = len(collapsed.order), documents.num_references
        self._has_reference, self._has_other = np.zeros(num_positions, bool), np.zeros(num_positions, bool)
        for has, position in (
            (self._has_reference, collapsed.position[:first]),
            (self._has_other, collapsed.position[first:]),
        ):
            has[position[position >= 0]] = True

    @property
    def num_capped(self) -> int:
        """Documents that met a full last level, once for each band."""
        return self._inner.num_capped

    @property
    def num_crowded(self) -> int:
        """Documents that came to a full bucket."""
        return self._inner.num_crowded

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, of one side each."""
        found = self._inner.candidates(low, high, states, max_pairs)
        later, earlier = found.later, found.earlier
        return found.select(
            (self._has_reference[later] & self._has_other[earlier])
            | (self._has_other[later] & self._has_reference[earlier])
        )
