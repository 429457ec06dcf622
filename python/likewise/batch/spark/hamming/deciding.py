"""SimHash by distance, decided on the cluster slab by slab, in order of priority.

The kept documents of earlier slabs are searched in the tables of a slab, and documents that match one of them are
removed. The others are decided by the local rule, on one worker, and the kept ones are searched in later slabs. So
removed documents leave the search, as in a local run: a cluster of n documents costs about n comparisons, not n²/2. The
evidence names the kept document with the highest similarity, then the highest priority, among all kept documents.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise import _native
from likewise._native import Texts
from likewise.batch.budget.cluster_plans import plan_rounds
from likewise.batch.decide.decision import decide
from likewise.batch.decide.verification import Verifier
from likewise.batch.spark.deciding import Fingerprints, documents_of
from likewise.batch.spark.hamming.pairing import MOST_PAIRS, numbered_tasks, parallelism, slab_tasks
from likewise.batch.spark.hamming.stored import HELD, hits, hits_of_part, read_table, write_table
from likewise.batch.spark.rows.arrow_columns import (
    bytes_of,
    code_column,
    groups_of,
    numbers_of,
    texts_of,
    values_of,
    with_nulls,
    words_of_codes,
)
from likewise.batch.spark.stages import Stages
from likewise.errors import InvalidInput
from likewise.io.tables.columns import number_column
from likewise.job.reading import RunContext, RunRules
from likewise.progress import Planned, Progress, Warned
from likewise.recipe.methods import SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe

STORED = "slab int, name string, num_rows long"

# A match as one number, by which nearer matches, then those of higher priority, come first.
_RANK_BITS = 54
_NONE = np.iinfo(np.int64).max
# Verdicts in one Arrow batch.
_ROWS_AT_ONCE = 1 << 18
# Maximum number of listed pairs per document of a large run.
_MOST_A_DOCUMENT = 100
_FOUND = "place long, match long"
_VERDICTS = "rank long, kept_rank long, distance int, name string, num_kept long, num_measured long"
# Columns of both documents of a pair.
_COMPARED = ("sketch", "num_features", "text")
_EDGES = "later long, earlier long, distance int, similarity double"


@dataclass(frozen=True, eq=False)
class RunSlab:
    """Documents of a slab, or its kept documents."""

    # Ranks, ascending
    ranks: NDArray[np.int64]
    words: NDArray[np.uint64]
    num_features: NDArray[np.int64]
    # Texts; null for documents that no short document can match
    texts: Any

    def take(self, rows: NDArray[np.int64]) -> RunSlab:
        """Return the documents of some rows."""
        texts = self.texts.take(number_column(rows))
        return RunSlab(self.ranks[rows], self.words[rows], self.num_features[rows], texts)

    def fingerprints(self) -> Fingerprints:
        """Return the slab as the documents of a local run."""
        places = np.flatnonzero(self.texts.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
        held = [texts_of(self.texts.take(number_column(places)))] if len(places) else []
        every = np.arange(len(self.ranks), dtype=np.int64)
        words = np.ascontiguousarray(self.words).reshape(-1)
        documents = documents_of(words, self.num_features, every, places, [Texts.from_list([]), *held])
        return Fingerprints(self.ranks, documents)

    def write(self, directory: str) -> str:
        """Write the slab to a new file and return its name."""
        columns = {
            "rank": number_column(self.ranks),
            "code": code_column(self.words),
            "num_features": number_column(self.num_features),
            "text": self.texts,
        }
        name = f"slab-{uuid.uuid4().hex}"
        write_table(directory, name, pa.table(columns))
        return name

    @classmethod
    def read(cls, directory: str, name: str) -> RunSlab:
        """Return the slab that :meth:`write` wrote."""
        table = read_table(directory, name)
        words, text = words_of_codes(table.column("code")), table.column("text")
        texts = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], text.type)
        return cls(numbers_of(table.column("rank")), words, numbers_of(table.column("num_features")), texts)


def with_short_texts(positions: DataFrame, texts: DataFrame, recipe: Recipe) -> DataFrame:
    """Return rank, sketch, num_features, text of distinct documents. Text is null if no short document can match."""
    method = recipe.method_as(SimHash)
    chosen = positions.select("rank", "sketch", "num_features")
    if not isinstance(method, SimHashDistance):
        return chosen.withColumn("text", F.lit(None).cast(texts.schema["payload"].dataType))
    may_meet = method.may_meet_short(F.col("num_features"))
    short = positions.where(may_meet).select("rank").join(texts, "rank")
    return chosen.join(short.select("rank", F.col("payload").alias("text")), "rank", "left")


def store_slabs(batches: Iterator[Any], *, directory: str, num_words: int) -> Iterator[Any]:
    """Write the documents of each slab to a file and yield its name; rows come by slab and rank. Runs on a worker."""
    for number, held in groups_of(batches, "slab"):
        slab = RunSlab(
            np.concatenate([numbers_of(part.column("rank")) for part in held]),
            np.concatenate([bytes_of(part.column("sketch"), 8 * num_words) for part in held]).view("<u8"),
            np.concatenate([numbers_of(part.column("num_features")) for part in held]),
            pa.concat_arrays([part.column("text") for part in held]),
        )
        columns = {"slab": pa.array([number], pa.int32()), "name": [slab.write(directory)]}
        yield pa.RecordBatch.from_pydict(columns | {"num_rows": [len(slab.ranks)]})


def matching(
    one: RunSlab, rows: NDArray[np.int64], other: RunSlab, others: NDArray[np.int64], recipe: Recipe
) -> tuple[NDArray[np.bool_], int]:
    """Return which pairs within the radius match, and how many were measured by text because one side is short."""
    method = recipe.method_as(SimHash)
    matches = np.ones(len(rows), bool)
    if not isinstance(method, SimHashDistance):
        return matches, 0
    few = np.flatnonzero(method.is_short(np.minimum(one.num_features[rows], other.num_features[others])))
    if not len(few):
        return matches, 0
    a, a_places = np.unique(rows[few], return_inverse=True)
    b, b_places = np.unique(others[few], return_inverse=True)
    both = [one.take(a), other.take(b)]
    joined = RunSlab(
        np.arange(len(a) + len(b)),
        np.concatenate([side.words for side in both]),
        np.concatenate([side.num_features for side in both]),
        pa.concat_arrays([side.texts for side in both]),
    ).fingerprints()
    with Verifier(joined.collapsed, recipe, RunContext(RunRules(1))) as verifier:
        later, earlier = (b_places + len(a)).astype(np.uint32), a_places.astype(np.uint32)
        values = verifier.without_unlike_short(later, earlier, np.ones(len(few)))
        num_measured = verifier.num_measured
    matches[few[np.isnan(values)]] = False
    return matches, num_measured


class SlabSearch:
    """The distinct documents of a SimHash run in slabs on the cluster."""

    def __init__(
        self,
        stages: Stages,
        recipe: Recipe,
        *,
        first_rank: int,
        end_rank: int,
        num_positions: int,
        progress: Progress,
    ) -> None:
        self._stages, self._recipe = stages, recipe
        self._first_rank, self._end_rank, self._num_positions = first_rank, end_rank, num_positions
        self._progress = progress
        self._slabs: list[tuple[str, int]] | None = None

    def store(self, positions: DataFrame, texts: DataFrame, *, decides: bool) -> None:
        """Write the slabs, and report the plan."""
        if self._slabs is not None:
            return
        stages, method = self._stages, self._recipe.method_as(SimHash)
        name = "slabs" if decides else "slabs-of-pairs"
        plan = plan_rounds(
            self._num_positions, method.bits, method.radius, parallelism(stages.spark), one_round=not decides
        )
        self._progress(Planned(plan.lines))
        if plan.warning is not None:
            self._progress(Warned(plan.warning))
        width = max(1, -(-(self._end_rank - self._first_rank) // plan.num_slabs))

        def make() -> DataFrame:
            rows = with_short_texts(positions, texts, self._recipe)
            numbered = rows.withColumn("slab", F.floor((F.col("rank") - self._first_rank) / width).cast("int"))
            together = numbered.repartition(min(plan.num_slabs, parallelism(stages.spark)), "slab")
            work = partial(store_slabs, directory=stages.directory, num_words=method.num_words)
            return together.sortWithinPartitions("slab", "rank").mapInArrow(work, STORED)

        frame, _ = stages.frame(name, make)
        self._slabs = [(row["name"], row["num_rows"]) for row in sorted(frame.collect(), key=lambda row: row["slab"])]

    def decide(self, take: Callable[[DataFrame], None]) -> dict[str, int]:
        """Decide all documents, pass the verdicts of each slab to `take`, and return counts."""
        assert self._slabs is not None
        kept: list[tuple[str, int]] = []
        num_measured = 0
        bits = self._recipe.method_as(SimHash).bits
        for number, (name, _) in enumerate(self._slabs):
            frame, facts = self._stages.frame(
                f"decided-{number:05d}",
                lambda name=name: self._round(name, list(kept)),  # type: ignore[misc]
                _describe,
            )
            kept.append((facts["name"], facts["num_kept"]))
            num_measured += facts["num_measured"]
            of_slab = frame.where("name is null").select("rank", "kept_rank", "distance")
            take(
                of_slab.select(
                    "rank",
                    "kept_rank",
                    (F.lit(1.0) - F.col("distance") / F.lit(bits)).alias("similarity"),
                    "distance",
                    F.lit(None).cast("boolean").alias("below_threshold"),
                )
            )
        return {"num_measured": num_measured, "num_capped": 0, "num_crowded": 0}

    def _round(self, name: str, kept: Sequence[tuple[str, int]]) -> DataFrame:
        spark = self._stages.spark
        pieces = slab_tasks([num for _, num in kept], parallelism(spark))
        # Each kept file once: among the tasks of pairs, those of a file with itself.
        tasks = [(kept[one][0], low, high) for one, other, low, high in pieces if one == other]
        search = partial(search_kept, directory=self._stages.directory, name=name, tasks=tasks, recipe=self._recipe)
        decide = partial(decide_slab, directory=self._stages.directory, name=name, recipe=self._recipe)
        # One more task, so that the first slab is decided too.
        found = numbered_tasks(spark, len(tasks) + 1).mapInArrow(search, _FOUND)
        return found.repartition(1).mapInArrow(decide, _VERDICTS)

    def pairs(self, *, joins: bool = False) -> DataFrame:
        """Return all pairs that match by fingerprint, for Hamming-only recipes also by the texts of short documents.

        With `joins`, only enough pairs to connect the same documents: in each task, fewer pairs than documents.
        """
        assert self._slabs is not None
        spark = self._stages.spark
        tasks = slab_tasks([num for _, num in self._slabs], parallelism(spark))
        names = [name for name, _ in self._slabs]
        most = max(MOST_PAIRS, _MOST_A_DOCUMENT * self._num_positions)
        work = partial(
            joined_pairs if joins else partial(pairs_of_run, max_pairs=most),
            directory=self._stages.directory,
            names=names,
            tasks=tasks,
            recipe=self._recipe,
        )
        return numbered_tasks(spark, len(tasks)).mapInArrow(work, _EDGES)


def _describe(frame: DataFrame) -> dict[str, Any]:
    row = frame.where("name is not null").collect()[0]
    return {name: row[name] for name in ("name", "num_kept", "num_measured")}


def search_kept(
    batches: Iterator[Any], *, directory: str, name: str, tasks: Sequence[tuple[str, int, int]], recipe: Recipe
) -> Iterator[Any]:
    """Yield the best kept document of each document of a slab, last -1 and the measured pairs. Runs on a worker."""
    best: NDArray[np.int64] | None = None
    num_measured = 0
    for number in values_of(batches, "id"):
        if number == len(tasks):
            continue
        slab = HELD.get((directory, name), partial(RunSlab.read, directory, name))
        if best is None:
            best = np.full(len(slab.ranks), _NONE, np.int64)
        kept_name, low, high = tasks[number]
        kept = RunSlab.read(directory, kept_name)
        num_measured += _improve(best, slab, kept, np.arange(low, high), recipe)
    places = np.zeros(0, np.int64) if best is None else np.flatnonzero(best != _NONE)
    values = np.zeros(0, np.int64) if best is None else best[places]
    yield _found(np.append(places, -1), np.append(values, num_measured))


def _improve(
    best: NDArray[np.int64],
    slab: RunSlab,
    kept: RunSlab,
    some: NDArray[np.int64],
    recipe: Recipe,
) -> int:
    """Update `best` with the matches of a slab and kept documents of an earlier one. Return how many were measured."""
    method = recipe.method_as(SimHash)
    num_measured = 0
    for rows, found, distances in hits(slab.words, kept.words[some], method.bits, method.radius):
        rows = some[rows]
        matches, num = matching(kept, rows, slab, found, recipe)
        num_measured += num
        rows, found, distances = rows[matches], found[matches], distances[matches]
        np.minimum.at(best, found, distances.astype(np.int64) << _RANK_BITS | kept.ranks[rows])
    return num_measured


def _found(places: NDArray[np.int64], values: NDArray[np.int64]) -> Any:
    return pa.RecordBatch.from_pydict({"place": number_column(places), "match": number_column(values)})


def decide_slab(batches: Iterator[Any], *, directory: str, name: str, recipe: Recipe) -> Iterator[Any]:
    """Yield the verdicts of a slab, by all matches with earlier ones, then its file of kept ones. Runs on a worker."""
    method = recipe.method_as(SimHash)
    slab = RunSlab.read(directory, name)
    best = np.full(len(slab.ranks), _NONE, np.int64)
    num_measured = 0
    for batch in batches:
        places, values = (numbers_of(batch.column(column)) for column in ("place", "match"))
        num_measured += int(values[places < 0].sum())
        np.minimum.at(best, places[places >= 0], values[places >= 0])
    gone, open_ = np.flatnonzero(best != _NONE), np.flatnonzero(best == _NONE)
    rest = slab.take(open_)
    held = rest.fingerprints()
    decision = decide(held.collapsed, recipe, RunContext(RunRules(1)))
    assert decision.distance is not None
    num_measured += decision.num_measured
    kept = rest.take(np.flatnonzero(decision.kept).astype(np.int64))
    if len(gone) and len(kept.ranks):
        # A document that matches one of an earlier slab may be nearer to one that is kept in this slab.
        removed = slab.take(gone)
        for rows, found, distances in hits(kept.words, removed.words, method.bits, method.radius):
            before = kept.ranks[found] < removed.ranks[rows]
            rows, found, distances = rows[before], found[before], distances[before]
            matches, num = matching(kept, found, removed, rows, recipe)
            num_measured += num
            rows, found, distances = rows[matches], found[matches], distances[matches]
            np.minimum.at(best, gone[rows], distances.astype(np.int64) << _RANK_BITS | kept.ranks[found])
    yield from _verdicts(
        np.concatenate([slab.ranks[gone], rest.ranks[decision.removed_rows]]),
        np.concatenate([best[gone] & ((1 << _RANK_BITS) - 1), rest.ranks[decision.kept_rows]]),
        np.concatenate([(best[gone] >> _RANK_BITS).astype(np.int32), decision.distance]),
    )
    counts = {"num_kept": np.array([len(kept.ranks)]), "num_measured": np.array([num_measured])}
    yield with_nulls(_VERDICTS, name=pa.array([kept.write(directory)]), **counts)


def _verdicts(ranks: NDArray[np.int64], kept_ranks: NDArray[np.int64], distances: NDArray[np.int32]) -> Iterator[Any]:
    for low in range(0, len(ranks), _ROWS_AT_ONCE):
        some = slice(low, low + _ROWS_AT_ONCE)
        yield with_nulls(_VERDICTS, rank=ranks[some], kept_rank=kept_ranks[some], distance=distances[some])


def pairs_of_run(
    batches: Iterator[Any],
    *,
    directory: str,
    names: Sequence[str],
    tasks: Sequence[tuple[int, int, int, int]],
    recipe: Recipe,
    max_pairs: int,
) -> Iterator[Any]:
    """Yield the matching pairs of numbered tasks, of which each has at most `max_pairs`. Runs on a worker."""
    method = recipe.method_as(SimHash)
    for number in values_of(batches, "id"):
        num_pairs = 0
        for slab, streamed, found, rows, distances in _matches(directory, names, tasks[number], recipe):
            num_pairs += len(rows)
            if num_pairs > max_pairs:
                instead = "" if recipe.is_distance_only else ", use it instead of threshold, or use MinHash"
                raise InvalidInput(
                    f"one task lists more than {max_pairs:,} pairs of documents, because many fingerprints are "
                    f"near each other; lower within{instead}"
                )
            similarity = np.asarray(method.similarity(distances), np.float64)
            later, earlier = streamed.ranks[rows], slab.ranks[found]
            yield with_nulls(_EDGES, later=later, earlier=earlier, distance=distances, similarity=similarity)


def joined_pairs(
    batches: Iterator[Any],
    *,
    directory: str,
    names: Sequence[str],
    tasks: Sequence[tuple[int, int, int, int]],
    recipe: Recipe,
) -> Iterator[Any]:
    """Yield enough matching pairs of each task to connect the same documents. Runs on a worker."""
    for number in values_of(batches, "id"):
        one, other, *_ = tasks[number]
        joined: _native.Components | None = None
        ranks = np.zeros(0, np.int64)
        for slab, streamed, found, rows, _ in _matches(directory, names, tasks[number], recipe):
            first = 0 if one == other else len(slab.ranks)
            if joined is None:
                ranks = slab.ranks if one == other else np.concatenate([slab.ranks, streamed.ranks])
                joined = _native.Components(len(ranks))
            joined.join((rows + first).astype(np.uint32), found.astype(np.uint32))
        if joined is not None:
            smallest = np.asarray(joined.smallest()).astype(np.int64)
            later = np.flatnonzero(smallest != np.arange(len(smallest)))
            yield with_nulls(_EDGES, later=ranks[later], earlier=ranks[smallest[later]])


def _matches(
    directory: str, names: Sequence[str], task: tuple[int, int, int, int], recipe: Recipe
) -> Iterator[tuple[RunSlab, RunSlab, NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
    """Yield a slab, the other slab, places of matching documents in both, and their distances."""
    one, other, low, high = task
    method = recipe.method_as(SimHash)
    slab = HELD.get((directory, names[one]), partial(RunSlab.read, directory, names[one]))
    streamed = slab if other == one else RunSlab.read(directory, names[other])
    for rows, found, distances in hits_of_part(slab.words, streamed.words, low, high, method.bits, method.radius):
        which, _ = matching(slab, found, streamed, rows, recipe)
        yield slab, streamed, found[which], rows[which], distances[which]


def compared(pairs: DataFrame, rows: DataFrame, recipe: Recipe) -> DataFrame:
    """Return pairs with their distances, and whether they match."""
    joined = pairs.select("later", "earlier")
    for side in ("later", "earlier"):
        own = rows.select(F.col("rank").alias(side), *(F.col(name).alias(f"{name}_{side}") for name in _COMPARED))
        joined = joined.join(own, side)
    schema = "later long, earlier long, distance int, similarity double, matches boolean"
    return joined.mapInArrow(partial(_compare, recipe=recipe), schema)


def _compare(batches: Iterator[Any], *, recipe: Recipe) -> Iterator[Any]:
    method = recipe.method_as(SimHash)
    for batch in batches:
        if not batch.num_rows:
            continue
        later, earlier = (
            RunSlab(
                numbers_of(batch.column(side)),
                bytes_of(batch.column(f"sketch_{side}"), 8 * method.num_words).view("<u8"),
                numbers_of(batch.column(f"num_features_{side}")),
                batch.column(f"text_{side}"),
            )
            for side in ("later", "earlier")
        )
        distance = np.bitwise_count(later.words ^ earlier.words).sum(axis=1).astype(np.int32)
        places = np.arange(batch.num_rows)
        which, _ = matching(later, places, earlier, places, recipe)
        yield pa.RecordBatch.from_pydict(
            {
                "later": batch.column("later"),
                "earlier": batch.column("earlier"),
                "distance": number_column(distance),
                "similarity": number_column(np.asarray(method.similarity(distance), np.float64)),
                "matches": number_column(which & (distance <= method.radius)),
            }
        )
