"""Similarity of two weighted feature sets (feature -> weight)."""

import math
from fractions import Fraction


def _shared(a, b):
    return sum(min(v, b[f]) for f, v in a.items() if f in b)


def exact(a, b, measure):
    """Return the similarity as a Fraction; for cosine, its square."""
    if not a or not b:
        return Fraction(1 if not a and not b else 0)
    if measure == "jaccard":
        shared = _shared(a, b)
        return Fraction(shared, sum(a.values()) + sum(b.values()) - shared)
    if measure == "containment":
        return Fraction(_shared(a, b), sum(a.values()))
    if measure == "dice":
        return Fraction(2 * _shared(a, b), sum(a.values()) + sum(b.values()))
    if measure == "overlap":
        return Fraction(_shared(a, b), min(sum(a.values()), sum(b.values())))
    assert measure == "cosine"
    dot = sum(v * b[f] for f, v in a.items() if f in b)
    return Fraction(dot * dot, sum(v * v for v in a.values()) * sum(v * v for v in b.values()))


def similarity(a, b, measure):
    """Return the similarity in double precision, by the operations named in the definitions."""
    if not a or not b:
        return 1.0 if not a and not b else 0.0
    if measure == "cosine":
        dot = sum(v * b[f] for f, v in a.items() if f in b)
        return dot / math.sqrt(sum(v * v for v in a.values()) * sum(v * v for v in b.values()))
    return float(exact(a, b, measure))


def edit_distance(a, b):
    """Return Levenshtein's distance by the recurrence of Wagner and Fischer (1974)."""
    above = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        row = [i]
        for j, y in enumerate(b, 1):
            row.append(min(above[j - 1] + (x != y), above[j] + 1, row[j - 1] + 1))
        above = row
    return above[-1]


def common_length(a, b):
    """Return the length of the longest common subsequence, by the recurrence."""
    above = [0] * (len(b) + 1)
    for x in a:
        row = [0]
        for j, y in enumerate(b, 1):
            row.append(above[j - 1] + 1 if x == y else max(above[j], row[j - 1]))
        above = row
    return above[-1]
