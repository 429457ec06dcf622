"""CSV and TSV: records read one after another, read again by offset, written back byte for byte under their header."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.lines import LineFile, piece_of
from likewise.io.source import Job, Piece


@dataclass(eq=False)
class CsvFile(LineFile):
    """A file of records under a header that names their fields.

    Parameters
    ----------
    delimiter : str
        The character between fields, of one byte.
    """

    delimiter: str = ","

    def __post_init__(self) -> None:
        self._reader: _native.CsvReader | None = None

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Read the records; what is left to the jobs is nothing but to hand them on."""
        if self.codec is not None:
            for _, _, num_packed in self.plain_pieces(piece_bytes, work):
                yield Job(num_packed, _nothing)
        reader = self._open()
        if reader is None:
            return
        before = 0
        while (found := reader.next_piece(piece_bytes)) is not None:
            native, position = found
            num_bytes = position - before if self.codec is None else 0
            yield Job(num_bytes, lambda native=native: iter([piece_of(native)]))  # type: ignore[misc]
            before = position

    def head_bytes(self) -> int:
        """Return the bytes of the header with its line end."""
        return _native.csv_header(str(self.plain_path), ord(self.delimiter))[1]

    def header(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(_native.csv_header(str(self.plain_path), ord(self.delimiter))[0])

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _native.Texts:
        """Read the texts of these records again."""
        assert self._reader is not None
        return _native.read_csv_texts(self._reader, offsets, lengths)

    def _open(self) -> _native.CsvReader | None:
        """Return a reader behind the header; None if the file is empty."""
        names = self.header()
        if not names:
            return None
        rules = self.rules
        id_field = rules.id_field or ("id" if "id" in names else None)
        self._reader = _native.CsvReader(
            str(self.plain_path),
            delimiter=ord(self.delimiter),
            text_columns=[self._column(names, name) for name in rules.text_fields],
            id_column=None if id_field is None else self._column(names, id_field),
            id_required=rules.id_field is not None,
            field_columns=[names.index(name) if name in names else None for name in rules.fields],
            max_document=rules.max_document_bytes,
        )
        return self._reader

    def _column(self, names: tuple[str, ...], name: str) -> int:
        if name not in names:
            listed = ", ".join(map(repr, names[:20]))
            raise InvalidInput(
                f"there is no column {name!r}; the header has {listed}. Name the right ones with --text-field and "
                "--id-field, or the right character with --delimiter",
                self.name,
                1,
            )
        if names.count(name) > 1:
            raise InvalidInput(f"the header has {names.count(name)} columns {name!r}; rename all but one", self.name, 1)
        return names.index(name)


def _nothing() -> Iterator[Piece]:
    return iter(())
