"""Choice of the threshold that separates duplicates in a collection: the rule of ``threshold="auto"``.

The input is similarities and weights, the output one choice. Counts are integers, and the only exponential is computed
in decimal arithmetic, so the choice is the same on all processors. All constants of the rule are in this module.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Context, Decimal
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import distinct
from likewise.checks import counted

# The rule is defined for Jaccard similarities. Other measures are converted: two sets of equal size with Jaccard
# similarity j have cosine 2j / (1 + j).
MEASURES = ("jaccard", "cosine")
# Similarities are counted in bins of a thousandth; thresholds are hundredths.
_BINS = 1000
_STEP = 10
# Range of thresholds, in bins, and half the width of the triangular kernel.
_LOWEST, _HIGHEST = 300, 950
_HALF_WIDTH = 40
# The threshold minimizes log density + _PULL (t - _CENTER)^2.
_PULL = 20
_CENTER = 500
# Kernel value of one pair at its own position, added to every density: empty ranges compare by the pull alone.
_ONE_PAIR = _HALF_WIDTH
# With fewer documents that have a pair at or above the threshold, there are no duplicates to separate.
_LEAST_DOCUMENTS = 20
# Minimum ratio of the highest density above the valley to that in the valley.
_LEAST_CLARITY = 2.0
# Number of bits of the document numbers that cut the sample into halves. If the threshold of a half differs from that
# of the whole by more than this, in bins, the choice is reported as uncertain.
_HALVING_BITS = 4
_STABLE_WITHIN = 30

FEW_DOCUMENTS, FEW_PAIRS, NO_VALLEY = "few documents", "few pairs", "no valley"
# Fewer documents show neither where duplicates begin nor what is rare: a run uses values for any collection.
FEWEST_DOCUMENTS = 100
# The threshold without a valley, in bins; the second was the best one on docs/benchmarks/defaults.md.
_WITHOUT_VALLEY: Mapping[str, int] = {FEW_PAIRS: 800, NO_VALLEY: 650}


@dataclass(frozen=True)
class Valley:
    """The threshold of a collection, with its basis.

    Parameters
    ----------
    threshold : float
        The chosen similarity, in hundredths.
    reason : {"few documents", "few pairs", "no valley"}, optional
        Why a cautious threshold was chosen; None if the valley decides.
    clarity : float, optional
        Ratio of the highest density above the valley to the density in it; None with a reason.
    num_documents_below, num_documents_above : int
        Number of sampled documents with a pair from the lowest similarity considered to below the threshold, and with a
        pair at or above the threshold.
    halves : tuple of float, optional
        Lowest and highest threshold from the densities of eight halves of the sample; None with a reason.
    is_stable : bool, optional
        Whether all of them are within 0.03 of the threshold; None with a reason.
    curve : list of (float, float)
        Similarity, ascending to 1, and density there, in pairs per hundredth.
    """

    threshold: float
    reason: str | None
    clarity: float | None
    num_documents_below: int
    num_documents_above: int
    halves: tuple[float, float] | None
    is_stable: bool | None
    curve: list[tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        return {
            "threshold": self.threshold,
            "reason": self.reason,
            "clarity": None if self.clarity is None else round(self.clarity, 3),
            "num_documents_below": self.num_documents_below,
            "num_documents_above": self.num_documents_above,
            "halves": None if self.halves is None else list(self.halves),
            "is_stable": self.is_stable,
            "density": [[similarity, round(density, 3)] for similarity, density in self.curve],
        }


def choice_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences about the chosen threshold, its basis, and its reliability.

    Parameters
    ----------
    facts : mapping
        The result of :meth:`Valley.to_dict` with facts about the measurement: ``chosen_threshold`` of a summary.
    """
    if facts["reason"] == FEW_DOCUMENTS:
        return [
            f"threshold {facts['threshold']:g} (auto): fewer than {FEWEST_DOCUMENTS} documents are too few to choose "
            f"a threshold or to weight by rarity; this is the default threshold for these features "
            f"(weights {facts['weights']})"
        ]
    whom = "distinct document" if facts["num_sampled"] == facts["num_documents"] else "distinct sampled document"
    sampled = (
        f"of {counted(facts['num_sampled'], whom)}, {facts['num_documents_above']:,} have a similar one at "
        f"or above it, {facts['num_documents_below']:,} below it down to {lowest_similarity(facts['measure']):g}"
    )
    if facts["reason"] is None:
        lines = [
            f"threshold {facts['threshold']:g} (auto): {facts['measure']} similarities are rarest there, "
            f"{facts['clarity']:,.1f} times rarer than at the peak above; {sampled}"
        ]
        if not facts["is_stable"]:
            low, high = facts["halves"]
            lines.append(
                f"the threshold is uncertain: halves of the sample give {low:g} to {high:g}; likewise tune "
                "can choose one from labeled pairs"
            )
        return lines
    why = {
        FEW_PAIRS: "too few documents are similar to another one to show where duplicates begin",
        NO_VALLEY: f"{facts['measure']} similarities have no gap between duplicates and other documents",
    }
    rare = {"none": "--weights idf", "log-count": "--weights log-count-idf"}.get(facts["weights"])
    ways = ["give a threshold", "choose one from labeled pairs with likewise tune"]
    ways = [f"try {rare}", *ways] if rare and facts["reason"] == NO_VALLEY else ways
    advice = f"{', '.join(ways[:-1])} or {ways[-1]}"
    return [
        f"threshold {facts['threshold']:g} (auto, the cautious default): {why[facts['reason']]}; {sampled}. "
        f"{advice[0].upper()}{advice[1:]}."
    ]


