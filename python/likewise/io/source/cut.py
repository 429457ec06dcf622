"""Parts of texts that are removed when documents are written back."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.io.source.source import as_array

# Changed rows that are processed at once.
_ROWS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Cut:
    """Parts to remove from the texts of some rows."""

    # The changed rows, ascending, counted from the first row that the cut covers
    rows: NDArray[np.int64]
    # Number of parts of each changed row
    counts: NDArray[np.uint32]
    # Byte ranges of all parts in the UTF-8 of their texts, ordered by row and start. They may overlap.
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    # Whether to write a space where two words would be joined
    keeps_words_apart: bool

    @staticmethod
    def of_parts(
        rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any], *, keeps_words_apart: bool
    ) -> "Cut":
        """Return the cut that removes these parts, ordered by row and position."""
        firsts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])[: len(rows)])
        counts = np.diff(np.append(firsts, len(rows))).astype(np.uint32)
        starts, ends = (column.astype(np.uint32, copy=False) for column in (starts, ends))
        return Cut(rows[firsts], counts, starts, ends, keeps_words_apart)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def take(self, part: slice) -> "Cut":
        """Return the cut of a slice of the changed rows."""
        low, high, _ = part.indices(len(self.rows))
        parts = slice(int(self._bounds[low]), int(self._bounds[max(low, high)]))
        return Cut(self.rows[part], self.counts[part], self.starts[parts], self.ends[parts], self.keeps_words_apart)

    def within(self, first: int, end: int) -> "Cut":
        """Return the cut of rows `first` to `end`, exclusive, renumbered from `first`."""
        part = self.take(slice(*np.searchsorted(self.rows, [first, end]).tolist()))
        return Cut(part.rows - first, part.counts, part.starts, part.ends, part.keeps_words_apart)

    def without(self, dropped: NDArray[np.int64]) -> "Cut":
        """Return the cut without some dropped rows; the remaining rows are renumbered."""
        others = self.where(~np.isin(self.rows, dropped)) if len(dropped) else self
        return replace(others, rows=others.rows - np.searchsorted(dropped, others.rows))

    def where(self, stays: NDArray[np.bool_]) -> "Cut":
        """Return the cut of the changed rows selected by a mask."""
        of_parts = np.repeat(stays, self.counts)
        return Cut(
            self.rows[stays], self.counts[stays], self.starts[of_parts], self.ends[of_parts], self.keeps_words_apart
        )

    def num_bytes(self) -> int:
        """Return the bytes of text that are removed; overlapping parts count once."""
        num_bytes, behind = 0, np.uint64(0)
        for low in range(0, len(self.rows), _ROWS_AT_ONCE):
            part = self.take(slice(low, low + _ROWS_AT_ONCE))
            # Row numbers in the high bits make the ranges of all rows comparable.
            base = np.repeat(part.rows.astype(np.uint64) << np.uint64(32), part.counts)
            starts, ends = base + part.starts, base + part.ends
            before = np.maximum.accumulate(np.append(behind, ends))[:-1]
            num_bytes += int((ends - np.minimum(np.maximum(starts, before), ends)).sum())
            behind = ends.max(initial=behind)
        return num_bytes

    def apply(self, texts: _native.Texts) -> tuple[_native.Texts, NDArray[np.bool_]]:
        """Return the texts of the changed rows without their parts, and whether only whitespace is left."""
        left, is_blank, _ = _native.cut_texts(
            texts, self.counts, self.starts, self.ends, keeps_words_apart=self.keeps_words_apart
        )
        return left, as_array(is_blank, bool)
