"""Memory limits of the stages of a run; everything beyond them is stored in files.

A memory limit bounds anonymous memory. Columns of all documents are in unnamed mapped files
(`likewise.arrays.ArraySpace`), and stages run the same code on arrays in memory and in files, a part at a time, so the
results are the same. `likewise.batch.memory` divides the limit; this module defines the shares.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArraySpace, slices
from likewise.stages.weights import DEFAULT_MEMORY_BYTES

# Bytes of sketches held by a run without a limit.
MOST_HELD_BYTES = 1_000_000_000
# Rows of a column that are made at once.
_AT_ONCE = 1 << 18


class Room(NamedTuple):
    """Memory limits of stages. They do not affect results."""

    # Allocates columns of all documents
    space: ArraySpace = ArraySpace()
    # Maximum bytes of feature sets for verification
    sets_bytes: int = 128 << 20
    # Maximum number of candidate pairs that one search returns
    max_pairs: int = 1 << 22
    # Maximum number of rows of evidence, or pairs, that are written at once
    rows_at_once: int = 1 << 20
    # Maximum bytes for finding equal documents and ids, and then for building band buckets; no limit if None
    buckets_bytes: int | None = None
    # Maximum bytes for the exact join of documents with full buckets; no limit if None
    crowd_bytes: int | None = None
    # Maximum bytes of the joins of a search by distance; no limit if None
    tables_bytes: int | None = None
    # Maximum bytes for counting features for rarity weights
    weighing_bytes: int = DEFAULT_MEMORY_BYTES
    # Maximum bytes of sketches that are held between two passes; others are made again
    held_bytes: int = MOST_HELD_BYTES


def filled(
    space: ArraySpace, length: int, of_part: Callable[[slice], NDArray[Any]], last: Sequence[int] = ()
) -> NDArray[np.int64]:
    """Return a column that a function makes part by part."""
    growing = space.growing(np.int64)
    for part in slices(length, _AT_ONCE):
        growing.append(of_part(part))
    growing.append(np.array(last, np.int64))
    return growing.take()


def numbers_of(part: slice) -> NDArray[np.int64]:
    """Return the rows of a part."""
    return np.arange(part.start, part.stop)
