"""Exact similarity of pairs of rows, with a limited number of feature sets in memory."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.documents import Documents

# A feature with its weight, and the overhead of a set.
_BYTES_A_FEATURE = 12
_BYTES_A_SET = 200
_SETS_BYTES = 64 << 20


def measured(
    documents: Documents,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    rules: _native.FeatureRules,
    *,
    measure: str,
    threads: int,
    agreeing: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact similarity of each pair of rows, containment that of `a` in `b`, and the penalty for names."""
    found, penalty = np.zeros(len(a)), np.zeros(len(a))
    # The core applies the rule on identifiers only to pairs that must reach a similarity.
    threshold = float(np.nextafter(0.0, 1.0)) if agreeing else 0.0
    for which, sets, places, num_sets in _held(documents, a, b, rules, threads):
        # The core measures the containment of the later document in the earlier one.
        found[which] = np.asarray(sets.verify(*places, measure=measure, threshold=threshold, threads=threads))
        every = np.arange(num_sets, dtype=np.uint32)
        later, earlier = places
        penalty[which] = np.asarray(sets.differences(later, earlier, every, penalties_only=True, threads=threads)[0])
    return found, penalty


def _held(
    documents: Documents,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    rules: _native.FeatureRules,
    threads: int,
) -> Iterator[tuple[NDArray[np.int64], _native.FeatureSets, list[NDArray[np.uint32]], int]]:
    """Yield pairs, the feature sets of their documents, the positions of both sides, and the number of sets."""
    # Pairs with the same b are adjacent, so that its set is made once.
    by_kept = np.lexsort((a, b))
    for part in _parts(documents, a[by_kept], b[by_kept]):
        which = by_kept[part]
        rows = np.unique(np.concatenate([a[which], b[which]]))
        sets = _native.FeatureSets(len(rows), rules)
        for some, read in documents.texts(rows, 1):
            positions = np.arange(some.start, some.stop, dtype=np.uint32)
            sets.add(positions, read(), bitmaps=False, threads=threads)
        yield which, sets, [np.searchsorted(rows, side[which]).astype(np.uint32) for side in (a, b)], len(rows)


def _parts(documents: Documents, a: NDArray[np.int64], b: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of pairs, sorted by b, whose feature sets fit the memory limit."""
    if not len(a):
        return
    sizes = documents.num_features[a].astype(np.int64) * _BYTES_A_FEATURE + _BYTES_A_SET
    is_new = np.ones(len(b), bool)
    is_new[1:] = b[1:] != b[:-1]
    sizes[is_new] += documents.num_features[b[is_new]].astype(np.int64) * _BYTES_A_FEATURE + _BYTES_A_SET
    ends = np.cumsum(sizes)
    start = 0
    while start < len(a):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _SETS_BYTES, "right")))
        yield slice(start, stop)
        start = stop
