"""Splitting: two fingerprints within k bits are equal in at least one of k + 1 blocks of bits.

Each fingerprint is sent to one cell per block, given by the first bits of the block. A pair is listed by the first
block in which these bits are equal, so it is listed once (Afrati, Das Sarma, Menestrina, Parameswaran, Ullman 2012).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowBatch
from likewise.batch.spark.hamming.columns import words_of
from likewise.batch.spark.hamming.stored import hits
from likewise.batch.spark.rows.arrow_columns import binary_column, bytes_of, numbers_of
from likewise.errors import InvalidInput
from likewise.io.tables.columns import number_column


@dataclass(frozen=True)
class Cells:
    """The cells that fingerprints are sent to."""

    bits: int
    within: int
    # Bits of a block that determine its cell, at most ``bits // (within + 1)``
    prefix_bits: int

    @property
    def num_blocks(self) -> int:
        """Number of cells that each fingerprint is sent to."""
        return self.within + 1

    def of(self, words: NDArray[np.uint64], block: int) -> NDArray[np.int32]:
        """Return the cell of each fingerprint for a block."""
        first = block * (self.bits // self.num_blocks)
        word, shift = first // 64, first % 64
        value = words[:, word] >> np.uint64(shift)
        if shift + self.prefix_bits > 64:
            value |= words[:, word + 1] << np.uint64(64 - shift)
        value &= np.uint64((1 << self.prefix_bits) - 1)
        return (value.astype(np.int64) | (block << self.prefix_bits)).astype(np.int32)

    def block_of(self, cell: int) -> int:
        """Return the block that a cell belongs to."""
        return cell >> self.prefix_bits


def cells_of(batches: Iterator[Any], *, cells: Cells) -> Iterator[Any]:
    """Yield cell, row and code of each fingerprint, once per block. Runs on a worker."""
    import pyarrow as pa

    for batch in batches:
        if not batch.num_rows:
            continue
        words = words_of(batch.column("fingerprint"), cells.bits)
        code = binary_column(words.view(np.uint8).reshape(len(words), -1))
        for block in range(cells.num_blocks):
            yield pa.RecordBatch.from_pydict(
                {"cell": number_column(cells.of(words, block)), "row": batch.column("row"), "code": code}
            )


def pairs_in_cells(batches: Iterator[Any], *, cells: Cells, max_pairs: int) -> Iterator[Any]:
    """Yield the pairs of each cell, and for block 0 the group of each row with distance null. Rows come by cell."""
    held: list[Any] = []
    number = None
    for batch in batches:
        values = numbers_of(batch.column("cell"))
        bounds = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for start, end in pairwise(bounds):
            if start == end:
                continue
            if number is not None and values[start] != number:
                yield from _joined(held, number, cells, max_pairs)
                held = []
            number = int(values[start])
            held.append(batch.slice(start, end - start))
    if number is not None:
        yield from _joined(held, number, cells, max_pairs)


def _joined(held: list[Any], cell: int, cells: Cells, max_pairs: int) -> Iterator[Any]:
    width = 8 * -(-cells.bits // 64)
    rows = np.concatenate([numbers_of(part.column("row")) for part in held])
    words = np.concatenate([bytes_of(part.column("code"), width) for part in held]).view("<u8")
    # Sorted by fingerprint, then row, so that the first row of a group is the same in all its cells.
    order = np.lexsort((rows, *words.T))
    words, rows = words[order], rows[order]
    is_first = np.ones(len(words), bool)
    is_first[1:] = (words[1:] != words[:-1]).any(axis=1)
    first = rows[is_first]
    block = cells.block_of(cell)
    if block == 0:
        yield _batch(first[np.cumsum(is_first) - 1], rows, None)
    distinct = np.ascontiguousarray(words[is_first])
    num_pairs = 0
    for streamed, found, distance in hits(distinct, distinct, cells.bits, cells.within):
        owned = found < streamed
        for earlier in range(block):
            same = cells.of(distinct[streamed], earlier) == cells.of(distinct[found], earlier)
            owned &= ~same
        num_pairs += int(owned.sum())
        if num_pairs > max_pairs:
            raise InvalidInput(f"more than {max_pairs:,} pairs of groups; lower within, or raise max_pairs")
        yield _batch(first[found[owned]], first[streamed[owned]], distance[owned])


def _batch(group_a: NDArray[np.int64], group_b: NDArray[np.int64], distance: NDArray[np.int32] | None) -> ArrowBatch:
    import pyarrow as pa

    return pa.RecordBatch.from_pydict(
        {
            "group_a": number_column(group_a),
            "group_b": number_column(group_b),
            "distance": pa.nulls(len(group_a), pa.int32()) if distance is None else number_column(distance),
        }
    )
