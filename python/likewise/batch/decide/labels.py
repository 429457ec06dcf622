"""The group of each document: its kept document, whether it is removed, and the size of the group."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArraySpace, slices

_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of consecutive documents."""

    is_kept: NDArray[np.bool_]
    # The kept document of its group: itself, or the one that its evidence names; -1 for a document of an index
    leaders: NDArray[np.int64]
    # Position among removed documents, in the order of the evidence, from 0; -1 for kept ones
    positions: NDArray[np.int64]
    # Similarity to the kept document; NaN for kept ones
    similarity: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> "Labels":
        """Return the labels of these rows."""
        return Labels(self.is_kept[rows], self.leaders[rows], self.positions[rows], self.similarity[rows])


class Groups:
    """The groups of the evidence: a kept document, and the documents removed as its duplicates."""

    def __init__(
        self,
        num_rows: int,
        removed_rows: NDArray[np.int64],
        kept_rows: NDArray[np.int64],
        similarity: NDArray[np.float64],
        space: ArraySpace | None = None,
    ) -> None:
        self._removed_rows = removed_rows
        self._kept_rows = kept_rows
        self._similarity = similarity
        self._num_duplicates = (space or ArraySpace()).zeros(num_rows, np.uint32)
        for part in slices(len(kept_rows), _AT_ONCE):
            leaders = kept_rows[part]
            np.add.at(self._num_duplicates, leaders[leaders >= 0], 1)

    def num_duplicates(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of documents removed as duplicates of each of these rows."""
        return self._num_duplicates[rows].astype(np.int64)

    def labels(self, rows: slice) -> Labels:
        """Return the labels of consecutive documents."""
        low, high = (int(bound) for bound in np.searchsorted(self._removed_rows, [rows.start, rows.stop]))
        places = self._removed_rows[low:high] - rows.start
        num_rows = rows.stop - rows.start
        leaders = np.arange(rows.start, rows.stop, dtype=np.int64)
        positions = np.full(num_rows, -1, np.int64)
        similarity = np.full(num_rows, np.nan)
        leaders[places] = self._kept_rows[low:high]
        positions[places] = np.arange(low, high)
        similarity[places] = self._similarity[low:high]
        return Labels(positions < 0, leaders, positions, similarity)
