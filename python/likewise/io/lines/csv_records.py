"""Iteration over records of CSV and TSV."""

from collections.abc import Iterator
from pathlib import Path

from likewise import _native


def csv_records(path: Path, delimiter: str, *, has_quotes: bool, limit: int | None = None) -> Iterator[bytes]:
    """Yield records without their newlines, split as documents are; blank lines before the first record are skipped."""
    size = path.stat().st_size
    end = size if limit is None else min(size, limit)
    splitter = _native.CsvSplitter(path, delimiter=ord(delimiter), has_quotes=has_quotes, start=0)
    is_first = True
    with path.open("rb") as file:
        while (piece := splitter.next_piece(end, 1, end == size)) is not None:
            record = file.read(piece[1]).rstrip(b"\r\n")
            if record or not is_first:
                is_first = False
                yield record
