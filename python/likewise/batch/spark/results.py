"""Results of a run: evidence, kept documents and pairs, expanded to all documents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise.batch.spark.run import Run, required_similarity
from likewise.batch.write.summary import RunCounts, num_of_each, num_unsure
from likewise.io.output.evidence import COLUMNS, INPUT
from likewise.recipe.methods import Exact, SimHash
from likewise.stages.verify import FORM, NAMES_OF


def removed_rows(run: Run, verdicts: DataFrame) -> DataFrame:
    """Return row, kept_row, similarity, distance, below_threshold (and penalty, differs) of every removed document."""
    first_verdict = verdicts.withColumnRenamed("rank", "first")
    names = []
    if run.recipe.name_rules is not None:
        pairs = verdicts.select(F.col("rank").alias("later"), F.col("kept_rank").alias("earlier"))
        differences = run.differences(pairs).withColumnRenamed("later", "first").drop("earlier")
        first_verdict = first_verdict.join(differences, "first")
        names = [F.coalesce(name, F.lit(value)).alias(name) for name, value in (("penalty", 0.0), ("differs", FORM))]
    is_first = F.col("rank") == F.col("first")
    # Others of a class are duplicates of its first document, or of what that one is a duplicate of.
    of_members = run.members.select("row", "rank", "first").join(first_verdict, "first", "left")
    gone = of_members.where(~is_first | F.col("kept_rank").isNotNull())
    kept = run.members.select(F.col("rank").alias("goes_for"), F.col("row").alias("kept_row"))
    distance = F.coalesce(F.col("distance"), F.lit(0)) if isinstance(run.recipe.sketch, SimHash) else F.lit(None)
    below = F.coalesce(F.col("below_threshold"), F.lit(False))  # noqa: FBT003 - PySpark takes it by place only
    return (
        gone.withColumn("goes_for", F.coalesce("kept_rank", "first"))
        .join(kept, "goes_for")
        .select(
            "row",
            "kept_row",
            F.coalesce(F.col("similarity"), F.lit(1.0)).alias("similarity"),
            distance.cast("int").alias("distance"),
            below.alias("below_threshold"),
            *names,
        )
    )


def count_removed(removed: DataFrame) -> dict[str, Any]:
    """Return counts of the rows of :func:`removed_rows`."""
    facts: dict[str, Any] = {"num_removed": removed.count(), "num_below": removed.where("below_threshold").count()}
    if "differs" in removed.columns:
        counts = np.array([(row["differs"], row["count"]) for row in removed.groupBy("differs").count().collect()])
        bits = np.repeat(*counts.reshape(-1, 2).T).astype(np.uint8)
        facts |= {"num_unsure": num_unsure(bits), "differences": num_of_each(bits)}
    return facts


def counts_of(run: Run, facts: Mapping[str, Any], removed: Mapping[str, Any]) -> RunCounts:
    """Return the counts of a run over rows that are all documents, given those of its verdicts and of removed rows."""
    return RunCounts(
        num_documents=run.num_documents,
        num_kept=run.num_documents - removed["num_removed"],
        num_removed=removed["num_removed"],
        num_empty=run.sketch_facts["num_empty"],
        num_short=run.sketch_facts["num_short"],
        num_blank_lines=0,
        num_bad_rows=0,
        num_bad_lines=0,
        num_without_id=None,
        num_without_field=run.sketch_facts.get("num_without_field"),
        num_candidates=facts.get("num_candidates"),
        num_measured=facts["num_measured"],
        num_capped=facts["num_capped"],
        num_crowded=facts["num_crowded"],
        num_below_threshold=removed["num_below"] if run.recipe.group == "components" else None,
        differences=removed.get("differences"),
        num_unsure=removed.get("num_unsure"),
    )


def evidence(run: Run, removed: DataFrame) -> DataFrame:
    """Return the evidence with the columns of a local run, in no particular order."""
    ids = run.places()
    of_kept = {"row": "kept_row", "doc_id": "kept_id", "file": "kept_file", "offset": "kept_offset"}
    kept_ids = ids.select(*(F.col(name).alias(alias) for name, alias in of_kept.items()))
    recipe = run.recipe
    columns = {name: F.col(name) for name in COLUMNS}
    for name, value in {"kept_source": INPUT, "measure": recipe.measure, "method": recipe.method}.items():
        columns[name] = F.lit(value)
    columns["recipe_id"] = F.lit(recipe.recipe_id)
    if recipe.short_margin is not None or recipe.siblings is not None:
        sizes = run.sketches.select("row", F.col("num_features").alias("features"))
        ids = ids.join(sizes, "row")
        kept_sizes = sizes.select(F.col("row").alias("kept_row"), F.col("features").alias("kept_features"))
        kept_ids = kept_ids.join(kept_sizes, "kept_row")
        columns["required"] = required_similarity(recipe, "features", "kept_features")
    if recipe.siblings is not None:
        columns["penalty"] = F.col("penalty")
    if recipe.name_rules is not None:
        columns["differs_in"] = F.element_at(F.array(*map(F.lit, NAMES_OF)), F.col("differs") + 1)
    if recipe.group == "components":
        columns["below_threshold"] = F.col("below_threshold")
    joined = removed.join(ids, "row").join(kept_ids, "kept_row")
    return joined.select(*(column.alias(name) for name, column in columns.items()))


def kept_documents(run: Run, removed: DataFrame) -> DataFrame:
    """Return row and doc_id of every kept document, in row order."""
    return run.documents.select("row", "doc_id").join(removed.select("row"), "row", "left_anti").orderBy("row")


def all_pairs(run: Run) -> DataFrame:
    """Return every verified pair in the columns of a local run; for containment, in both directions."""
    recipe = run.recipe
    one_way = recipe.measure == "containment"
    members = run.members.select("row", "first").join(run.documents.select("row", "doc_id"), "row")
    a, b = (
        members.select(*(F.col(name).alias(f"{name}_{side}") for name in ("row", "first", "doc_id"))) for side in "ab"
    )
    # Pairs of one class have similarity 1 by any measure.
    in_order = F.col("row_a") != F.col("row_b") if one_way else F.col("row_a") < F.col("row_b")
    zero = F.lit(0) if isinstance(recipe.sketch, SimHash) else F.lit(None)
    names = ["row_a", "row_b", "doc_id_a", "doc_id_b", "similarity", "distance"]
    inside = a.join(b, (F.col("first_a") == F.col("first_b")) & in_order)
    found = inside.withColumn("similarity", F.lit(1.0)).withColumn("distance", zero.cast("int")).select(*names)
    if isinstance(recipe.sketch, Exact):
        return found.orderBy("row_a", "row_b")
    edges = run.edges(both_ways=one_way)
    spread = edges.join(a, F.col("later") == F.col("first_a")).join(b, F.col("earlier") == F.col("first_b"))
    if not one_way:
        swapped = F.col("row_a") > F.col("row_b")
        spread = spread.select(
            F.least("row_a", "row_b").alias("row_a"),
            F.greatest("row_a", "row_b").alias("row_b"),
            F.when(swapped, F.col("doc_id_b")).otherwise(F.col("doc_id_a")).alias("doc_id_a"),
            F.when(swapped, F.col("doc_id_a")).otherwise(F.col("doc_id_b")).alias("doc_id_b"),
            "similarity",
            "distance",
        )
    return found.union(spread.select(*names)).orderBy("row_a", "row_b")
