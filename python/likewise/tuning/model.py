"""Model of the probability that a pair is a duplicate, from labels and all unlabeled pairs.

The best F1 of a grid on sixty pairs is mostly luck: a threshold falls between two labels, and one of sixteen recipes
fits by chance. But the similarities of all pairs of a sample are known. So one logistic model of ranks and of the mean
similarity, with normal priors, is fitted to the labels, and tuning proposes the recipe and threshold with the highest
expected F1 over all pairs. Pairs to label are drawn by uncertainty, which depends only on the features of the model, so
they need no weights. It is unknown how given labels were drawn; the model has an offset for this. Reported figures are
measured on held-out labels, where an answered pair represents its neighbors in the order of odds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.tuning.sample import Sample

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
