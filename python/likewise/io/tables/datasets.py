"""Directories of Hugging Face datasets, and folders of lakehouse tables, whose files also contain other rows."""

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from likewise.errors import InvalidInput
from likewise.io.source.added import Added

STATE = "state.json"
INFO = "dataset_info.json"
SPLITS = "dataset_dict.json"
COMPANIONS = (STATE, INFO, SPLITS)


class Dataset(NamedTuple):
    """A directory written by ``save_to_disk``."""

    path: Path
    # Content of ``state.json``
    state: dict[str, Any]

    @property
    def data_files(self) -> list[Path]:
        """The Arrow streams, in the order of their rows."""
        return [self.path / entry["filename"] for entry in self.state["_data_files"]]


def open_dataset(path: Path, *, whole: bool = True) -> Dataset | None:
    """Return the dataset in a directory; None if there is none, or if data files are missing and `whole` is false."""
    if not (path / STATE).is_file():
        return None
    try:
        state = json.loads((path / STATE).read_bytes())
        names = [entry["filename"] for entry in state["_data_files"]]
    except (ValueError, RecursionError, KeyError, TypeError):
        # state.json of another program.
        return None
    for name in names:
        if not isinstance(name, str) or Path(name).name != name or not (path / name).is_file():
            if not whole:
                return None
            raise InvalidInput(f"{STATE} names {name!r}, which is not a file in the same directory", str(path))
    if state.get("_indices_data_files") or state.get("_indices_files"):
        raise InvalidInput("the dataset has an indices mapping; call flatten_indices() and save it again", str(path))
    return Dataset(path, state)


def write_companions(
    dataset: Dataset, target: Path, *, num_kept: int, num_bytes: int, answer: str, added: Added | None = None
) -> None:
    """Write the files that turn the kept streams of a dataset into a dataset."""
    names = "" if added is None else " ".join(added.names)
    old = f"{dataset.state.get('_fingerprint')} {answer} {num_kept}{names}"
    fingerprint = hashlib.blake2b(old.encode(), digest_size=8).hexdigest()
    _write(target / STATE, {**dataset.state, "_fingerprint": fingerprint})
    info_path = dataset.path / INFO
    if not info_path.is_file():
        return
    try:
        info = json.loads(info_path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"not JSON: {error}", str(info_path)) from error
    splits = info.get("splits") if isinstance(info, dict) else None
    split = splits.get(dataset.state.get("_split")) if isinstance(splits, dict) else None
    if isinstance(split, dict):
        split |= {"num_examples": num_kept, "num_bytes": num_bytes}
    features = info.get("features") if isinstance(info, dict) else None
    if added is not None and isinstance(features, dict):
        features |= added.features()
    _write(target / INFO, info)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n")


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
