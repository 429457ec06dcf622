"""Kept documents written back: one file per input, with the same name and format."""

import shutil
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.formats import DELIMITERS, LINE_FORMATS, Format, format_of, open_packed
from likewise.io.inputs import Inputs
from likewise.io.lines.lines import LineFile
from likewise.io.output.directory import KEPT
from likewise.io.output.whole import scratch_directory
from likewise.io.source.added import Added, AddedFields, check_takes_fields
from likewise.io.source.source import InputFile, Kept
from likewise.recipe.rules import BYTE_TOKENS

BATCH_ROWS = 65536
_TABLES = ("parquet", "arrow")


def write_kept(file: InputFile, target: Path, kept: Kept) -> None:
    """Write the kept documents of one input to a new file; create its directory."""
    if file.is_document and not len(kept.offsets):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    file.write_kept(target, kept)


def check_annotated(files: Sequence[InputFile], fields: AddedFields) -> None:
    """Raise InvalidParameter if fields cannot be added to the rows of files, as far as their first records show."""
    for file in files:
        check_takes_fields(file.name, takes_fields=file.takes_fields)
        if not isinstance(file, LineFile) or (file.is_plain and file.num_bytes):
            fields.check(file.field_names(0, file.record_bytes(0)), file.name)


def write_descriptions(
    inputs: Inputs, kept: Path, num_kept: Sequence[int], answer: str, added: Added | None = None
) -> None:
    """Write the companion files of dataset directories, after their kept files."""
    counts = {file.path: (file.name, count) for file, count in zip(inputs.files, num_kept, strict=True)}
    for name, dataset in inputs.datasets:
        files = [counts[path] for path in dataset.data_files]
        target = kept / name
        target.mkdir(parents=True, exist_ok=True)
        num_bytes = sum((kept / own).stat().st_size for own, _ in files)
        num_rows = sum(count for _, count in files)
        from likewise.io.tables.datasets import write_companions

        write_companions(dataset, target, num_kept=num_rows, num_bytes=num_bytes, answer=answer, added=added)
    for name, path in inputs.companions:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept / name)


def write_files(inputs: Inputs, target: Path, kept_of: Callable[[int, InputFile], Kept], answer: str) -> list[int]:
    """Write what `kept_of` (number of the file, file) returns for each file to a new directory; return the counts."""
    num_written: list[int] = []
    added = None
    # Removed text files are not copied, so the directory may stay empty.
    target.mkdir()
    for number, file in enumerate(inputs.files):
        kept = kept_of(number, file)
        write_kept(file, target / file.name, kept)
        num_written.append(len(kept.offsets))
        added = kept.added
    write_descriptions(inputs, target, num_written, answer, added)
    return num_written


def stream_files(files: Sequence[InputFile]) -> list[LineFile]:
    """Return the files if their kept documents can be concatenated on one stream."""
    found = []
    for file in files:
        if not isinstance(file, LineFile) or not file.takes_fields:
            raise InvalidInput(
                f"only {', '.join(LINE_FORMATS)} can be written to standard output; give a directory with -o", file.name
            )
        if type(file) is not type(files[0]):
            raise InvalidInput(
                "JSON Lines and CSV cannot be mixed on standard output; give a directory with -o", file.name
            )
        found.append(file)
    return found


