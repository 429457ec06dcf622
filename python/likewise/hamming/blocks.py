"""Joins of blocks of fingerprints: as many rows at once as have a limited number of pairs."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native

Words = NDArray[np.uint64]
Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]

# Rows of a block, and pairs of one.
BLOCK_ROWS, BLOCK_PAIRS = 1 << 20, 1 << 21
# A single row may have more pairs than a block.
ALL_PAIRS = 2**40


def joined(left: Words, right: Words | None, bits: int, *, within: int, max_pairs: int, threads: int) -> Found | None:
    """Return left rows, right rows and distances of all pairs, sorted; None if there are more than `max_pairs`."""
    sides = ((left, None), None if right is None else (right, None))
    found = _native.join_fingerprints(*sides, bits, within=within, max_pairs=max_pairs, threads=threads)
    if found is None:
        return None
    rows = np.asarray(found[0]).reshape(-1, 2)
    return rows[:, 0], rows[:, 1], np.asarray(found[1])


def streamed(
    read: Callable[[int, int], Words],
    rows: range,
    others: Words,
    bits: int,
    *,
    within: int,
    threads: int,
) -> Iterator[tuple[int, Found]]:
    """Join `rows`, read block by block, with others: the row after a block, and pairs that count from its start."""
    num_words = -(-bits // 64)
    # Each block is joined with all others, so it is not much smaller.
    most = max(BLOCK_ROWS, len(others) // num_words)
    low, num_rows = rows.start, most
    while low < rows.stop:
        words = read(low, min(low + num_rows, rows.stop))
        num_read = len(words) // num_words
        max_pairs = BLOCK_PAIRS if num_read > 1 else ALL_PAIRS
        found = joined(words, others, bits, within=within, max_pairs=max_pairs, threads=threads)
        if found is None:
            num_rows = max(1, num_read // 4)
            continue
        low += num_read
        yield low, found
        # Blocks grow again where pairs are sparse.
        num_rows = min(most, max(1, num_read * BLOCK_PAIRS // (2 * len(found[0]) + 1)))
