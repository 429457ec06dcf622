"""Columns of Arrow batches on the workers: texts as input, byte strings of one width as input and output."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.arrays import ArrowBatch, ArrowColumn
from likewise.errors import InvalidParameter


def column_named(frame: DataFrame, parameter: str, name: str) -> Column:
    """Return the column with exactly this name, which may contain dots and backticks."""
    # Spark ignores case in names, unless it is set to distinguish it.
    has_case = (frame.sparkSession.conf.get("spark.sql.caseSensitive", "false") or "").lower() == "true"
    same = [other for other in frame.columns if other == name or (not has_case and other.lower() == name.lower())]
    if len(same) > 1:
        raise InvalidParameter(parameter, f"several columns are called {name!r}: {', '.join(same)}; rename some")
    quoted = name.replace("`", "``")
    return F.col(f"`{quoted}`")


def texts_of(column: ArrowColumn) -> Texts:
    """Return a column of strings, or of binary for documents of bytes, as a native batch."""
    import pyarrow as pa

    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return Texts.from_bytes(column.to_pylist())
    return Texts.from_arrow(column)


def binary_column(rows: NDArray[np.uint8]) -> ArrowColumn:
    """Return the rows of a matrix of bytes as an Arrow array of binary."""
    import pyarrow as pa

    num_rows, width = rows.shape
    offsets = np.arange(num_rows + 1, dtype=np.int64) * width
    data = np.ascontiguousarray(rows)
    if data.nbytes >= 2**31:
        raise OverflowError("a batch is larger than 2 GB; lower spark.sql.execution.arrow.maxRecordsPerBatch")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), num_rows, buffers)


def bytes_of(column: ArrowColumn, width: int) -> NDArray[np.uint8]:
    """Return a binary column without nulls, each value of `width` bytes, as a matrix."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        parts = [bytes_of(chunk, width) for chunk in column.chunks]
        return np.concatenate([np.zeros((0, width), np.uint8), *parts])
    if not len(column):
        return np.zeros((0, width), np.uint8)
    is_large = pa.types.is_large_binary(column.type)
    _, offset_buffer, data = column.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64 if is_large else np.int32)
    first = int(offsets[column.offset])
    return np.frombuffer(data, np.uint8, len(column) * width, first).reshape(-1, width)


def runs_of(batches: Iterator[ArrowBatch], name: str) -> Iterator[tuple[int, ArrowBatch]]:
    """Yield the runs of rows with equal numbers in a column, and the number; a run may go on in the next batch."""
    for batch in batches:
        values = numbers_of(batch.column(name))
        bounds = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for start, end in pairwise(bounds if len(values) else ()):
            yield int(values[start]), batch.slice(start, end - start)


def groups_of(batches: Iterator[ArrowBatch], name: str) -> Iterator[tuple[int, list[ArrowBatch]]]:
    """Yield all rows of each number in a column, by which they are sorted."""
    for number, runs in groupby(runs_of(batches, name), itemgetter(0)):
        yield number, [rows for _, rows in runs]


def numbers_of(column: ArrowColumn) -> NDArray[Any]:
    """Return a column of numbers without nulls as an array."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values