class KeptStream:
    """Kept lines of several inputs on one stream; the header of CSV is written once."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._header: tuple[str, tuple[str, ...]] | None = None

    def check_headers(self, files: Sequence[InputFile]) -> None:
        """Raise InvalidInput if the columns of two inputs differ."""
        from likewise.io.lines.csv import CsvFile

        for file in files:
            if isinstance(file, CsvFile) and (names := file.header()):
                self._header = self._header or (file.delimiter, names)
                if self._header != (file.delimiter, names):
                    raise InvalidInput(
                        "the header differs from that of the first file; give a directory with -o", file.name, 1
                    )
        self._header = None

    def write(self, file: LineFile, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> None:
        """Write the kept lines of one input."""
        from likewise.io.lines.csv import CsvFile

        with_head = self._header is None
        if isinstance(file, CsvFile) and (names := file.header()):
            self._header = (file.delimiter, names)
        file.stream_kept(self._out, offsets, lengths, with_head=with_head)


class KeptCopy(NamedTuple):
    """The kept file of one input."""

    # The file; None for a removed file of text or bytes
    path: Path | None
    form: Format
    delimiter: str = ","
    # Whether a quote at the start of a field opens a quoted field
    has_quotes: bool = True


def kept_copies(run: Path, summary: dict[str, Any]) -> list[KeptCopy] | None:
    """Return the kept files in input order; None if the run wrote none, or tables in folders."""
    options = summary.get("options", {})
    if options.get("write") != "kept":
        return None
    form = options.get("format")
    if form is None and summary["recipe"].get("tokens") in BYTE_TOKENS:
        form = "binary"
    copies = []
    for file in summary["inputs"]:
        path = run / KEPT / file["path"]
        if path.is_dir() or path.suffix.lower() in (".tar", ".wacz"):
            # Libraries write tables with names and times of their own; lines of archives mean nothing.
            return None
        if path.exists():
            found = format_of(path, str(path), form)
            between = options.get("delimiter") or DELIMITERS.get(found.kind, ",")
            copies.append(KeptCopy(path, found, between, file.get("quote") != "none"))
        # Removed text files have no kept file.
        elif file["num_kept"] or (options.get("on_error") == "keep" and file["num_bad_rows"]):
            raise InvalidInput("the kept file of this run is missing; run again", str(path))
        else:
            copies.append(KeptCopy(None, Format("binary" if form == "binary" else "text")))
    return copies


def kinds_of(copies: list[KeptCopy]) -> set[str | bytes]:
    """Return what the documents are comparable by: ``table``, the header of records, or otherwise the format."""
    kinds: set[str | bytes] = set()
    for copy in copies:
        if copy.path is not None and copy.form.kind in DELIMITERS:
            # An empty file has no header.
            kinds.update(islice(_records(copy), 1))
        else:
            kinds.add("table" if copy.form.kind in _TABLES else copy.form.kind)
    return kinds


def kept_documents(copies: list[KeptCopy]) -> Iterator[object]:
    """Yield rows, records without headers, whole files of text and bytes, and lines, in order, without newlines."""
    for copy in copies:
        path, form = copy.path, copy.form
        if path is None:
            continue
        if form.kind in _TABLES:
            for batch in table_batches(path, is_parquet=form.kind == "parquet", num_rows=BATCH_ROWS):
                yield from batch.to_pylist()
            continue
        if form.kind in ("text", "binary"):
            yield path.read_bytes()
            continue
        if form.kind in DELIMITERS:
            yield from islice(_records(copy), 1, None)
            continue
        with open_packed(path, form.codec) as lines:
            yield from (line.rstrip(b"\r\n") for line in lines)


def table_batches(path: Path, *, is_parquet: bool, num_rows: int) -> Iterator[Any]:
    """Yield record batches: of a Parquet file with at most `num_rows` rows, of an Arrow file as stored."""
    import pyarrow as pa

    if is_parquet:
        import pyarrow.parquet as pq

        yield from pq.ParquetFile(path).iter_batches(num_rows)
        return
    with pa.OSFile(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if is_file:
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)


def _records(copy: KeptCopy) -> Iterator[bytes]:
    """Yield the header and the records of a copy."""
    from likewise.io.lines.csv import csv_records

    assert copy.path is not None
    if copy.form.codec is None:
        yield from csv_records(copy.path, copy.delimiter, has_quotes=copy.has_quotes)
        return
    with scratch_directory() as work:
        plain = work / "records"
        with open_packed(copy.path, copy.form.codec) as packed, plain.open("wb") as file:
            shutil.copyfileobj(packed, file, 1 << 20)
        yield from csv_records(plain, copy.delimiter, has_quotes=copy.has_quotes)
