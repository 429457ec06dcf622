"""Bloom filters: their bits, measures on them, and which pairs are candidates for a threshold on the sets."""

import math
from statistics import NormalDist

from tests.oracle.features import expansion, mix
from tests.oracle.sketches import round_key


def bloom(weights, num_bits, num_hashes=1, seed=0):
    """Return the filter as one integer."""
    found = 0
    for member in expansion(weights):
        for i in range(num_hashes):
            found |= 1 << (mix(member ^ round_key(i, seed)) * num_bits >> 64)
    return found


def similarity(a, b, num_bits, measure):
    x, y, both = a.bit_count(), b.bit_count(), (a & b).bit_count()
    if measure == "hamming":
        return 1 - (x + y - 2 * both) / num_bits
    if not x or not y:
        return float(x == y)
    return {
        "cosine": lambda: both / math.sqrt(x * y),
        "overlap": lambda: both / min(x, y),
        "dice": lambda: 2 * both / (x + y),
        "jaccard": lambda: both / (x + y - both),
    }[measure]()


def load(num_bits, num_set):
    return -math.log(max(num_bits - num_set, 0.5) / num_bits)


def least_shared(x, y, num_bits, measure, threshold, recall):
    """Return how many bits filters of x and y bits must share for their sets to be measured."""
    loads = a, b = load(num_bits, x), load(num_bits, y)
    t = threshold
    both, slopes = {
        "jaccard": lambda: (t / (1 + t) * (a + b), (t / (1 + t),) * 2),
        "dice": lambda: (t / 2 * (a + b), (t / 2,) * 2),
        "cosine": lambda: (t * math.sqrt(a * b), [t / 2 * math.sqrt(a * b) / c if c else 0.0 for c in loads]),
        "containment": lambda: (t * min(a, b), (t, 0) if a <= b else (0, t)),
    }["containment" if measure == "overlap" else measure]()
    p, q = (1 - slope for slope in slopes)
    v = [math.expm1(c) - c for c in (a, b, min(both, a, b), max(0.0, a + b - both))]
    variance = p * (p - 2) * v[0] + q * (q - 2) * v[1] + 2 * p * q * v[2] + v[3]
    allowed = NormalDist().inv_cdf(recall) * math.sqrt(max(0.0, variance) / num_bits)
    united = min(num_bits, 0.5 - num_bits * math.expm1(-max(0.0, a + b - both + allowed)))
    return max(0, x + y - math.floor(united))
