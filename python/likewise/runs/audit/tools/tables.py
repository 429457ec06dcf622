"""Small tables of ids written by other tools: CSV, TSV, JSON Lines or Parquet, read by column name."""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from likewise.errors import InvalidInput

_ID_NAMES = ("id", "doc_id")


def read_columns(path: Path, wanted: Sequence[str], *, optional: Sequence[str] = ()) -> dict[str, list[str]]:
    """Return columns of ids as strings, in file order."""
    rows, names = _rows(path)
    found = {}
    for name in (*wanted, *optional):
        column = next((given for given in (_ID_NAMES if name == "id" else (name,)) if given in names), None)
        if column is None and name in wanted:
            raise InvalidInput(f"no column {name!r} (found: {', '.join(names) or 'none'})", str(path))
        if column is not None:
            found[name] = column
    columns: dict[str, list[str]] = {name: [] for name in found}
    for number, row in enumerate(rows, 1):
        for name, column in found.items():
            value = row.get(column)
            # Integers are ids too; booleans and lists are not.
            if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
                raise InvalidInput(f"{column} is missing or not an id: {value!r}", str(path), number)
            columns[name].append(str(value))
    return columns


def _rows(path: Path) -> tuple[Iterable[dict[str, Any]], list[str]]:
    """Return the rows of a table, and the names of its columns."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            import pyarrow.parquet as pq

            table = pq.ParquetFile(path).read()
            return table.to_pylist(), table.column_names
        if suffix == ".jsonl":
            lines = path.read_text(encoding="utf-8").splitlines()
            rows = [json.loads(line) for line in lines if line.strip()]
            if not all(isinstance(row, dict) for row in rows):
                raise InvalidInput("not every line is a JSON object", str(path))
            return rows, list(dict.fromkeys(name for row in rows for name in row))
        if suffix in (".csv", ".tsv"):
            with path.open(encoding="utf-8-sig", newline="") as file:
                reader = csv.DictReader(file, delimiter="\t" if suffix == ".tsv" else ",", strict=True)
                rows = list(reader)
                return rows, list(reader.fieldnames or [])
    except (OSError, InvalidInput):
        raise
    except (ValueError, RecursionError, csv.Error) as error:
        # Errors of Arrow are ValueErrors.
        raise InvalidInput(f"cannot read this table: {error}", str(path)) from error
    raise InvalidInput("the name must end in .csv, .tsv, .jsonl or .parquet", str(path))
