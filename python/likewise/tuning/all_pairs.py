"""Similarities of all pairs of some documents, counted for all pairs together.

A run measures few pairs and merges two feature lists for each, but a sample of 4,000 documents has eight million pairs.
This module adds the shared weights in integers, pair by pair for rare features and by a matrix product for the others.
The result is bit-equal to the core's, in a fifth of the time. Beyond 8,000 documents or 67 million features, the core
is used instead.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import slices
from likewise.recipe.recipe import Recipe
from likewise.stages.features import features

# Maximum number of documents, for a matrix with one value per pair: 256 MB in single precision.
MOST_DOCUMENTS = 8000
# Maximum number of features of all documents; with more, their lists would take gigabytes.
MOST_FEATURES = 1 << 26
# Features, or pairs that share one, processed at once.
_AT_ONCE = 1 << 20
# Features in one matrix product.
_COLUMNS = 1024
# Features in more than 1/16 of the documents use the matrix product, which is faster there.
_SHARE_OF_WIDE = 16
_LEAST_WIDE = 32
# Integers below these bounds are exact in single and double precision, in any order of addition.
_EXACT_SINGLE, _EXACT_DOUBLE = 1 << 24, 1 << 53


def similarity_of_all(
    texts: Texts, pairs: NDArray[np.int64], recipe: Recipe, *, measure: str, threads: int
) -> NDArray[np.float64] | None:
    """Return bit-equal results of ``verify_pairs`` for these pairs; None if this method does not apply.

    Shared weights are integers, added without rounding: pair by pair for features of few documents, by a matrix product
    for the others. Merging both feature lists of each pair takes several times as long.
    """
    offsets, values, weights = features(texts, recipe, threads=threads)
    num_documents = len(offsets) - 1
    if num_documents > MOST_DOCUMENTS or len(values) > MOST_FEATURES:
        return None
    documents = np.repeat(np.arange(num_documents, dtype=np.uint16), np.diff(offsets))
    sizes = weights.astype(np.float64)
    if measure == "cosine":
        sizes **= 2
    totals = np.bincount(documents, sizes, num_documents)
    del sizes
    largest = totals.max(initial=0.0)
    if largest >= _EXACT_DOUBLE:
        return None
    shared = np.zeros((num_documents, num_documents), np.float32 if largest < _EXACT_SINGLE else np.float64)
    for rows, starts, entries in _by_feature(values, documents, weights):
        counts = np.diff(starts)
        if measure == "jaccard":
            if (entries != np.repeat(entries[starts[:-1]], counts)).any():
                return None
            _add_shared(shared, rows, starts, np.ones(len(rows), np.uint32), entries)
        else:
            _add_shared(shared, rows, starts, entries, entries)
    found = np.empty(len(pairs))
    for part in slices(len(pairs), _AT_ONCE):
        a, b = np.minimum(pairs[part, 0], pairs[part, 1]), np.maximum(pairs[part, 0], pairs[part, 1])
        both = np.where(a == b, totals[a], shared[a, b])
        if measure == "jaccard":
            whole = totals[a] + totals[b] - both
        else:
            # The product is rounded once, as in the core, which takes no root if both totals are equal.
            whole = np.where(totals[a] == totals[b], totals[a], np.sqrt(totals[a] * totals[b]))
        # Two documents without features are equal; one without features has similarity 0 to others.
        both[(totals[a] == 0) & (totals[b] == 0)] = 1.0
        whole[whole == 0] = 1.0
        found[part] = both / whole
    return found


def _by_feature(
    values: NDArray[np.uint64], documents: NDArray[np.uint16], weights: NDArray[np.uint32]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]]:
    """Yield batches of features that several documents have: (documents, starts and end of the features, weights)."""
    num_parts = max(1, -(-len(values) // _AT_ONCE))
    for part in range(num_parts):
        some = np.flatnonzero(values % np.uint64(num_parts) == part) if num_parts > 1 else np.arange(len(values))
        some = some[np.argsort(values[some], kind="stable")]
        ordered = values[some]
        is_first = np.ones(len(some), bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        counts = np.diff(np.append(np.flatnonzero(is_first), len(some)))
        some = some[np.repeat(counts > 1, counts)]
        yield documents[some].astype(np.int64), np.concatenate([[0], np.cumsum(counts[counts > 1])]), weights[some]


def _add_shared(
    shared: NDArray[np.floating],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    left: NDArray[np.uint32],
    right: NDArray[np.uint32],
) -> None:
    """For each feature, add left * right to the entries of all pairs of its documents, above the diagonal."""
    num_documents, flat = len(shared), shared.reshape(-1)
    counts = np.diff(starts)
    least_wide = max(_LEAST_WIDE, num_documents // _SHARE_OF_WIDE)
    for count in np.unique(counts[counts < least_wide]).tolist():
        which = starts[:-1][counts == count]
        first, second = np.triu_indices(count, 1)
        step = max(1, _AT_ONCE // len(first))
        for begin in range(0, len(which), step):
            places = which[begin : begin + step, None] + np.arange(count)
            a, b = places[:, first].ravel(), places[:, second].ravel()
            weight = left[a].astype(shared.dtype) * right[b].astype(shared.dtype)
            np.add.at(flat, rows[a] * num_documents + rows[b], weight)
    wide = np.flatnonzero(counts >= least_wide)
    for begin in range(0, len(wide), _COLUMNS):
        some = wide[begin : begin + _COLUMNS]
        columns = np.repeat(np.arange(len(some)), counts[some])
        places = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in some.tolist()])
        one_side = np.zeros((num_documents, len(some)), shared.dtype)
        one_side[rows[places], columns] = left[places]
        other_side = one_side
        if not np.array_equal(left[places], right[places]):
            other_side = np.zeros_like(one_side)
            other_side[rows[places], columns] = right[places]
        shared += one_side @ other_side.T
