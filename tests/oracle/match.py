"""Which references does a query carry? Every reference scored by itself."""

import math


def containments(reference, query):
    """The share of the reference found in the query, and of the query found in the reference (feature -> weight)."""
    shared = sum(min(weight, query[feature]) for feature, weight in reference.items() if feature in query)
    return shared / sum(reference.values()), shared / sum(query.values())


def best(query, references, top, min_score):
    """(number, score, both containments) of the best references; of equal scores the first comes first."""
    found = []
    for number, reference in enumerate(references):
        if not any(feature in query for feature in reference):
            continue
        carried, covered = containments(reference, query)
        score = math.sqrt(carried * covered)
        if score >= min_score:
            found.append((number, score, carried, covered))
    return sorted(found, key=lambda answer: (-answer[1], answer[0]))[:top]
