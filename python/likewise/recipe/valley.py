"""Choice of the threshold that separates duplicates in a collection: the rule of ``threshold="auto"``.

The input is similarities and weights, the output one choice. Counts are integers, and the only exponential is computed
in decimal arithmetic, so the choice is the same on all processors. All constants of the rule are in this module.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import distinct
from likewise.errors import counted

# The rule is defined for Jaccard similarities; two sets of equal size with j have cosine 2j / (1 + j).
MEASURES = ("jaccard", "cosine")
# Similarities are counted in bins of a thousandth; thresholds are hundredths.
_BINS = 1000
_STEP = 10
# Range of thresholds, in bins, and half the width of the triangular kernel.
_LOWEST, _HIGHEST = 360, 950
_HALF_WIDTH = 100
# The threshold minimizes log density + pull (t - _CENTER)^2; the center was best on labeled sets. Below it there is
# less to gain, so the pull is stronger.
_PULL, _PULL_BELOW = 100, 400
_CENTER = 440
# Kernel value of one pair at its own position, added to every density: empty ranges compare by the pull alone.
_ONE_PAIR = _HALF_WIDTH
# A bin that fewer sampled documents reach shows nothing: no changed document can get there.
_LEAST_DOCUMENTS = 20
# A valley has this ratio of the highest density above it to its own; without it, no background reaches it. Where both
# miss it by so much, there is no valley; where the one that misses it by less does so by less than this, the threshold
# changes in proportion.
_LEAST_RATIO, _WITHOUT_RATIO = 1.35, 0.3
# Bits of document numbers that cut the sample into halves, which must not differ by more than this.
_HALVING_BITS = 4
_STABLE_WITHIN = 0.03

FEW_PAIRS, NO_VALLEY, ONE_FORM = REASONS = "few pairs", "no valley", "one form"
# The threshold without a valley, in bins: of few similar documents; without a gap, and what a usual document needs.
_OF_FEW_PAIRS = 500
_WITHOUT_GAP, _REQUIRED_WITHOUT_GAP = 550, 650
# Where the density falls between these to less than half, the threshold rises by so much, in bins, while documents with
# several similar ones grow from a tenth of those with any to two: a mean would follow the few with dozens.
_FALLING = (600, 800)
_OF_FAMILIES = 370


class Valley(NamedTuple):
    """The threshold of a collection, with its basis."""

    # The chosen similarity, in hundredths
    threshold: float
    # Why a fixed threshold was chosen; None if the valley decides
    reason: str | None
    # Ratio of the highest density above the valley to the density in it; None with a reason
    clarity: float | None
    # Sampled documents with a pair below the threshold (from the lowest considered on), and with one from it on.
    num_documents_below: int
    num_documents_above: int
    # Lowest and highest threshold that the same rule chooses from eight halves of the sample
    halves: tuple[float, float]
    # Whether all of them are within 0.03 of the threshold
    is_stable: bool
    # Similarity, ascending to 1, and density there, in pairs per hundredth
    curve: list[tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return the choice as JSON values."""
        return {
            "threshold": self.threshold,
            "reason": self.reason,
            "clarity": None if self.clarity is None else round(self.clarity, 3),
            "num_documents_below": self.num_documents_below,
            "num_documents_above": self.num_documents_above,
            "halves": list(self.halves),
            "is_stable": self.is_stable,
            "density": [[similarity, round(density, 3)] for similarity, density in self.curve],
        }


