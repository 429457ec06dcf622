"""The rarest features of some documents: what matches one of them has at least one of its own."""

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native

# Bits of the hash by which most features of other documents are passed over.
_FILTER_BITS = 22
# Shared features written out at once, and pairs of a text and a document.
_SHARED_AT_ONCE = 1_000_000
_CELLS_AT_ONCE = 2_000_000
# A feature is common if more than this part of the documents have it among their rarest.
_COMMON_PART = 4
# Beyond this part of the pairs what they share is added up before they are measured.
_DENSE = 0.01
# Of both masses together, the part that a match must share.
_MASS_MEASURES: dict[str, Callable[[float], float]] = {
    "jaccard": lambda threshold: threshold / (1.0 + threshold),
    "dice": lambda threshold: threshold / 2.0,
}
# Sums in single precision are exact up to 2^24, and are taken a little higher.
_ALMOST_SINGLE = 1.0 - 1e-5
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
        # Pairs whose shared features were added up so far.
        self.num_added_up = 0
        self._measure, self._threshold, self._all = measure, threshold, (values, owners, weights)
        self._masses: SharedMasses | None = None
        kept = self._rarest(offsets, values, owners, masses, _left_out(measure, threshold))
        by_value = kept[np.argsort(values[kept], kind="stable")]
        self._values, starts = np.unique(values[by_value], return_index=True)
        self._starts = np.append(starts, len(by_value))
        self._owners = owners[by_value]
        self._num_documents = len(texts)
        # Who has the most common ones, as a matrix: features of a template would be listed for each pair of its pages.
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
        """Yield which of these texts share a rarest feature, and with which of the documents; each pair once."""
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
        """Return which of some texts shares a feature with which document, by (text, feature) entries."""
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


class SharedMasses:
    """What texts share at most with each of several documents: spares measuring pages that share a template alone.

    Parameters
    ----------
    values : ndarray, uint64
        Features of the documents.
    owners : ndarray, int64
        Document of each.
    weights : ndarray
        Weight of each there.
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
        """Return which texts may share that part of the mass of both with which document.

        A shared feature counts with the document's weight, which is at least the lower one of the two.
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
    """Yield the entries of the owners of features with the texts that have these, some at a time.

    The owners of a feature stand end to end from its start on.
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
