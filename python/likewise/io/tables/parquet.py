"""Parquet files, read by row group, and written back with their schema and codecs."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from likewise.arrays import ArrowBatch, ArrowColumn
from likewise.errors import InvalidInput, reason_of
from likewise.io.source.source import Cut, InputFile, Kept, Piece, ReadTask
from likewise.io.tables.columns import OTHER_TYPES
from likewise.io.tables.parquet_kept import Batches, KeptRows, write_parquet
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
