"""About how many documents files hold, from a look at the beginning of some of them."""

import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from likewise.io.inputs import InputFile
from likewise.io.lines.csv import CsvFile
from likewise.io.lines.csv_records import csv_records
from likewise.io.lines.lines import LineFile
from likewise.io.lines.text_file import TextFile
from likewise.io.tables.parquet import ParquetFile

# How much a packed or encoded file holds for each of its bytes, and the bytes of a line where none can be seen.
_UNPACKED = {"gzip": 4.0, "zstd": 4.0}
PARQUET_TEXT = 2.5
_LINE_BYTES = 1000
_HEAD_BYTES = 1 << 20
_NUM_LOOKED_AT = 32


def estimated_documents(files: Sequence[InputFile]) -> tuple[int, int]:
    """Return about how many documents there are, and the bytes of their text: some files are looked at."""
    text_bytes = sum(unpacked_bytes(file) for file in files)
    step = max(1, len(files) // _NUM_LOOKED_AT)
    num_looked, bytes_looked = 0.0, 0.0
    for file in files[::step]:
        num_looked += _documents_in(file)
        bytes_looked += unpacked_bytes(file)
    return int(num_looked * text_bytes / bytes_looked) if bytes_looked else 0, int(text_bytes)


def unpacked_bytes(file: InputFile) -> float:
    """Return about how many bytes of text a file holds."""
    if isinstance(file, ParquetFile):
        return PARQUET_TEXT * file.num_bytes
    return file.num_bytes * (_UNPACKED[file.codec] if isinstance(file, LineFile) and file.codec else 1.0)


def _documents_in(file: InputFile) -> float:
    if isinstance(file, TextFile):
        return 1.0
    if isinstance(file, ParquetFile):
        return float(file.num_rows())
    head = _head(file) if isinstance(file, LineFile) else b""
    if not head:
        return unpacked_bytes(file) / _LINE_BYTES
    num_seen = _records_in(head, file) if isinstance(file, CsvFile) else head.count(b"\n")
    return max(1, num_seen) * unpacked_bytes(file) / len(head)


def _records_in(head: bytes, file: CsvFile) -> int:
    """Return how many records begin a file; a line end between quotes ends none."""
    with tempfile.TemporaryDirectory(prefix="likewise-") as work:
        path = Path(work) / "head"
        path.write_bytes(head)
        return sum(1 for _ in csv_records(path, file.delimiter, has_quotes=file.has_quotes))


def _head(file: LineFile) -> bytes:
    """Return the first bytes of the lines; nothing where they cannot be unpacked, which reading tells by name."""
    if file.codec is None:
        with file.path.open("rb") as opened:
            return opened.read(_HEAD_BYTES)
    import pyarrow as pa

    with suppress(OSError, pa.ArrowException), pa.input_stream(str(file.path), compression=file.codec) as opened:
        return bytes(opened.read(_HEAD_BYTES))
    return b""
