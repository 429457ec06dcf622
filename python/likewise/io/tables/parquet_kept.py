"""Kept rows of a Parquet file: row groups are encoded concurrently and joined into one file.

PyArrow encodes a file on one thread. So each row group becomes a small file in memory, several at a time, and the
native :class:`ParquetJoin` writes one footer after their bytes. Only PyArrow handles types and codecs.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from likewise._native import ParquetJoin
from likewise.arrays import ArrowColumn, ArrowSchema, ArrowTable
from likewise.errors import InvalidInput
from likewise.io.source.added import Added
from likewise.io.source.source import KeptTexts
from likewise.io.tables.columns import taken_rows, text_column

# Kept rows are collected up to this size before they become a row group.
ROW_GROUP_BYTES = 32 << 20
# Bytes decoded at once. Without the text column, batches have more rows.
_BATCH_BYTES = 16 << 20
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
        batch_rows = int(np.clip(_BATCH_BYTES // bytes_a_row, 16, 65536))
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
