"""Memory limits of the stages of a run; everything beyond them is stored in files.

A memory limit bounds anonymous memory. Columns of all documents are in unnamed mapped files
(`likewise.arrays.ArraySpace`), and stages run the same code on arrays in memory and in files, a part at a time, so the
results are the same. `likewise.batch.memory` divides the limit; this module defines the shares.
"""

from typing import NamedTuple

from likewise.arrays import ArraySpace
from likewise.stages.weights import DEFAULT_MEMORY_BYTES

# Bytes of sketches held by a run without a limit.
MOST_HELD_BYTES = 1_000_000_000


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
