"""Similarity of two weighted feature sets (feature -> weight)."""

import math
from fractions import Fraction


def _shared(a, b):
    return sum(min(v, b[f]) for f, v in a.items() if f in b)


def exact(a, b, measure):
    """The similarity as a Fraction; for cosine its square."""
    if not a or not b:
        return Fraction(1 if not a and not b else 0)
    if measure == "jaccard":
        shared = _shared(a, b)
        return Fraction(shared, sum(a.values()) + sum(b.values()) - shared)
    if measure == "containment":
        return Fraction(_shared(a, b), sum(a.values()))
    dot = sum(v * b[f] for f, v in a.items() if f in b)
    return Fraction(dot * dot, sum(v * v for v in a.values()) * sum(v * v for v in b.values()))


def similarity(a, b, measure):
    """The similarity in double precision, by the operations that the definitions name."""
    if not a or not b:
        return 1.0 if not a and not b else 0.0
    if measure == "cosine":
        dot = sum(v * b[f] for f, v in a.items() if f in b)
        return dot / math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return float(exact(a, b, measure))
