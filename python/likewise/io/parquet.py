"""Parquet: read by row group, written back with its schema and its codecs."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput
from likewise.io.columns import taken_rows
from likewise.io.source import Job, Piece, ReadOnce, ReadRules
from likewise.io.tables import TableRows

# Text decoded at once; a row group may hold gigabytes.
_BATCH_BYTES = 4 << 20
# Kept rows are gathered up to here before they become a row group.
_ROW_GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class ParquetFile(ReadOnce):
    """A Parquet file with a column of texts.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        Path relative to the common parent of the inputs, with slashes.
    num_bytes : int
        Its size.
    rules : ReadRules
        What is read of it.
    """

    path: Path
    name: str
    num_bytes: int
    rules: ReadRules = field(default_factory=ReadRules)

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Return the row groups."""
        with self._open() as file:
            metadata = file.metadata
            TableRows(self.name, self.rules).columns(file.schema_arrow)
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        first_row = 0
        for group, num_rows in enumerate(rows):
            if num_rows:
                num_bytes = self.num_bytes * num_rows // sum(rows)
                yield Job(num_bytes, partial(self._read, group, first_row, num_rows))
            first_row += num_rows

    def _read(self, group: int, first_row: int, num_rows: int) -> Iterator[Piece]:
        """Read a row group, some megabytes at a time."""
        table_rows = TableRows(self.name, self.rules)
        with self._open() as file:
            wanted = [name for name in dict.fromkeys(table_rows.columns(file.schema_arrow)) if name]
            bytes_a_row = max(1, file.metadata.row_group(group).total_byte_size // max(1, num_rows))
            batch_rows = int(np.clip(_BATCH_BYTES // bytes_a_row, 16, 65536))
            for batch in self._batches(file, group, wanted, batch_rows):
                num_rows -= batch.num_rows
                if num_rows < 0:
                    break
                yield table_rows.piece(batch, first_row)
                first_row += batch.num_rows
            if num_rows:
                raise InvalidInput(f"row group {group} holds {-num_rows:+} rows beside what its header says", self.name)

    def num_rows(self) -> int:
        """Return the rows of the file."""
        with self._open() as file:
            return sum(file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups))

    def write_kept(
        self, target: Path, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], *, threads: int
    ) -> None:
        """Write kept rows to a new file of the same schema, metadata and codecs.

        Parameters
        ----------
        target : Path
            The new file.
        offsets, lengths : ndarray of shape (n,)
            The kept rows, rising; ones.
        threads : int
            Threads of this call.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._open() as file:
            metadata, schema = file.metadata, file.schema_arrow
            keep = np.zeros(self.num_rows(), bool)
            keep[offsets.astype(np.int64)] = True
            writer = pq.ParquetWriter(target, schema, **_looks(metadata))
            with writer, ThreadPoolExecutor(1) as ahead:
                gathered: list[Any] = []
                num_bytes = 0
                for group_done, batch in _one_ahead(ahead, self._kept_batches(file, keep)):
                    if batch is not None and batch.num_rows:
                        gathered.append(batch)
                        num_bytes += batch.nbytes
                    if gathered and (group_done or num_bytes >= _ROW_GROUP_BYTES):
                        writer.write_table(pa.Table.from_batches(gathered, schema))
                        gathered, num_bytes = [], 0

    def _kept_batches(self, file: Any, keep: NDArray[np.bool_]) -> Iterator[tuple[bool, Any]]:  # noqa: ANN401
        row = 0
        for group in range(file.metadata.num_row_groups):
            description = file.metadata.row_group(group)
            bytes_a_row = max(1, description.total_byte_size // max(1, description.num_rows))
            batch_rows = int(np.clip(4 * _BATCH_BYTES // bytes_a_row, 16, 65536))
            for batch in self._batches(file, group, None, batch_rows):
                mask = keep[row : row + batch.num_rows]
                row += batch.num_rows
                yield False, batch if mask.all() else taken_rows(batch, np.flatnonzero(mask))
            yield True, None

    def _open(self) -> Any:  # noqa: ANN401 - PyArrow has no types
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            file = pq.ParquetFile(self.path, pre_buffer=False, buffer_size=65536, page_checksum_verification=True)
            # Names are decoded when they are asked for.
            _ = file.schema_arrow.names
            return file
        except (pa.ArrowException, OSError, MemoryError, UnicodeDecodeError) as error:
            raise self._refused("this is no Parquet file, or it is damaged", error) from error

    def _refused(self, what: str, error: Exception) -> Exception:
        """Return the error to raise: what the system refuses has a number and stays as it is."""
        if isinstance(error, OSError) and error.errno is not None:
            return error
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        return InvalidInput(f"{what}: {reason}", self.name)

    def _batches(self, file: Any, group: int, columns: list[str] | None, rows: int) -> Iterator[Any]:  # noqa: ANN401
        import pyarrow as pa

        try:
            yield from file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise self._refused(f"row group {group} cannot be read", error) from error


def _looks(metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the writer's options that give a file the codecs and dictionaries of the one it comes from."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    codecs, with_dictionary = {}, []
    for i in range(metadata.num_columns):
        column = group.column(i)
        codec = column.compression
        codecs[column.path_in_schema] = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
        if column.has_dictionary_page:
            with_dictionary.append(column.path_in_schema)
    return {"compression": codecs, "use_dictionary": with_dictionary or False}


def _one_ahead(pool: ThreadPoolExecutor, items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items, the next one being made in the pool while one is used."""
    end = object()
    coming = pool.submit(next, items, end)
    while (item := coming.result()) is not end:
        coming = pool.submit(next, items, end)
        yield item
