"""Columns of Arrow batches on the workers, and row numbers in a sorted order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from likewise._native import Texts
from likewise.arrays import ArrowBatch, ArrowColumn, ArrowTable
from likewise.errors import InvalidParameter
from likewise.io.tables.columns import number_column
from likewise.io.tables.tables import column_as_json

# Types in schemas of Spark.
_KINDS = {
    "long": pa.int64(), "int": pa.int32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(),
    "binary": pa.binary(),
}  # fmt: skip


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
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return Texts.from_bytes(column.to_pylist())
    return Texts.from_arrow(column)


def binary_column(rows: NDArray[np.uint8]) -> ArrowColumn:
    """Return the rows of a matrix of bytes as an Arrow array of binary."""
    num_rows, width = rows.shape
    offsets = np.arange(num_rows + 1, dtype=np.int64) * width
    data = np.ascontiguousarray(rows)
    if data.nbytes >= 2**31:
        raise OverflowError("a batch is larger than 2 GB; lower spark.sql.execution.arrow.maxRecordsPerBatch")
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), num_rows, buffers)


def with_nulls(schema: str, **columns: Any) -> ArrowBatch:
    """Return columns as a batch of a schema such as ``"row long, distance int"``; all others are null."""
    num_rows = len(next(iter(columns.values())))
    found = {}
    for name, kind in (part.split() for part in schema.split(", ")):
        column = columns.get(name)
        column = number_column(column) if isinstance(column, np.ndarray) else column
        found[name] = pa.nulls(num_rows, _KINDS[kind]) if column is None else column
    return pa.RecordBatch.from_pydict(found)


def code_column(words: NDArray[np.uint64]) -> ArrowColumn:
    """Return fingerprints, shape (n, words), as a column of binary of fixed size."""
    data = pa.py_buffer(np.ascontiguousarray(words))
    return pa.Array.from_buffers(pa.binary(8 * words.shape[1]), len(words), [None, data])


def words_of_codes(column: ArrowColumn) -> NDArray[np.uint64]:
    """Return the fingerprints of a column of :func:`code_column`; without a copy if it has one chunk."""
    width = column.type.byte_width
    parts = [
        np.frombuffer(part.buffers()[1], "<u8", len(part) * width // 8, part.offset * width)
        for part in column.chunks
        if len(part)
    ]
    words = parts[0] if len(parts) == 1 else np.concatenate([np.zeros(0, np.uint64), *parts])
    return words.reshape(-1, width // 8)


def bytes_of(column: ArrowColumn, width: int) -> NDArray[np.uint8]:
    """Return a binary column without nulls, each value of `width` bytes, as a matrix."""
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


def values_of(batches: Iterator[ArrowBatch], name: str) -> Iterator[Any]:
    """Yield the values of a column."""
    for batch in batches:
        yield from batch.column(name).to_pylist()


def numbers_of(column: ArrowColumn) -> NDArray[Any]:
    """Return a column of numbers without nulls as an array."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        column = pa.concat_arrays(column.chunks) if isinstance(column, pa.ChunkedArray) else column
    values: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return values


# First row number and rank. Tests and bench/same_answer.py set it beyond 32 bits.
FIRST_NUMBER = 0

# Maximum number of buckets that rows are counted in, before they are cut into slices.
_MOST_BUCKETS = 4096
# Rows at once: 100 MB of edges.
ROWS_AT_ONCE = 1 << 22


def in_parts(frame: DataFrame, keys: Sequence[Column], as_json: Sequence[str] = ()) -> DataFrame:
    """Return rows in sorted parts: column `part` increases with the keys, `number` counts within a part."""
    num_parts = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions"))
    sorted_parts = frame.repartitionByRange(num_parts, *keys).sortWithinPartitions(*keys)
    texts = StructType(
        [StructField(field.name, StringType()) if field.name in as_json else field for field in frame.schema]
    )
    schema = texts.add("part", IntegerType()).add("number", LongType())
    return sorted_parts.mapInArrow(partial(_number, as_json=tuple(as_json)), schema)


def starts_of(counts: Iterable[tuple[int, int]]) -> dict[str, Any]:
    """Return the first number of each part and the number of rows, as facts of a stage."""
    starts, total = [], 0
    for part, count in sorted(counts):
        starts.append([part, FIRST_NUMBER + total])
        total += count
    return {"starts": starts, "num_rows": total}


def counted_parts(frame: DataFrame) -> dict[str, Any]:
    """Return the facts of :func:`starts_of` for written rows."""
    counts = frame.groupBy("part").agg(F.count("*").alias("num_rows")).collect()
    return starts_of((int(row["part"]), int(row["num_rows"])) for row in counts)


def with_numbers(frame: DataFrame, starts: Sequence[Sequence[int]], name: str) -> DataFrame:
    """Return rows with their number over all parts in the column `name`, instead of the number in their part."""
    rows = [(int(part), int(start)) for part, start in starts]
    begins = frame.sparkSession.createDataFrame(rows, "part int, start long")
    joined = frame.join(F.broadcast(begins), "part")
    return joined.withColumn(name, F.col("start") + F.col("number")).drop("number", "start")


def _number(batches: Iterator[Any], *, as_json: Sequence[str]) -> Iterator[Any]:
    from pyspark import TaskContext

    context = TaskContext.get()
    assert context is not None
    part, number = context.partitionId(), 0
    for batch in batches:
        columns = {
            name: pa.array(column_as_json(column).to_list(), pa.string()) if name in as_json else column
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        }
        rows = np.arange(number, number + batch.num_rows, dtype=np.int64)
        columns["part"] = number_column(np.full(batch.num_rows, part, np.int32))
        columns["number"] = number_column(rows)
        number += batch.num_rows
        yield pa.RecordBatch.from_pydict(columns)


def sorted_slices(
    frame: DataFrame, key: str, num_values: int, *then: str, most: int = ROWS_AT_ONCE
) -> Iterator[tuple[int, int, Any]]:
    """Yield rows as Arrow tables in sorted order: (low, high, table), keys in ``low..high``."""
    width = max(1, -(-num_values // _MOST_BUCKETS))
    counted = frame.groupBy(F.floor(F.col(key) / width).alias("bucket")).count().collect()
    counts = {int(row["bucket"]): int(row["count"]) for row in counted}
    low = 0
    while low < num_values:
        high, total = low, 0
        while high < num_values and (high == low or total + counts.get(high // width, 0) <= most):
            total += counts.get(high // width, 0)
            high += width
        high = min(high, num_values)
        part = frame.where((F.col(key) >= low) & (F.col(key) < high))
        yield low, high, part.orderBy(key, *then).toArrow()
        low = high


def gathered(frame: DataFrame, key: str, num_values: int, *then: str) -> ArrowTable:
    """Return all rows as an Arrow table, sorted."""
    tables = [table for _, _, table in sorted_slices(frame, key, num_values, *then)]
    return pa.concat_tables(tables) if tables else frame.limit(0).toArrow()
