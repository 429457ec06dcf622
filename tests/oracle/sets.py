"""All pairs of sets by brute force; samples of sets and the estimates from them, from the papers."""

import math
from fractions import Fraction

from tests.oracle import measures
from tests.oracle.features import MASK, expansion, mix

GOLDEN = 0x9E3779B97F4A7C15


def all_pairs(sets, measure, threshold):
    """Return {(a, b): similarity} of pairs at or above the threshold, a < b; for containment of a in b, both ways."""
    found = {}
    for a in range(len(sets)):
        for b in range(len(sets)):
            if a == b or (measure != "containment" and a > b):
                continue
            value = measures.similarity(sets[a], sets[b], measure)
            if value >= threshold:
                found[a, b] = value
    return found


def hashes(weights, seed=0):
    key = mix((GOLDEN ^ seed) & MASK)
    return {mix(f ^ key) for f in expansion(weights)}


def min_s(weights, size, seed=0):
    """Return the `size` smallest hashes (Broder 1997, section 3: MIN_s)."""
    return sorted(hashes(weights, seed))[:size]


def mod_m(weights, m, seed=0):
    """Return the hashes up to 2^64 / m; all of them if none is that small."""
    found = sorted(hashes(weights, seed))
    return [h for h in found if h <= MASK // m] or found


def min_s_resemblance(a, b, size):
    """Return |MIN_s(MIN_s(A) + MIN_s(B)) & MIN_s(A) & MIN_s(B)| / |MIN_s(...)| (Broder 1997)."""
    united = sorted(set(a) | set(b))[:size]
    return Fraction(len(set(united) & set(a) & set(b)), len(united))


def drawn_error(num_found, num_drawn, population):
    """Return the standard deviation of a share drawn without replacement, smoothed by Laplace's rule."""
    share = (num_found + 1) / (num_drawn + 2)
    return math.sqrt(share * (1 - share) / num_drawn * left(num_drawn, population))


def left(num_drawn, population):
    """Return the share of the variance that drawing without replacement leaves (Cochran 1977, section 2.6)."""
    return 1 if population == math.inf else (population - num_drawn) / (population - 1)


def drawn_interval(num_found, num_drawn, population):
    """Return shares within 1.96 of their own standard deviations of the one found, less half a draw (Newcombe 1998).

    By bisection between the found share and 0, or 1.
    """
    found = num_found / num_drawn

    def is_within(share):
        deviation = math.sqrt(share * (1 - share) / num_drawn * left(num_drawn, population))
        return abs(found - share) - 0.5 / num_drawn <= 1.959963984540054 * deviation

    bounds = []
    for inside, outside in ((found, 0.0), (found, 1.0)):
        if is_within(outside):
            bounds.append(outside)
            continue
        for _ in range(60):
            middle = (inside + outside) / 2
            inside, outside = (middle, outside) if is_within(middle) else (inside, middle)
        bounds.append(inside)
    return tuple(bounds)
