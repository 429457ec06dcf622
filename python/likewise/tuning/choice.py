"""Which recipe and threshold labeled pairs support, and how certain that is."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.stages.sets import Estimate, estimate_of_share
from likewise.tuning.model import fitted, probability
from likewise.tuning.sample import Sample

_NUM_FOLDS = 5
_DIGITS_OF_ODDS = 6
# Of labels that tell nothing one set in ten seems to tell more than this many standard errors.
_STANDARD_ERRORS = 1.28
# Scores that are the same to the digits that are shown.
_EQUAL = 0.0005


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of labeled pairs and of the sample, for each candidate recipe.

    Parameters
    ----------
    similarity : ndarray of shape (candidates, m), float64
        Of each labeled pair.
    is_duplicate : ndarray of shape (m,), bool
        What was said of it.
    weight : ndarray of shape (m,), float64
        For how many pairs it stands.
    sample : Sample
        All pairs of the sample.
    places : ndarray of shape (m,), int64, optional
        Number of each labeled pair in the sample, -1 where the sample does not hold it; all -1 if None.
    excluded : ndarray of shape (e,), int64, optional
        Numbers of pairs of the sample that were labeled as neither.
    """

    similarity: NDArray[np.float64]
    is_duplicate: NDArray[np.bool_]
    weight: NDArray[np.float64]
    sample: Sample
    places: NDArray[np.int64] | None = None
    excluded: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.is_duplicate)

    @property
    def is_weighted(self) -> bool:
        """Whether labels stand for different numbers of pairs, since they were drawn that way."""
        return len(self.weight) > 0 and bool((self.weight != self.weight[0]).any())

    def part(self, which: NDArray[np.int64]) -> "Evidence":
        """Return what some of the labels tell."""
        return Evidence(
            self.similarity[:, which],
            self.is_duplicate[which],
            self.weight[which],
            self.sample,
            None if self.places is None else self.places[which],
            self.excluded,
        )

    def expected_f1(self, coefficients: NDArray[np.float64]) -> list[NDArray[np.float64]]:
        """Return the F1 of each candidate at each setting, by the labels and by the model for all other pairs."""
        likely = probability(self.sample.features_of_pool @ coefficients)
        if self.places is None:
            return self.sample.expected_f1(likely, excluded=self.excluded)
        is_there = self.places >= 0
        return self.sample.expected_f1(likely, self.places[is_there], self.is_duplicate[is_there], self.excluded)


class Chosen(NamedTuple):
    """A candidate and a setting of it.

    Parameters
    ----------
    candidate : int
        Its number.
    setting : float
        The threshold.
    score : float
        F1 that is expected on the sample.
    """

    candidate: int
    setting: float
    score: float


@dataclass(frozen=True)
class Measured:
    """Precision, recall and F1, each with a 95% interval.

    Parameters
    ----------
    precision, recall, f1 : Estimate
        For pairs like the labeled ones, each counted with its weight.
    """

    precision: Estimate
    recall: Estimate
    f1: Estimate

    def to_dict(self) -> dict[str, dict[str, float | None]]:
        """Return values and bounds by name; None where nothing is known."""
        return {
            name: {"value": None if found.value != found.value else found.value, "low": found.low, "high": found.high}
            for name, found in (("precision", self.precision), ("recall", self.recall), ("f1", self.f1))
        }


def choose(evidence: Evidence) -> Chosen:
    """Return the candidate and setting that labels speak for; see :func:`choices`."""
    return choices(evidence)[0]


def choices(evidence: Evidence) -> tuple[Chosen, list[Chosen]]:
    """Return what is chosen, and the best setting of each candidate, by the F1 that is expected on the sample.

    Notes
    -----
    From the labels follows how likely each pair of the sample is a duplicate (:func:`likewise.tuning.model.fitted`),
    by one model for all candidates. So F1 is expected at every setting, counted over all pairs of the sample and not
    over the few labels, and recipes are told apart by the pairs that one takes and the other does not. A labeled
    pair of the sample counts as what it is, and one labeled as neither not at all: with many labels the model has
    little left to say. Labeled duplicates are some of those that the model expects in the sample, so that fewer are
    left among the other pairs. A setting counts with its two neighbors; of those equal to the best in three digits
    the first candidate is chosen, plain 3-grams of words before all others.
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
    """Return the mean of each value and its neighbors; at the ends the value itself stands for the missing one."""
    padded = np.concatenate([curve[:1], curve, curve[-1:]])
    found: NDArray[np.float64] = (padded[:-2] + padded[1:-1] + padded[2:]) / 3
    return found


def _plateau(curve: NDArray[np.float64]) -> int:
    """Return where a curve is highest; of several places in a row the middle one."""
    highest = curve >= curve.max() - 1e-9
    first = int(np.argmax(highest))
    rest = highest[first:]
    length = len(rest) if rest.all() else int(np.argmin(rest))
    return first + (length - 1) // 2


class HeldOut(NamedTuple):
    """What labels say of choices that were made without them.

    Parameters
    ----------
    measured : Measured
        Of the pairs that were taken.
    are_told_apart : bool
        Whether duplicates seemed likelier than the others, by more than chance would do in one case of ten.
    """

    measured: Measured
    are_told_apart: bool


def cross_validated(evidence: Evidence) -> HeldOut:
    """Return what the choice reaches on labels that it was not made by: five parts, each judged by the other four."""
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
    # Equal evidence gets odds that differ by rounding, since each part has coefficients of its own.
    odds = np.round(odds, _DIGITS_OF_ODDS)
    return HeldOut(
        measured(verdicts, evidence.is_duplicate, evidence.weight), are_told_apart(odds, evidence.is_duplicate)
    )


def are_told_apart(values: NDArray[np.float64], is_duplicate: NDArray[np.bool_]) -> bool:
    """Return whether those of duplicates are higher, by the rank test of Mann and Whitney (1947)."""
    own, others = values[is_duplicate], np.sort(values[~is_duplicate])
    num_pairs = len(own) * len(others)
    if not num_pairs:
        return False
    below = np.searchsorted(others, own, side="left") + np.searchsorted(others, own, side="right")
    error = np.sqrt((len(values) + 1) / (12 * num_pairs))
    return bool(below.sum() / (2 * num_pairs) > 0.5 + _STANDARD_ERRORS * error)


def _folds(is_duplicate: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return the part of each label: each part has its share of both kinds."""
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
    F1 = 2 S / (1 + S), where S is the share of the true ones among all pairs that are taken, or are duplicates, or
    both; so its interval is that of a share. Weighted labels count as the number of equal ones that would tell as much:
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
    # Only how weights compare counts; their squares may be beyond any number.
    largest = some.max()
    some = some / largest
    value = float((weight[hits & among] / largest).sum() / some.sum())
    # As many equal labels as would tell as much; whole ones, as the interval counts.
    num_drawn = max(1, int(some.sum() ** 2 / (some**2).sum() + 0.5))
    num_found = int(value * num_drawn + 0.5)
    told = estimate_of_share(num_found, num_drawn)
    return Estimate(value, told.standard_error, min(told.low, value), max(told.high, value), is_exact=False)
