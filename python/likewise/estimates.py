"""Estimates: resemblance and containment of two sets as their samples tell them, with their error."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Of the normal distribution, 95 % lie within so many standard deviations.
_DEVIATIONS = 1.959963984540054


class Estimate(NamedTuple):
    """A similarity as samples tell it.

    Parameters
    ----------
    value : float
        0 to 1; NaN where the samples tell nothing, since nothing was drawn of what the question is about.
    standard_error : float
        0 only where the value is exact: a share of 0 or 1 among few hashes is not known to be that. NaN with the value.
    low, high : float
        The interval that holds the truth with a probability of 95 %. Both are the value where it is exact, and 0 and 1
        where nothing is known.
    is_exact : bool
        Whether the value is that of the whole sets.
    """

    value: float
    standard_error: float
    low: float
    high: float
    is_exact: bool

    @staticmethod
    def exact(value: float) -> "Estimate":
        """Return what whole sets tell."""
        return Estimate(value, 0.0, value, value, is_exact=True)

    @staticmethod
    def unknown() -> "Estimate":
        """Return what a sample tells of which nothing was drawn."""
        return Estimate(math.nan, math.nan, 0.0, 1.0, is_exact=False)


def estimate_of_share(num_found: int, num_drawn: int, population: float = math.inf) -> Estimate:
    """Return the share of a population that was found `num_found` times among `num_drawn` of it.

    Parameters
    ----------
    num_found : int
        Draws that are what is looked for.
    num_drawn : int
        Draws without replacement, 1 or more.
    population : float
        What was drawn from, `num_drawn` or more; infinite for draws with replacement.

    Returns
    -------
    Estimate
        The share among the draws, with no bias. Its standard error is that of the smoothed share
        ``(num_found + 1) / (num_drawn + 2)``, since the share itself would promise no error at 0 and 1. The interval is
        that of the score test with continuity correction, which covers 95 % or more whatever the share.

    Notes
    -----
    Source: Wilson, Probable inference, JASA 22 (1927); with continuity correction Newcombe, Statistics in Medicine 17
    (1998), method 4; without replacement Cochran, Sampling Techniques (1977), sections 2.6 and 3.6.

    Examples
    --------
    >>> found = estimate_of_share(64, 64)
    >>> found.value, round(found.standard_error, 3), round(found.low, 3), found.high
    (1.0, 0.015, 0.929, 1.0)
    """
    value = num_found / num_drawn
    # The share of the variance of draws with replacement that is left.
    left = 1.0 if math.isinf(population) else (population - num_drawn) / (population - 1.0) if population > 1 else 0.0
    if left <= 0:
        return Estimate.exact(value)
    smoothed = (num_found + 1) / (num_drawn + 2)
    error = math.sqrt(smoothed * (1 - smoothed) / num_drawn * left)
    step, effective = 0.5 / num_drawn, num_drawn / left
    low = 0.0 if num_found == 0 else _score_bound(value - step, effective, -_DEVIATIONS)
    high = 1.0 if num_found == num_drawn else _score_bound(value + step, effective, _DEVIATIONS)
    return Estimate(value, error, min(low, value), max(high, value), is_exact=False)


def _score_bound(share: float, num_draws: float, deviations: float) -> float:
    """Return the share p with ``share = p - deviations * sqrt(p (1 - p) / num_draws)``, within 0 and 1."""
    share = min(1.0, max(0.0, share))
    square = deviations * deviations / num_draws
    root = deviations * math.sqrt((share * (1 - share) + square / 4) / num_draws)
    return min(1.0, max(0.0, (share + square / 2 + root) / (1 + square)))


@dataclass(frozen=True, eq=False)
class SamplePair:
    """Two samples of one kind, and the sizes of their sets.

    Parameters
    ----------
    kind, size
        As of ``Samples``.
    a, b : ndarray of uint64
        The hashes.
    total_a, total_b : int
        Sizes of the sets.
    is_whole : (bool, bool)
        Whether each sample is its whole set.
    """

    kind: str
    size: int
    a: NDArray[np.uint64]
    b: NDArray[np.uint64]
    total_a: int
    total_b: int
    is_whole: tuple[bool, bool]

    def resemblance(self) -> Estimate:
        """Return the Jaccard similarity of the sets."""
        special = self._of_empty()
        if special is not None:
            return special
        if all(self.is_whole):
            shared = self._num_shared(self.a, self.b)
            return Estimate.exact(shared / (self.total_a + self.total_b - shared))
        if self.kind == "min-wise":
            # Permutations draw one by one, with replacement.
            return estimate_of_share(int(np.count_nonzero(self.a == self.b)), self.size)
        mine, theirs = self._comparable()
        shared = self._num_shared(mine, theirs)
        num_drawn = len(mine) + len(theirs) - shared
        if not num_drawn:
            return Estimate.unknown()
        # Not both are whole, so that their union has members that were not drawn.
        population = (self.total_a + self.total_b) / (1 + shared / num_drawn)
        return estimate_of_share(shared, num_drawn, max(population, self.total_a, self.total_b, num_drawn + 1))

    def containment(self) -> Estimate:
        """Return the share of the first set found in the second."""
        special = self._of_empty()
        if special is not None:
            return special
        if all(self.is_whole):
            return Estimate.exact(self._num_shared(self.a, self.b) / self.total_a)
        if self.kind == "min-wise":
            return self._containment_by_resemblance()
        mine, theirs = self._comparable()
        if not len(mine):
            return Estimate.unknown()
        return estimate_of_share(self._num_shared(mine, theirs), len(mine), self.total_a)

    def _containment_by_resemblance(self) -> Estimate:
        found = self.resemblance()
        scale = (self.total_a + self.total_b) / self.total_a

        def contained(resemblance: float) -> float:
            # Shared features from the Jaccard similarity J: J (|A| + |B|) / (1 + J).
            return min(1.0, scale * resemblance / (1 + resemblance))

        error = scale * found.standard_error / (1 + found.value) ** 2
        return Estimate(contained(found.value), error, contained(found.low), contained(found.high), is_exact=False)

    def _comparable(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes of both up to which each sample holds all of its set."""
        if self.kind == "min-s":
            # Beyond the least `size` of both a hash of one that the other's sample lacks may still be in its set.
            last = np.union1d(self.a, self.b)[: self.size][-1]
        else:
            # A sample that would be empty is the whole set instead, of which the other's tells no more than of any.
            last = np.uint64((2**64 - 1) // self.size)
        return self.a[self.a <= last], self.b[self.b <= last]

    def _of_empty(self) -> Estimate | None:
        """Return what holds for empty documents: two are alike, one is like nothing else."""
        if self.total_a and self.total_b:
            return None
        return Estimate.exact(float(self.total_a == self.total_b))

    @staticmethod
    def _num_shared(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int:
        return len(np.intersect1d(a, b, assume_unique=True))