def lowest_threshold(measure: str) -> float:
    """Return the lowest threshold that the rule can choose."""
    return _of_scale(_LOWEST, measure)


def lowest_similarity(measure: str) -> float:
    """Return the similarity below which pairs are ignored."""
    return _of_scale(_LOWEST - _HALF_WIDTH, measure)


def find_valley(
    similarity: NDArray[np.float64],
    document: NDArray[np.int64],
    weight: NDArray[np.int64] | None = None,
    *,
    measure: str = "jaccard",
    of_few_documents: float | None = None,
) -> Valley:
    """Choose the threshold where the density of similarities is lowest.

    Parameters
    ----------
    similarity : ndarray of shape (m,), float64
        Similarities of pairs of sampled documents with others.
    document : ndarray of shape (m,), int64
        Number of the sampled document of each pair; the numbers are in random order, and each of their last four bits
        cuts the sample into halves.
    weight : ndarray of shape (m,), int64, optional
        Number of pairs that each represents.
    measure : {"jaccard", "cosine"}
        Measure of the similarities.
    of_few_documents : float, optional
        Threshold of a collection with too few documents to look for a valley; None for other collections.

    Returns
    -------
    Valley
        Independent of the order of the pairs.

    Notes
    -----
    The density uses a triangular kernel of half width 0.04. The threshold is the hundredth t from 0.30 to 0.95 with the
    smallest log(density + one pair) + 20 (t - 0.5)^2; of equal ones, the nearest to 0.5, then the lower one. It is a
    valley if at least 20 sampled documents have a pair at or above it, it is not the upper end of the range, and the
    highest density above it is at least twice its own. Otherwise, the threshold is 0.8 with fewer documents, and 0.65
    without a valley. Cosines c are converted to this scale as c / (2 - c), and the threshold is rounded to a hundredth
    again.

    Examples
    --------
    >>> found = find_valley(np.repeat([0.3, 0.9], 50), np.arange(100))
    >>> found.threshold, found.reason
    (0.5, None)
    """
    weights = np.ones(len(similarity), np.int64) if weight is None else weight
    bins = _bins(similarity, measure)
    density = _density(bins, weights)
    place = _lowest(density)
    clarity = (int(density[place:].max()) + _ONE_PAIR) / (int(density[place]) + _ONE_PAIR)
    reason = None
    if of_few_documents is not None:
        reason = FEW_DOCUMENTS
    elif len(distinct(document[bins >= place])) < _LEAST_DOCUMENTS:
        reason = FEW_PAIRS
    elif place == _HIGHEST or clarity < _LEAST_CLARITY:
        reason = NO_VALLEY
    threshold = of_few_documents
    if threshold is None:
        threshold = _of_scale(place if reason is None else _WITHOUT_VALLEY[reason], measure)
    halves: list[int] = []
    if reason is None:
        halves = [
            _lowest(_density(bins[half], weights[half]))
            for bit in range(_HALVING_BITS)
            for half in ((document >> bit) % 2 == 0, (document >> bit) % 2 == 1)
        ]
    is_above = similarity >= threshold
    return Valley(
        threshold=threshold,
        reason=reason,
        clarity=clarity if reason is None else None,
        num_documents_below=len(distinct(document[(bins >= _LOWEST - _HALF_WIDTH) & ~is_above])),
        num_documents_above=len(distinct(document[is_above])),
        halves=(_of_scale(min(halves), measure), _of_scale(max(halves), measure)) if halves else None,
        is_stable=max(abs(half - place) for half in halves) <= _STABLE_WITHIN if halves else None,
        curve=[
            (_of_scale(at, measure), int(density[at]) * _STEP / _HALF_WIDTH**2)
            for at in range(_LOWEST - _HALF_WIDTH, _BINS + 1, _STEP)
        ],
    )


def _bins(similarity: NDArray[np.float64], measure: str) -> NDArray[np.int64]:
    """Return the bin, in thousandths, of each similarity on the scale of the rule."""
    values = similarity if measure == "jaccard" else similarity / (2.0 - similarity)
    return np.searchsorted(np.arange(_BINS + 1) / _BINS, values, side="right").astype(np.int64) - 1


def _of_scale(place: int, measure: str) -> float:
    """Return the similarity of a bin, rounded to a hundredth."""
    value = place / _BINS
    return round(value if measure == "jaccard" else 2.0 * value / (1.0 + value), 2)


def _density(bins: NDArray[np.int64], weights: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the sum of the kernel over pairs at each thousandth, in integers, so that order does not matter."""
    counts = np.zeros(_BINS + 1, np.int64)
    np.add.at(counts, bins, weights)
    kernel = _HALF_WIDTH - np.abs(np.arange(-_HALF_WIDTH + 1, _HALF_WIDTH))
    return np.convolve(counts, kernel, mode="same")


def _lowest(density: NDArray[np.int64]) -> int:
    """Return the bin of the threshold, in thousandths."""
    places = range(_LOWEST, _HIGHEST + 1, _STEP)
    return min(places, key=lambda at: (_score(int(density[at]), at), abs(at - _CENTER), at))


def _score(density: int, at: int) -> int:
    """Return the value that the threshold minimizes: the exponential of log density + pull, in units of 10^-20."""
    return (density + _ONE_PAIR) * _pull(at)


@cache
def _pull(at: int) -> int:
    # Use a separate context: that of the caller may have another precision.
    context = Context(prec=40)
    distance = context.divide(Decimal(at - _CENTER), Decimal(_BINS))
    square = context.multiply(distance, distance)
    return int(context.multiply(context.exp(context.multiply(square, Decimal(_PULL))), Decimal(10**20)))
