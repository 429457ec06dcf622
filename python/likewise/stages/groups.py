"""Groups: the documents that are kept."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import as_row_pairs
from likewise.errors import InvalidParameter

KEPT = 1
REMOVED = 2


class Leaders(NamedTuple):
    """The decision on documents, in order of priority."""

    kept: NDArray[np.bool_]
    # The kept document because of which it was removed; -1 if it is kept
    leader: NDArray[np.int64]
    similarity: NDArray[np.float64]


def choose_leaders(num_documents: int, pairs: NDArray[np.int64], similarity: NDArray[np.float64]) -> Leaders:
    """Decide which documents are kept, in order of priority.

    A document is removed if it is paired with an already kept one, and kept otherwise: the lexicographically first
    maximal independent set of the graph. The evidence for a removal is the most similar such pair, or the earliest of
    equally similar ones.
    """
    later, earlier, values = _edges(num_documents, pairs, similarity)
    decision = _native.Leaders(num_documents)
    decision.decide(0, num_documents, later, earlier, values, None)
    kept = np.asarray(decision.states) == KEPT
    leader = np.where(kept, -1, np.asarray(decision.best_earlier).astype(np.int64))
    return Leaders(kept, leader, np.where(kept, np.nan, np.asarray(decision.best_similarity)))


def components(num_documents: int, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the smallest document of the connected component of each document."""
    later, earlier, _ = _edges(num_documents, pairs, np.ones(len(pairs)))
    return np.asarray(_native.components(num_documents, later, earlier)).astype(np.int64)


def _edges(
    num_documents: int, pairs: NDArray[np.int64], similarity: NDArray[np.float64]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.float64]]:
    rows = np.sort(as_row_pairs(pairs, num_documents), axis=1)
    values = np.asarray(similarity, np.float64)
    if len(values) != len(rows):
        raise InvalidParameter("similarity", f"{len(values)} similarities for {len(rows)} pairs")
    ranks = np.lexsort((rows[:, 0], rows[:, 1]))
    earlier, later = rows[ranks, 0].astype(np.uint32), rows[ranks, 1].astype(np.uint32)
    return later, earlier, values[ranks]
