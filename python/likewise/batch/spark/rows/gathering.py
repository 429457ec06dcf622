"""Rows gathered on the driver in sorted slices of bounded size."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Maximum number of buckets that rows are counted in, before they are cut into slices.
_MOST_BUCKETS = 4096
# Rows at once: 100 MB of edges.
ROWS_AT_ONCE = 1 << 22


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
