"""Candidates if the first documents are references, which are never compared with each other."""

import numpy as np
from numpy.typing import NDArray

from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
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
