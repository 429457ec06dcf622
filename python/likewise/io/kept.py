"""Kept files of a run, read again: rows, records, lines or whole files."""

import shutil
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from likewise.errors import InvalidInput
from likewise.io.formats import DELIMITERS, Format, format_of, open_packed
from likewise.io.output.directory import KEPT
from likewise.io.output.whole import scratch_directory
from likewise.io.tables.columns import open_parquet
from likewise.recipe.rules import BYTE_TOKENS

BATCH_ROWS = 65536
_TABLES = ("parquet", "arrow")


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
        yield from open_parquet(path).iter_batches(num_rows)
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
