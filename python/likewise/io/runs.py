"""Finished runs read again: whether two of them gave the same answer."""

import io
import json
from collections.abc import Hashable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from likewise.errors import InvalidInput
from likewise.io.alignment import aligned
from likewise.io.formats import Format, format_of
from likewise.io.output import EVIDENCE, KEPT, SUMMARY

# Where documents stand differs when the same sequence is split into other files.
_PLACES = ("file", "offset", "length", "kept_file", "kept_offset")
_MOST_NAMED = 5
_BATCH_ROWS = 65536
_TABLES = ("parquet", "arrow")


def read_summary(run: Path) -> dict[str, Any]:
    """Return the summary of a finished run.

    Raises
    ------
    InvalidInput
        If the directory holds none.
    """
    try:
        summary = json.loads((run / SUMMARY).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InvalidInput("there is no finished run here (no summary.json)", str(run)) from error
    except ValueError as error:
        raise InvalidInput(f"the summary cannot be read: {error}", str(run / SUMMARY)) from error
    if not isinstance(summary, dict) or "recipe_id" not in summary:
        raise InvalidInput("this is no summary of Likewise", str(run / SUMMARY))
    return summary


def run_differences(first: Path, second: Path) -> tuple[list[str], str]:
    """Return the first differences between two finished runs, and what was compared.

    Parameters
    ----------
    first, second : Path
        Output directories.

    Returns
    -------
    differences : list of str
        Empty if they gave the same answer.
    compared : str
        What was compared, in words.

    Raises
    ------
    InvalidInput
        If one of them is no finished run.

    Notes
    -----
    Compares recipe, evidence in row order (not the places in files, which another split of the same sequence changes),
    and kept documents in input order. Container bytes and timings are not compared.
    """
    one, two = read_summary(first), read_summary(second)
    runs = ((first, one), (second, two))
    differences = _recipe_differences(one, two)
    differences += [
        f"{name}: {one.get(name)} and {two.get(name)}"
        for name in ("num_documents", "num_kept", "num_removed", "num_empty", "num_short", "num_capped")
        if one.get(name) != two.get(name)
    ]
    differences += _evidence_differences(first, second)
    compared = "recipe, evidence"
    kept = [_kept_files(run, summary) for run, summary in runs]
    if kept[0] is not None and kept[1] is not None:
        if {form.kind in _TABLES for _, form in kept[0]} != {form.kind in _TABLES for _, form in kept[1]}:
            compared += "; kept documents are of different formats: their numbers"
        else:
            compared += ", kept documents"
            differences += _kept_differences(kept[0], kept[1])
    return differences, compared


def _recipe_differences(one: dict[str, Any], two: dict[str, Any]) -> list[str]:
    if one["recipe_id"] == two["recipe_id"]:
        return []
    mine, theirs = one["recipe"], two["recipe"]
    names = [name for name in sorted({*mine, *theirs}) if mine.get(name) != theirs.get(name)]
    return [f"recipe: {name} is {mine.get(name)!r} and {theirs.get(name)!r}" for name in names] or ["recipe_id differs"]


def _evidence_differences(first: Path, second: Path) -> list[str]:
    one, two = _evidence(first), _evidence(second)
    # Another recipe is named by its fields, not by every row.
    left_out = {*_PLACES, "recipe_id"}
    columns = [[name for name in table.column_names if name not in left_out] for table in (one, two)]
    if columns[0] != columns[1]:
        return [f"evidence: columns {columns[0]} and {columns[1]}"]
    one, two = one.select(columns[0]), two.select(columns[0])
    if one.equals(two):
        return []
    named = []
    renumbered: str | None = None
    for beside in aligned(_rows(one), _rows(two), _without_numbers):
        left, right = beside.a, beside.b
        if not beside.is_same:
            named.append(f"evidence: {_evidence_row(left)} and {_evidence_row(right)}")
        elif left != right and renumbered is None:
            renumbered = (
                f"evidence: documents stand at other rows, first {_evidence_row(left)} and {_evidence_row(right)}"
            )
        if len(named) == _MOST_NAMED:
            break
    if renumbered is not None:
        named.append(renumbered)
    return named or ["evidence: column types differ"]


def _without_numbers(row: dict[str, Any]) -> str:
    """Return what evidence says but for the numbers of rows, which one document more changes for all behind it."""
    return repr([value for name, value in row.items() if name not in ("row", "kept_row")])


def _evidence(run: Path) -> Any:  # noqa: ANN401 - PyArrow has no types
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(run / EVIDENCE).read()
    except (FileNotFoundError, pa.ArrowInvalid) as error:
        raise InvalidInput("the run's evidence is missing or damaged; run it again", str(run / EVIDENCE)) from error


def _rows(table: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401 - PyArrow has no types
    for batch in table.to_batches(_BATCH_ROWS):
        yield from batch.to_pylist()


def _evidence_row(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    return f"row {row['row']} ({row['doc_id']}) for {row['kept_row']} ({row['kept_id']}) at {row['similarity']!r}"


def _kept_files(run: Path, summary: dict[str, Any]) -> list[tuple[Path, Format]] | None:
    """Return the kept files in input order, and what they hold; None where the run wrote no copies."""
    options = summary.get("options", {})
    if options.get("output") != "kept":
        return None
    files = []
    for file in summary["inputs"]:
        path = run / KEPT / file["path"]
        if path.exists():
            files.append((path, format_of(path, str(path), options.get("format"))))
        # Text files of which nothing stays leave no file.
        elif file["num_kept"] or (options.get("on_error") == "keep" and file["num_bad_rows"]):
            raise InvalidInput("the run's kept file is missing; run it again", str(path))
    return files


def _kept_differences(first: list[tuple[Path, Format]], second: list[tuple[Path, Format]]) -> list[str]:
    named = []
    for beside in aligned(_kept_documents(first), _kept_documents(second), _hashable):
        if beside.is_same:
            continue
        if beside.a is None or beside.b is None:
            number = beside.number_b if beside.a is None else beside.number_a
            run = "second" if beside.a is None else "first"
            named.append(
                f"kept: only the {run} run has document {number}, {_shown(beside.b if beside.a is None else beside.a)}"
            )
        else:
            number = beside.number_a
            other = "" if beside.number_b == number else f" ({beside.number_b} of the second run)"
            named.append(f"kept: document {number}{other} is {_shown(beside.a)} and {_shown(beside.b)}")
        if len(named) == _MOST_NAMED:
            break
    return named


def _hashable(document: object) -> Hashable:
    return document if isinstance(document, bytes) else repr(document)


def _kept_documents(files: list[tuple[Path, Format]]) -> Iterator[object]:
    """Yield lines without their newlines, or rows, in input order."""
    for path, form in files:
        if form.kind in _TABLES:
            batches = _parquet_batches(path) if form.kind == "parquet" else _arrow_batches(path)
            for batch in batches:
                yield from batch.to_pylist()
        else:
            with _plain_lines(path, form.codec) as lines:
                for line in lines:
                    yield line.rstrip(b"\r\n")


def _parquet_batches(path: Path) -> Iterator[Any]:
    import pyarrow.parquet as pq

    yield from pq.ParquetFile(path).iter_batches(_BATCH_ROWS)


def _arrow_batches(path: Path) -> Iterator[Any]:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        if is_file:
            reader = pa.ipc.open_file(source)
            yield from (reader.get_batch(number) for number in range(reader.num_record_batches))
        else:
            yield from pa.ipc.open_stream(source)


def _plain_lines(path: Path, codec: str | None) -> BinaryIO:
    if codec is None:
        return path.open("rb")
    import pyarrow as pa

    return io.BufferedReader(pa.input_stream(str(path), compression=codec))


def _shown(document: object) -> str:
    text = document.decode("utf-8", "replace") if isinstance(document, bytes) else repr(document)
    return text if len(text) <= 80 else f"{text[:77]}..."
