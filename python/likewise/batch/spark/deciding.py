"""The decision on the cluster: matching pairs in, one verdict per removed document out.

Leaders are the lexicographically first maximal independent set of the graph of matching pairs. It is found in rounds
(Blelloch, Fineman, Shun, SPAA 2012): a document without an undecided earlier neighbor is kept, its later neighbors are
removed, and their pairs are decided. In a random order O(log n) rounds suffice. Chains in order of priority need a
round for every second document, so the driver decides the open pairs as soon as they fit in its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise import _native
from likewise.arrays import ArrowTable
from likewise.batch.spark.rows.arrow_columns import numbers_of
from likewise.batch.spark.rows.numbering import sorted_slices
from likewise.batch.spark.stages import Stages
from likewise.checks import counted
from likewise.io.tables.columns import number_column
from likewise.progress import Progress, Warned
from likewise.stages.groups import REMOVED

# Bytes of one open pair on the driver, in Python and Java.
_BYTES_A_PAIR = 200
# The stage of the driver's decisions after the rounds.
_LAST = "last-round"
# A round that decides a smaller share of the open pairs than this is reported.
_SLOW = 0.1


def removed_ranks(
    edges: DataFrame, stages: Stages, end_rank: int, *, memory_bytes: int, progress: Progress
) -> tuple[DataFrame, dict[str, int]]:
    """Return the removed documents, and counts of the decision."""
    open_pairs = edges.select("later", "earlier")
    num_edges = num_open = open_pairs.count()
    most = memory_bytes // _BYTES_A_PAIR
    removed: list[DataFrame] = []
    done, is_told = stages.facts(_LAST), False

    def goes_on() -> bool:
        # If a run continues, the finished rounds apply, even if they had a different memory limit.
        if done is not None:
            return len(removed) < int(done["num_rounds"])
        return num_open > most or stages.facts(_round_name(removed)) is not None

    while goes_on():
        before = num_open

        def make(pairs: DataFrame = open_pairs) -> DataFrame:
            return _round(pairs)

        found, facts = stages.frame(_round_name(removed), make, _count_round)
        removed.append(found.where("earlier is null").select(F.col("later").alias("rank")))
        open_pairs, num_open = found.where("earlier is not null"), facts["num_open"]
        if most < num_open > (1 - _SLOW) * before and not is_told:
            is_told = True
            progress(
                Warned(
                    f"round {len(removed)} decided {before - num_open:,} of {before:,} pairs, because the order has "
                    "long chains of matching documents; to decide all of them on the driver, set driver_memory to "
                    f"{num_open * _BYTES_A_PAIR / 1e9:.1f}GB"
                )
            )
    if removed and num_open:
        progress(
            Warned(
                f"{counted(len(removed), 'round')} on the cluster decided {num_edges - num_open:,} of {num_edges:,} "
                "matching pairs; the driver decides the others"
            )
        )

    def finish(take: Callable[[Any], None]) -> dict[str, int]:
        take(_rank_table(_removed_on_driver(open_pairs, end_rank)))
        return {"num_rounds": len(removed), "num_pairs_on_driver": num_open}

    last, counts = stages.written(_LAST, finish, _rank_table(np.zeros(0, np.int64)))
    for ranks in removed:
        last = last.union(ranks)
    return last, counts


def leader_verdicts(edges: DataFrame, removed: DataFrame) -> DataFrame:
    """Return the most similar matching kept document of each removed document; among equals, the earliest."""
    of_kept = edges.join(removed.select(F.col("rank").alias("earlier")), "earlier", "left_anti")
    best = F.max(F.struct("similarity", (-F.col("earlier")).alias("place"), "distance")).alias("best")
    return (
        of_kept.groupBy("later")
        .agg(best)
        .select(
            F.col("later").alias("rank"),
            (-F.col("best.place")).alias("kept_rank"),
            F.col("best.similarity").alias("similarity"),
            F.col("best.distance").cast("int").alias("distance"),
            F.lit(None).cast("boolean").alias("below_threshold"),
        )
    )


def _round_name(before: Sized) -> str:
    return f"round-{len(before) + 1}"


def _round(pairs: DataFrame) -> DataFrame:
    """Return the pairs that remain open, and each removed document as `later` without an `earlier`.

    Shuffles the pairs three times, the waiting documents once and the removed ones twice: at most 72 bytes for each
    pair.
    """
    waiting = pairs.select(F.col("later").alias("earlier"), F.lit(True).alias("waits")).distinct()  # noqa: FBT003
    told = pairs.join(waiting, "earlier", "left").select("later", "earlier", F.col("waits").isNull().alias("is_kept"))
    removed = told.where("is_kept").select("later").distinct()
    still = told.where("not is_kept").select("later", "earlier").join(removed, "later", "left_anti")
    still = still.join(removed.withColumnRenamed("later", "earlier"), "earlier", "left_anti")
    nothing = F.lit(None).cast("long").alias("earlier")
    return still.select("later", "earlier").union(removed.select("later", nothing))


def _count_round(frame: DataFrame) -> dict[str, int]:
    num_open, num_rows = frame.agg(F.count("earlier"), F.count("*")).collect()[0]
    return {"num_open": int(num_open), "num_removed": int(num_rows - num_open)}


def _removed_on_driver(pairs: DataFrame, end_rank: int) -> NDArray[np.int64]:
    """Return the ranks that the rule of a local run removes, ascending."""
    later, earlier = _gathered(pairs, end_rank)
    ranks, later_places, earlier_places = _compact(later, earlier)
    leaders = _native.Leaders(len(ranks))
    leaders.decide(0, len(ranks), later_places, earlier_places, np.ones(len(later)))
    removed: NDArray[np.int64] = ranks[np.asarray(leaders.states) == REMOVED]
    return removed


def _gathered(pairs: DataFrame, end_rank: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both sides of all pairs, sorted."""
    later, earlier = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for _, _, table in sorted_slices(pairs, "later", end_rank, "earlier"):
        later.append(numbers_of(table.column("later")))
        earlier.append(numbers_of(table.column("earlier")))
    return np.concatenate(later), np.concatenate(earlier)


def _compact(
    later: NDArray[np.int64], earlier: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the ascending ranks of pairs, and the places of both sides among them, with 32 bits as in a local run."""
    ranks = np.union1d(later, earlier)
    return ranks, np.searchsorted(ranks, later).astype(np.uint32), np.searchsorted(ranks, earlier).astype(np.uint32)


def _rank_table(ranks: NDArray[np.int64]) -> ArrowTable:
    import pyarrow as pa

    return pa.table({"rank": number_column(ranks)})


def joined_components(edges: DataFrame, end_rank: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the ascending ranks that are not first in their connected component, and the first rank of each one's.

    About 100 bytes for each pair on the driver.
    """
    later, earlier = _gathered(edges.select("later", "earlier"), end_rank)
    ranks, later_places, earlier_places = _compact(later, earlier)
    first = ranks[np.asarray(_native.components(len(ranks), later_places, earlier_places))]
    is_removed = first != ranks
    return ranks[is_removed], first[is_removed]


def verdict_table(
    ranks: NDArray[np.int64],
    kept_ranks: NDArray[np.int64],
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    below: NDArray[np.bool_] | None,
) -> ArrowTable:
    """Return verdicts of removed documents as an Arrow table."""
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


def no_verdicts() -> Any:
    """Return an empty table of verdicts."""
    return verdict_table(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0), None, None)
