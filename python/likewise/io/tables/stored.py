"""Tables of Delta Lake, Iceberg and Lance: a folder is one input, whose rows the table's own library reads."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa

from likewise.arrays import ArrowSchema
from likewise.errors import InvalidInput, LikewiseError, MissingExtra, reason_of
from likewise.io.source.source import Kept, ReadRules, ReadTask
from likewise.io.tables.arrow import ArrowFile, batch_jobs
from likewise.io.tables.columns import root_of
from likewise.io.tables.tables import TableRows

# Rows of a batch, so that texts of 10 kB need 10 MB.
_BATCH_ROWS = 1024
_ONE_BY_ONE = {"batch_size": _BATCH_ROWS, "batch_readahead": 1, "fragment_readahead": 1}

# The schema of a table, and a function that returns batches of these columns, always in the same order
_Rows: TypeAlias = tuple[ArrowSchema, Callable[[list[str]], Iterator[Any]]]


@dataclass(frozen=True, eq=False)
class _Opened:
    """One version of a table."""

    version: int
    # The file that describes this version; it never changes
    path: Path
    schema: ArrowSchema
    batches: Callable[[list[str]], Iterator[Any]]
    # Writes batches to a new folder
    write: Callable[[Path, Any], object]


@dataclass(eq=False)
class StoredTable(ArrowFile):
    """A table in a folder, at the version that was current when it was opened."""

    folder: Path = Path()
    kind: str = ""
    table: Any = None

    @classmethod
    def open(cls, folder: Path, name: str, rules: ReadRules, kind: str) -> "StoredTable":
        """Open the current version of the table in a folder."""
        with _told(kind, name):
            table = _OPEN[kind](folder)
        num_bytes = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        return cls(table.path, name, num_bytes, rules, folder, kind, table)

    @property
    def place(self) -> Path:
        """The folder."""
        return self.folder

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Read the batches of the needed columns; the jobs extract documents from parts of them."""
        rows, schema = TableRows(self.name, self.rules), self.table.schema
        names = list(dict.fromkeys(root_of(name, schema.names) for name in rows.needed(schema)))
        yield from batch_jobs(rows, schema, self._read(names), piece_bytes, self._share)

    def facts(self) -> dict[str, object]:
        """Return the format of the table and its version, which may be read again by its library."""
        return {"table": self.kind, "version": self.table.version}

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept rows to a new table; those of Iceberg, whose tables belong to catalogs, to a Parquet file."""
        with self._batches() as (schema, batches, _):
            schema = self._kept_schema(kept, schema)
            parts = (part for part, _ in self._kept(kept, schema, batches))
            with _told(self.kind, self.name):
                self.table.write(target, pa.RecordBatchReader.from_batches(schema, parts))

    @contextmanager
    def _batches(self) -> Iterator[tuple[Any, Iterator[tuple[Any, Any]], bool]]:
        schema = self.table.schema
        yield schema, ((batch, None) for batch in self._read(schema.names)), False

    def _read(self, names: list[str]) -> Iterator[Any]:
        with _told(self.kind, self.name):
            yield from self.table.batches(names)


@contextmanager
def _told(kind: str, name: str | None) -> Iterator[None]:
    """Name the table in errors of its library, which have types of their own."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(kind.lower(), f"reading the {kind} table {name}") from error
    except (LikewiseError, MemoryError):
        raise
    except Exception as error:
        raise InvalidInput(f"the library of {kind} tables reports: {reason_of(error)}", name) from error


def _open_delta(folder: Path) -> _Opened:
    deltalake: Any = import_module("deltalake")
    table = deltalake.DeltaTable(folder)
    logs, version = folder / "_delta_log", table.version()
    # The log of a version may have been deleted after its checkpoint.
    path = next(iter(sorted(logs.glob(f"{version:020}.*"))), logs / "_last_checkpoint")
    parts = table.metadata().partition_columns or None

    def write(target: Path, reader: Any) -> None:
        deltalake.write_deltalake(target, reader, partition_by=parts)

    return _Opened(version, path, *_delta(table), write)


