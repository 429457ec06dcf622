"""All pairs of sets by brute force; samples of sets and what they estimate, from the papers."""

import math
from fractions import Fraction

from tests.oracle import measures
from tests.oracle.features import MASK, expansion, mix

GOLDEN = 0x9E3779B97F4A7C15


def all_pairs(sets, measure, threshold):
    """{(a, b): similarity} of every pair at or above the threshold, a < b; for containment of a in b, both ways."""
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
    """The `size` least hashes (Broder 1997, section 3: MIN_s)."""
    return sorted(hashes(weights, seed))[:size]


def mod_m(weights, m, seed=0):
    """The hashes up to 2^64 / m; all of them where none is so small."""
    found = sorted(hashes(weights, seed))
    return [h for h in found if h <= MASK // m] or found


def min_s_resemblance(a, b, size):
    """|MIN_s(MIN_s(A) + MIN_s(B)) & MIN_s(A) & MIN_s(B)| / |MIN_s(...)| (Broder 1997)."""
    united = sorted(set(a) | set(b))[:size]
    return Fraction(len(set(united) & set(a) & set(b)), len(united))


def mod_m_containment(a, b, m, size_of_a):
    """The ratio of the samples over 1 - (1 - s)^|A|, 0 without sample (Hera, Pierce-Ward, Koslicki 2023, theorem 1)."""
    a, b = ({h for h in sample if h <= MASK // m} for sample in (a, b))
    return len(a & b) / len(a) / (1 - (1 - 1 / m) ** size_of_a) if a else 0.0


def drawn_error(share, num_drawn, population):
    """Standard deviation of a share among `num_drawn` of a population, drawn without replacement."""
    return math.sqrt(share * (1 - share) / num_drawn * (population - num_drawn) / (population - 1))
