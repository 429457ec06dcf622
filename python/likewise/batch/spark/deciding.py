"""The decision on the cluster: matching pairs in, one verdict per removed document out.

Leaders are the lexicographically first maximal independent set of the graph of matching pairs. It is found in rounds
(Blelloch, Fineman, Shun, SPAA 2012): a document without an undecided earlier neighbor is kept, its later neighbors are
removed, and their pairs are decided. In a random order O(log n) rounds suffice. Chains in order of priority need a
round for every second document, so the driver decides the open pairs as soon as they fit in its memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise import _native
from likewise._native import Texts
from likewise.arrays import ArrowTable
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.crowds import CrowdSearch
from likewise.batch.spark.rows.arrow_columns import gathered, numbers_of, sorted_slices, texts_of, with_nulls
from likewise.batch.spark.stages import Stages
from likewise.errors import InvalidParameter, counted
from likewise.io.source.source import BadRow, Source
from likewise.io.tables.arrow import MemorySource
from likewise.io.tables.columns import number_column
from likewise.progress import Progress, Warned
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import REMOVED

# Bytes of one open pair on the driver, in Python and Java.
_BYTES_A_PAIR = 200
# The stage of the driver's decisions after the rounds.
_LAST = "last-round"
_VERDICTS = "rank long, kept_rank long, similarity double, distance int, below_threshold boolean"
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
    table = gathered(pairs, "later", end_rank, "earlier")
    return numbers_of(table.column("later")), numbers_of(table.column("earlier"))


def _compact(
    later: NDArray[np.int64], earlier: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the ascending ranks of pairs, and the places of both sides among them, with 32 bits as in a local run."""
    ranks = np.union1d(later, earlier)
    return ranks, np.searchsorted(ranks, later).astype(np.uint32), np.searchsorted(ranks, earlier).astype(np.uint32)


def _rank_table(ranks: NDArray[np.int64]) -> ArrowTable:
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


def no_verdicts() -> ArrowTable:
    """Return an empty table of verdicts of removed documents."""
    return pa.Table.from_batches([with_nulls(_VERDICTS, rank=np.zeros(0, np.int64))])


# Bytes of a feature of a document in an exact join, including counts.
_BYTES_A_JOINED = 80
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Distinct fingerprints in one process, in order of priority."""

    ranks: NDArray[np.int64]
    # Fingerprints as the documents of a local run, with only the texts that the check of short documents may read
    documents: Documents

    @property
    def collapsed(self) -> Collapsed:
        """The order of a local run, in which all are already distinct and sorted."""
        rows = np.arange(len(self.ranks), dtype=np.int64)
        return Collapsed(self.documents, rows, rows.astype(np.uint32), rows)


def crowd_pairs(
    texts: DataFrame,
    recipe: Recipe,
    num_ranks: int,
    num_crowded: int,
    threads: int,
    memory_bytes: int,
    take: Callable[[Any], None],
) -> int:
    """Pass the candidate pairs of documents with full buckets to `take`, and return their number."""
    row = texts.agg(F.sum("num_features"), F.sum(F.octet_length("payload"))).collect()[0]
    needed = _BYTES_A_JOINED * int(row[0] or 0) + int(row[1] or 0)
    if needed > memory_bytes:
        raise InvalidParameter(
            "driver_memory",
            f"{num_crowded:,} documents are in full buckets; comparing them takes about {needed / 1e9:.1f} GB on the "
            f"driver, but only {memory_bytes / 1e9:.1f} GB are allowed; raise the limit, or use --overflow levels, "
            "which may miss pairs of them",
        )
    ranks, features, held = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [Texts.from_list([])]
    for _, _, table in sorted_slices(texts, "rank", num_ranks, most=1 << 20):
        ranks.append(numbers_of(table.column("rank")))
        features.append(numbers_of(table.column("num_features")))
        held += [texts_of(chunk) for chunk in table.column("payload").chunks]
    every = np.concatenate(ranks)
    documents = documents_of(np.zeros(0, np.uint64), np.concatenate(features), every, every, held)
    crowd = Fingerprints(every, documents)
    positions = np.arange(len(every), dtype=np.uint32)
    search = CrowdSearch(crowd.collapsed, recipe, positions, threads)
    low = num_pairs = 0
    while low < len(every):
        later, earlier, low = search.candidates(low, len(every), None, _PAIRS_AT_ONCE)
        take(pa.table({"later": number_column(every[later]), "earlier": number_column(every[earlier])}))
        num_pairs += len(later)
    return num_pairs


def documents_of(
    sketches: NDArray[np.uint64],
    features: NDArray[np.int64],
    ranks: NDArray[np.int64],
    short_ranks: NDArray[np.int64],
    short_texts: list[Texts],
) -> Documents:
    """Return fingerprints as the documents of a local run, with the texts of `short_ranks`, which are ascending."""
    num = len(ranks)
    kinds = {part.kind for part in short_texts if len(part)} or {"text"}
    nothing = Texts.from_list([""]) if kinds == {"text"} else Texts.from_bytes([b""])
    held = Texts.concat([nothing, *(part for part in short_texts if len(part))])
    # All other texts are read as empty. An empty text matches no short text, and neither could they.
    places = np.zeros(num, np.uint64)
    places[np.searchsorted(ranks, short_ranks)] = np.arange(1, len(short_ranks) + 1, dtype=np.uint64)
    placed = documents_at([MemorySource(held)], np.array([0, num]), places, np.ones(num, np.uint32), [[]])
    return replace(placed, sketches=sketches, num_features=features.astype(np.uint32))


def documents_at(
    sources: Sequence[Source],
    starts: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    lengths: NDArray[np.uint32],
    bad_rows: list[list[BadRow]],
) -> Documents:
    """Return documents without ids of which only the places are known."""
    num = len(offsets)
    return Documents(
        sources=sources,
        starts=starts,
        sketches=np.zeros(0, np.uint8),
        shapes=np.zeros(num, np.uint8),
        num_features=np.zeros(num, np.uint32),
        digests=np.zeros(0, np.uint64),
        offsets=offsets,
        lengths=lengths,
        lines=np.zeros(num, np.uint32),
        ids=Texts.from_list([]),
        has_id=np.zeros(num, bool),
        bad_rows=bad_rows,
    )