def _delta(table: Any) -> _Rows:
    from pyarrow.dataset import FileSystemDataset

    unordered = {"deletionVectors", "columnMapping"} & set(table.protocol().reader_features or ())
    if unordered:
        raise InvalidInput(
            f"the table uses {' and '.join(sorted(unordered))}, which deltalake reads in no fixed order; in SQL, use "
            "ALTER TABLE name DROP FEATURE, or give table.scan() to dedup() in Python"
        )
    rows, actions = table.to_pyarrow_dataset(), pa.table(table.get_add_actions())
    times = dict(zip(*(actions[name].to_pylist() for name in ("path", "modification_time")), strict=True))
    # The library lists files in an order of its own.
    files = sorted(rows.get_fragments(), key=lambda file: (times.get(file.path, 0), file.path))
    return _dataset(FileSystemDataset(files, rows.schema, rows.format, rows.filesystem))


def _dataset(rows: Any) -> _Rows:
    """Return what reads a dataset of PyArrow, or of Lance, in its order."""
    return rows.schema, lambda names: rows.scanner(columns=names, **_ONE_BY_ONE).to_batches()


def _open_lance(folder: Path) -> _Opened:
    lance: Any = import_module("lance")
    table = lance.dataset(str(folder))
    # Names of versions count up, or in newer tables down.
    names = (f"{table.version}.manifest", f"{2**64 - 1 - table.version:020}.manifest")
    path = next(path for name in names if (path := folder / "_versions" / name).exists())
    return _Opened(table.version, path, *_dataset(table), lambda target, reader: lance.write_dataset(reader, target))


def _open_iceberg(folder: Path) -> _Opened:
    path = _current_metadata(folder / "metadata")
    table = import_module("pyiceberg.table").StaticTable.from_metadata(path.as_uri())
    snapshot = table.current_snapshot()
    return _Opened(snapshot.snapshot_id if snapshot else 0, path, *_iceberg(table.scan()), _write_parquet)


def _iceberg(scan: Any) -> _Rows:
    arrow: Any = import_module("pyiceberg.io.pyarrow")
    schema = arrow.schema_to_pyarrow(scan.projection(), include_field_ids=False)

    def batches(names: list[str]) -> Iterator[Any]:
        some, types = scan.select(*names), pa.schema([schema.field(name) for name in names])
        one_file = arrow.ArrowScan(some.table_metadata, some.io, some.projection(), some.row_filter)
        # Newest files come first, and the rows of all files given at once would be held in memory.
        for task in reversed(list(some.plan_files())):
            for batch in one_file.to_record_batches([task]):
                yield batch.select(names).cast(types)

    return schema, batches


def rows_of(data: Any) -> _Rows | None:
    """Return what reads the rows of a table or dataset of these libraries or PyArrow; None for other data."""
    with _told(type(data).__name__, None):
        if hasattr(data, "to_pyarrow_dataset"):
            return _delta(data)
        if hasattr(data, "metadata_location") or hasattr(data, "to_arrow_batch_reader"):
            return _iceberg(data.scan() if hasattr(data, "metadata_location") else data)
    return _dataset(data) if hasattr(data, "scanner") and hasattr(data, "get_fragments") else None


def _current_metadata(folder: Path) -> Path:
    """Return the newest description of an Iceberg table, by its hint or the number in its name."""
    hint = folder / "version-hint.text"
    if hint.is_file():
        told = hint.read_text(encoding="utf-8").strip()
        for name in (told, f"v{told}.metadata.json", f"{told}.metadata.json"):
            if name and (folder / name).is_file():
                return folder / name
    found: dict[int, list[Path]] = {}
    for path in folder.glob("*.metadata.json*"):
        number = path.name.removeprefix("v").partition(".")[0].partition("-")[0]
        found.setdefault(int(number) if number.isdecimal() else -1, []).append(path)
    newest = found[max(found)]
    if len(newest) > 1:
        raise InvalidInput(
            f"{newest[0].name} and {newest[1].name} have the same number, so only a catalog knows which is current; "
            "give catalog.load_table(name) to dedup() in Python"
        )
    return newest[0]


def _write_parquet(target: Path, reader: Any) -> None:
    import pyarrow.parquet as pq

    target.mkdir()
    with pq.ParquetWriter(target / "rows.parquet", reader.schema) as writer:
        for batch in reader:
            writer.write_batch(batch)


_OPEN = {"Delta": _open_delta, "Iceberg": _open_iceberg, "Lance": _open_lance}
