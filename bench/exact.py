"""All pairs of a corpus at or above a Jaccard threshold, exactly, by a prefix filter."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise import _native

_TEXTS_AT_ONCE = 5000


def exact_pairs(texts: _native.Texts, rules: _native.FeatureRules, threshold: float, cache: Path) -> NDArray[np.uint32]:
    """Return rows (earlier, later) of every pair whose feature sets have at least this Jaccard similarity.

    Two such sets share a feature among the rarest `n - ceil(t n) + 1` of each; those pairs are measured.
    The result is cached in `cache`.
    """
    if cache.exists():
        return np.load(cache)
    parts, sizes = [], []
    for start in range(0, len(texts), _TEXTS_AT_ONCE):
        rows = np.arange(start, min(start + _TEXTS_AT_ONCE, len(texts)), dtype=np.uint32)
        offsets, found, _ = _native.features(texts.take(rows), rules, threads=2)
        parts.append(np.array(found))
        sizes.append(np.diff(np.asarray(offsets)))
    size = np.concatenate(sizes)
    features = np.concatenate(parts)
    del parts
    row = np.repeat(np.arange(len(size), dtype=np.uint32), size)
    rank = _ranks_by_rarity(features)
    order = np.lexsort((rank, row))
    rank, row = rank[order], row[order]
    place = np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size)
    prefix = size - np.ceil(threshold * size - 1e-9).astype(np.int64) + 1
    inside = place < prefix[row]
    rank, row = rank[inside], row[inside]
    order = np.lexsort((row, rank))
    pairs = _pairs_of_equal(rank[order], row[order], size, threshold)
    sets = _native.FeatureSets(len(size), rules)
    exact = [np.zeros((0, 2), np.uint32)]
    for start in range(0, len(pairs), 200_000):
        part = pairs[start : start + 200_000]
        missing = np.array(sets.missing(np.unique(part).astype(np.uint32)))
        sets.add(missing, texts.take(missing), threads=2)
        later, earlier = np.ascontiguousarray(part[:, 1]), np.ascontiguousarray(part[:, 0])
        similarity = np.asarray(sets.verify(later, earlier, measure="jaccard", threshold=threshold, threads=2)[0])
        exact.append(part[~np.isnan(similarity)])
    found_pairs = np.concatenate(exact)
    np.save(cache, found_pairs)
    return found_pairs


def _ranks_by_rarity(features: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """Return the rank of each occurrence's feature: rare ones first, one rank per feature."""
    _, inverse, counts = np.unique(features, return_inverse=True, return_counts=True)
    rank_of = np.empty(len(counts), np.uint32)
    rank_of[np.argsort(counts, kind="stable")] = np.arange(len(counts), dtype=np.uint32)
    return rank_of[inverse]


def _pairs_of_equal(
    rank: NDArray[np.uint32], row: NDArray[np.uint32], size: NDArray[np.int64], threshold: float
) -> NDArray[np.uint32]:
    """Return distinct pairs of rows that share a feature, with sizes no further apart than the threshold allows."""
    found = [np.zeros(0, np.uint64)]
    left = np.arange(len(rank))
    for step in range(1, len(rank)):
        left = left[left + step < len(rank)]
        left = left[rank[left] == rank[left + step]]
        if not len(left):
            break
        a, b = row[left], row[left + step]
        near = np.minimum(size[a], size[b]) >= threshold * np.maximum(size[a], size[b])
        found.append(np.unique((a[near].astype(np.uint64) << np.uint64(32)) | b[near]))
    keys = np.unique(np.concatenate(found))
    return np.stack([(keys >> np.uint64(32)).astype(np.uint32), keys.astype(np.uint32)], axis=1)
