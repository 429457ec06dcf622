"""Folders of lakehouse tables: their files also contain rows that the tables no longer have."""

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from likewise.errors import InvalidInput

# What the folder of a table contains, and the table's format.
_MARKS = {
    "_delta_log": "Delta",
    "metadata/*.metadata.json": "Iceberg",
    "metadata/*.metadata.json.gz": "Iceberg",
    "_versions/*.manifest": "Lance",
    ".hoodie": "Hudi",
    "ducklake-*.parquet": "DuckLake",
}
# How to write the rows of a table to a file.
_WAYS = {
    "Delta": "with DuckDB: COPY (FROM delta_scan('FOLDER')) TO 'rows.parquet'",
    "Iceberg": "with DuckDB: COPY (FROM iceberg_scan('FOLDER')) TO 'rows.parquet'",
    "Lance": "in Python: pyarrow.parquet.write_table(lance.dataset('FOLDER').to_table(), 'rows.parquet')",
    "Hudi": "with Spark: spark.read.format('hudi').load('FOLDER').write.parquet('rows')",
    "DuckLake": "with DuckDB: COPY (FROM lake.name) TO 'rows.parquet'",
}
# Formats whose folders are read, each with the extra of its name.
READ = ("Delta", "Iceberg", "Lance")


def check_no_table(folder: str, find: Callable[[str, str], Iterable[object]], *, above: bool = False) -> None:
    """Raise InvalidInput if a folder is the folder of a table."""
    path = PurePosixPath(folder)
    for place in (path, *(path.parents if above else ())):
        kind = kind_of_table(str(place), find)
        # In an Iceberg table, only the folder "data" contains rows.
        if kind and (kind != "Iceberg" or place == path or path.relative_to(place).parts[0] == "data"):
            raise refusal_of_part(str(place), kind)


def kind_of_table(folder: str, find: Callable[[str, str], Iterable[object]]) -> str | None:
    """Return the format of the table whose folder this is, or None."""
    return next((kind for mark, kind in _MARKS.items() if any(True for _ in find(folder, mark))), None)


def check_no_table_below(paths: Sequence[str]) -> None:
    """Raise InvalidInput, as :func:`check_no_table`, if one of these files is in the folder of a table."""
    for mark, kind in _MARKS.items():
        for path in paths:
            if fnmatchcase(path, f"*/{mark}") or fnmatchcase(path, f"*/{mark}/*"):
                raise refusal_of_part(path[: path.rindex("/" + mark.partition("*")[0])], kind)


def refusal_of_part(folder: str, kind: str) -> InvalidInput:
    """Return the error for files, or a folder in a store, that belong to a table."""
    whole = "Give that folder, if it is a local one, or write" if kind in READ else "Write"
    return InvalidInput(
        f"this folder belongs to {'an' if kind[0] in 'AEIOU' else 'a'} {kind} table, and its files also contain rows "
        f"that the table no longer has. {whole} the rows of the table to a file, for example {_WAYS[kind]}",
        folder,
    )
