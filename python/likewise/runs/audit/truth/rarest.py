"""Rarest features of some documents: a match of a document has at least one of them."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native

# Hash bits of the filter that excludes most features of other documents.
_FILTER_BITS = 22
# Maximum number of shared features, and of pairs of a text and a document, in memory at once.
_SHARED_AT_ONCE = 1_000_000
_CELLS_AT_ONCE = 2_000_000
# A feature is common if more than 1/4 of the documents have it among their rarest.
_COMMON_PART = 4
# If more than this share of the pairs remain, shared masses are summed before exact measurement.
_DENSE = 0.01
# Share of the sum of both masses that a match must have in common.
_MASS_MEASURES: dict[str, Callable[[float], float]] = {
    "jaccard": lambda threshold: threshold / (1.0 + threshold),
    "dice": lambda threshold: threshold / 2.0,
}
# Sums in single precision are exact up to 2^24 and may be slightly too low above it, so bounds are lowered.
_ALMOST_SINGLE = 1.0 - 1e-5
# Bounds are slightly lowered, so that rounding loses no pair.
_ALMOST = 1.0 - 1e-9


class RarestFeatures:
    """Rarest features of several documents, and the documents that have each.

    Parameters
    ----------
    texts : Texts
        The documents.
    rules : FeatureRules
        Rules that make the features.
    measure : str
        A set measure.
    threshold : float
        Minimum similarity of a match.
    threads : int
        Number of threads of each call.

    Notes
    -----
    A document A omits its most common features among these documents, as long as the omitted features have less mass
    than a match must share: with masses (the weights; for cosine their squares), t of A's mass for jaccard, t/(2-t) for
    dice, t^2 for cosine. A document that shares no remaining feature cannot reach the threshold t. For containment and
    overlap, where a small document is enough, nothing is omitted. The frequency of a feature changes only the cost.
    This is the bound of the prefix join, here without its global order of all documents.
    """

    def __init__(
        self, texts: _native.Texts, rules: _native.FeatureRules, *, measure: str, threshold: float, threads: int
    ) -> None:
        self._rules, self._threads = rules, threads
        offsets, values, weights = (np.asarray(part) for part in _native.features(texts, rules, threads=threads))
        owners = np.repeat(np.arange(len(texts)), np.diff(offsets))
        masses = weights.astype(np.float64) ** (2 if measure == "cosine" else 1)
        # Number of pairs whose shared masses were summed so far.
        self.num_added_up = 0
        self._measure, self._threshold, self._all = measure, threshold, (values, owners, weights)
        self._masses: SharedMasses | None = None
        kept = self._rarest(offsets, values, owners, masses, _left_out(measure, threshold))
        by_value = kept[np.argsort(values[kept], kind="stable")]
        self._values, starts = np.unique(values[by_value], return_index=True)
        self._starts = np.append(starts, len(by_value))
        self._owners = owners[by_value]
        self._num_documents = len(texts)
        # Owners of the common features as a matrix: listing pairs would list template features for each pair of pages.
        counts = np.diff(self._starts)
        common = np.flatnonzero(counts * _COMMON_PART > len(texts))
        self._common_number = np.full(len(counts), -1, np.int64)
        self._common_number[common] = np.arange(len(common))
        self._common = np.zeros((len(common), len(texts)), np.float32)
        for number, which in enumerate(common.tolist()):
            self._common[number, self._owners[self._starts[which] : self._starts[which + 1]]] = 1.0
        self._may_be = np.zeros(1 << _FILTER_BITS, bool)
        self._may_be[self._places(self._values)] = True

    def sharing(self, texts: _native.Texts) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield which of these texts share a rarest feature, and the document it is shared with; each pair once."""
        offsets, values, weights = (
            np.asarray(part) for part in _native.features(texts, self._rules, threads=self._threads)
        )
        hits = np.flatnonzero(self._may_be[self._places(values)])
        found = np.searchsorted(self._values, values[hits])
        found[found == len(self._values)] = 0
        is_one = self._values[found] == values[hits] if len(self._values) else np.zeros(0, bool)
        hits, found = hits[is_one], found[is_one]
        texts_of = np.searchsorted(offsets, hits, side="right") - 1
        step = max(1, _CELLS_AT_ONCE // self._num_documents)
        for first in range(0, len(texts), step):
            num = min(step, len(texts) - first)
            part = slice(*np.searchsorted(texts_of, (first, first + num)).tolist())
            if part.start == part.stop:
                continue
            shared = self._shared(texts_of[part] - first, found[part], num)
            if self._measure in _MASS_MEASURES and np.count_nonzero(shared) > _DENSE * shared.size:
                self.num_added_up += shared.size
                if self._masses is None:
                    self._masses = SharedMasses(*self._all, self._num_documents)
                ends = offsets[first : first + num + 1]
                some = slice(int(ends[0]), int(ends[-1]))
                shared &= self._masses.may_match(
                    ends - ends[0], values[some], weights[some], _MASS_MEASURES[self._measure](self._threshold)
                )
            near, mine = np.nonzero(shared)
            yield near + first, mine

    def _shared(self, texts: NDArray[np.int64], found: NDArray[np.int64], num_texts: int) -> NDArray[np.bool_]:
        """Return which texts share a feature with which documents, from (text, feature) entries."""
        shared = np.zeros((num_texts, self._num_documents), bool)
        common = self._common_number[found]
        is_common = common >= 0
        if is_common.any():
            has = np.zeros((num_texts, len(self._common)), np.float32)
            has[texts[is_common], common[is_common]] = 1.0
            shared |= has @ self._common > 0.0
        texts, found = texts[~is_common], found[~is_common]
        for rows, entries in _entries(self._starts, texts, found):
            shared[rows, self._owners[entries]] = True
        return shared

    @staticmethod
    def _places(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
        return values >> np.uint64(64 - _FILTER_BITS)

    @staticmethod
    def _rarest(
        offsets: NDArray[np.int64],
        values: NDArray[np.uint64],
        owners: NDArray[np.int64],
        masses: NDArray[np.float64],
        left_out: float,
    ) -> NDArray[np.int64]:
        """Return the entries that are among the rarest features of their document."""
        _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
        # Most common features of a document first, ties by hash.
        order = np.lexsort((values, -counts[number], owners))
        ends = np.cumsum(masses[order])
        before = np.append(0.0, ends)
        of_document = ends - before[offsets[:-1]][owners[order]]
        totals = (before[offsets[1:]] - before[offsets[:-1]])[owners[order]]
        kept: NDArray[np.int64] = order[of_document >= left_out * totals * _ALMOST]
        return kept


def _left_out(measure: str, threshold: float) -> float:
    """Return the share of a document's mass that a match must have in common with it."""
    bounds = {
        "jaccard": threshold,
        "dice": threshold / (2.0 - threshold),
        # The omitted part of a unit vector has at most the root of the omitted squares as its norm.
        "cosine": threshold**2,
    }
    return bounds.get(measure, 0.0)


class SharedMasses:
    """Upper bounds of the mass that texts and documents share; they rule out pairs that only share a template.

    Parameters
    ----------
    values : ndarray, uint64
        Features of the documents.
    owners : ndarray, int64
        Document of each feature.
    weights : ndarray
        Weight of each feature in its document.
    num_documents : int
        Number of documents.
    """

    def __init__(
        self, values: NDArray[np.uint64], owners: NDArray[np.int64], weights: NDArray[np.integer], num_documents: int
    ) -> None:
        by_value = np.argsort(values, kind="stable")
        self._values, starts = np.unique(values[by_value], return_index=True)
        self._starts = np.append(starts, len(by_value))
        self._owners, self._weights = owners[by_value], weights[by_value].astype(np.float32)
        self._num_documents = num_documents
        self._masses = np.bincount(owners, weights=weights, minlength=num_documents).astype(np.float32)
        counts = np.diff(self._starts)
        common = np.flatnonzero(counts * _COMMON_PART > num_documents)
        self._common_number = np.full(len(counts), -1, np.int64)
        self._common_number[common] = np.arange(len(common))
        self._common = np.zeros((len(common), num_documents), np.float32)
        for number, which in enumerate(common.tolist()):
            part = slice(int(self._starts[which]), int(self._starts[which + 1]))
            self._common[number, self._owners[part]] = self._weights[part]

    def may_match(
        self, offsets: NDArray[np.int64], values: NDArray[np.uint64], weights: NDArray[np.integer], part: float
    ) -> NDArray[np.bool_]:
        """Return which texts may share the given part of the sum of both masses with which documents.

        A shared feature counts with the document's weight, which is at least the lower one of both.
        """
        num_texts = len(offsets) - 1
        texts = np.repeat(np.arange(num_texts), np.diff(offsets))
        masses = np.bincount(texts, weights=weights, minlength=num_texts).astype(np.float32)
        found = np.searchsorted(self._values, values)
        found[found == len(self._values)] = 0
        is_one = self._values[found] == values
        texts, found = texts[is_one], found[is_one]
        common = self._common_number[found]
        is_common = common >= 0
        has = np.zeros((num_texts, len(self._common)), np.float32)
        has[texts[is_common], common[is_common]] = 1.0
        shared = has @ self._common
        texts, found = texts[~is_common], found[~is_common]
        for rows, entries in _entries(self._starts, texts, found):
            np.add.at(shared, (rows, self._owners[entries]), self._weights[entries])
        needed = np.float32(part * _ALMOST_SINGLE) * (masses[:, None] + self._masses[None, :])
        return np.asarray(shared >= needed)


def _entries(
    starts: NDArray[np.int64], texts: NDArray[np.int64], found: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Yield texts and matching entries in the lists of owners, part by part.

    The owners of a feature are consecutive, from its start.
    """
    counts = starts[found + 1] - starts[found]
    ends, start = np.cumsum(counts), 0
    while start < len(found):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _SHARED_AT_ONCE, "right")))
        some = counts[start:stop]
        within = np.arange(int(some.sum())) - np.repeat(np.cumsum(some) - some, some)
        yield np.repeat(texts[start:stop], some), np.repeat(starts[found[start:stop]], some) + within
        start = stop
