"""CSV and TSV: split at record ends, read again by offset, written back byte for byte under their header."""

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowColumn
from likewise.errors import InvalidInput
from likewise.io.lines.lines import LineFile, piece_of
from likewise.io.source.added import Added
from likewise.io.source.source import Cut, Piece, ReadTask

# Bytes of TSV that are examined for quoted fields.
_SHOWING_BYTES = 1 << 20
# Maximum bytes of a header; a longer one is rejected.
_HEADER_BYTES = 17 << 20
_STEP_BYTES = 64 << 20


def csv_records(path: Path, delimiter: str, *, has_quotes: bool) -> Iterator[bytes]:
    """Yield records without their newlines, split as documents are; blank lines before the first record are skipped."""
    end = path.stat().st_size
    splitter = _native.CsvSplitter(path, delimiter=ord(delimiter), has_quotes=has_quotes, start=0)
    is_first = True
    with path.open("rb") as file:
        while (piece := splitter.next_piece(end, 1, is_end=True)) is not None:
            record = file.read(piece[1]).rstrip(b"\r\n")
            if record or not is_first:
                is_first = False
                yield record


@dataclass(eq=False)
class CsvFile(LineFile):
    """A file of records below a header that names their fields."""

    # Field separator, one byte
    delimiter: str = ","
    # Whether it is TSV, which has quoted fields only if they are detected (:func:`shows_quotes`)
    is_tsv: bool = False

    def __post_init__(self) -> None:
        self._reader: _native.CsvReader | None = None
        self._has_quotes: bool | None = None if self.rules.quote is None else self.rules.quote == "double"

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the native reader, which the other process opens again."""
        return vars(self) | {"_reader": None}

    @property
    def has_quotes(self) -> bool:
        """Whether a quote at the start of a field opens a quoted field."""
        if self._has_quotes is None:
            self._has_quotes = not self.is_tsv or shows_quotes(self.first_bytes(_SHOWING_BYTES), self.delimiter)
        return self._has_quotes

    @property
    def quote(self) -> str:
        """The value of ``--quote`` that matches how the file is read."""
        return "double" if self.has_quotes else "none"

    def take_quote(self, quote: str | None) -> None:
        """Read quotes as in another file of the same records; if None, detect them."""
        if quote is not None and self.rules.quote is None:
            self._has_quotes = quote == "double"

    @property
    def _dialect(self) -> tuple[int, bool]:
        return ord(self.delimiter), self.has_quotes

    def facts(self) -> dict[str, object]:
        """Return how quotes are read."""
        return {"quote": self.quote}

    def _num_quotes(self, block: bytes, start: int, end: int) -> int:
        return block.count(b'"', start, end)

    def _records_in(self, head: bytes) -> int:
        # A newline between quotes does not end a record.
        with tempfile.TemporaryDirectory(prefix="likewise-") as work:
            path = Path(work) / "head"
            path.write_bytes(head)
            return sum(1 for _ in csv_records(path, self.delimiter, has_quotes=self.has_quotes))

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the file at record ends, while a compressed file is decompressed."""
        splitter: _native.CsvSplitter | None = None
        done, num_before, num_packed = 0, 0, 0
        for end, is_last, unpacked in self._growing(piece_bytes, work):
            num_packed += unpacked
            # After damage, the rest of a record is missing, unless all lines are whole.
            is_end = is_last and (self._damage is None or self._damage.num_plain == end)
            if splitter is None:
                # While the file grows, the header may be incomplete.
                if not is_last and end < _HEADER_BYTES:
                    continue
                if self._damage is not None and not end:
                    break
                names, done, num_blank = _native.csv_header(str(self.plain_path), *self._dialect)
                self._reader = self._open(names)
                if self._reader is None:
                    break
                num_before = num_blank + 1
                splitter = self._splitter(done)
            while (piece := splitter.next_piece(end, piece_bytes, is_end)) is not None:
                offset, length, stray_lines = piece
                yield ReadTask(
                    length if self.codec is None else num_packed,
                    partial(self._read, offset, length, stray_lines, num_before),
                )
                done, num_before, num_packed = offset + length, 0, 0
            if is_last and not is_end and (rest := self._whole_records(done, end)) is not None:
                offset, length, stray_lines = rest
                yield ReadTask(num_packed, partial(self._read, offset, length, stray_lines, num_before))
                done, num_before, num_packed = offset + length, 0, 0
        if num_before and splitter is not None:
            # A file with only a header: its line is counted anyway.
            yield ReadTask(num_packed, partial(self._read, done, 0, [], num_before))
        if self._damage is not None:
            yield self.damage_job(self._damage, done)

    def _splitter(self, start: int) -> _native.CsvSplitter:
        delimiter, has_quotes = self._dialect
        return _native.CsvSplitter(str(self.plain_path), delimiter=delimiter, has_quotes=has_quotes, start=start)

    def _whole_records(self, start: int, end: int) -> tuple[int, int, list[int]] | None:
        """Return the piece of whole records between `start` and `end`, where a file is truncated; None if empty."""
        splitter, behind, stray_lines = self._splitter(start), start, []
        while (piece := splitter.next_piece(end, 1, is_end=False)) is not None:
            behind = piece[0] + piece[1]
            stray_lines += piece[2]
        return None if behind == start else (start, behind - start, stray_lines)

    def _growing(self, piece_bytes: int, work: Path) -> Iterator[tuple[int, bool, int]]:
        """Yield the end of available whole lines, whether these are all, and newly processed compressed bytes."""
        if self.codec is None:
            size = self.path.stat().st_size
            # In steps, so that Ctrl-C is handled in between.
            yield from ((min(end, size), end >= size, 0) for end in range(_STEP_BYTES, size + _STEP_BYTES, _STEP_BYTES))
            return
        before = 0
        for offset, length, num_packed in self.plain_pieces(piece_bytes, work):
            before = offset + length
            yield before, False, num_packed
        yield before, True, 0

    def _read(self, offset: int, length: int, stray_lines: Sequence[int] = (), num_before: int = 0) -> Iterator[Piece]:
        assert self._reader is not None
        return iter([piece_of(self._reader.read(offset, length, list(stray_lines), num_before))])

    def _head_added(self, added: Added) -> bytes:
        with self.plain_path.open("rb") as file:
            head = file.read(self.head_bytes())
        names = self.header()
        if not names:
            return head
        added.fields.check(names, self.name)
        bare = head.rstrip(b"\r\n")
        end = head[len(bare) :] or b"\n"
        return self.delimiter.encode().join([bare, *(name.encode() for name in added.names)]) + end

    def _lines_added(
        self, lines: list[bytes], is_document: list[bool], added: Added, columns: list[Any]
    ) -> Iterator[bytes]:
        rows = zip(*map(self._values, columns), strict=True)
        for line, values in zip(lines, rows, strict=True):
            yield self.delimiter.join(("", *values)).encode().join((line, b""))

    def _lines_cut(
        self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], cut: Cut, threads: int
    ) -> tuple[_native.Array, _native.Array]:
        return _native.rewrite_csv_rows(self._opened(), offsets, lengths, cut, threads=threads)[:2]

    def _values(self, column: ArrowColumn) -> list[str]:
        """Return the values of a column of bool, int64, float64 or string as CSV fields."""
        import pyarrow.types as are

        values = column.to_pylist()
        if are.is_boolean(column.type):
            return [{None: "", True: "true", False: "false"}[value] for value in values]
        if are.is_string(column.type) or are.is_large_string(column.type):
            return ["" if value is None else self._text(value) for value in values]
        return ["" if value is None else repr(value) for value in values]

    def _text(self, text: str) -> str:
        """Return a text as a CSV field."""
        if not any(one in text for one in (self.delimiter, '"', "\n", "\r")):
            return text
        if self.has_quotes:
            return '"' + text.replace('"', '""') + '"'
        if any(one in text for one in (self.delimiter, "\n", "\r")):
            raise InvalidInput(
                f"the id {text!r} contains a delimiter or a line end, and the file has no quoted fields; use --quote "
                "double",
                self.name,
            )
        return text

    def head_lines(self) -> int:
        """Return 1: a header counts as one line, even if its names contain newlines."""
        return 1

    def head_bytes(self) -> int:
        """Return the bytes of the header, including its newline."""
        return _native.csv_header(str(self.plain_path), *self._dialect)[1]

    def header(self) -> tuple[str, ...]:
        """Return the column names."""
        return tuple(_native.csv_header(str(self.plain_path), *self._dialect)[0])

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the column names."""
        return list(self.header()) if self.is_plain else []

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _native.Texts:
        """Read the texts of these records again."""
        return _native.read_csv_texts(self._opened(), offsets, lengths)

    def _opened(self) -> _native.CsvReader:
        """Return the reader of the records of a file that has some."""
        if self._reader is None:
            self._reader = self._open(self.header())
        assert self._reader is not None
        return self._reader

    def _open(self, names: Sequence[str]) -> _native.CsvReader | None:
        """Return a reader of the records below this header; None if the file is empty."""
        if not names:
            return None
        rules = self.rules
        delimiter, has_quotes = self._dialect
        id_field = rules.id_name(names)
        return _native.CsvReader(
            str(self.plain_path),
            delimiter=delimiter,
            has_quotes=has_quotes,
            text_columns=[self._column(names, name) for name in rules.text_fields],
            id_column=None if id_field is None else self._column(names, id_field),
            id_required=rules.requires_id,
            field_columns=[names.index(name) if name in names else None for name in rules.fields],
            max_document=rules.max_document_bytes,
        )

    def _column(self, names: Sequence[str], name: str) -> int:
        if name not in names:
            listed = ", ".join(map(repr, names[:20]))
            raise InvalidInput(
                f"no column {name!r} (found: {listed}). Set the columns with {self.rules.option_of(name)} and "
                "--id-field, or the separator with --delimiter",
                self.name,
                1,
            )
        if names.count(name) > 1:
            raise InvalidInput(f"the header has {names.count(name)} columns {name!r}; rename all but one", self.name, 1)
        return names.index(name)


def take_quotes(files: Sequence[object], entries: Sequence[Mapping[str, Any]]) -> None:
    """Read quotes in kept files as in the inputs of their run."""
    quotes = {entry["path"]: entry.get("quote") for entry in entries}
    for file in files:
        if isinstance(file, CsvFile):
            file.take_quote(quotes.get(file.name))


def shows_quotes(start: bytes, delimiter: str) -> bool:
    """Return whether TSV with these first bytes has quoted fields."""
    start = start.removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
    between = delimiter.encode()
    header = re.split(rb"[\r\n]", start, maxsplit=1)[0].split(between)
    if all(len(name) > 1 and name.startswith(b'"') and name.endswith(b'"') for name in header):
        return True
    opening = re.compile(rb'(?:\A|[\r\n%s])"' % re.escape(between))
    inside = re.compile(rb'(?:[^"]++|"")*+')
    at, is_doubled = 0, False
    while found := opening.search(start, at):
        field = inside.match(start, found.end())
        assert field is not None
        if field.end() == len(start):
            # The field continues beyond these bytes.
            break
        behind = start[field.end() + 1 : field.end() + 2]
        if behind not in (b"", b"\r", b"\n", between):
            return False
        is_doubled |= b'""' in field[0]
        # The newline or delimiter after the field may precede the next quote.
        at = field.end() + 1
    return is_doubled
