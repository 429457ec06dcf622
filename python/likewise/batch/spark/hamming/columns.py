"""Columns of fingerprints: their Spark types, and conversion of Arrow batches to words."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
)

from likewise.arrays import ArrowColumn, ArrowTable
from likewise.batch.spark.rows.arrow_columns import column_named, numbers_of
from likewise.checks import check_integer, counted
from likewise.errors import InvalidInput, InvalidParameter

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_MOST_BITS = 256


@dataclass(frozen=True)
class Side:
    """Fingerprints with their ids."""

    # Columns doc_id (string or bigint) and fingerprint
    frame: DataFrame
    # ``string`` or ``bigint``
    id_type: str


def check_width(bits: int, within: int) -> tuple[int, int]:
    """Return the checked width and radius."""
    bits = check_integer("bits", bits, 32, _MOST_BITS, 32)
    return bits, check_integer("within", within, 0, bits)


def take_side(name: str, frame: ArrowTable, bits: int, fingerprint_field: str, id_field: str) -> Side:
    """Return the ids and fingerprints of a DataFrame."""
    if not hasattr(frame, "sparkSession"):
        raise InvalidInput(
            f"{name}: {type(frame).__name__} given; expected a Spark DataFrame. For arrays and files use "
            "likewise.hamming_join and likewise.hamming_pairs"
        )
    kinds, columns = {}, {}
    for parameter, field in (("fingerprint_field", fingerprint_field), ("id_field", id_field)):
        if field not in frame.columns:
            raise InvalidParameter(parameter, f"{name} has no column {field!r}; found: {', '.join(frame.columns)}")
        columns[parameter] = column_named(frame, parameter, field)
        kinds[parameter] = frame.schema[field].dataType
    _check_kind(fingerprint_field, kinds["fingerprint_field"], bits)
    doc_id = columns["id_field"]
    if isinstance(kinds["id_field"], _INTEGERS):
        doc_id, id_type = doc_id.cast("bigint"), "bigint"
    elif isinstance(kinds["id_field"], StringType):
        id_type = "string"
    else:
        raise InvalidParameter(
            "id_field", f"column {id_field!r} is of type {kinds['id_field'].simpleString()}; use strings or integers"
        )
    chosen = frame.select(doc_id.alias("doc_id"), columns["fingerprint_field"].alias("fingerprint"))
    return Side(chosen, id_type)


def _check_kind(field: str, kind: DataType, bits: int) -> None:
    if isinstance(kind, LongType):
        if bits > 64:
            raise InvalidParameter("bits", f"column {field!r} has 64-bit integers; {bits} bits need arrays or binary")
        return
    is_words = isinstance(kind, ArrayType) and isinstance(kind.elementType, LongType)
    if not is_words and not isinstance(kind, BinaryType):
        raise InvalidParameter(
            "fingerprint_field",
            f"column {field!r} is of type {kind.simpleString()}; use bigint, array<bigint> or binary",
        )


def words_of(column: ArrowColumn, bits: int) -> NDArray[np.uint64]:
    """Return the fingerprints of an Arrow array as words, shape (n, words); word 0 of each is the lowest."""
    import pyarrow as pa

    num_words, kind = -(-bits // 64), column.type
    if column.null_count:
        raise InvalidInput(
            f"{counted(column.null_count, 'fingerprint is', 'fingerprints are')} null; filter these rows out"
        )
    if pa.types.is_integer(kind):
        words = numbers_of(column).view(np.uint64).reshape(-1, 1)
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        words = _words_of_bytes(column, bits)
    else:
        lengths = column.value_lengths().to_numpy(zero_copy_only=False)
        if (lengths != num_words).any():
            other = int(lengths[lengths != num_words][0])
            raise InvalidInput(f"a fingerprint has {other} words; {bits} bits take {num_words}. Give its bits")
        values = column.flatten()
        if values.null_count:
            are = counted(values.null_count, "word of fingerprints is", "words of fingerprints are")
            raise InvalidInput(f"{are} null; filter these rows out")
        words = numbers_of(values).view(np.uint64).reshape(-1, num_words)
    if bits % 64 and (words[:, -1] >> np.uint64(bits % 64)).any():
        raise InvalidInput(f"a fingerprint has a bit beyond the {bits} of its width. Give its bits")
    return np.ascontiguousarray(words)


def _words_of_bytes(column: ArrowColumn, bits: int) -> NDArray[np.uint64]:
    import pyarrow.compute as pc

    lengths = pc.binary_length(column).to_numpy(zero_copy_only=False)
    if (lengths != bits // 8).any():
        other = int(lengths[lengths != bits // 8][0])
        raise InvalidInput(f"a fingerprint has {other} bytes; {bits} bits take {bits // 8}. Give its bits")
    padded = np.zeros((len(column), 8 * -(-bits // 64)), np.uint8)
    data = b"".join(column.to_pylist())
    padded[:, : bits // 8] = np.frombuffer(data, np.uint8).reshape(len(column), bits // 8)
    return padded.view("<u8")


def rows_at_once(batches: Iterator[Any], bits: int, most: int) -> Iterator[tuple[Any, NDArray[np.uint64]]]:
    """Yield ids and words of about `most` rows at once, since calls on few rows cost more per row."""
    import pyarrow as pa

    ids: list[Any] = []
    words: list[NDArray[np.uint64]] = []
    num_held = 0
    for batch in batches:
        doc_id = batch.column("doc_id")
        check_ids(doc_id.null_count)
        ids.append(doc_id)
        words.append(words_of(batch.column("fingerprint"), bits))
        num_held += len(doc_id)
        if num_held >= most:
            yield pa.concat_arrays(ids), np.concatenate(words)
            ids, words, num_held = [], [], 0
    if num_held:
        yield pa.concat_arrays(ids), np.concatenate(words)


def check_ids(num_null: int) -> None:
    """Raise InvalidInput if ids are null."""
    if num_null:
        raise InvalidInput(f"{counted(num_null, 'id is', 'ids are')} null; filter these rows out, or give them ids")


def content_of(frame: DataFrame) -> list[str]:
    """Return the number of rows and the sum of their hashes, which do not depend on their order. Reads them once."""
    hashed = F.sum(F.xxhash64(*frame.columns).cast("decimal(38, 0)")).cast("string")
    count, total = frame.agg(F.count("*"), hashed).collect()[0]
    return [str(count), str(total or 0)]
