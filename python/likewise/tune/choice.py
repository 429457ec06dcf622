"""Which recipe and threshold labelled pairs speak for, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.estimates import Estimate, estimate_of_share

# A label counts for settings around its similarity, within so much: a threshold that passes between two of sixty labels
# by a hair is not better than its neighbours.
_HALF_WIDTH = 0.2
# Of labels with weights: those of unlike pairs may stand for thousands, which must not spread.
_HALF_WIDTH_OF_WEIGHTED = 0.07
# How much the pairs of the sample that nobody labelled count beside the labels.
_SHARE_OF_SAMPLE = 0.65
# A recipe that the grid has later must be better by so many standard errors of the difference.
_STANDARD_ERRORS = 0.25
_NUM_RESAMPLED = 200
# Labels of no kind that are thought to stand everywhere.
_PRIOR = 0.3
_NUM_FOLDS = 5
# Recall from which on a setting tells how many duplicates there may be.
_LEAST_RECALL = 0.5
# In place of a divisor that is 0 where the dividend is too.
_TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Evidence:
    """What is known of labelled pairs and of the sample, for each candidate recipe.

    Parameters
    ----------
    similarity : ndarray of shape (candidates, m), float64
        Of each labelled pair.
    is_duplicate : ndarray of shape (m,), bool
        What was said of it.
    weight : ndarray of shape (m,), float64
        For how many pairs it stands.
    settings : list of ndarray
        Thresholds of each candidate, rising.
    num_above : list of ndarray
        Pairs of the sample that each of these takes.
    """

    similarity: NDArray[np.float64]
    is_duplicate: NDArray[np.bool_]
    weight: NDArray[np.float64]
    settings: Sequence[NDArray[np.float64]]
    num_above: Sequence[NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.is_duplicate)

    @property
    def is_weighted(self) -> bool:
        """Whether labels stand for different numbers of pairs, since they were drawn that way."""
        return len(self.weight) > 0 and bool((self.weight != self.weight[0]).any())

    def part(self, which: NDArray[np.int64]) -> "Evidence":
        """Return what some of the labels tell."""
        return Evidence(
            self.similarity[:, which], self.is_duplicate[which], self.weight[which], self.settings, self.num_above
        )


class Chosen(NamedTuple):
    """A candidate and a setting of it.

    Parameters
    ----------
    candidate : int
        Its number.
    setting : float
        The threshold.
    score : float
        Smoothed F1, on the labels that it was chosen by.
    """

    candidate: int
    setting: float
    score: float


@dataclass(frozen=True)
class Measured:
    """Precision, recall and F1, each with the interval that holds the truth with a probability of 95 %.

    Parameters
    ----------
    precision, recall, f1 : Estimate
        Of pairs like the labelled ones, each as often as its weight says.
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
    """Return what is chosen, and the best setting of each candidate by smoothed F1.

    Of candidates that are as good within doubt the first is chosen.

    Notes
    -----
    Each label counts for a setting by a triangular kernel around its similarity. Where labels weigh alike nothing is
    known of how they were drawn, and few of them may stand where most pairs are. So the sample is asked too: with R the
    share of the labelled duplicates above a setting, P the duplicates in the sample (at most its pairs above a setting
    with R of a half, over R), and O its pairs above the setting that are none by the labels near each of them,
    2 P R / (P R + O + P). Both F1 enter by a weighted harmonic mean.
    """
    curves, kernels = smoothed_f1(evidence)
    best = [_plateau(curve) for curve in curves]
    scores = np.array([curve[at] for curve, at in zip(curves, best, strict=True)])
    top = int(np.argmax(scores))
    found = [Chosen(k, float(evidence.settings[k][at]), float(scores[k])) for k, at in enumerate(best)]
    first = next(k for k in range(top + 1) if scores[top] - scores[k] <= _doubt(evidence, kernels, best, k, top))
    return found[first], found


def smoothed_f1(evidence: Evidence) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
    """Return the F1 of each candidate at each of its settings, and how far each label is above each setting."""
    weight, positive = evidence.weight, evidence.weight * evidence.is_duplicate
    total = positive.sum()
    width = _HALF_WIDTH_OF_WEIGHTED if evidence.is_weighted else _HALF_WIDTH
    kernels = [
        _passed(similarity[:, None] - settings[None, :], width)
        for similarity, settings in zip(evidence.similarity, evidence.settings, strict=True)
    ]
    of_labels = [2 * (positive @ passed) / np.maximum(weight @ passed + total, _TINY) for passed in kernels]
    if evidence.is_weighted or total == 0:
        return of_labels, kernels
    recalls = [(positive @ passed) / total for passed in kernels]
    doubtful = [
        _num_doubtful(similarity, settings, above, evidence.is_duplicate)
        for similarity, settings, above in zip(evidence.similarity, evidence.settings, evidence.num_above, strict=True)
    ]
    # Duplicates of the sample: no more than what any setting takes, over its recall.
    bounds = [
        (above[recall >= _LEAST_RECALL] / recall[recall >= _LEAST_RECALL]).min(initial=np.inf)
        for recall, above in zip(recalls, evidence.num_above, strict=True)
    ]
    num_duplicates = max(min(bounds), total)
    of_sample = [
        2 * num_duplicates * recall / (num_duplicates * recall + others + num_duplicates)
        if np.isfinite(num_duplicates)
        else np.ones_like(recall)
        for recall, others in zip(recalls, doubtful, strict=True)
    ]
    joined = []
    for labels, sample in zip(of_labels, of_sample, strict=True):
        # A weighted harmonic mean: low where either is low.
        both = np.minimum(labels, sample) > 0
        mean = np.zeros_like(labels)
        mean[both] = 1.0 / ((1 - _SHARE_OF_SAMPLE) / labels[both] + _SHARE_OF_SAMPLE / sample[both])
        joined.append(mean)
    return joined, kernels


