"""The references that a query contains, by scoring every reference."""

import math


def containments(reference, query):
    """Return the share of the reference found in the query, and vice versa (feature -> weight)."""
    shared = sum(min(weight, query[feature]) for feature, weight in reference.items() if feature in query)
    return shared / sum(reference.values()), shared / sum(query.values())


def best(query, references, top, min_score):
    """Return (number, score, both containments) of the best references; ties by position."""
    found = []
    for number, reference in enumerate(references):
        if not any(feature in query for feature in reference):
            continue
        carried, covered = containments(reference, query)
        score = math.sqrt(carried * covered)
        if score >= min_score:
            found.append((number, score, carried, covered))
    return sorted(found, key=lambda answer: (-answer[1], answer[0]))[:top]
