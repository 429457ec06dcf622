"""The rarest features of some documents: what matches one of them has at least one of its own."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native

# Bits of the hash by which most features of other documents are passed over.
_FILTER_BITS = 22
# Shared features written out at once.
_SHARED_AT_ONCE = 4_000_000
# Bounds are taken a little lower, so that no rounding loses a pair.
_ALMOST = 1.0 - 1e-9


class RarestFeatures:
    """The rarest features of each of several documents, and who shares them.

    Parameters
    ----------
    texts : Texts
        The documents.
    rules : FeatureRules
        Whose features count.
    measure : str
        One of the set measures.
    threshold : float
        What a match is.
    threads : int
        Threads of each call.

    Notes
    -----
    Of a document A the features are left out that most of these documents have, as long as those left out come to less
    than any match must share: with masses (the weights; for cosine their squares) t of A's mass for jaccard,
    t/(2-t) for dice, t^2 for cosine. A document that shares none of the rest cannot reach the threshold t. For
    containment and overlap, where a small document is enough, nothing is left out. How common a feature is
    changes the cost alone. It is the bound of the prefix join, here without its order of all documents.
    """

    def __init__(
        self, texts: _native.Texts, rules: _native.FeatureRules, *, measure: str, threshold: float, threads: int
    ) -> None:
        self._rules, self._threads = rules, threads
        offsets, values, weights = (np.asarray(part) for part in _native.features(texts, rules, threads=threads))
        owners = np.repeat(np.arange(len(texts)), np.diff(offsets))
        masses = weights.astype(np.float64) ** (2 if measure == "cosine" else 1)
        kept = self._rarest(offsets, values, owners, masses, _left_out(measure, threshold))
        by_value = kept[np.argsort(values[kept], kind="stable")]
        self._values, starts = np.unique(values[by_value], return_index=True)
        self._starts = np.append(starts, len(by_value))
        self._owners = owners[by_value]
        self._num_documents = len(texts)
        self._may_be = np.zeros(1 << _FILTER_BITS, bool)
        self._may_be[self._places(self._values)] = True

    def sharing(self, texts: _native.Texts) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of these texts share a rarest feature, and with which of the documents; each pair once."""
        offsets, values, _ = (np.asarray(part) for part in _native.features(texts, self._rules, threads=self._threads))
        hits = np.flatnonzero(self._may_be[self._places(values)])
        found = np.searchsorted(self._values, values[hits])
        found[found == len(self._values)] = 0
        is_one = self._values[found] == values[hits] if len(self._values) else np.zeros(0, bool)
        hits, found = hits[is_one], found[is_one]
        texts_of = np.searchsorted(offsets, hits, side="right") - 1
        counts = self._starts[found + 1] - self._starts[found]
        pairs, ends, start = [np.zeros(0, np.int64)], np.cumsum(counts), 0
        while start < len(found):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _SHARED_AT_ONCE, "right")))
            some = counts[start:stop]
            # The owners of a feature stand end to end from its start on.
            within = np.arange(int(some.sum())) - np.repeat(np.cumsum(some) - some, some)
            owners = self._owners[np.repeat(self._starts[found[start:stop]], some) + within]
            pairs.append(np.unique(np.repeat(texts_of[start:stop], some) * self._num_documents + owners))
            start = stop
        both = np.unique(np.concatenate(pairs))
        return both // self._num_documents, both % self._num_documents

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
        """Return which entries are among the rarest features of their document."""
        _, number, counts = np.unique(values, return_inverse=True, return_counts=True)
        # The most common of a document first, equally common ones by their hash.
        order = np.lexsort((values, -counts[number], owners))
        ends = np.cumsum(masses[order])
        before = np.append(0.0, ends)
        of_document = ends - before[offsets[:-1]][owners[order]]
        totals = (before[offsets[1:]] - before[offsets[:-1]])[owners[order]]
        kept: NDArray[np.int64] = order[of_document >= left_out * totals * _ALMOST]
        return kept


def _left_out(measure: str, threshold: float) -> float:
    """Return the share of a document's mass that any match must have in common with it."""
    bounds = {
        "jaccard": threshold,
        "dice": threshold / (2.0 - threshold),
        # A unit vector's part outside of the rest is at most the root of its squares.
        "cosine": threshold**2,
    }
    return bounds.get(measure, 0.0)
