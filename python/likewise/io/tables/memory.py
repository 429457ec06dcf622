"""Texts that are already in memory, as an input like any file."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.io.source.source import Job, Piece, Unnamed


@dataclass(frozen=True)
class MemorySource(Unnamed):
    """Texts in memory.

    Parameters
    ----------
    texts : Texts
        The texts.
    ids : Texts, optional
        Their ids; the row number where None.
    fields : dict of str to Texts
        Further fields as JSON.
    id_type : pyarrow.DataType, optional
        Type of the ids as they were given, if they are integers.
    """

    texts: Texts
    ids: Texts | None = None
    fields: dict[str, Texts] = field(default_factory=dict)
    id_type: Any = None

    @property
    def num_bytes(self) -> int:
        """Bytes of all texts."""
        return self.texts.num_bytes

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Cut the texts into parts of about this size."""
        num_texts = len(self.texts)
        rows = max(1, num_texts * piece_bytes // max(1, self.num_bytes)) if num_texts else 1
        for start in range(0, num_texts, rows):
            count = min(rows, num_texts - start)
            yield Job(self.num_bytes * count // num_texts, partial(self._read, start, count))

    @property
    def can_read_again(self) -> bool:
        """Single texts are cheap to read again."""
        return True

    def _read(self, start: int, length: int) -> Iterator[Piece]:
        rows = np.arange(start, start + length, dtype=np.int64)
        has_id = np.full(length, self.ids is not None, np.uint8)
        yield Piece(
            texts=self._part(self.texts, rows),
            ids=Texts.from_list([""] * length) if self.ids is None else self._part(self.ids, rows),
            has_id=has_id,
            offsets=rows.astype(np.uint64),
            lengths=np.ones(length, np.uint32),
            lines=np.arange(length, dtype=np.uint32),
            num_lines=length,
            num_blank=0,
            fields=[self._part(values, rows) for values in self.fields.values()],
            bad_rows=[],
        )

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Return the texts of these rows."""
        return self.texts.take(offsets.astype(np.int64))

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the columns that were asked for."""
        return list(self.fields)

    @staticmethod
    def _part(texts: Texts, rows: NDArray[np.int64]) -> Texts:
        return texts if len(rows) == len(texts) else texts.take(rows)
