"""Texts in memory as an input."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.io.source.source import NULL_TEXT, BadRow, Piece, ReadTask, Unnamed


@dataclass(frozen=True)
class MemorySource(Unnamed):
    """Texts in memory."""

    texts: Texts
    # Ids of the texts; row numbers if None
    ids: Texts | None = None
    fields: dict[str, Texts] = field(default_factory=dict)
    # Row of each text in the input, ascending, if the input has null rows, which are bad rows
    rows: NDArray[np.int64] | None = None
    # In that case, number of rows of the input
    num_rows: int = 0
    # In that case, ids of all rows of the input
    all_ids: Texts | None = None
    # Type of the given ids, if they are integers
    given_type: Any = None
    # Rows of `ids` whose id was null, so that it is the row number
    has_null_id: NDArray[np.bool_] | None = None

    @property
    def id_type(self) -> str | None:
        """Name of the Arrow type of the ids in results, if they are integers: row numbers are."""
        return "int64" if self.ids is None else None if self.given_type is None else str(self.given_type)

    @property
    def num_bytes(self) -> int:
        """Bytes of all texts."""
        return self.texts.num_bytes

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the texts into parts of about this size."""
        num_texts = len(self.texts)
        rows = max(1, num_texts * piece_bytes // max(1, self.num_bytes)) if num_texts else 1
        for start in range(0, num_texts, rows):
            count = min(rows, num_texts - start)
            yield ReadTask(self.num_bytes * count // num_texts, partial(self._read, start, count))
        if not num_texts and self.num_rows:
            yield ReadTask(0, partial(self._read, 0, 0))

    @property
    def can_read_again(self) -> bool:
        """True: single texts are cheap to read again."""
        return True

    def _read(self, start: int, length: int) -> Iterator[Piece]:
        rows = np.arange(start, start + length, dtype=np.int64)
        first, end, places = start, start + length, rows
        if self.rows is not None:
            # Nulls before the first text belong to the first piece, other nulls to the piece of the text before them.
            first = int(self.rows[start]) if start else 0
            end = int(self.rows[start + length]) if start + length < len(self.rows) else self.num_rows
            places = self.rows[start : start + length]
        nulls = np.delete(np.arange(first, end), places - first).tolist() if end - first > length else []
        has_id = np.full(length, self.ids is not None, np.uint8)
        if self.has_null_id is not None:
            has_id[self.has_null_id[rows]] = 0
        yield Piece(
            texts=self._part(self.texts, rows),
            ids=Texts.from_list([""] * length) if self.ids is None else self._part(self.ids, rows),
            has_id=has_id,
            offsets=places.astype(np.uint64),
            lengths=np.ones(length, np.uint32),
            lines=(places - first).astype(np.uint32),
            num_lines=end - first,
            num_blank=0,
            fields=[self._part(values, rows) for values in self.fields.values()],
            bad_rows=[BadRow(row - first, row, 1, NULL_TEXT) for row in nulls],
        )

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Return the texts of these rows."""
        rows = offsets.astype(np.int64)
        return self.texts.take(rows if self.rows is None else np.searchsorted(self.rows, rows))

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the requested columns."""
        return list(self.fields)

    @staticmethod
    def _part(texts: Texts, rows: NDArray[np.int64]) -> Texts:
        return texts if len(rows) == len(texts) else texts.take(rows)
