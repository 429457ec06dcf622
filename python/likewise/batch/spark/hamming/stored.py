"""Arrow files in the checkpoint directory, written and read by Python workers, and joins of their fingerprints.

Spark gives workers no files in addition to their rows, and Spark Connect has no broadcast variables. So workers use the
directory that all machines share, directly if it is a path, and through fsspec if it is a URL.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
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

from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, frozen
from likewise.batch.spark.rows.arrow_columns import code_column, column_named, numbers_of, words_of_codes
from likewise.errors import InvalidInput, InvalidParameter, check_integer, counted
from likewise.hamming.fingerprints import streamed
from likewise.io.places import is_remote, local_path
from likewise.io.remote import put_file, store_of
from likewise.io.tables.columns import number_column

_INTEGERS = (ByteType, ShortType, IntegerType, LongType)
_MOST_BITS = 256


# Maximum number of fingerprints of one call.
ROWS_AT_ONCE = 1 << 20
_TEMPORARY = ".tmp-"

# Columns of the facts of each file.
STORED = "name string, num_rows long, num_distinct long"


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


class Held:
    """Cache of the last value in a worker process. It has one entry, since it takes most of the memory."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._value: Any = None

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the value for a key, from the cache or from `make`."""
        if key != self._key:
            # Free the old value first, since both may not fit in memory.
            self._key, self._value = None, None
            self._value = make()
            self._key = key
        return self._value


# Worker processes run many tasks.
HELD = Held()


def hits(
    stored: NDArray[np.uint64], words: NDArray[np.uint64], bits: int, within: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
    """Yield all pairs within the radius, in parts: rows of `words`, rows of the stored ones, and distances."""
    flat = [frozen(np.ascontiguousarray(side).reshape(-1)) for side in (words, stored)]
    num_words = -(-bits // 64)

    def read(low: int, high: int) -> NDArray[np.uint64]:
        return flat[0][low * num_words : high * num_words]

    low = 0
    for high, (rows, others, distances) in streamed(read, range(len(words)), flat[1], bits, within=within, threads=1):
        yield rows + low, others, distances.astype(np.int32)
        low = high


def hits_of_part(
    stored: NDArray[np.uint64], words: NDArray[np.uint64], low: int, high: int, bits: int, within: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
    """Yield the pairs of rows low..high of `words` and stored ones; each pair once, if both are the same."""
    for rows, found, distances in hits(stored, words[low:high], bits, within):
        rows = rows + low
        once = found < rows if stored is words else slice(None)
        yield rows[once], found[once], distances[once]


def write_table(directory: str, name: str, table: ArrowTable) -> None:
    """Write an Arrow table to a file, which is complete under its name or absent."""
    if is_remote(directory):
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="likewise-") as folder:
            path = Path(folder) / "table.arrow"
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
            store, root = store_of(directory)
            put_file(store, path, f"{root}/{name}")
        return
    folder_path = Path(local_path(directory))
    folder_path.mkdir(parents=True, exist_ok=True)
    # Two attempts of one task may write at the same time.
    temporary = folder_path / f"{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        with pa.OSFile(str(temporary), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        os.replace(temporary, folder_path / name)  # noqa: PTH105 - renames into place
    finally:
        temporary.unlink(missing_ok=True)


def read_table(directory: str, name: str) -> ArrowTable:
    """Return the table of a file, memory-mapped if the directory is a path, so that processes share its pages."""
    try:
        if is_remote(directory):
            store, root = store_of(directory)
            with store.open(f"{root}/{name}", "rb") as source:
                return pa.ipc.open_file(pa.py_buffer(source.read())).read_all()
        return pa.ipc.open_file(pa.memory_map(str(Path(local_path(directory)) / name))).read_all()
    except FileNotFoundError as error:
        raise InvalidInput(
            f"this worker does not find {directory}/{name}, which another wrote; use a checkpoint directory that all "
            "machines share under one path, or a URL"
        ) from error


@dataclass(frozen=True, eq=False)
class Groups:
    """Distinct fingerprints, and the ids of the rows that have each."""

    words: NDArray[np.uint64]
    # The ids of fingerprint i are ``ids[starts[i]:starts[i + 1]]``
    starts: NDArray[np.int64]
    ids: Any

    def spread(
        self, rows: NDArray[np.int64], found: NDArray[np.int64], distances: NDArray[np.int32], most: int
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
        """Yield hits on groups as hits on members, at most `most` at a time: rows, places in `ids`, distances."""
        first, counts = self.starts[found], self.starts[found + 1] - self.starts[found]
        bounds = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
        for start in range(0, int(bounds[-1]), most):
            places = np.arange(start, min(start + most, int(bounds[-1])))
            hit = np.searchsorted(bounds, places, side="right") - 1
            yield rows[hit], first[hit] + places - bounds[hit], distances[hit]


def grouped(words: NDArray[np.uint64], ids: ColumnData) -> Groups:
    """Return fingerprints with equal ones in one group."""
    order = np.lexsort(words.T) if words.shape[1] > 1 else np.argsort(words[:, 0], kind="stable")
    in_order = words[order]
    is_first = np.ones(len(words), bool)
    is_first[1:] = (in_order[1:] != in_order[:-1]).any(axis=1)
    starts = np.append(np.flatnonzero(is_first), len(words)).astype(np.int64)
    return Groups(in_order[is_first], starts, ids.take(number_column(order.astype(np.int64))))


def write_groups(directory: str, name: str, groups: Groups) -> None:
    """Write grouped fingerprints and their ids to two files."""
    codes = code_column(groups.words)
    write_table(directory, f"{name}.codes", pa.table({"code": codes, "start": number_column(groups.starts[:-1])}))
    write_table(directory, f"{name}.ids", pa.table({"doc_id": groups.ids}))


def read_groups(directory: str, name: str) -> Groups:
    """Return the groups that :func:`write_groups` wrote."""
    codes, ids = read_table(directory, f"{name}.codes"), read_table(directory, f"{name}.ids")
    starts = np.append(codes.column("start").to_numpy(), len(ids)).astype(np.int64)
    return Groups(words_of_codes(codes.column("code")), starts, ids.column("doc_id").combine_chunks())


def store_groups(batches: Iterator[Any], *, directory: str, bits: int, most: int) -> Iterator[Any]:
    """Write fingerprints to grouped files of about `most` rows, and yield the facts of each. Runs on a worker."""
    for ids, words in rows_at_once(batches, bits, most):
        # A new name, since a repeated task may get other rows, and a worker may still hold tables of an earlier file.
        name = f"fingerprints-{uuid.uuid4().hex}"
        groups = grouped(words, ids)
        write_groups(directory, name, groups)
        yield pa.RecordBatch.from_pydict(
            {"name": [name], "num_rows": [len(words)], "num_distinct": [len(groups.words)]},
            pa.schema({"name": pa.string(), "num_rows": pa.int64(), "num_distinct": pa.int64()}),
        )
