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
from numpy.typing import NDArray

from likewise.arrays import ArrowTable, ColumnData, frozen
from likewise.batch.spark.hamming.columns import rows_at_once
from likewise.errors import InvalidInput
from likewise.hamming.blocks import streamed
from likewise.io.remote import is_remote, local_path, put_file, store_of
from likewise.io.tables.columns import number_column

# Maximum number of fingerprints of one call.
ROWS_AT_ONCE = 1 << 20
_TEMPORARY = ".tmp-"

# Columns of the facts of each file.
STORED = "name string, num_rows long, num_distinct long"


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


def write_table(directory: str, name: str, table: ArrowTable) -> None:
    """Write an Arrow table to a file, which is complete under its name or absent."""
    import pyarrow as pa

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
    import pyarrow as pa

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
    import pyarrow as pa

    width = 8 * groups.words.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(groups.words))
    codes = pa.Array.from_buffers(pa.binary(width), len(groups.words), [None, data])
    write_table(directory, f"{name}.codes", pa.table({"code": codes, "start": number_column(groups.starts[:-1])}))
    write_table(directory, f"{name}.ids", pa.table({"doc_id": groups.ids}))


def read_groups(directory: str, name: str) -> Groups:
    """Return the groups that :func:`write_groups` wrote."""
    codes, ids = read_table(directory, f"{name}.codes"), read_table(directory, f"{name}.ids")
    column = codes.column("code").combine_chunks()
    column = column.chunk(0) if hasattr(column, "chunk") else column
    width = column.type.byte_width
    words = np.frombuffer(column.buffers()[1], "<u8", len(column) * width // 8, column.offset * width)
    starts = np.append(codes.column("start").to_numpy(), len(ids)).astype(np.int64)
    return Groups(words.reshape(-1, width // 8), starts, ids.column("doc_id").combine_chunks())


def store_groups(batches: Iterator[Any], *, directory: str, bits: int, most: int) -> Iterator[Any]:
    """Write fingerprints to grouped files of about `most` rows, and yield the facts of each. Runs on a worker."""
    import pyarrow as pa

    for ids, words in rows_at_once(batches, bits, most):
        # A new name, since a repeated task may get other rows, and a worker may still hold tables of an earlier file.
        name = f"fingerprints-{uuid.uuid4().hex}"
        groups = grouped(words, ids)
        write_groups(directory, name, groups)
        yield pa.RecordBatch.from_pydict(
            {"name": [name], "num_rows": [len(words)], "num_distinct": [len(groups.words)]},
            pa.schema({"name": pa.string(), "num_rows": pa.int64(), "num_distinct": pa.int64()}),
        )
