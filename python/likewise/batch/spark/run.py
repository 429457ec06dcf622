"""One run on Spark: its stages in order. Finished stages are read instead of computed again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise.batch.spark.deciding import (
    crowd_pairs,
    joined_components,
    leader_verdicts,
    no_verdicts,
    removed_ranks,
)
from likewise.batch.spark.hamming.deciding import SlabSearch, compared, with_short_texts
from likewise.batch.spark.rows import arrow_columns
from likewise.batch.spark.rows.arrow_columns import counted_parts, in_parts, with_nulls, with_numbers
from likewise.batch.spark.rows.buckets import differences, estimates, looked_at, matches, measured, similarities
from likewise.batch.spark.sketching import check_kinds, criteria_of, priority, sketched
from likewise.batch.spark.stages import Stages
from likewise.errors import InvalidParameter
from likewise.job.reading import RunContext
from likewise.recipe.fields import EXCERPT_MEASURES
from likewise.recipe.methods import NUM_LEVELS, Bloom, Exact, MinHash, Shingles, SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY, SHORT, min_equal_slots

if TYPE_CHECKING:
    from likewise.batch.spark.files.writing import FileInput
    from likewise.batch.spark.frames import FrameInput

# Kinds of rows read from files; other inputs have only documents.
DOCUMENT, BAD, TALLY = 0, 1, 2
# Maximum size of a cell, which one worker holds: pairs when signatures are compared, bytes when texts are compared.
_PAIRS_A_CELL = 1 << 20
_TEXT_BYTES_A_CELL = 64 << 20


def required_similarity(recipe: Recipe, one: str, other: str) -> Any:
    """Return the similarity that pairs must reach, given the columns of features of each side, and of penalties."""
    fewest = F.greatest(F.least(one, other), F.lit(1)).cast("double")
    required = F.least(F.lit(recipe.threshold) + F.lit(recipe.short_margin or 0.0) / F.sqrt(fewest), F.lit(1.0))
    return required if recipe.siblings is None else F.least(required + F.col("penalty"), F.lit(1.0))


def check_recipe(recipe: Recipe) -> None:
    """Raise InvalidParameter if a recipe is not supported on Spark."""
    if isinstance(recipe.sketch, Shingles | Bloom):
        if recipe.measure in EXCERPT_MEASURES:
            raise InvalidParameter("measure", f"{recipe.measure} requires the local engine; remove --engine spark")
        raise InvalidParameter(
            "method", f"{recipe.method} requires all documents on one machine; use minhash, simhash or exact"
        )
    if recipe.takes_tokens:
        raise InvalidParameter("tokens", "custom tokens require the local engine")
    if recipe.needs_threshold:
        raise InvalidParameter(
            "threshold",
            "auto requires the local engine. Run dedup --threshold auto on a sample, then give the number it chooses",
        )
    if recipe.needs_counting:
        raise InvalidParameter(
            "weights", f"{recipe.weights} requires a weight table with this engine; create one with likewise weights"
        )


def _count_full(looked: DataFrame) -> dict[str, int]:
    """Count how often documents reached full buckets, and how many documents did."""
    full = looked.where("rank is not null")
    return {"num_full": full.count(), "num_ranks": full.select("rank").distinct().count()}


def _unmeasured(pairs: DataFrame) -> DataFrame:
    """Return pairs with unknown distance."""
    return pairs.select("later", "earlier", F.lit(None).cast("int").alias("distance"))


class Run:
    """The stages of a run."""

    def __init__(
        self,
        source: FileInput | FrameInput,
        recipe: Recipe,
        stages: Stages,
        context: RunContext,
        *,
        memory_bytes: int,
    ) -> None:
        from likewise import __version__

        self.source = source
        self.recipe = recipe
        self.stages = stages
        self.context = context
        self._memory = memory_bytes
        identity = {"recipe_id": recipe.recipe_id, "recipe": recipe.to_dict(), "version": __version__}

        def claim() -> None:
            stages.check_identity({**identity, **source.identity})
            known = stages.facts("documents")
            if known is not None:
                source.check_same(known, stages.directory)

        self._stage("looking for finished stages", "starting_spark", claim)
        self.documents = self._documents()
        self.sketches = self._sketches()
        self.members = self._members()

    @property
    def num_documents(self) -> int:
        """Number of documents."""
        return int(self.document_facts["num_rows"])

    @property
    def end_row(self) -> int:
        """The number after that of the last document, and an upper bound of ranks."""
        return arrow_columns.FIRST_NUMBER + self.num_documents

    def _stage(self, stage: str, wall: str, work: Callable[[], Any]) -> Any:
        with self.context.stage(stage, wall, "rows"):
            return work()

    def _documents(self) -> DataFrame:
        """Return all documents with their rows: text, doc_id and the other columns of the input."""
        frame, self.document_facts = self._stage(
            "reading",
            "reading_and_sketching",
            lambda: self.stages.frame("documents", self.source.documents, self.source.describe),
        )
        good = frame.where(F.col("kind") == DOCUMENT) if "kind" in frame.columns else frame
        documents = with_numbers(good, self.document_facts["starts"], "row")
        self.check_documents(frame, documents)
        return documents

    def places(self) -> DataFrame:
        """Return row, doc_id, file, offset and length of each document; the last three are null without files."""
        kinds = {"file": "string", "offset": "long", "length": "long"}
        nothing = (F.lit(None).cast(kind).alias(name) for name, kind in kinds.items())
        return self.documents.select("row", "doc_id", *nothing)

    def check_documents(self, frame: DataFrame, documents: DataFrame) -> None:
        """Raise an error for documents that a run rejects, after the checks of the input itself."""

    def _sketches(self) -> DataFrame:
        def describe(frame: DataFrame) -> dict[str, Any]:
            check_kinds(frame, self.recipe)
            keys = {
                criterion.field: F.col(f"key{number}")
                for number, criterion in enumerate(criteria_of(self.recipe.keep))
                if criterion.field
            }
            empty, short, *without = frame.agg(
                F.count_if(F.col("shape") == EMPTY),
                F.count_if(F.col("shape") == SHORT),
                *(F.count_if(key.isNull()) for key in keys.values()),
            ).collect()[0]
            facts: dict[str, Any] = {"num_empty": int(empty), "num_short": int(short)}
            if keys:
                facts["num_without_field"] = dict(zip(keys, map(int, without), strict=True))
            return facts

        frame, self.sketch_facts = self._stage(
            "sketching",
            "reading_and_sketching",
            lambda: self.stages.frame("sketches", lambda: sketched(self.documents, self.recipe), describe),
        )
        return frame

    def _ranked(self) -> DataFrame:
        """Return sketches with the rank of each document in the order of priority."""
        if not criteria_of(self.recipe.keep):
            return self.sketches.withColumn("rank", F.col("row"))
        keys = [name for name in self.sketches.columns if name.startswith("key")]
        order, facts = self.stages.frame(
            "ranks", lambda: in_parts(self.sketches.select("row", *keys), priority(self.recipe)), counted_parts
        )
        ranks = with_numbers(order.select("row", "part", "number"), facts["starts"], "rank").drop("part")
        return self.sketches.join(ranks, "row")

    def _members(self) -> DataFrame:
        """Return all documents with the first rank of their class. That one also has its sketch, unless it is empty."""

        def make() -> DataFrame:
            ranked = self._ranked()
            firsts = ranked.groupBy("class_key").agg(F.min("rank").alias("first"))
            searched = (F.col("rank") == F.col("first")) & (F.col("shape") != EMPTY)
            return ranked.join(firsts, "class_key").select(
                "row", "rank", "first", "num_features", F.when(searched, F.col("sketch")).alias("sketch")
            )

        def describe(frame: DataFrame) -> dict[str, int]:
            return {"num_positions": frame.where("sketch is not null").count()}

        frame, self.member_facts = self._stage(
            "collapsing", "ordering", lambda: self.stages.frame("members", make, describe)
        )
        return frame

    @property
    def positions(self) -> DataFrame:
        """Distinct documents that are not empty, with their sketches."""
        return self.members.where("sketch is not null").select("rank", "row", "num_features", "sketch")

    @property
    def texts(self) -> DataFrame:
        """Texts of distinct documents by rank."""
        texts = self.documents.select("row", F.col("text").alias("payload"))
        return self.positions.select("rank", "row").join(texts, "row").select("rank", "payload")

    def candidates(self) -> DataFrame:
        """Return the pairs to measure: later, earlier (ranks), distance."""
        if isinstance(self.recipe.sketch, SimHash):
            return self._stage("candidates", "candidates", self._near_candidates)
        return self._stage("candidates", "candidates", self._bucket_candidates)

    def _slabs(self, *, decides: bool = False) -> SlabSearch:
        """Return the fingerprints in slabs, written on the first call."""
        search = SlabSearch(
            self.stages,
            self.recipe,
            first_rank=arrow_columns.FIRST_NUMBER,
            end_rank=self.end_row,
            num_positions=self.member_facts["num_positions"],
            progress=self.context.progress,
        )
        search.store(self.positions, self.texts, decides=decides)
        return search

    def _near_candidates(self) -> DataFrame:
        def describe(frame: DataFrame) -> dict[str, int]:
            return {"num_pairs": frame.count(), "num_capped": 0, "num_crowded": 0}

        frame, self.candidate_facts = self.stages.frame(
            "candidates", lambda: self._slabs().pairs().select("later", "earlier", "distance"), describe
        )
        return frame

    def _bucket_candidates(self) -> DataFrame:
        levels: list[DataFrame] = []
        overflow, num_overflow = None, 1
        is_exact, num_crowded = not self.recipe.has_levels, 0
        crowd: DataFrame | None = None
        for level in range(1 if is_exact else NUM_LEVELS):
            if not num_overflow:
                break
            before = overflow

            def make(level: int = level, before: DataFrame | None = before) -> DataFrame:
                return looked_at(self.positions, before, self.recipe, level)

            looked, facts = self.stages.frame(f"buckets-{level}", make, _count_full)
            levels.append(looked.where("later is not null").select("later", "earlier"))
            overflow, num_overflow = looked.where("rank is not null").select("rank", "band"), facts["num_full"]
            if level == 0:
                crowd, num_crowded = overflow.select("rank").distinct(), facts["num_ranks"]
        num_capped = num_overflow if len(levels) == NUM_LEVELS else 0

        def distinct() -> DataFrame:
            every = levels[0]
            for pairs in levels[1:]:
                every = every.union(pairs)
            return every.distinct()

        frame, facts = self.stages.frame("pairs", distinct, lambda frame: {"num_pairs": frame.count()})
        self.candidate_facts = {**facts, "num_capped": num_capped, "num_crowded": num_crowded}
        pairs = self._estimated(_unmeasured(frame), facts["num_pairs"])
        if not is_exact or num_crowded < 2 or crowd is None:
            return pairs
        self.candidate_facts.setdefault("num_candidates", facts["num_pairs"])
        joined, found = self._crowd_pairs(crowd, num_crowded)
        self.candidate_facts["num_pairs"] += found["num_pairs"]
        # Pairs of crowded documents that share a bucket are in both.
        return pairs.union(_unmeasured(joined)).distinct()

    def _crowd_pairs(self, crowd: DataFrame, num_crowded: int) -> tuple[DataFrame, dict[str, Any]]:
        """Return the candidate pairs of documents with full buckets, by an exact join on the driver."""

        def write(take: Callable[[Any], None]) -> dict[str, int]:
            texts = self.texts.join(crowd, "rank").join(self.positions.select("rank", "num_features"), "rank")
            num = crowd_pairs(texts, self.recipe, self.end_row, num_crowded, self.context.threads, self._memory, take)
            return {"num_pairs": num}

        empty = pa.Table.from_batches([with_nulls("later long, earlier long", later=np.zeros(0, np.int64))])
        return self.stages.written("crowd", write, empty)

    def _estimated(self, pairs: DataFrame, num_pairs: int) -> DataFrame:
        """Return the pairs whose estimated similarity is not clearly below the threshold."""
        if not min_equal_slots(self.recipe):
            return pairs
        signatures = self.positions.select("rank", F.col("sketch").alias("payload"))
        num_cells = max(self._num_partitions(), -(-num_pairs // _PAIRS_A_CELL))
        near_enough, self.candidate_facts = self.stages.frame(
            "estimated",
            lambda: measured(pairs, signatures, self.recipe, estimates, num_cells=num_cells).drop("similarity"),
            lambda frame: {**self.candidate_facts, "num_candidates": num_pairs, "num_pairs": frame.count()},
        )
        return near_enough

    def edges(self, *, both_ways: bool = False) -> DataFrame:
        """Return matching pairs: later, earlier (ranks), similarity, distance.

        With `both_ways`, containment is measured in both directions, and `later` is the contained document.
        """
        if self.recipe.is_distance_only:
            return self._stage(
                "verifying", "verification", lambda: self.stages.frame("edges", lambda: self._slabs().pairs())[0]
            )
        candidates = self.candidates()
        if both_ways:
            turned = candidates.select(F.col("earlier").alias("later"), F.col("later").alias("earlier"), "distance")
            candidates = candidates.union(turned)
        name = "edges-both-ways" if both_ways else "edges"
        frame, _ = self._stage(
            "verifying",
            "verification",
            lambda: self.stages.frame(
                name, lambda: self._measured(candidates, matches, self.candidate_facts["num_pairs"])
            ),
        )
        return frame

    def differences(self, pairs: DataFrame) -> DataFrame:
        """Return later, earlier, penalty, differs of removed documents (later) and the kept ones."""
        unmeasured = _unmeasured(pairs)
        frame, _ = self.stages.frame(
            "differences",
            lambda: self._measured(unmeasured, differences, unmeasured.count(), names=("penalty", "differs")),
        )
        return frame.select("later", "earlier", "penalty", F.col("differs").cast("int").alias("differs"))

    def _measured(
        self, pairs: DataFrame, measure: Any, num_pairs: int, names: tuple[str, ...] = ("similarity",)
    ) -> DataFrame:
        """Return pairs with the results of `measure` on their texts, in cells that fit in a worker's memory."""
        mean_bytes = self.documents.agg(F.avg(F.octet_length("text"))).collect()[0][0] or 0.0
        pairs_a_cell = max(1, min(_PAIRS_A_CELL, int(_TEXT_BYTES_A_CELL / (2 * mean_bytes + 1))))
        num_cells = max(self._num_partitions(), -(-num_pairs // pairs_a_cell))
        return measured(pairs, self.texts, self.recipe, measure, num_cells=num_cells, names=names)

    def verdicts(self) -> tuple[DataFrame, dict[str, Any]]:
        """Return the removed documents among the distinct ones (rank, kept_rank, ...), and counts."""
        work: Callable[[Callable[[Any], None]], Mapping[str, Any]]
        if not (
            self.recipe.is_distance_only or self.recipe.group == "components" or isinstance(self.recipe.sketch, Exact)
        ):
            return self._leaders()
        if isinstance(self.recipe.sketch, SimHash) and self.recipe.group != "components":
            return self._leaders_by_slabs()
        if isinstance(self.recipe.sketch, Exact):
            work = lambda take: {"num_measured": 0, "num_capped": 0, "num_crowded": 0}  # noqa: E731
        elif self.recipe.is_distance_only:
            work = self._join_by_distance
        else:
            work = self._decide_components
        return self.stages.written("verdicts", work, no_verdicts())

    def _counts(self) -> dict[str, int]:
        facts = self.candidate_facts
        counts = {name: facts[name] for name in ("num_capped", "num_crowded")} | {"num_measured": facts["num_pairs"]}
        if isinstance(self.recipe.sketch, MinHash):
            counts["num_candidates"] = facts.get("num_candidates", facts["num_pairs"])
        return counts

    def _leaders(self) -> tuple[DataFrame, dict[str, Any]]:
        """Return the verdicts from matching pairs, decided in rounds."""
        counts: dict[str, int] = {}

        def make() -> DataFrame:
            edges = self.edges()
            removed, of_rounds = self._stage(
                "deciding",
                "deciding",
                lambda: removed_ranks(
                    edges, self.stages, self.end_row, memory_bytes=self._memory, progress=self.context.progress
                ),
            )
            counts.update(self._counts() | of_rounds)
            return leader_verdicts(edges, removed)

        return self.stages.frame("verdicts", make, lambda _: counts)

    def _decide_components(self, take: Callable[[Any], None]) -> Mapping[str, Any]:
        removed, first = joined_components(self.edges(), self.end_row)
        pairs = self._joined(removed, first)
        if isinstance(self.recipe.sketch, SimHash):
            pairs = self._compared(pairs).select("later", "earlier", "distance")
        joined, _ = self.stages.frame("joined", lambda: self._measured(pairs, similarities, len(removed)))
        required: Any = F.lit(self.recipe.threshold)
        if self.recipe.siblings is not None:
            joined = joined.join(self.differences(pairs), ["later", "earlier"])
        if self.recipe.short_margin is not None or self.recipe.siblings is not None:
            sizes = self.members.select("rank", "num_features")
            for side in ("later", "earlier"):
                own = sizes.select(F.col("rank").alias(side), F.col("num_features").alias(f"features_{side}"))
                joined = joined.join(own, side)
            required = required_similarity(self.recipe, "features_later", "features_earlier")
        verdicts = joined.select(
            F.col("later").alias("rank"),
            F.col("earlier").alias("kept_rank"),
            "similarity",
            "distance",
            (F.col("similarity") < required).alias("below_threshold"),
        )
        take(verdicts.toArrow())
        return self._counts()

    def _joined(self, removed: NDArray[np.int64], first: NDArray[np.int64]) -> DataFrame:
        """Return documents and the first of their components as pairs: later, earlier, distance (null)."""
        pairs = with_nulls("later long, earlier long, distance int", later=removed, earlier=first)
        return self.stages.of_table(pa.Table.from_batches([pairs]))

    def _compared(self, pairs: DataFrame) -> DataFrame:
        """Return pairs with the distance and the similarity of their fingerprints, and whether they match."""
        return compared(pairs, with_short_texts(self.positions, self.texts, self.recipe), self.recipe)

    def _leaders_by_slabs(self) -> tuple[DataFrame, dict[str, Any]]:
        """Return the verdicts of a Hamming-only run, decided slab by slab."""
        counts: dict[str, int] = {}

        def make() -> DataFrame:
            parts: list[DataFrame] = []
            search = self._slabs(decides=True)
            counts.update(self._stage("deciding", "deciding", lambda: search.decide(parts.append)))
            every = self.stages.of_table(no_verdicts())
            for part in parts:
                every = every.union(part)
            return every

        return self.stages.frame("verdicts", make, lambda _: counts)

    def _join_by_distance(self, take: Callable[[Any], None]) -> Mapping[str, Any]:
        edges, _ = self._stage(
            "verifying",
            "verification",
            lambda: self.stages.frame("joined-edges", lambda: self._slabs().pairs(joins=True)),
        )
        removed, first = joined_components(edges, self.end_row)
        verdicts = self._compared(self._joined(removed, first)).select(
            F.col("later").alias("rank"),
            F.col("earlier").alias("kept_rank"),
            "similarity",
            "distance",
            (~F.col("matches")).alias("below_threshold"),
        )
        take(verdicts.toArrow())
        return {"num_measured": 0, "num_capped": 0, "num_crowded": 0}

    def _num_partitions(self) -> int:
        return int(self.stages.spark.conf.get("spark.sql.shuffle.partitions"))
