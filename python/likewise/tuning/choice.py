"""Choice of recipe and threshold from labeled pairs, and its uncertainty."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.recipe.recipe import Recipe
from likewise.stages.sets import Estimate, estimate_of_share
from likewise.tuning.grid import Candidate, Sample

# Priors of the log odds: (mean, standard deviation) of the coefficient of each feature of `Sample.features`. Odds fall
# faster than the square of the rank and rise by a factor of e per tenth of similarity; each candidate's own rank may
# matter as much as the mean.
_AT_RANK_OF_DOCUMENTS = (0.0, 3.0)
_OF_RANK = (2.5, 1.0)
_OF_TENTH = (1.0, 1.0)
_OF_CANDIDATE = (0.0, 1.0)
# For labels of unknown origin: log odds by which they show duplicates more often than the sample does.
_OF_DRAW = (1.0, 2.0)
# Weight of the assumption, per labeled duplicate, that these are spread over the sample; a few labels' at most.
_SHARE_OF_SAMPLE = 0.05
_FEW_LABELS = 100
_MOST_STEPS = 200
_LEAST_GAIN = 1e-6

_NUM_FOLDS = 5
_DIGITS_OF_ODDS = 6
# Uninformative labels seem informative by more than this many standard errors in one of ten cases.
_STANDARD_ERRORS = 1.28
# Scores that are equal in the digits shown.
_EQUAL = 0.0005


def fitted(
    sample: Sample,
    features: NDArray[np.float64],
    is_duplicate: NDArray[np.bool_],
    *,
    is_drawn_by_likeness: bool,
) -> NDArray[np.float64]:
    """Return the coefficients of the log odds that a pair is a duplicate: shape (candidates + 3,).

    Logistic regression with normal priors, at the maximum of the posterior. If labels are drawn by similarity, the draw
    contains no information beyond the features, and labels are used as they are. If their origin is unknown, their log
    odds exceed the sample's by an offset with its own prior, and the labeled duplicates are assumed to be drawn from
    the sample's: each also contributes ln(p / sum of p over the sample), with a weight of 1/20, and all together at
    most as much as in a hundred labels.
    """
    num = features.shape[1]
    priors = np.array([_AT_RANK_OF_DOCUMENTS, _OF_RANK, _OF_TENTH, *[_OF_CANDIDATE] * (num - 3), _OF_DRAW])
    mean, precision = priors[:, 0].copy(), priors[:, 1] ** -2
    if is_drawn_by_likeness:
        mean[num] = 0.0
    share = 0.0 if is_drawn_by_likeness else _SHARE_OF_SAMPLE * min(1.0, _FEW_LABELS / max(1, len(is_duplicate)))
    duplicates = features[is_duplicate]
    said = is_duplicate.astype(np.float64)

    def loss(at: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
        odds = features @ at[:num] + at[num]
        gain = float(said @ odds - np.logaddexp(0.0, odds).sum() - 0.5 * precision @ (at - mean) ** 2)
        missed = said - probability(odds)
        slope = np.append(features.T @ missed, 0.0 if is_drawn_by_likeness else missed.sum()) - precision * (at - mean)
        if share and len(duplicates):
            own = duplicates @ at[:num]
            likely = probability(sample.few_features @ at[:num])
            total = float(sample.few_stand_for @ likely) + np.finfo(float).tiny
            gain -= share * float(np.logaddexp(0.0, -own).sum() + len(duplicates) * np.log(total))
            change = sample.few_features.T @ (sample.few_stand_for * likely * (1 - likely)) / total
            slope[:num] += share * (duplicates.T @ (1 - probability(own)) - len(duplicates) * change)
        return -gain, -slope

    return _lowest(loss, mean, 1 / precision)[:num]


def probability(odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return probabilities from log odds."""
    found: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(odds, -500.0, 500.0)))
    return found


