"""How likely a pair is a duplicate, from labels and from all the pairs that nobody labeled.

The best F1 of a grid on sixty pairs is mostly luck: a threshold passes between two labels, and one of sixteen recipes
fits by chance. But the similarities of all pairs of a sample are known. So one logistic model of ranks and of the mean
similarity, with normal priors, is fitted to the labels, and the recipe and threshold of the highest F1 expected over
all pairs are proposed. Pairs to label are drawn by doubt, which depends on what the model sees alone, so they need no
weights. How given labels were drawn is unknown; the model has an offset for it. Reported figures are measured on labels
held out, where an asked pair represents those next to it in the order of odds.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from likewise.tuning.sample import Sample

# Log odds before any label: (mean, standard deviation) of the coefficient of each feature of `Sample.features`. Odds
# fall with more than the square of the rank, rise by e with a tenth of similarity, and each candidate's own rank may
# matter as much as the mean.
_AT_RANK_OF_DOCUMENTS = (0.0, 3.0)
_OF_RANK = (2.5, 1.0)
_OF_TENTH = (1.0, 1.0)
_OF_CANDIDATE = (0.0, 1.0)
# How much more often labels show a duplicate than the sample does, as a logarithm of odds, where nobody knows.
_OF_DRAW = (1.0, 2.0)
# How much it counts for each labeled duplicate that these are spread over the sample as its duplicates are. It is an
# assumption, so that more labels than a few give it no more weight.
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

    Parameters
    ----------
    sample : Sample
        Of all pairs.
    features : ndarray of shape (m, candidates + 3)
        Of the labeled pairs, by ``sample.features``.
    is_duplicate : ndarray of shape (m,), bool
        What was said of them.
    is_drawn_by_likeness : bool
        Whether how alike they are is all that decided which pairs were labeled, as `likewise tune` asks. Otherwise
        labels may show duplicates more often than the sample does.

    Notes
    -----
    Logistic regression with normal priors, at the maximum. Where labels are drawn by likeness, the draw tells nothing
    that the features do not, and they count as they are. Where nobody knows how they were drawn, their log odds are
    higher than the sample's by a number with a prior of its own, and the labeled duplicates are thought to be drawn
    from the sample's: each counts ln(p / sum of p over the sample) as well, twenty times less, and all together no more
    than those of a hundred labels would.
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
    """Return where a smooth function is lowest near a start.

    BFGS with halved steps (Nocedal and Wright, Numerical Optimization, 2006, algorithm 6.1).
    """
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