def choice_lines(facts: Mapping[str, Any]) -> list[str]:
    """Return sentences about the chosen threshold, its basis, and its reliability."""
    whom = "distinct document" if facts["num_sampled"] == facts["num_documents"] else "distinct sampled document"
    sampled = (
        f"of {counted(facts['num_sampled'], whom)}, {facts['num_documents_above']:,} have a similar one at "
        f"or above it, {facts['num_documents_below']:,} below it down to {lowest_similarity(facts['measure']):g}"
    )
    if facts["reason"] is None:
        why = (
            f"similarities are rare there, {facts['clarity']:,.1f} times rarer than at the peak above"
            if facts["clarity"] >= _LEAST_RATIO
            else "similarities are about as rare below it as at it, so only duplicates are near"
        )
        line = f"threshold {facts['threshold']:g} (auto): {facts['measure']} {why}; {sampled}"
    else:
        lowest = f"{lowest_threshold(facts['measure']):g}"
        reasons = {
            FEW_PAIRS: f"fewer than {_LEAST_DOCUMENTS} have a similar one at or above {lowest}, too few to show where "
            "duplicates begin",
            NO_VALLEY: f"{facts['measure']} similarities have no gap between duplicates and other documents",
            ONE_FORM: f"{facts['measure']} similarities fall without a gap, and documents have several partners, as "
            "those of one form do, so only nearly equal features match",
        }
        rare = {"none": "--weights idf", "log-count": "--weights log-count-idf"}.get(facts["weights"])
        ways = ["give a threshold", "choose one from labeled pairs with likewise tune"]
        ways = [f"try {rare}", *ways] if rare and facts["reason"] != FEW_PAIRS else ways
        advice = f"{', '.join(ways[:-1])} or {ways[-1]}"
        line = (
            f"threshold {facts['threshold']:g} (auto, the default without a valley): {sampled}; "
            f"{reasons[facts['reason']]}. {advice[0].upper()}{advice[1:]}."
        )
    if facts["is_stable"]:
        return [line]
    low, high = facts["halves"]
    return [
        line,
        f"the threshold is uncertain: halves of the sample give {low:g} to {high:g}; likewise tune can choose one "
        "from labeled pairs",
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
    margin: float = 0.0,
) -> Valley:
    """Choose the threshold where the density of similarities is lowest.

    The density uses a triangular kernel of half width 0.1. The threshold is the hundredth t from 0.36 to 0.95 with the
    smallest log(density + one pair) + 100 (t - 0.44)^2, or 400 (t - 0.44)^2 below 0.44; of equal ones, the nearest to
    0.44, then the lower one. Only values that at least 20 sampled documents reach with a pair are considered; if there
    are none, the threshold is 0.5. The choice separates if it is not the upper end of the range, and the highest
    density above it is at least 1.35 times its own, or the highest one below it is not. If both miss this by 0.3 or
    more, the threshold is 0.55, or 0.65 minus the margin if that is lower, but at least 0.44; up to 0.37 more in a
    collection of one form, and there at least as high as in each half of the sample, where ten documents suffice.
    Between, it is between both. Cosines c are converted to this scale as c / (2 - c), and the threshold is rounded to
    a hundredth again.
    """
    weights = np.ones(len(similarity), np.int64) if weight is None else weight
    values = similarity if measure == "jaccard" else similarity / (2.0 - similarity)
    bins = np.searchsorted(np.arange(_BINS + 1) / _BINS, values, side="right").astype(np.int64) - 1
    density = _density(bins, weights)
    threshold, reason, clarity = _choice(bins, document, weights, density, _LEAST_DOCUMENTS, measure, margin)
    halves = []
    for bit in range(_HALVING_BITS):
        for value in range(2):
            half = (document >> bit) % 2 == value
            some = _density(bins[half], weights[half])
            halves.append(
                _choice(bins[half], document[half], weights[half], some, _LEAST_DOCUMENTS // 2, measure, margin)[0]
            )
    low, high = min(halves), max(halves)
    if reason == ONE_FORM:
        # In doubt, documents stay.
        threshold = max(threshold, high)
    is_above = similarity >= threshold
    return Valley(
        threshold=threshold,
        reason=reason,
        clarity=clarity,
        num_documents_below=len(distinct(document[(bins >= _LOWEST - _HALF_WIDTH) & ~is_above])),
        num_documents_above=len(distinct(document[is_above])),
        halves=(low, high),
        is_stable=round(max(high - threshold, threshold - low), 2) <= _STABLE_WITHIN,
        curve=[
            (_of_scale(at, measure), int(density[at]) * _STEP / _HALF_WIDTH**2)
            for at in range(_LOWEST - _HALF_WIDTH, _BINS + 1, _STEP)
        ],
    )


@cache
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


def _choice(
    bins: NDArray[np.int64],
    document: NDArray[np.int64],
    weights: NDArray[np.int64],
    density: NDArray[np.int64],
    least_documents: int,
    measure: str,
    margin: float,
) -> tuple[float, str | None, float | None]:
    """Return the threshold, the reason if it is not at a valley, and the clarity of the valley."""
    highest = np.full(int(document.max(initial=0)) + 1, -1)
    np.maximum.at(highest, document, bins)
    reached = int(np.sort(highest)[-least_documents]) if len(highest) >= least_documents else -1
    places = range(_LOWEST, min(_HIGHEST, reached) + 1, _STEP)
    if not places:
        return _of_scale(_OF_FEW_PAIRS, measure), FEW_PAIRS, None
    place = min(places, key=lambda at: (_score(int(density[at]), at), abs(at - _CENTER), at))
    below, above = density[_LOWEST - _HALF_WIDTH : place + 1].max(), density[place:].max()
    background, clarity = ((int(peak) + _ONE_PAIR) / (int(density[place]) + _ONE_PAIR) for peak in (below, above))
    first, second = (int(density[at]) + _ONE_PAIR for at in _FALLING)
    lower = density[_LOWEST - _HALF_WIDTH : place].sum()
    falls = clarity < _LEAST_RATIO and 2 * second < first and 2 * lower > density[place:].sum()
    missed = min((_LEAST_RATIO - clarity) / _WITHOUT_RATIO, 1.0)
    if not falls:
        missed = min(missed, (background - _LEAST_RATIO) / _WITHOUT_RATIO)
    if place < _HIGHEST and missed <= 0.0:
        return _of_scale(place, measure), None, clarity
    more = 0
    if falls:
        num_similar = np.bincount(document, weights * (bins >= _LOWEST - _HALF_WIDTH))
        num_documents, num_several = int((num_similar > 0).sum()), int((num_similar > 1).sum())
        share = (10 * num_several - num_documents) / num_documents
        more = round(_OF_FAMILIES * min(1.0, max(0.0, share)))
    strict = min(_of_scale(_WITHOUT_GAP + more, measure), _of_scale(_REQUIRED_WITHOUT_GAP + more, measure) - margin)
    strict = max(_of_scale(_CENTER, measure), strict)
    if place < _HIGHEST:
        strict = _of_scale(place, measure) + missed * (strict - _of_scale(place, measure))
    return round(strict, 2), ONE_FORM if more else NO_VALLEY, None


def _score(density: int, at: int) -> int:
    """Return the value that the threshold minimizes: the exponential of log density + pull, in units of 10^-20."""
    return (density + _ONE_PAIR) * _pull(at)


@cache
def _pull(at: int) -> int:
    from decimal import Context, Decimal

    # Use a separate context: that of the caller may have another precision.
    context = Context(prec=40)
    distance = context.divide(Decimal(at - _CENTER), Decimal(_BINS))
    square = context.multiply(distance, distance)
    pull = context.multiply(square, Decimal(_PULL_BELOW if at < _CENTER else _PULL))
    return int(context.multiply(context.exp(pull), Decimal(10**20)))
