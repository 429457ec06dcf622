"""Fingerprints in files of the checkpoint directory, with equal ones in one group.

So 100,000 equal fingerprints are searched, and found, as one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ColumnData
from likewise.batch.spark.hamming.columns import rows_at_once
from likewise.batch.spark.hamming.stored import read_table, write_table
from likewise.io.tables.columns import number_column

# Columns of the facts of each file.
STORED = "name string, num_rows long, num_distinct long"


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
