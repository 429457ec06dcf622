"""The copies that a run wrote of what it kept, read again one document after the other."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from likewise.errors import InvalidInput
from likewise.io.csv_records import csv_records
from likewise.io.formats import Format, format_of
from likewise.io.output import KEPT
from likewise.recipe_tokens import BYTE_TOKENS

BATCH_ROWS = 65536
_TABLES = ("parquet", "arrow")
_RECORDS = ("csv", "tsv")


class KeptCopy(NamedTuple):
    """A copy of what stayed of one input.

    Parameters
    ----------
    path : Path, optional
        Where it lies; None for a file of text or bytes that did not stay.
    form : Format
        What it holds.
    delimiter : str
        What stands between the fields of a record.
    """

    path: Path | None
    form: Format
    delimiter: str = ","


def kept_copies(run: Path, summary: dict[str, Any]) -> list[KeptCopy] | None:
    """Return the kept files in input order, and what they hold; None where the run wrote no copies.

    Raises
    ------
    InvalidInput
        If one is missing.
    """
    options = summary.get("options", {})
    if options.get("output") != "kept":
        return None
    form = options.get("format")
    if form is None and summary["recipe"].get("tokens") in BYTE_TOKENS:
        form = "binary"
    copies = []
    for file in summary["inputs"]:
        path = run / KEPT / file["path"]
        if path.exists():
            found = format_of(path, str(path), form)
            between = options.get("delimiter") or ("\t" if found.kind == "tsv" else ",")
            copies.append(KeptCopy(path, found, between))
        # Text files of which nothing stays leave no file.
        elif file["num_kept"] or (options.get("on_error") == "keep" and file["num_bad_rows"]):
            raise InvalidInput("the run's kept file is missing; run it again", str(path))
        else:
            copies.append(KeptCopy(None, Format("binary" if form == "binary" else "text")))
    return copies


def kinds_of(copies: list[KeptCopy]) -> set[str | bytes]:
    """Return what documents of copies can be held against: ``table``, the header of records, else the format."""
    kinds: set[str | bytes] = set()
    for path, form, between in copies:
        if path is not None and form.kind in _RECORDS:
            # A file of nothing has no header.
            with _plain(path, form.codec) as lines:
                kinds.update([next(csv_records(lines, between), b"")] if lines.peek(1) else [])
        else:
            kinds.add("table" if form.kind in _TABLES else form.kind)
    return kinds


def kept_documents(copies: list[KeptCopy]) -> Iterator[object]:
    """Yield rows, records without headers, whole files of text and bytes, and lines of all else, in input order.

    Records and lines come without their line ends.
    """
    for path, form, between in copies:
        if path is None:
            continue
        if form.kind in _TABLES:
            for batch in table_batches(path, is_parquet=form.kind == "parquet", num_rows=BATCH_ROWS):
                yield from batch.to_pylist()
            continue
        if form.kind in ("text", "binary"):
            yield path.read_bytes()
            continue
        with _plain(path, form.codec) as lines:
            if form.kind not in _RECORDS:
                yield from (line.rstrip(b"\r\n") for line in lines)
                continue
            records = csv_records(lines, between)
            next(records, None)
            yield from records


def table_batches(path: Path, *, is_parquet: bool, num_rows: int) -> Iterator[Any]:
    """Yield the record batches of a Parquet file, of so many rows at most, or those of an Arrow file as they come."""
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


def _plain(path: Path, codec: str | None) -> io.BufferedReader:
    if codec is None:
        return path.open("rb")
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(str(path), compression=codec))
