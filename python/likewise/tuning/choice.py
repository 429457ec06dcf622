"""Choice of recipe and threshold from labeled pairs, and its uncertainty."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.stages.sets import Estimate, estimate_of_share
from likewise.tuning.model import fitted, probability
from likewise.tuning.sample import Sample

_NUM_FOLDS = 5
_DIGITS_OF_ODDS = 6
# Uninformative labels seem informative by more than this many standard errors in one of ten cases.
_STANDARD_ERRORS = 1.28
# Scores that are equal in the digits shown.
_EQUAL = 0.0005


@dataclass(frozen=True, eq=False)
class Evidence:
    """Labeled pairs and the sample, measured by each candidate recipe."""

    similarity: NDArray[np.float64]
    is_duplicate: NDArray[np.bool_]
    # Number of pairs that each represents
    weight: NDArray[np.float64]
    sample: Sample
    # Number of each labeled pair in the sample, -1 if it is not in the sample; all -1 if None
    places: NDArray[np.int64] | None = None
    # Numbers of the pairs of the sample that were labeled as neither
    excluded: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.is_duplicate)

    @property
    def is_weighted(self) -> bool:
        """Whether labels represent different numbers of pairs, because they were drawn that way."""
        return len(self.weight) > 0 and bool((self.weight != self.weight[0]).any())

    def part(self, which: NDArray[np.int64]) -> "Evidence":
        """Return the evidence restricted to some labels."""
        return Evidence(
            self.similarity[:, which],
            self.is_duplicate[which],
            self.weight[which],
            self.sample,
            None if self.places is None else self.places[which],
            self.excluded,
        )

    def expected_f1(self, coefficients: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the F1 of each candidate at each setting, by the labels and, for all other pairs, the model."""
        likely = probability(self.sample.features_of_pool @ coefficients)
        if self.places is None:
            return self.sample.expected_f1(likely, excluded=self.excluded)
        is_there = self.places >= 0
        return self.sample.expected_f1(likely, self.places[is_there], self.is_duplicate[is_there], self.excluded)


class Chosen(NamedTuple):
    """A candidate and one of its settings."""

    candidate: int
    setting: float
    # Expected F1 on the sample
    score: float


@dataclass(frozen=True)
class Measured:
    """Precision, recall and F1, each with a 95% interval.

    Parameters
    ----------
    precision, recall, f1 : Estimate
        For pairs like the labeled ones, counted by weight.
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return values and bounds by name; None if a value is unknown."""
        return {
            name: {"value": None if found.value != found.value else found.value, "low": found.low, "high": found.high}
            for name, found in (("precision", self.precision), ("recall", self.recall), ("f1", self.f1))
        }


def choose(evidence: Evidence) -> Chosen:
    """Return the candidate and setting that the labels support best; see :func:`choices`."""
    return choices(evidence)[0]


def choices(evidence: Evidence) -> tuple[Chosen, list[Chosen]]:
    """Return the choice, and the best setting of each candidate, by expected F1 on the sample.

    The labels determine the probability that each pair of the sample is a duplicate
    (:func:`likewise.tuning.model.fitted`), by one model for all candidates. F1 is therefore estimated at every setting
    over all pairs of the sample instead of the few labels, and recipes are distinguished by the pairs on which they
    disagree. A labeled pair of the sample counts by its label, and a pair labeled as neither is ignored, so with many
    labels the model has little influence. Labeled duplicates are among those that the model expects in the sample, so
    they reduce the number expected among the other pairs. Scores are averaged over a setting and its two neighbors. If
    several candidates equal the best score in three digits, the first one is chosen; word 3-grams without weights come
    first.
    """
    return _choices(evidence, _coefficients(evidence))


def _choices(evidence: Evidence, coefficients: NDArray[np.float64]) -> tuple[Chosen, list[Chosen]]:
    sample = evidence.sample
    curves = evidence.expected_f1(coefficients)
    found = []
    for number, curve in enumerate(curves):
        smooth = _with_neighbors(curve)
        at = _plateau(smooth)
        found.append(Chosen(number, float(sample.settings[number][at]), float(smooth[at])))
    best = max(one.score for one in found)
    return next(one for one in found if one.score >= best - _EQUAL), found


def _coefficients(evidence: Evidence) -> NDArray[np.float64]:
    return fitted(
        evidence.sample,
        evidence.sample.features(evidence.similarity),
        evidence.is_duplicate,
        is_drawn_by_likeness=evidence.is_weighted,
    )


