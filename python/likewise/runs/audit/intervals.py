"""Estimates of shares of a collection from a stratified sample of its documents, with confidence intervals."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Both tails together: 5%.
_TAIL = 0.025
_NORMAL = 1.959963984540054
# Maximum value of a share that is treated as rare.
_MOST_RARE = 0.2
# Above this, the cube root of a gamma variable is normal to more digits than are shown.
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
    """Totals of a random sample of a stratum."""

    num_documents: int
    # Total count of each sampled document
    totals: NDArray[np.float64]
    # How much of the total is of the kind whose share is estimated
    parts: NDArray[np.float64]

    @property
    def others(self) -> NDArray[np.float64]:
        """How much of the total is of another kind."""
        return self.totals - self.parts

    @property
    def weight(self) -> float:
        """Number of documents that a sampled one represents."""
        return self.num_documents / len(self.totals) if len(self.totals) else 0.0


def share(strata: Sequence[StratumTotals], *, least_part: float, least_other: float, known_total: float = 0.0) -> Share:
    """Return the share of the parts in the totals of all documents.

    The sampled document is the unit, with all its counts, so that clustered pairs are not treated as independent. The
    variance is that of the linearized ratio, by strata, without replacement. The limits are quantiles of a gamma
    distribution with this mean and variance; for the upper limit, the mean is first raised by one more sampled document
    with a part, in the stratum with the largest weight (Fay, Feuer: Confidence intervals for directly standardized
    rates, Statistics in Medicine 16, 1997). A sample without any part therefore does not prove that there is none. The
    rest (the other kind) has such limits too: the lower limit of the share is part / (part + largest rest); for a share
    that is not rare, it is 1 - largest rest if that is lower.
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
    """Return the mean of the positive values, or `least` if that is greater or there are none."""
    some = np.concatenate(values)
    some = some[some > 0.0]
    return max(least, float(some.mean())) if len(some) else least


def _limits(part: float, variance: float, one_more: float) -> tuple[float, float]:
    low = _gamma_limit(part, variance, _TAIL) if part > 0.0 else 0.0
    high = _gamma_limit(part + one_more, variance + one_more**2, 1.0 - _TAIL)
    return low, high


def _variance(stratum: StratumTotals, part: float) -> float:
    """Return the variance of the stratum's sum of residuals, for a sample without replacement."""
    num = len(stratum.totals)
    residuals = stratum.parts - part * stratum.totals
    unsampled = 1.0 - num / stratum.num_documents
    return stratum.num_documents**2 * unsampled * float(residuals.var(ddof=1)) / num


def _gamma_limit(mean: float, variance: float, probability: float) -> float:
    """Return the quantile of the gamma distribution with this mean and variance."""
    if variance <= 0.0:
        return mean
    return gamma_quantile(mean**2 / variance, probability) * variance / mean


def gamma_quantile(shape: float, probability: float) -> float:
    """Return the quantile of the gamma distribution with this shape and scale 1.

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
    """Return the regularized lower incomplete gamma function, computed by its series."""
    if x <= 0.0:
        return 0.0
    scale = math.exp(shape * math.log(x) - x - math.lgamma(shape + 1.0))
    term, total, n = 1.0, 1.0, shape
    while term > 1e-16 * total:
        n += 1.0
        term *= x / n
        total += term
    return min(1.0, scale * total)
