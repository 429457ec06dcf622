"""Parquet files, read by row group, and written back with their schema and codecs.

PyArrow encodes a file on one thread. So each row group becomes a small file in memory, several at a time, and the
native :class:`ParquetJoin` writes one footer after their bytes. Only PyArrow handles types and codecs.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise._native import ParquetJoin
from likewise.arrays import ArrowBatch, ArrowColumn, ArrowSchema, ArrowTable
from likewise.errors import InvalidInput, reason_of
from likewise.io.source.added import Added
from likewise.io.source.source import Cut, InputFile, Kept, KeptTexts, Piece, ReadTask
from likewise.io.tables.columns import OTHER_TYPES, taken_rows, text_column
from likewise.io.tables.tables import TableRows

# Bytes decoded at once: few enough to be sketched while in cache. A row group may have gigabytes.
_BATCH_BYTES = 2 << 20
# Bytes of text per byte of the file.
PARQUET_TEXT = 2.5
# Decoded bytes that a thread holds, in addition to the stored column.
_WORK_BYTES = 48_000_000
# If there are few, large row groups are decoded while jobs are yielded; small or many ones in the jobs.
_MANY_GROUPS = 8
_LARGE_GROUP_BYTES = 32 << 20
# The key of the Arrow schema in a footer, and one of the same length that PyArrow does not read.
_ARROW_SCHEMA, _OTHER_KEY = b"ARROW:schema", b"ARROW:unread"
_PARQUET = b"PAR1"
_MOST_MICROSECONDS = (2**63 - 1) // 1000


@dataclass(eq=False)
class ParquetFile(InputFile):
    """A Parquet file with a column of texts."""

    is_parquet: ClassVar[bool] = True
    takes_fields: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Yield jobs for the row groups."""
        with self._open() as file:
            metadata = file.metadata
            TableRows(self.name, self.rules).columns(file.schema_arrow)
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
            group_bytes = [metadata.row_group(i).total_byte_size for i in range(metadata.num_row_groups)]
        first_row = 0
        for group, num_rows in enumerate(rows):
            if num_rows and len(rows) < _MANY_GROUPS and group_bytes[group] > _LARGE_GROUP_BYTES:
                yield from self._jobs_inside(group, first_row, num_rows, self.num_bytes * num_rows // sum(rows))
            elif num_rows:
                num_bytes = self.num_bytes * num_rows // sum(rows)
                yield ReadTask(num_bytes, partial(self._read, group, first_row, num_rows))
            first_row += num_rows

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the names of the columns."""
        with self._open() as file:
            return list(file.schema_arrow.names)

    def _jobs_inside(self, group: int, first_row: int, num_rows: int, num_bytes: int) -> Iterator[ReadTask]:
        """Decode a row group while its jobs are yielded; as a single job, it would keep other threads waiting."""
        for piece in self._read(group, first_row, num_rows):
            yield ReadTask(num_bytes * piece.num_lines // num_rows, partial(iter, [piece]))

    def _read(self, group: int, first_row: int, num_rows: int) -> Iterator[Piece]:
        """Read a row group, some megabytes at a time."""
        table_rows = TableRows(self.name, self.rules)
        with self._open() as file:
            wanted = table_rows.needed(file.schema_arrow)
            bytes_a_row = max(1, file.metadata.row_group(group).total_byte_size // max(1, num_rows))
            batch_rows = int(np.clip(_BATCH_BYTES // bytes_a_row, 16, 65536))
            for batch in self._batches(file, group, wanted, batch_rows):
                num_rows -= batch.num_rows
                if num_rows < 0:
                    break
                yield table_rows.piece(batch, first_row)
                first_row += batch.num_rows
            if num_rows:
                raise InvalidInput(
                    f"row group {group} has {'fewer' if num_rows > 0 else 'more'} rows than its header states",
                    self.name,
                )

    def estimated_documents(self) -> float:
        """Return the number of rows."""
        with self._open() as file:
            return float(sum(file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)))

    def text_bytes(self) -> float:
        """Return the approximate bytes of text in the file, decoded."""
        return PARQUET_TEXT * self.num_bytes

    def work_bytes(self) -> int:
        """Return the bytes that a thread needs to decode the file: the largest column of a row group is read whole."""
        with self._open() as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            largest = max((g.column(i).total_compressed_size for g in groups for i in range(g.num_columns)), default=0)
        return _WORK_BYTES + int(largest)

    def check_cut(self) -> None:
        """Raise InvalidInput if the column of texts is dictionary-encoded."""
        with self._open() as file:
            TableRows(self.name, self.rules).check_cut(file.schema_arrow)

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept rows to a new file with the same schema, metadata and codecs."""
        with self._open() as file:
            source = Batches(self.name, file.metadata, file.schema_arrow, self._footer(), self._read_again)
            name = self.rules.text_fields[0] if len(self.rules.text_fields) == 1 else None
            if kept.added is not None:
                kept.added.fields.check(file.schema_arrow.names, self.name)
                if _OTHER_KEY in (file.schema_arrow.metadata or {}):
                    raise InvalidInput(f"a column has a type that Arrow lacks. {OTHER_TYPES}", self.name)
            change = None if kept.cut is None else partial(self._without, kept.cut)
            rows = KeptRows(source, kept.offsets.astype(np.int64), name, kept.texts, kept.added, change)
            write_parquet(target, rows, threads=kept.threads)

    def _without(self, cut: Cut, batch: ArrowBatch, rows: slice) -> Any:
        """Return a batch of written rows with parts of their texts removed."""
        return TableRows(self.name, self.rules).without(batch, cut.within(rows.start, rows.stop))

    def _footer(self) -> bytes:
        """Return the bytes of the footer, which was complete when the file was opened."""
        with self.path.open("rb") as file:
            file.seek(-8, os.SEEK_END)
            length = int.from_bytes(file.read(4), "little")
            file.seek(-8 - length, os.SEEK_END)
            return file.read(length)

    def _read_again(self, group: int, columns: list[str] | None, rows: int) -> Iterator[Any]:
        with self._open() as file:
            yield from self._batches(file, group, columns, rows)

    @cached_property
    def _time_unit(self) -> str:
        """Unit of 96-bit timestamps: nanoseconds (years 1678 to 2262), or microseconds if one is outside that range."""
        with self._open("us") as file:
            metadata = file.metadata
            columns = (metadata.schema.column(i) for i in range(metadata.num_columns))
            paths = [column.path for column in columns if column.physical_type == "INT96"]
            for group in range(metadata.num_row_groups if paths else 0):
                for batch in self._batches(file, group, paths, 65536):
                    if any(not _fits_nanoseconds(column) for column in batch.columns):
                        return "us"
        return "ns"

    def _open(self, unit: str | None = None) -> Any:
        def opened(metadata: Any) -> Any:
            file = pq.ParquetFile(
                self.path,
                metadata=metadata,
                pre_buffer=False,
                buffer_size=65536,
                page_checksum_verification=True,
                coerce_int96_timestamp_unit=unit or self._time_unit,
            )
            # Names are decoded on access.
            _ = file.schema_arrow.names
            return file

        try:
            try:
                return opened(None)
            except pa.ArrowNotImplementedError:
                # A column has a type that Arrow lacks. It may be copied as it is in the file, but not read.
                footer = self._footer().replace(_ARROW_SCHEMA, _OTHER_KEY)
                data = _PARQUET + footer + len(footer).to_bytes(4, "little") + _PARQUET
                file = opened(pq.read_metadata(pa.BufferReader(data)))
                read = {*self.rules.text_fields, self.rules.id_field or "id", *self.rules.fields}
                if any(pa.types.is_fixed_size_binary(one.type) for one in file.schema_arrow if one.name in read):
                    raise
                return file
        except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
            raise self._refused("not a Parquet file, or damaged", error) from error

    def _refused(self, what: str, error: Exception) -> Exception:
        """Return the error to raise; errors of the operating system have a number and are returned unchanged."""
        if isinstance(error, OSError) and error.errno is not None:
            return error
        if isinstance(error, pa.ArrowNotImplementedError):
            return InvalidInput(f"cannot read the file: {reason_of(error)}. {OTHER_TYPES}", self.name)
        return InvalidInput(f"{what}: {reason_of(error)}", self.name)

    def _batches(self, file: Any, group: int, columns: list[str] | None, rows: int) -> Iterator[Any]:
        try:
            yield from file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise self._refused(f"cannot read row group {group}", error) from error


def _fits_nanoseconds(column: ArrowColumn) -> bool:
    """Return whether all microsecond timestamps in an array fit in 64 bits as nanoseconds."""
    if pa.types.is_struct(column.type) or hasattr(column, "flatten"):
        parts = column.flatten()
        return all(map(_fits_nanoseconds, parts if isinstance(parts, list) else [parts]))
    if not pa.types.is_timestamp(column.type):
        return True
    values = np.frombuffer(column.buffers()[1] or b"", np.int64)[column.offset : column.offset + len(column)]
    return bool((np.abs(values[values != np.iinfo(np.int64).min]) <= _MOST_MICROSECONDS).all())


# Kept rows are collected up to this size before they become a row group.
ROW_GROUP_BYTES = 32 << 20
# Bytes decoded at once. Without the text column, batches have more rows.
_DECODED_BYTES = 16 << 20
# Maximum bytes of row groups in progress on all threads together, decoded and encoded.
_BUDGET_BYTES = 256 << 20
# Above this size, PyArrow's writer abandons a dictionary and writes plain values.
_DICTIONARY_BYTES = 1 << 20


@dataclass(frozen=True)
class Batches:
    """Access to the rows of the file that is copied."""

    name: str
    metadata: Any
    schema: Any
    # Footer as stored in the file
    footer: bytes
    # Takes row group, columns (None: all) and rows per batch; yields record batches. Thread-safe.
    read: Callable[[int, list[str] | None, int], Iterator[Any]]


@dataclass(frozen=True)
class KeptRows:
    """The kept rows of a file, as tables."""

    source: Batches
    # The kept rows, ascending
    rows: NDArray[np.int64]
    # The column that `texts` provides, so that it need not be decoded again
    text_name: str | None = None
    # Returns the values of this column for a slice of the kept rows
    texts: KeptTexts | None = None
    # Columns to append to those of the file
    added: Added | None = None
    # Takes a record batch of kept rows with all columns, and their slice; returns the batch to write
    change: Callable[[Any, slice], Any] | None = None

    @property
    def schema(self) -> ArrowSchema:
        """Schema of the written file."""
        return self.source.schema if self.added is None else self.added.schema(self.source.schema)

    @cached_property
    def _others(self) -> list[str] | None:
        """The columns to decode; None for all of them."""
        schema = self.source.schema
        if self.texts is None or self.change is not None or self.text_name not in schema.names:
            return None
        kind = schema.field(self.text_name).type
        # A name with a dot may also mean a part of a struct.
        by_name = len(set(schema.names)) == len(schema.names) and not any("." in name for name in schema.names)
        if not (by_name and (pa.types.is_string(kind) or pa.types.is_large_string(kind))):
            return None
        return [name for name in schema.names if name != self.text_name]

    def tables(self, group: int, first_row: int) -> Iterator[Any]:
        """Yield the kept rows of a row group, which starts at `first_row`, as tables of limited size."""
        gathered: list[tuple[Any, slice]] = []
        num_bytes, description = 0, self.source.metadata.row_group(group)
        bytes_a_row = 0 if self._others is None else description.total_byte_size // max(1, description.num_rows)
        for batch, num_rows in self._batches(group):
            kept = slice(*np.searchsorted(self.rows, [first_row, first_row + num_rows]).tolist())
            num_kept = kept.stop - kept.start
            if num_kept:
                if batch is not None and num_kept < num_rows:
                    batch = taken_rows(batch, self.rows[kept] - first_row)
                if batch is not None and self.change is not None:
                    batch = self.change(batch, kept)
                gathered.append((batch, kept))
                num_bytes += 0 if batch is None else batch.nbytes
                num_bytes += num_kept * bytes_a_row
            first_row += num_rows
            if num_bytes >= ROW_GROUP_BYTES:
                yield self._table(gathered)
                gathered, num_bytes = [], 0
        if gathered:
            yield self._table(gathered)

    def _batches(self, group: int) -> Iterator[tuple[Any, int]]:
        """Yield record batches of the decoded columns (None if there are none) with their numbers of rows."""
        description = self.source.metadata.row_group(group)
        num_rows = description.num_rows
        bytes_a_row = max(1, description.total_byte_size // max(1, num_rows))
        batch_rows = int(np.clip(_DECODED_BYTES // bytes_a_row, 16, 65536))
        if self._others == []:
            for start in range(0, num_rows, batch_rows):
                yield None, min(batch_rows, num_rows - start)
            return
        for batch in self.source.read(group, self._others, batch_rows):
            num_rows -= batch.num_rows
            yield batch, batch.num_rows
        if num_rows:
            raise InvalidInput(
                f"row group {group} has {'fewer' if num_rows > 0 else 'more'} rows than its header states",
                self.source.name,
            )

    def _table(self, gathered: list[tuple[Any, slice]]) -> ArrowTable:
        table = self._own_columns(gathered)
        if self.added is None:
            return table
        columns = self.added.columns(slice(gathered[0][1].start, gathered[-1][1].stop))[1]
        return pa.Table.from_arrays([*table.columns, *columns], schema=self.schema)

    def _own_columns(self, gathered: list[tuple[Any, slice]]) -> ArrowColumn:
        schema = self.source.schema
        if self._others is None:
            return pa.Table.from_batches([batch for batch, _ in gathered], schema)
        assert self.texts is not None
        kind = schema.field(self.text_name).type
        parts = self.texts(slice(gathered[0][1].start, gathered[-1][1].stop))
        texts = [pa.array(part) if pa.types.is_large_string(kind) else text_column(part) for part in parts]
        if any(part.type != kind for part in texts):
            texts = [part.cast(kind) for part in texts]
        columns = {self.text_name: pa.chunked_array(texts, kind)}
        if self._others:
            others = pa.Table.from_batches([batch for batch, _ in gathered])
            columns |= {name: others.column(name) for name in self._others}
        return pa.Table.from_arrays([columns[name] for name in schema.names], schema=schema)


def write_parquet(target: Path, kept: KeptRows, *, threads: int) -> None:
    """Write kept rows to a new file with the same schema, metadata and codecs."""
    metadata, schema = kept.source.metadata, kept.schema
    looks = _looks(metadata, () if kept.added is None else kept.added.names) | _layout(metadata, schema)
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    largest = max((min(group.total_byte_size, ROW_GROUP_BYTES) for group in groups), default=1)
    workers = int(np.clip(_BUDGET_BYTES // (2 * max(1, largest)), 1, threads))
    with target.open("wb") as file:
        # The footer of the source does not describe a file with added columns.
        joined = _JoinedFile(file, kept.source.footer if kept.added is None else None)
        # Contains the schema, in case no row group follows.
        joined.append(_encoded(schema, looks, None))
        pool = ThreadPoolExecutor(workers, thread_name_prefix="likewise-write")
        waiting: deque[Future[list[Any]]] = deque()

        def submit(work: Callable[[], list[Any]]) -> None:
            waiting.append(pool.submit(work))
            while len(waiting) > workers:
                for part in waiting.popleft().result():
                    joined.append(part)

        try:
            first_row = 0
            for number, group in enumerate(groups):
                tables = kept.tables(number, first_row)
                if group.total_byte_size <= ROW_GROUP_BYTES:
                    submit(partial(_all_encoded, schema, looks, tables))
                else:
                    for table in tables:
                        submit(partial(_all_encoded, schema, looks, iter([table])))
                first_row += group.num_rows
            for future in waiting:
                for part in future.result():
                    joined.append(part)
        finally:
            pool.shutdown(cancel_futures=True)
        joined.finish()


class _JoinedFile:
    """A Parquet file assembled from whole ones."""

    def __init__(self, file: BinaryIO, footer: bytes | None) -> None:
        self._file = file
        self._join = ParquetJoin(footer)
        file.write(b"PAR1")

    def append(self, part: Any) -> None:
        start, stop = self._join.add(np.frombuffer(part, np.uint8))
        self._file.write(memoryview(part)[start:stop])

    def finish(self) -> None:
        self._file.write(self._join.finish())


def _all_encoded(schema: ArrowSchema, looks: dict[str, Any], tables: Iterator[Any]) -> list[Any]:
    return [_encoded(schema, looks, table) for table in tables]


def _encoded(schema: ArrowSchema, looks: dict[str, Any], table: ArrowTable) -> Any:
    """Return a table as a Parquet file in memory; without rows for None."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, schema, **looks) as writer:
        if table is not None:
            writer.write_table(table)
    return sink.getvalue()


def _layout(metadata: ArrowSchema, schema: ArrowSchema) -> dict[str, Any]:
    """Return the writer options under which most columns have the same layout as in the file that is copied."""
    wanted = _columns(metadata.schema)
    best: dict[str, Any] = {}
    num_best = -1
    for nested, int96, as_integer in product((True, False), (False, True), (False, True)):
        options = {
            "use_compliant_nested_type": nested,
            "use_deprecated_int96_timestamps": int96,
            "store_decimal_as_integer": as_integer,
        }
        num_alike = len(wanted & _columns(_metadata(_encoded(schema, options, None)).schema))
        if num_alike > num_best:
            best, num_best = options, num_alike
        if num_best == len(wanted):
            break
    return best


def _columns(schema: ArrowSchema) -> set[tuple[str, str, int]]:
    """Return the path, physical type and width of each column of a Parquet schema."""
    columns = (schema.column(i) for i in range(len(schema)))
    return {(column.path, column.physical_type, column.length) for column in columns}


def _metadata(file: Any) -> Any:
    return pq.read_metadata(pa.BufferReader(file))


def _looks(metadata: ArrowSchema, added: Sequence[str]) -> dict[str, Any]:
    """Return the writer options that reproduce codecs and dictionaries; added columns get the first column's codec."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    codecs, with_dictionary = {}, []
    for i in range(metadata.num_columns):
        column = group.column(i)
        codec = column.compression
        codecs[column.path_in_schema] = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
        # Four bytes per value suffice for an index; above, plain values, for which a dictionary would be abandoned.
        fits = column.total_uncompressed_size <= _DICTIONARY_BYTES + 4 * column.num_values
        if column.has_dictionary_page and fits:
            with_dictionary.append(column.path_in_schema)
    codecs |= dict.fromkeys(added, next(iter(codecs.values())))
    return {"compression": codecs, "use_dictionary": with_dictionary or False}