def _lowest(
    loss: Callable[[NDArray[np.float64]], tuple[float, NDArray[np.float64]]],
    at: NDArray[np.float64],
    scale: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the minimum near a start, by BFGS with step halving (Nocedal and Wright, 2006, algorithm 6.1)."""
    value, slope = loss(at)
    inverse = np.diag(scale)
    for _ in range(_MOST_STEPS):
        step = -inverse @ slope
        fall = float(slope @ step)
        if -fall < _LEAST_GAIN:
            break
        length = 1.0
        while True:
            there = at + length * step
            value_there, slope_there = loss(there)
            if value_there <= value + 1e-4 * length * fall:
                break
            length /= 2
            if length < 1e-9:
                return at
        moved, turned = there - at, slope_there - slope
        at, value, slope = there, value_there, slope_there
        along = float(moved @ turned)
        if along > 1e-12:
            left = np.eye(len(at)) - np.outer(moved, turned) / along
            inverse = left @ inverse @ left.T + np.outer(moved, moved) / along
    return at


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


def choices(evidence: Evidence, coefficients: NDArray[np.float64] | None = None) -> tuple[Chosen, list[Chosen]]:
    """Return the choice, and the best setting of each candidate, by expected F1 on the sample.

    The labels determine the probability that each pair of the sample is a duplicate
    (:func:`likewise.tuning.choice.fitted`), by one model for all candidates. F1 is therefore estimated at every setting
    over all pairs of the sample instead of the few labels, and recipes are distinguished by the pairs on which they
    disagree. A labeled pair of the sample counts by its label, and a pair labeled as neither is ignored, so with many
    labels the model has little influence. Labeled duplicates are among those that the model expects in the sample, so
    they reduce the number expected among the other pairs. Scores are averaged over a setting and its two neighbors. If
    several candidates equal the best score in three digits, the first one is chosen; word 3-grams without weights come
    first.
    """
    sample = evidence.sample
    curves = evidence.expected_f1(_coefficients(evidence) if coefficients is None else coefficients)
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
    random = np.random.default_rng(0)
    folds = np.zeros(len(evidence.is_duplicate), np.int64)
    dealt = 0
    for kind in (True, False):
        which = random.permutation(np.flatnonzero(evidence.is_duplicate == kind))
        folds[which] = (dealt + np.arange(len(which))) % _NUM_FOLDS
        dealt += len(which)
    for number in range(_NUM_FOLDS):
        left_out = np.flatnonzero(folds == number)
        rest = evidence.part(np.flatnonzero(folds != number))
        if len(left_out) and rest.is_duplicate.any():
            coefficients = _coefficients(rest)
            chosen = choices(rest, coefficients)[0]
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


def measured(
    verdicts: NDArray[np.bool_], is_duplicate: NDArray[np.bool_], weight: NDArray[np.float64] | None = None
) -> Measured:
    """Return precision, recall and F1 of verdicts on labeled pairs, with their intervals; NaN if nothing is counted.

    Parameters
    ----------
    verdicts, is_duplicate : ndarray of shape (m,), bool
        Which pairs were predicted to be duplicates, and which are.
    weight : ndarray of shape (m,), float64, optional
        Number of pairs that each represents; one if None.

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


@dataclass(frozen=True)
class Tried:
    """A candidate recipe with its best setting.

    Parameters
    ----------
    candidate : Candidate
        Its features and measure.
    setting : float
        The threshold; for distances, 1 - radius / bits.
    score : float
        Expected F1 on the sample, by which candidates are ranked.
    on_labels : Measured
        Results on the labels used to choose it: an upper bound.
    curve : list of (float, float, float)
        Threshold, precision and recall on the labels; for tokens of users, at each radius of 64 bits from 20 to 0.
    """

    candidate: Candidate
    setting: float
    score: float
    on_labels: Measured
    curve: list[tuple[float, float, float]]

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        within = self.candidate.radius(self.setting) if self.candidate.measure == "hamming" else None
        return {
            **{name: getattr(self.candidate, name) for name in ("name", "measure", "tokens", "shingle", "weights")},
            **({"threshold": self.setting} if within is None else {"within": within}),
            "score": self.score,
            "on_labels": self.on_labels.to_dict(),
            "curve": [list(point) for point in self.curve],
        }


@dataclass(frozen=True)
class Proposal:
    """The recipe that fits labeled pairs best.

    Parameters
    ----------
    recipe : Recipe
        Recipe for ``--recipe``.
    chosen : Tried
        The candidate that it comes from.
    held_out : Measured
        Results of the choice on held-out labels.
    tried : list of Tried
        All candidates, the best first.
    num_documents, num_sampled : int
        Number of documents in the inputs, and number of those of which all pairs were measured.
    num_duplicates, num_others : int
        Number of labels of each kind that were used.
    notes : list of str
        Notes to read before relying on the recipe.
    """

    recipe: Recipe
    chosen: Tried
    held_out: Measured
    tried: list[Tried]
    num_documents: int
    num_sampled: int
    num_duplicates: int
    num_others: int
    notes: list[str] = field(default_factory=list)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        parts = {name: getattr(self, name).to_dict() for name in ("recipe", "chosen", "held_out")}
        return vars(self) | parts | {"tried": [one.to_dict() for one in self.tried]}
