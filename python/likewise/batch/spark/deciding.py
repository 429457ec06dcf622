"""The decision on the driver: matching pairs in order of priority, one verdict per document.

Matching pairs come to the driver in slices of their order and go through `Leaders`, which holds 17 bytes per document.
Deciding on the cluster would take as many rounds as the longest path in the order of priority.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from likewise import _native
from likewise.batch.spark.rows.arrow_columns import numbers_of
from likewise.batch.spark.rows.gathering import ROWS_AT_ONCE, sorted_slices
from likewise.io.tables.columns import number_column
from likewise.stages.groups import REMOVED


def decide_leaders(edges: DataFrame, num_ranks: int, take: Callable[[Any], None], *, with_distance: bool) -> None:
    """Decide all documents by their matching pairs and give those who go to `take`, table by table.

    Parameters
    ----------
    edges : DataFrame
        Columns later, earlier (ranks), similarity, distance of matching pairs, written once.
    num_ranks : int
        Documents.
    take : callable
        Takes Arrow tables of :func:`verdict_table`.
    with_distance : bool
        Whether pairs have distances.

    Notes
    -----
    17 bytes per document, and one slice of the edges at a time.
    """
    leaders = _native.Leaders(num_ranks)
    for low, high, table in sorted_slices(edges, "later", num_ranks, "earlier"):
        later, earlier = (numbers_of(table.column(name)).astype(np.uint32) for name in ("later", "earlier"))
        distance = numbers_of(table.column("distance")).astype(np.uint32) if with_distance else None
        leaders.decide(low, high, later, earlier, numbers_of(table.column("similarity")), distance)
    removed = np.flatnonzero(np.asarray(leaders.states) == REMOVED)
    best, similarity = np.asarray(leaders.best_earlier), np.asarray(leaders.best_similarity)
    distances = np.asarray(leaders.best_distance)
    for start in range(0, len(removed), ROWS_AT_ONCE):
        part = removed[start : start + ROWS_AT_ONCE]
        of_pairs = distances[part].astype(np.int32) if with_distance else None
        take(verdict_table(part, best[part].astype(np.int64), similarity[part], of_pairs, None))


def joined_components(edges: DataFrame, num_ranks: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return who is not the first of its connected component, rising, and the first of each.

    Notes
    -----
    8 bytes for each pair on the driver, and 4 a document.
    """
    laters, earliers = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
    for _, _, table in sorted_slices(edges.select("later", "earlier"), "later", num_ranks, "earlier"):
        laters.append(numbers_of(table.column("later")).astype(np.uint32))
        earliers.append(numbers_of(table.column("earlier")).astype(np.uint32))
    first = np.asarray(_native.components(num_ranks, np.concatenate(laters), np.concatenate(earliers)))
    removed = np.flatnonzero(first != np.arange(num_ranks))
    return removed.astype(np.int64), first[removed].astype(np.int64)


def verdict_table(
    ranks: NDArray[np.int64],
    kept_ranks: NDArray[np.int64],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    below: NDArray[np.bool_] | None,
) -> Any:  # noqa: ANN401 - PyArrow has no types
    """Return verdicts of documents that go as an Arrow table."""
    import pyarrow as pa

    return pa.table(
        {
            "rank": number_column(ranks),
            "kept_rank": number_column(kept_ranks),
            "similarity": number_column(similarity),
            "distance": pa.nulls(len(ranks), pa.int32()) if distance is None else number_column(distance),
            "below_threshold": pa.nulls(len(ranks), pa.bool_()) if below is None else number_column(below),
        }
    )


def no_verdicts() -> Any:  # noqa: ANN401
    """Return the table of verdicts without a row."""
    return verdict_table(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), None, None)
