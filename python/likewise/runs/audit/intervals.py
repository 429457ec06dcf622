"""Shares of a collection from a stratified sample of its documents, with intervals that hold the truth."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Both sides together 5 in a hundred.
_TAIL = 0.025
_NORMAL = 1.959963984540054
# A share up to here is that of what is rare.
_MOST_RARE = 0.2
# Beyond, the cube root of a gamma variable is normal to more digits than are shown.
_MOST_EXACT_SHAPE = 10_000.0


@dataclass(frozen=True)
class Share:
    """A share with its 95% interval.

    Parameters
    ----------
    value, low, high : float
        0 to 1, with `value` between `low` and `high`; NaN, 0 and 1 if nothing is known.
    is_exact : bool
        Whether all relevant documents were examined.
    """

    value: float
    low: float
    high: float
    is_exact: bool

    @property
    def rest(self) -> "Share":
        """One minus the share."""
        return Share(1.0 - self.value, 1.0 - self.high, 1.0 - self.low, self.is_exact)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; null if nothing is known."""
        value = None if math.isnan(self.value) else self.value
        return {"value": value, "low": self.low, "high": self.high, "is_exact": self.is_exact}


@dataclass(frozen=True, eq=False)
class StratumTotals:
    """What a random sample of a stratum was found to have.

    Parameters
    ----------
    num_documents : int
        Documents of the stratum, the sampled ones among them.
    totals : ndarray of shape (n,), float64
        What each sampled document has of what is counted.
    parts : ndarray of shape (n,), float64
        How much of it is of the kind whose share is asked.
    """

    num_documents: int
    totals: NDArray[np.float64]
    parts: NDArray[np.float64]

    @property
    def others(self) -> NDArray[np.float64]:
        """How much of it is of another kind."""
        return self.totals - self.parts

    @property
    def weight(self) -> float:
        """Documents that a sampled one stands for."""
        return self.num_documents / len(self.totals) if len(self.totals) else 0.0


def share(strata: Sequence[StratumTotals], *, least_part: float, least_other: float, known_total: float = 0.0) -> Share:
    """Return the share that the parts have in the totals of all documents.

    Parameters
    ----------
    strata : sequence of StratumTotals
        Each sampled by itself, at random and without replacement.
    least_part : float
        What a document has at least, if it has any part.
    least_other : float
        What it has at least of another kind, if any; 0 where all that is of another kind is known.
    known_total : float
        What is to be added to the totals, of documents outside the strata that have no part.

    Returns
    -------
    Share
        The value is the combined ratio estimate. Where all documents of all strata are sampled it is exact.

    Notes
    -----
    The sampled document is the unit, with everything that is counted of it, so that pairs which come in clusters are
    not taken for independent ones. The variance is that of the linearized ratio, by strata, without replacement. The
    limits are those of a gamma distribution of this mean and variance; for the upper one the mean is first raised by
    one more sampled document with a part, of the stratum whose documents stand for most (Fay, Feuer: Confidence
    intervals for directly standardized rates, Statistics in Medicine 16, 1997). So a sample without any part does not
    prove that there is none. The rest has such limits too: the lower limit is the share beside the most rest, and of a
    share that is not rare one less the most rest, if that is lower.
    Source of the linearized ratio: Cochran, Sampling Techniques, 1977, 6.11.
    """
    total = known_total + sum(stratum.weight * float(stratum.totals.sum()) for stratum in strata)
    unseen = [stratum for stratum in strata if len(stratum.totals) < stratum.num_documents]
    if total <= 0.0 or any(len(stratum.totals) < 2 for stratum in unseen):
        return Share(math.nan, 0.0, 1.0, is_exact=not unseen)
    part = sum(stratum.weight * float(stratum.parts.sum()) for stratum in strata) / total
    if not unseen:
        return Share(part, part, part, is_exact=True)
    variance = sum(_variance(stratum, part) for stratum in unseen) / total**2
    weight = max(stratum.weight for stratum in unseen) / total
    parts = weight * _usual([stratum.parts for stratum in strata], least_part)
    others = weight * _usual([stratum.others for stratum in strata], least_other)
    least, most = _limits(part, variance, parts)
    least_others, most_others = _limits(1.0 - part, variance, others)
    low = min(least, part / (part + most_others)) if part > 0.0 else 0.0
    if part > _MOST_RARE:
        low = max(0.0, min(low, 1.0 - most_others))
    return Share(part, min(low, part), min(1.0, max(most, 1.0 - least_others, part)), is_exact=False)


def _usual(values: Sequence[NDArray[np.float64]], least: float) -> float:
    """Return the mean of what documents have that have any of it."""
    some = np.concatenate(values)
    some = some[some > 0.0]
    return max(least, float(some.mean())) if len(some) else least


def _limits(part: float, variance: float, one_more: float) -> tuple[float, float]:
    low = _gamma_limit(part, variance, _TAIL) if part > 0.0 else 0.0
    high = _gamma_limit(part + one_more, variance + one_more**2, 1.0 - _TAIL)
    return low, high


def _variance(stratum: StratumTotals, part: float) -> float:
    """Return the variance of the stratum's sum of residuals, of a sample without replacement."""
    num = len(stratum.totals)
    residuals = stratum.parts - part * stratum.totals
    unsampled = 1.0 - num / stratum.num_documents
    return stratum.num_documents**2 * unsampled * float(residuals.var(ddof=1)) / num


def _gamma_limit(mean: float, variance: float, probability: float) -> float:
    """Return the quantile of the gamma distribution of this mean and variance."""
    if variance <= 0.0:
        return mean
    return gamma_quantile(mean**2 / variance, probability) * variance / mean


def gamma_quantile(shape: float, probability: float) -> float:
    """Return the quantile of the gamma distribution of this shape and scale 1.

    Examples
    --------
    >>> round(gamma_quantile(1.0, 0.975), 6)  # -ln 0.025
    3.688879
    """
    if shape > _MOST_EXACT_SHAPE:
        z = _NORMAL if probability > 0.5 else -_NORMAL
        return shape * (1.0 - 1.0 / (9.0 * shape) + z / (3.0 * math.sqrt(shape))) ** 3
    low, high = 0.0, shape + 10.0 * math.sqrt(shape) + 10.0
    for _ in range(200):
        middle = (low + high) / 2
        if _gamma_share_below(shape, middle) < probability:
            low = middle
        else:
            high = middle
        if high - low <= 1e-12 * high:
            break
    return high


def _gamma_share_below(shape: float, x: float) -> float:
    """Return the regularized lower incomplete gamma function, by its series."""
    if x <= 0.0:
        return 0.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape + 1.0))
    term, total, n = 1.0, 1.0, shape
    while term > 1e-16 * total:
        n += 1.0
        term *= x / n
        total += term
    return min(1.0, scale * total)
