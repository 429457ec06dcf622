"""CSV and TSV: cut at ends of records, read again by offset, written back byte for byte under their header."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.lines import LineFile, piece_of
from likewise.io.source import Job, Piece

# A header ends within so many bytes, or is refused.
_HEADER_BYTES = 17 << 20
_STEP_BYTES = 64 << 20


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

    def __getstate__(self) -> dict[str, Any]:
        """Return what goes to another process: all but the native reader, which is opened there anew."""
        return vars(self) | {"_reader": None}

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Cut the file at ends of records, while it is unpacked where it is packed."""
        splitter: _native.CsvSplitter | None = None
        start, num_before, num_packed = 0, 0, 0
        for end, is_end, unpacked in self._growing(piece_bytes, work):
            num_packed += unpacked
            if splitter is None:
                # While the file grows, a header might still be cut.
                if not is_end and end < _HEADER_BYTES:
                    continue
                names, start, num_blank = _native.csv_header(str(self.plain_path), ord(self.delimiter))
                self._reader = self._open(names)
                if self._reader is None:
                    return
                num_before = num_blank + 1
                splitter = _native.CsvSplitter(str(self.plain_path), delimiter=ord(self.delimiter), start=start)
            while (piece := splitter.next_piece(end, piece_bytes, is_end)) is not None:
                offset, length = piece
                yield Job(length if self.codec is None else num_packed, self._read_job(offset, length, num_before))
                num_before, num_packed = 0, 0
        if num_before and splitter is not None:
            # Nothing but a header: its line is counted all the same.
            yield Job(num_packed, self._read_job(start, 0, num_before))

    def _growing(self, piece_bytes: int, work: Path) -> Iterator[tuple[int, bool, int]]:
        """Yield up to where the plain file is there, whether that is all, and bytes of the packed file since before."""
        if self.codec is None:
            size = self.path.stat().st_size
            # By steps, between which Ctrl-C acts.
            yield from ((min(end, size), end >= size, 0) for end in range(_STEP_BYTES, size + _STEP_BYTES, _STEP_BYTES))
            return
        before = 0
        for offset, length, num_packed in self.plain_pieces(piece_bytes, work):
            before = offset + length
            yield before, False, num_packed
        yield before, True, 0

    def _read_job(self, offset: int, length: int, num_before: int) -> Callable[[], Iterator[Piece]]:
        def read() -> Iterator[Piece]:
            assert self._reader is not None
            yield piece_of(self._reader.read(offset, length, num_before))

        return read

    def head_bytes(self) -> int:
        """Return the bytes of the header with its line end."""
        return _native.csv_header(str(self.plain_path), ord(self.delimiter))[1]

    def header(self) -> tuple[str, ...]:
        """Return the names of the columns."""
        return tuple(_native.csv_header(str(self.plain_path), ord(self.delimiter))[0])

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the names of the columns."""
        return list(self.header()) if self.is_plain else []

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _native.Texts:
        """Read the texts of these records again."""
        if self._reader is None:
            self._reader = self._open(self.header())
        assert self._reader is not None
        return _native.read_csv_texts(self._reader, offsets, lengths)

    def _open(self, names: Sequence[str]) -> _native.CsvReader | None:
        """Return what reads records under this header; None if the file is empty."""
        if not names:
            return None
        rules = self.rules
        id_field = rules.id_field or ("id" if "id" in names else None)
        return _native.CsvReader(
            str(self.plain_path),
            delimiter=ord(self.delimiter),
            text_columns=[self._column(names, name) for name in rules.text_fields],
            id_column=None if id_field is None else self._column(names, id_field),
            id_required=rules.id_field is not None,
            field_columns=[names.index(name) if name in names else None for name in rules.fields],
            max_document=rules.max_document_bytes,
        )

    def _column(self, names: Sequence[str], name: str) -> int:
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
