"""Row numbers in a sorted order, without moving all rows through one task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, LongType, StringType, StructField, StructType

from likewise.io.tables.columns import number_column
from likewise.io.tables.tables import column_as_json

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
    import pyarrow as pa
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
