"""Folders of lakehouse tables: their files also contain rows that the tables no longer have."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from likewise.errors import InvalidInput

# What the folder of a table contains: the table's format, and how to write the rows of the table to a file.
_MARKS = {
    "_delta_log": ("Delta", "with DuckDB: COPY (FROM delta_scan('FOLDER')) TO 'rows.parquet'"),
    "metadata/*.metadata.json": ("Iceberg", "with DuckDB: COPY (FROM iceberg_scan('FOLDER')) TO 'rows.parquet'"),
    "metadata/*.metadata.json.gz": ("Iceberg", "with DuckDB: COPY (FROM iceberg_scan('FOLDER')) TO 'rows.parquet'"),
    ".hoodie": ("Hudi", "with Spark: spark.read.format('hudi').load('FOLDER').write.parquet('rows')"),
    "ducklake-*.parquet": ("DuckLake", "with DuckDB: COPY (FROM lake.name) TO 'rows.parquet'"),
}


def check_no_table(folder: str, find: Callable[[str, str], Iterable[object]], *, above: bool = False) -> None:
    """Raise InvalidInput if a folder is the folder of a table."""
    path = PurePosixPath(folder)
    for place in (path, *(path.parents if above else ())):
        for mark, (kind, way) in _MARKS.items():
            # In an Iceberg table, only the folder "data" contains rows.
            is_part = kind != "Iceberg" or place == path or path.relative_to(place).parts[0] == "data"
            if is_part and any(True for _ in find(str(place), mark)):
                raise _refusal(str(place), kind, way)


def check_no_table_below(paths: Sequence[str]) -> None:
    """Raise InvalidInput, as :func:`check_no_table`, if one of these files is in the folder of a table."""
    for mark, (kind, way) in _MARKS.items():
        for path in paths:
            if fnmatchcase(path, f"*/{mark}") or fnmatchcase(path, f"*/{mark}/*"):
                raise _refusal(path[: path.rindex("/" + mark.partition("*")[0])], kind, way)


def _refusal(folder: str, kind: str, way: str) -> InvalidInput:
    return InvalidInput(
        f"this folder belongs to {'an' if kind[0] in 'AEIOU' else 'a'} {kind} table, and its files also contain rows "
        f"that the table no longer has. Write the rows of the table to a file, for example {way}",
        folder,
    )
