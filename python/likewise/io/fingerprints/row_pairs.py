"""Pairs of rows in Parquet, written as they arrive."""

import contextlib
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ColumnData
from likewise.errors import InvalidInput
from likewise.io.output.whole import WholeFile
from likewise.io.tables.columns import number_column

_ROW_GROUP = 1 << 20


class RowPairWriter:
    """Writes pairs (row_a, row_b, doc_id_a, doc_id_b if known, distance), as a context, until :meth:`finish`."""

    def __init__(self, path: Path, ids: tuple[tuple[str, ...], tuple[str, ...]] | None = None) -> None:
        if path.suffix != ".parquet":
            raise InvalidInput("the output for fingerprint pairs must end in .parquet", str(path))
        self._whole = WholeFile(path)
        self._ids = None if ids is None else tuple(np.array(side, dtype=object) for side in ids)
        self._waiting: list[tuple[NDArray[Any], ...]] = []
        self._num_waiting = 0
        self.num_pairs = 0

    def __enter__(self) -> Self:
        import pyarrow.parquet as pq

        with self._whole.named_errors():
            self._file = pq.ParquetWriter(self._whole.unfinished, self._schema(), compression="zstd")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # A file that cannot be completed is deleted anyway.
        with contextlib.suppress(OSError):
            self._file.close()
        self._whole.discard()

    def write(self, left: ColumnData, right: ColumnData, distance: Any) -> None:
        """Append pairs: rows of the left and the right side, and distances."""
        self._waiting.append((np.asarray(left), np.asarray(right), np.asarray(distance)))
        self._num_waiting += len(left)
        self.num_pairs += len(left)
        if self._num_waiting >= _ROW_GROUP:
            self._flush()

    def finish(self) -> None:
        """Rename the file into place."""
        self._flush()
        self._file.close()
        self._whole.finish()

    def _flush(self) -> None:
        import pyarrow as pa

        if not self._num_waiting:
            return
        left, right, distance = (np.concatenate(parts) for parts in zip(*self._waiting, strict=True))
        self._waiting, self._num_waiting = [], 0
        columns = [number_column(left.astype(np.int64)), number_column(right.astype(np.int64))]
        if self._ids is not None:
            columns += [pa.array(ids[rows], pa.string()) for ids, rows in zip(self._ids, (left, right), strict=True)]
        columns.append(number_column(distance.astype(np.int32)))
        self._file.write_table(pa.table(columns, schema=self._schema()), row_group_size=_ROW_GROUP)

    def _schema(self) -> ArrowSchema:
        import pyarrow as pa

        ids = {} if self._ids is None else {"doc_id_a": pa.string(), "doc_id_b": pa.string()}
        return pa.schema({"row_a": pa.int64(), "row_b": pa.int64(), **ids, "distance": pa.int32()})