def _num_doubtful(
    similarity: NDArray[np.float64],
    settings: NDArray[np.float64],
    num_above: NDArray[np.float64],
    is_duplicate: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Return how many pairs of the sample above each setting are no duplicates, by the labels near each of them."""
    near = np.maximum(0.0, 1.0 - np.abs(similarity[:, None] - settings[None, :]) / _HALF_WIDTH)
    share = ((~is_duplicate) @ near + _PRIOR / 2) / (near.sum(axis=0) + _PRIOR)
    between = num_above - np.append(num_above[1:], 0.0)
    return np.cumsum((between * share)[::-1])[::-1]


def _passed(above: NDArray[np.float64], width: float) -> NDArray[np.float64]:
    """Return the distribution function of a triangle around 0, at these differences."""
    u = np.clip(above / width, -1.0, 1.0)
    return np.where(u < 0, 0.5 * (1 + u) * (1 + u), 1 - 0.5 * (1 - u) * (1 - u))


def _plateau(curve: NDArray[np.float64]) -> int:
    """Return where a curve is highest; of several places in a row the middle one."""
    highest = curve >= curve.max() - 1e-12
    first = int(np.argmax(highest))
    rest = highest[first:]
    length = len(rest) if rest.all() else int(np.argmin(rest))
    return first + (length - 1) // 2


def _doubt(evidence: Evidence, kernels: Sequence[NDArray[np.float64]], best: Sequence[int], k: int, top: int) -> float:
    """Return how much better one candidate must be than another to be told from it: resampled labels."""
    weight = _resampled(len(evidence)) * evidence.weight
    positive = weight * evidence.is_duplicate
    found = []
    for number in (top, k):
        passed = kernels[number][:, best[number]]
        found.append(2 * (positive @ passed) / np.maximum(weight @ passed + positive.sum(axis=1), _TINY))
    return _STANDARD_ERRORS * float(np.std(found[0] - found[1]))


@lru_cache(maxsize=8)
def _resampled(num_labels: int) -> NDArray[np.int64]:
    """Return how often each label is drawn when as many are drawn with replacement: shape (resamples, labels)."""
    random = np.random.default_rng(0)
    drawn = random.integers(0, num_labels, (_NUM_RESAMPLED, num_labels))
    return np.stack([np.bincount(row, minlength=num_labels) for row in drawn])


def cross_validated(evidence: Evidence, candidates: Sequence[int] | None = None) -> Measured:
    """Return what the choice reaches on labels that it was not made by: five parts, each judged by the other four.

    Parameters
    ----------
    evidence : Evidence
        All labels.
    candidates : sequence of int, optional
        Choose among these alone.
    """
    if candidates is not None:
        evidence = Evidence(
            evidence.similarity[list(candidates)],
            evidence.is_duplicate,
            evidence.weight,
            [evidence.settings[k] for k in candidates],
            [evidence.num_above[k] for k in candidates],
        )
    verdicts = np.zeros(len(evidence), bool)
    folds = _folds(evidence.is_duplicate)
    for number in range(_NUM_FOLDS):
        left_out = np.flatnonzero(folds == number)
        rest = evidence.part(np.flatnonzero(folds != number))
        if len(left_out) and rest.is_duplicate.any():
            chosen = choose(rest)
            verdicts[left_out] = evidence.similarity[chosen.candidate, left_out] >= chosen.setting
    return measured(verdicts, evidence.is_duplicate, evidence.weight)


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
    """Return precision, recall and F1 of verdicts on labelled pairs, with their intervals.

    Parameters
    ----------
    verdicts, is_duplicate : ndarray of shape (m,), bool
        What was taken for duplicates, and what is.
    weight : ndarray of shape (m,), float64, optional
        For how many pairs each stands; one where None.

    Returns
    -------
    Measured
        NaN, with bounds 0 and 1, where nothing is counted.

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
    value = float(weight[hits & among].sum() / some.sum())
    # As many equal labels as would tell as much; whole ones, as the interval counts.
    num_drawn = max(1, int(some.sum() ** 2 / (some**2).sum() + 0.5))
    num_found = int(value * num_drawn + 0.5)
    told = estimate_of_share(num_found, num_drawn)
    return Estimate(value, told.standard_error, min(told.low, value), max(told.high, value), is_exact=False)
