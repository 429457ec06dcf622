"""The Spark API: takes DataFrames, returns DataFrames with the columns of the local outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, MapType, ShortType, StringType

from likewise.batch.spark.hamming.stored import content_of
from likewise.batch.spark.results import all_pairs, count_removed, counts_of, evidence, kept_documents, removed_rows
from likewise.batch.spark.rows.arrow_columns import column_named, in_parts, starts_of
from likewise.batch.spark.run import Run, check_recipe
from likewise.batch.spark.sketching import user_sketches
from likewise.batch.spark.stages import Stages, check_version, temporary_directory
from likewise.batch.write.summary import summary_of
from likewise.errors import InvalidInput, InvalidParameter, counted, num_threads, parse_size
from likewise.job.reading import RunContext, RunRules
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.rules import BYTE_TOKENS, keep_needs
from likewise.stages.sketch import check_has_sketch

# As decimals, which do not overflow when hashes are summed.
_SUM = "cast(sum(cast(content as decimal(38, 0))) as string)"
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)

DRIVER_MEMORY = "4GB"


class FrameInput:
    """Documents in a DataFrame."""

    def __init__(
        self,
        frame: DataFrame,
        recipe: Recipe,
        *,
        text_field: str,
        id_field: str,
        order: str | None,
        fields: tuple[str, ...],
    ) -> None:
        if not hasattr(frame, "sparkSession"):
            raise InvalidInput(
                f"{type(frame).__name__} given; expected a Spark DataFrame (see spark.createDataFrame). For pandas, "
                "Polars and PyArrow use likewise.dedup"
            )
        self._fields = [f"field{number}" for number in range(len(fields))]
        text = _column(frame, "text_field", text_field, (StringType, BinaryType))
        if isinstance(frame.select(text).schema[0].dataType, BinaryType) != (recipe.tokens in BYTE_TOKENS):
            wanted = "binary" if recipe.tokens in BYTE_TOKENS else "string"
            raise InvalidParameter("text_field", f"tokens {recipe.tokens} require a {wanted} column")
        if recipe.only_within is not None:
            value = _column(frame, "only_within", recipe.only_within, (StringType,))
            text = F.concat(value, F.lit("\n"), text)
        doc_id = _column(frame, "id_field", id_field, (StringType, *_INTEGERS)).cast("string")
        place = [] if order is None else [_column(frame, "order", order).alias("place")]
        further = [_column(frame, "keep", field).alias(name) for name, field in zip(self._fields, fields, strict=True)]
        chosen = frame.select(doc_id.alias("doc_id"), text.alias("text"), *place, *further)
        if any(isinstance(field.dataType, MapType) for field in chosen.schema):
            raise InvalidParameter("order", "a column of maps has no order; use another column")
        # Hash of all columns that affect the result, to recognize a changed input when a run continues.
        self.chosen = chosen.withColumn("content", F.xxhash64(*chosen.columns))
        self._has_place = order is not None
        # Values that distinguish this input from others before it is read
        self.identity: dict[str, Any] = {"text_field": text_field, "id_field": id_field, "order": order}

    def documents(self) -> DataFrame:
        """Return documents with part and number, in order."""
        keys: list[Column] = [F.col("place").asc_nulls_last()] if self._has_place else []
        return in_parts(self.chosen, [*keys, F.col("doc_id").asc()], self._fields).drop("place")

    def describe(self, documents: DataFrame) -> dict[str, Any]:
        """Return facts about written documents."""
        is_bare = F.col("text").isNull()
        parts = documents.groupBy("part").agg(
            F.count("*").alias("count"),
            F.count_if(F.col("doc_id").isNull()).alias("without_id"),
            F.count_if(is_bare).alias("without_text"),
            F.min(F.when(is_bare, F.col("doc_id"))).alias("example"),
            F.expr(_SUM).alias("content"),
        )
        found = sorted(parts.collect(), key=lambda row: int(row["part"]))
        without_id, without_text = (sum(int(row[name]) for row in found) for name in ("without_id", "without_text"))
        if without_id:
            raise InvalidInput(
                f"{counted(without_id, 'row has', 'rows have')} no id; filter these rows out, or give them ids"
            )
        if without_text:
            example = next(row["example"] for row in found if row["example"] is not None)
            have = counted(without_text, "row has", "rows have")
            raise InvalidInput(f"{have} no text, such as id {example!r}; filter these rows out")
        doubles = documents.groupBy("doc_id").count().where("count > 1").agg(F.min("doc_id"), F.count("*")).collect()
        if doubles[0][1]:
            come = counted(doubles[0][1], "id occurs", "ids occur")
            raise InvalidInput(f"{come} more than once, such as {doubles[0][0]!r}; make ids unique")
        facts = starts_of((int(row["part"]), int(row["count"])) for row in found)
        return {**facts, "content": [str(facts["num_rows"]), str(sum(int(row["content"]) for row in found))]}

    def check_same(self, facts: Mapping[str, Any], directory: str) -> None:
        """Raise InvalidInput if the stages were made from other documents. Reads the documents once."""
        if content_of(self.chosen.drop("content")) != facts["content"]:
            raise InvalidInput(
                f"the stages in {directory} were made from other documents; choose another directory, or delete it"
            )


def _column(frame: DataFrame, parameter: str, name: str, types: tuple[type, ...] = ()) -> Column:
    """Return a column by its dotted name."""
    # A name with a dot means a nested field only if no column has this name.
    column = column_named(frame, parameter, name) if name in frame.columns else F.col(name)
    if name not in frame.columns and name.partition(".")[0] not in frame.columns:
        raise InvalidParameter(parameter, f"no column {name!r}; found: {', '.join(frame.columns)}")
    kind = frame.select(column).schema[0].dataType
    if types and not isinstance(kind, types):
        raise InvalidParameter(parameter, f"column {name!r} is of type {kind.simpleString()}, which is not supported")
    return column


@dataclass(frozen=True, eq=False)
class SparkDeduplication:
    """Result of :func:`dedup`.

    Parameters
    ----------
    kept : DataFrame
        Columns row and doc_id of the kept documents, in row order.
    removed : DataFrame
        The evidence, with the same columns and rows as a local run.
    summary : dict
        Counts, recipe, recall, seconds; the first entry states how removals were verified.
    """

    kept: DataFrame
    removed: DataFrame
    summary: dict[str, Any]


def sketch(
    df: DataFrame, recipe: GivenRecipe | None = None, *, text_field: str = "text", id_field: str = "id"
) -> DataFrame:
    """Return the sketch of each document.

    Parameters
    ----------
    df : DataFrame
        One row per document.
    recipe : Recipe or str, optional
        Determines the sketch; the preset ``online`` if None. Weights by rarity require a weight table.
    text_field, id_field : str
        Columns of the text and of the id.

    Returns
    -------
    DataFrame
        Columns doc_id; sketch (SimHash: a signed 64-bit integer of the same bits, above 64 bits an array of them, word
        0 first; MinHash: the bytes of the slots); is_empty; num_features. Computed lazily, in Arrow batches on the
        workers.

    Raises
    ------
    InvalidParameter
        If the recipe is not supported on Spark, or a column is missing.

    Examples
    --------
    >>> sketches = sketch(df, likewise.Recipe.simhash(bits=64))  # doctest: +SKIP
    """
    check_version()
    recipe = as_recipe(recipe)
    check_has_sketch(recipe)
    check_recipe(recipe)
    source = FrameInput(df, recipe, text_field=text_field, id_field=id_field, order=None, fields=())
    method = recipe.sketch
    kind = "binary" if not isinstance(method, SimHash) else "long" if method.num_words == 1 else "array<long>"
    schema = f"doc_id string, sketch {kind}, is_empty boolean, num_features long"
    return source.chosen.select("doc_id", "text").mapInArrow(partial(user_sketches, recipe=recipe), schema)


@shows_progress
def dedup(
    df: DataFrame,
    recipe: GivenRecipe | None = None,
    *,
    order: str | None = None,
    text_field: str = "text",
    id_field: str = "id",
    checkpoint_dir: str | None = None,
    driver_memory: str = DRIVER_MEMORY,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> SparkDeduplication:
    """Remove near-duplicates from a Spark DataFrame and record why each was removed.

    Parameters
    ----------
    df : DataFrame
        One row per document. It is read twice, and once more if a run is resumed.
    recipe : Recipe or str, optional
        Determines when two documents match; the method is minhash, simhash or exact. If None, the preset ``online``.
    order : str, optional
        Column that defines the order of documents. Ties, and all documents if None, are ordered by the UTF-8 bytes of
        the id.
    text_field, id_field : str
        Columns of the text and of the id (strings, or integers in decimal). Neither may be null, and ids must be
        unique.
    checkpoint_dir : str, optional
        A path or URL to which driver and workers can write. Finished stages are stored there as Parquet: the same call
        resumes after the last one, and results are read from there. If None, a temporary directory that is deleted with
        this process; Spark must then run on this machine.
    driver_memory : str
        Memory limit on the driver, such as ``"16GB"``, for matching pairs: the driver decides them as soon as they
        fit.
    threads : int, optional
        Number of threads of that search. Results do not depend on it.
    progress : bool or callable, optional
        True shows bars in a terminal or a notebook. A function is called with the events of :mod:`likewise.progress`.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`). Only `keep` can be combined with a recipe or a
        preset; its fields are columns of `df`.

    Returns
    -------
    SparkDeduplication
        Two DataFrames, read from the checkpoints, and the summary.

    Raises
    ------
    InvalidInput
        If an id or a text is null, an id occurs twice, or the documents are not those of the checkpoints.
    InvalidParameter
        If an option is out of range, a column is missing, or the driver's memory is too small.
    RecipeMismatch
        If the checkpoints belong to another run; the error names the fields.

    Notes
    -----
    Kept documents, evidence and similarities are bit-identical to those of :func:`likewise.dedup` on the documents in
    this order. Rows are numbered from 0 in this order.

    Examples
    --------
    >>> result = dedup(df, likewise.Recipe.minhash(0.8), checkpoint_dir="hdfs:///tmp/run")  # doctest: +SKIP
    >>> result.removed.select("doc_id", "kept_id", "similarity").show()  # doctest: +SKIP
    """
    columns = {"order": order, "text_field": text_field, "id_field": id_field}
    context = RunContext(RunRules(num_threads(threads)), progress=taken(progress))
    run = _run(df, as_recipe(recipe, fields), columns, checkpoint_dir, driver_memory, context)
    verdicts, facts = run.verdicts()
    removed, counts = run.stages.frame("removed", lambda: removed_rows(run, verdicts), count_removed)
    summary = summary_of(counts_of(run, facts, counts), run.recipe, run.context.timing)
    summary |= {"num_rounds": facts.get("num_rounds"), "num_stages_made": run.stages.num_made}
    return SparkDeduplication(kept_documents(run, removed), evidence(run, removed).orderBy("row"), summary)


@shows_progress
def pairs(
    df: DataFrame,
    recipe: GivenRecipe | None = None,
    *,
    order: str | None = None,
    text_field: str = "text",
    id_field: str = "id",
    checkpoint_dir: str | None = None,
    driver_memory: str = DRIVER_MEMORY,
    threads: int | None = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> DataFrame:
    """List all verified pairs of near-duplicates in a Spark DataFrame.

    Parameters
    ----------
    df, recipe, order, text_field, id_field, checkpoint_dir, driver_memory, threads, progress, **fields
        As for :func:`dedup`, which can share checkpoints with this function.

    Returns
    -------
    DataFrame
        Columns row_a, row_b, doc_id_a, doc_id_b, similarity, distance (null for MinHash), sorted; as those of
        :func:`likewise.pairs`.

    Raises
    ------
    InvalidInput, InvalidParameter, RecipeMismatch
        As for :func:`dedup`.

    Examples
    --------
    >>> pairs(df, likewise.Recipe.simhash(within=3)).show()  # doctest: +SKIP
    """
    columns = {"order": order, "text_field": text_field, "id_field": id_field}
    context = RunContext(RunRules(num_threads(threads)), progress=taken(progress))
    return all_pairs(_run(df, as_recipe(recipe, fields), columns, checkpoint_dir, driver_memory, context))


def _run(
    df: DataFrame,
    recipe: Recipe,
    columns: dict[str, Any],
    checkpoint_dir: str | None,
    driver_memory: str,
    context: RunContext,
) -> Run:
    check_version()
    recipe = recipe.resolve()
    check_recipe(recipe)
    memory_bytes = parse_size("driver_memory", driver_memory)
    source = FrameInput(df, recipe, fields=keep_needs(recipe.keep)[1], **columns)
    spark = df.sparkSession
    stages = Stages(spark, checkpoint_dir or temporary_directory(spark))
    return Run(source, recipe, stages, context, memory_bytes=memory_bytes)
