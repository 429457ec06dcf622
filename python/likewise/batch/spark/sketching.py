"""Sketching on the workers: Arrow batches of texts in, sketches and class keys out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from likewise._native import SKETCH_VERSION, TEXT_VERSION
from likewise.batch.read.columns import Date, field_value
from likewise.batch.read.documents import class_keys
from likewise.batch.spark.rows.arrow_columns import binary_column, texts_of
from likewise.errors import InvalidInput
from likewise.io.tables.columns import number_column
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import keep_criteria
from likewise.stages.sketch import EMPTY, shaped, sketch_texts

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BIAS = 1 << 63
_NUMBER, _DATE = b"n", b"d"
_INFINITE = (1 << 63) - 1

_SCHEMA = "row long, sketch binary, class_key binary, digest binary, shape int, num_features long"
#: Bytes of the digest of a document's features.
DIGEST_BYTES = 16


def sort_key(value: Decimal | Date | None, *, largest_first: bool) -> bytes | None:
    """Return bytes whose ascending order is the order of the values; None for None."""
    if value is None:
        return None
    kind, key = (_NUMBER, _of_number(value)) if isinstance(value, Decimal) else (_DATE, _of_date(value))
    return kind + (_inverted(key) if largest_first else key)


def _of_number(value: Decimal) -> bytes:
    if not value:
        return b"\x01"
    sign, digits, _ = value.as_tuple()
    exponent = _INFINITE if value.is_infinite() else value.adjusted()
    written = bytes(digit + 1 for digit in digits).rstrip(b"\x01")
    # Digits are 1 to 10, so that the 0 after them sorts a shorter number first.
    size = (exponent + _BIAS).to_bytes(8, "big") + written + b"\x00"
    return b"\x00" + _inverted(size) if sign else b"\x02" + size


def _of_date(date: Date) -> bytes:
    passed = date.moment - _EPOCH
    microseconds = (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds
    rest = format(date.rest, "f").partition(".")[2].rstrip("0")
    return (microseconds + _BIAS).to_bytes(8, "big") + rest.encode() + b"\x00"


def _inverted(key: bytes) -> bytes:
    return bytes(255 - byte for byte in key)


@dataclass(frozen=True)
class Criterion:
    """One criterion of `keep`, as a column to sort by."""

    # ``longest``, ``shortest``, ``max`` or ``min``
    rule: str
    # Field of ``max`` and ``min``, as the user names it; empty for the others
    field: str
    # Column of the field's JSON
    source: str


def criteria_of(keep: str) -> list[Criterion]:
    """Return the criteria of a `keep` that apply before the order of rows."""
    found: list[Criterion] = []
    names: dict[str, str] = {}
    for rule, field in keep_criteria(keep):
        if rule == "first":
            break
        if field:
            names.setdefault(field, f"field{len(names)}")
        found.append(Criterion(rule, field, names.get(field, "")))
    return found


def sketched(documents: DataFrame, recipe: Recipe) -> DataFrame:
    """Return the sketch, class key and shape of each document, and the keys that `keep` sorts by."""
    criteria = criteria_of(recipe.keep)
    kinds = ["long" if not criterion.field else "binary" for criterion in criteria]
    schema = ", ".join([_SCHEMA, *(f"key{number} {kind}" for number, kind in enumerate(kinds))])
    columns = ["row", "text", *dict.fromkeys(criterion.source for criterion in criteria if criterion.field)]
    return documents.select(*columns).mapInArrow(partial(_sketch, recipe=recipe, criteria=tuple(criteria)), schema)


def priority(recipe: Recipe) -> list[Column]:
    """Return the columns that rows are sorted by, best first."""
    criteria = criteria_of(recipe.keep)
    return [*(F.col(f"key{number}").asc_nulls_last() for number in range(len(criteria))), F.col("row").asc()]


def check_kinds(frame: DataFrame, recipe: Recipe) -> None:
    """Raise InvalidInput if a field of `keep` has numbers in some rows and dates in others."""
    for number, criterion in enumerate(criteria_of(recipe.keep)):
        if criterion.field:
            kind = F.substring(F.col(f"key{number}"), 1, 1)
            least, most = frame.agg(F.min(kind), F.max(kind)).collect()[0]
            if least != most:
                raise InvalidInput(
                    f"field {criterion.field!r} has numbers in some rows and dates in others; keep requires one type"
                )


def check_worker(recipe: Recipe) -> None:
    """Raise InvalidInput if this worker's version of the package makes other sketches than the driver's."""
    ours, theirs = (TEXT_VERSION, SKETCH_VERSION), (recipe.text_version, recipe.sketch_version)
    if ours != theirs:
        raise InvalidInput(
            f"workers have text and sketch versions {ours}, but the driver has {theirs}; install the "
            "same version of Likewise on all machines"
        )


def _sketch(batches: Iterator[Any], *, recipe: Recipe, criteria: Sequence[Criterion]) -> Iterator[Any]:
    check_worker(recipe)
    for batch in batches:
        if not batch.num_rows:
            continue
        texts = texts_of(batch.column("text"))
        made = sketch_texts(texts, recipe, sets=True, threads=1)
        shapes, num_features = np.asarray(made.shapes), np.asarray(made.num_features)
        flat = np.asarray(made.sketches)
        digests = np.asarray(made.digests)
        keys = class_keys(recipe, slice(None), flat, num_features, digests, shapes).astype("<u8")
        columns = {
            "row": batch.column("row"),
            "sketch": binary_column(flat.view(np.uint8).reshape(len(texts), -1)),
            "class_key": binary_column(keys.view(np.uint8)),
            "digest": binary_column(digests.astype("<u8").view(np.uint8).reshape(-1, DIGEST_BYTES)),
            "shape": number_column(shapes.astype(np.int32)),
            "num_features": number_column(num_features.astype(np.int64)),
        }
        for number, criterion in enumerate(criteria):
            if criterion.field:
                values = batch.column(criterion.source).to_pylist()
                largest_first = criterion.rule == "max"
                sort_keys = [
                    sort_key(field_value(criterion.field, value or ""), largest_first=largest_first) for value in values
                ]
                columns[f"key{number}"] = pa.array(sort_keys, pa.binary())
            else:
                lengths = np.asarray(texts.lengths()).astype(np.int64)
                columns[f"key{number}"] = number_column(-lengths if criterion.rule == "longest" else lengths)
        yield pa.RecordBatch.from_pydict(columns)


def user_sketches(batches: Iterator[Any], *, recipe: Recipe) -> Iterator[Any]:
    """Yield sketches in the columns of a sketch file. Runs on a worker."""
    check_worker(recipe)
    for batch in batches:
        if not batch.num_rows:
            continue
        made = sketch_texts(texts_of(batch.column("text")), recipe, sets=False, threads=1)
        array = shaped(np.asarray(made.sketches), recipe)
        column: Any
        if array.dtype == np.uint64 and array.ndim == 1:
            column = number_column(array.view(np.int64))
        elif array.dtype == np.uint64:
            offsets = np.arange(len(array) + 1, dtype=np.int32) * array.shape[1]
            words = number_column(np.ascontiguousarray(array).view(np.int64).ravel())
            column = pa.ListArray.from_arrays(number_column(offsets), words)
        else:
            column = binary_column(np.ascontiguousarray(array).view(np.uint8))
        yield pa.RecordBatch.from_pydict(
            {
                "doc_id": batch.column("doc_id"),
                "sketch": column,
                "is_empty": number_column(np.equal(np.asarray(made.shapes), EMPTY)),
                "num_features": number_column(np.asarray(made.num_features).astype(np.int64)),
            }
        )
