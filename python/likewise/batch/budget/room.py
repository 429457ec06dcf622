"""How much memory does a run take for its work? The rest is stored in files.

A memory limit bounds anonymous memory. What a run knows of every document is in mapped files without a name
(`likewise.arrays.ArraySpace`), and stages run the same code on arrays in memory and in files, a part at a time,
so the answer cannot differ. `likewise.batch.memory` divides the limit; this module says how large the parts are.
"""

from dataclasses import dataclass, field

from likewise.arrays import ArraySpace
from likewise.stages.weights import DEFAULT_MEMORY_BYTES

# Features that a run without a bound of its own holds: those of some 400,000 pages of 2,400 bytes.
MOST_HELD_BYTES = 1_000_000_000


@dataclass(frozen=True)
class Room:
    """What stages may hold at once. Nothing of it is seen in a result.

    Parameters
    ----------
    space : ArraySpace
        Where columns of all documents lie.
    sets_bytes : int
        Feature sets for verification.
    max_pairs : int
        Candidate pairs that one search returns.
    rows_at_once : int
        Rows of evidence, or pairs, that are written at once.
    buckets_bytes : int, optional
        What building band buckets may take; if None they lie in memory, whatever they take.
    crowd_bytes : int, optional
        What the exact join of documents with full buckets may take; if None whatever it takes.
    tables_bytes : int, optional
        What the tables of a search by distance may take; if None whatever they take.
    weighing_bytes : int
        Counts of the features whose rarity weighs them.
    held_bytes : int
        Features that are held from counting them until they are sketched: at most so many, and the rest is cut again.
    """

    space: ArraySpace = field(default_factory=ArraySpace)
    sets_bytes: int = 128 << 20
    max_pairs: int = 1 << 22
    rows_at_once: int = 1 << 20
    buckets_bytes: int | None = None
    crowd_bytes: int | None = None
    tables_bytes: int | None = None
    weighing_bytes: int = DEFAULT_MEMORY_BYTES
    held_bytes: int = MOST_HELD_BYTES
