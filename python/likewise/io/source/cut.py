"""Parts of texts that are left out of what is written back."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.io.source.source import as_array


@dataclass(frozen=True, eq=False)
class Cut:
    """Parts of the texts of some rows.

    Parameters
    ----------
    rows : ndarray of shape (k,), int64
        The rows, rising; they count from the first of those that the parts are of.
    counts : ndarray of shape (k,), uint32
        Parts of each.
    starts, ends : ndarray of shape (m,), uint32
        Of all parts one after another, by where they begin: bytes of the UTF-8 of the text. They may overlap.
    keeps_words_apart : bool
        Whether a space is written where two words would become one.
    """

    rows: NDArray[np.int64]
    counts: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    keeps_words_apart: bool

    @staticmethod
    def of_parts(
        rows: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64], *, keeps_words_apart: bool
    ) -> "Cut":
        """Return the cut that takes these parts out, by row and then by place."""
        changed, counts = np.unique(rows, return_counts=True)
        return Cut(
            changed, counts.astype(np.uint32), starts.astype(np.uint32), ends.astype(np.uint32), keeps_words_apart
        )

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def take(self, part: slice) -> "Cut":
        """Return the cut of some of the rows, by number of a row among those that change."""
        low, high, _ = part.indices(len(self.rows))
        parts = slice(int(self._bounds[low]), int(self._bounds[max(low, high)]))
        return Cut(self.rows[part], self.counts[part], self.starts[parts], self.ends[parts], self.keeps_words_apart)

    def within(self, first: int, end: int) -> "Cut":
        """Return the cut of rows `first` to before `end`, which then count from `first`."""
        part = self.take(slice(*np.searchsorted(self.rows, [first, end]).tolist()))
        return Cut(part.rows - first, part.counts, part.starts, part.ends, part.keeps_words_apart)

    def without(self, dropped: NDArray[np.int64]) -> "Cut":
        """Return the cut of rows of which some are dropped: theirs goes, and the others count on without them."""
        stays = ~np.isin(self.rows, dropped)
        rows = self.rows[stays] - np.searchsorted(dropped, self.rows[stays])
        of_parts = np.repeat(stays, self.counts)
        return Cut(rows, self.counts[stays], self.starts[of_parts], self.ends[of_parts], self.keeps_words_apart)

    def apply(self, texts: _native.Texts) -> tuple[_native.Texts, NDArray[np.bool_], int]:
        """Return the texts of all rows without their parts, whether only whitespace is left, and bytes that went."""
        left, is_blank, num_bytes = _native.cut_texts(
            texts, self.counts, self.starts, self.ends, keeps_words_apart=self.keeps_words_apart
        )
        return left, as_array(is_blank, bool), num_bytes