def _with_neighbors(curve: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of each value and its neighbors; at the ends, the value replaces the missing neighbor."""
    padded = np.concatenate([curve[:1], curve, curve[-1:]])
    found: NDArray[np.float64] = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    return found


def _plateau(curve: NDArray[np.float64]) -> int:
    """Return the position of the maximum of a curve; the middle one of several in a row."""
    highest = curve >= curve.max() - 1e-9
    first = int(np.argmax(highest))
    rest = highest[first:]
    length = len(rest) if rest.all() else int(np.argmin(rest))
    return first + (length - 1) // 2


class HeldOut(NamedTuple):
    """Results of choices on labels that they did not use."""

    # Results of the verdicts
    measured: Measured
    # Whether duplicates got higher odds than other pairs, at a level that chance reaches in one of ten cases
    are_told_apart: bool


def cross_validated(evidence: Evidence) -> HeldOut:
    """Return the results of the choice on held-out labels: five folds, each judged by a choice from the other four."""
    verdicts = np.zeros(len(evidence), bool)
    odds = np.zeros(len(evidence))
    folds = _folds(evidence.is_duplicate)
    for number in range(_NUM_FOLDS):
        left_out = np.flatnonzero(folds == number)
        rest = evidence.part(np.flatnonzero(folds != number))
        if len(left_out) and rest.is_duplicate.any():
            coefficients = _coefficients(rest)
            chosen = _choices(rest, coefficients)[0]
            verdicts[left_out] = evidence.similarity[chosen.candidate, left_out] >= chosen.setting
            odds[left_out] = evidence.sample.features(evidence.similarity[:, left_out]) @ coefficients
    # Equal evidence gets odds that differ by rounding, since each fold has its own coefficients.
    odds = np.round(odds, _DIGITS_OF_ODDS)
    return HeldOut(
        measured(verdicts, evidence.is_duplicate, evidence.weight), are_told_apart(odds, evidence.is_duplicate)
    )


def are_told_apart(values: NDArray[np.float64], is_duplicate: NDArray[np.bool_]) -> bool:
    """Return whether duplicates have higher values, by the rank test of Mann and Whitney (1947)."""
    own, others = values[is_duplicate], np.sort(values[~is_duplicate])
    num_pairs = len(own) * len(others)
    if not num_pairs:
        return False
    below = np.searchsorted(others, own, side="left") + np.searchsorted(others, own, side="right")
    error = np.sqrt((len(values) + 1) / (12 * num_pairs))
    return bool(below.sum() / (2 * num_pairs) > 0.5 + _STANDARD_ERRORS * error)


def _folds(is_duplicate: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the fold of each label; both kinds are spread evenly over the folds."""
    random = np.random.default_rng(0)
    folds = np.zeros(len(is_duplicate), np.int64)
    dealt = 0
    for kind in (True, False):
        which = random.permutation(np.flatnonzero(is_duplicate == kind))
        folds[which] = (dealt + np.arange(len(which))) % _NUM_FOLDS
        dealt += len(which)
    return folds


def measured(
    verdicts: NDArray[np.bool_], is_duplicate: NDArray[np.bool_], weight: NDArray[np.float64] | None = None
) -> Measured:
    """Return precision, recall and F1 of verdicts on labeled pairs, with their intervals.

    Parameters
    ----------
    verdicts, is_duplicate : ndarray of shape (m,), bool
        Which pairs were predicted to be duplicates, and which are.
    weight : ndarray of shape (m,), float64, optional
        Number of pairs that each represents; one if None.

    Returns
    -------
    Measured
        NaN, with bounds 0 and 1, if nothing is counted.

    Notes
    -----
    F1 = 2 S / (1 + S), where S is the share of true positives among all pairs that are predicted or labeled duplicates;
    so its interval is that of a share. Weighted labels count as the number of equal ones with the same information:
    (sum of weights)^2 / sum of squares (Kish, Survey Sampling, 1965, section 11.7).
    """
    weight = np.ones(len(verdicts)) if weight is None else weight
    hits = verdicts & is_duplicate
    precision = _share(hits, verdicts, weight)
    recall = _share(hits, is_duplicate, weight)
    share = _share(hits, verdicts | is_duplicate, weight)
    value, low, high = (2 * part / (1 + part) for part in (share.value, share.low, share.high))
    # The derivative of 2 S / (1 + S) is 2 / (1 + S)^2.
    error = share.standard_error * 2 / (1 + share.value) ** 2
    return Measured(precision, recall, Estimate(value, error, low, high, is_exact=False))


def _share(hits: NDArray[np.bool_], among: NDArray[np.bool_], weight: NDArray[np.float64]) -> Estimate:
    some = weight[among]
    if not len(some):
        return Estimate.unknown()
    # Only ratios of weights matter; squares of large weights could overflow.
    largest = some.max()
    some = some / largest
    value = float((weight[hits & among] / largest).sum() / some.sum())
    # Number of equal labels with the same information, rounded, since the interval needs an integer.
    num_drawn = max(1, int(some.sum() ** 2 / (some**2).sum() + 0.5))
    num_found = int(value * num_drawn + 0.5)
    told = estimate_of_share(num_found, num_drawn)
    return Estimate(value, told.standard_error, min(told.low, value), max(told.high, value), is_exact=False)
