"""A DataFrame of documents as an input: written in order once, and then read only from there.

So a source that returns other rows when it is computed again does no harm, and row numbers do not depend on how Spark
partitions the work.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, ByteType, IntegerType, LongType, MapType, ShortType, StringType

from likewise.batch.spark.rows.names import column_named
from likewise.batch.spark.rows.numbering import in_parts, starts_of
from likewise.checks import counted
from likewise.errors import InvalidInput, InvalidParameter
from likewise.recipe.recipe import Recipe
from likewise.recipe.text import BYTE_TOKENS

# As decimals, which do not overflow when hashes are summed.
_SUM = "cast(sum(cast(content as decimal(38, 0))) as string)"
_INTEGERS = (ByteType, ShortType, IntegerType, LongType)


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
        self._identity = {"text_field": text_field, "id_field": id_field, "order": order}

    def identity(self) -> Mapping[str, Any]:
        """Return values that distinguish this input from others before it is read."""
        return self._identity

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
        if _content(self.chosen) != facts["content"]:
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


def _content(frame: DataFrame) -> list[str]:
    """Return the number of rows and the sum of their hashes, which do not depend on the order of the rows."""
    count, total = frame.agg(F.count("*"), F.expr(_SUM)).collect()[0]
    return [str(count), str(total or 0)]
