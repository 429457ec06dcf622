"""The chosen threshold of a collection as defined in docs/developers/definitions.md, pair by pair in plain Python."""

import math
from collections import Counter

HALF_WIDTH, PULL, PULL_BELOW, CENTER = 100, 100, 400, 440
LOWEST, HIGHEST, STEP = 360, 950, 10
LEAST_DOCUMENTS, LEAST_RATIO = 20, 1.35
FEW_PAIRS, NO_VALLEY, REQUIRED = 500, 550, 650
OF_FAMILIES = 370


def place_of(similarity, measure):
    """Return the similarity in thousandths, on the scale of Jaccard similarities."""
    value = similarity if measure == "jaccard" else similarity / (2 - similarity)
    place = int(value * 1000) + 2
    while value < place / 1000:
        place -= 1
    return place


def similarity_at(place, measure):
    value = place / 1000
    return round(value if measure == "jaccard" else 2 * value / (1 + value), 2)


def densities(pairs):
    """Return the number of pairs (place, document, how many) at each place, weighted by the triangular kernel."""
    found = [HALF_WIDTH] * 1001
    for place, _, many in pairs:
        for at in range(max(0, place - HALF_WIDTH), min(1000, place + HALF_WIDTH) + 1):
            found[at] += many * (HALF_WIDTH - abs(place - at))
    return found


def of_pairs(pairs, least_documents, measure, margin):
    """Return the threshold, the reason and the clarity, for pairs of (place, document, how many)."""
    density, scores = densities(pairs), {}
    for place in range(LOWEST, HIGHEST + 1, STEP):
        if len({document for other, document, _ in pairs if other >= place}) >= least_documents:
            pull = PULL if place > CENTER else PULL_BELOW
            scores[place] = math.log(density[place]) + pull * ((place - CENTER) / 1000) ** 2
    if not scores:
        return similarity_at(FEW_PAIRS, measure), "few pairs", None
    # Logarithms of equal densities may differ in their last digits.
    least = min(scores.values())
    place = min((abs(place - CENTER), place) for place, score in scores.items() if score < least + 1e-11)[1]
    clarity = max(density[place:]) / density[place]
    background = max(density[LOWEST - HALF_WIDTH : place + 1]) / density[place]
    # Without the one pair that each density includes.
    below, above = (sum(some) - HALF_WIDTH * len(some) for some in (density[260:place], density[place:]))
    falls = clarity < LEAST_RATIO and 2 * density[800] < density[600] and 2 * below > above
    missed = [(LEAST_RATIO - clarity) / 0.3, 1.0]
    if not falls:
        missed.append((background - LEAST_RATIO) / 0.3)
    if place != HIGHEST and min(missed) <= 0:
        return similarity_at(place, measure), None, clarity
    more = 0
    if falls:
        similar = Counter()
        for place, document, many in pairs:
            similar[document] += many if place >= 260 else 0
        num_documents, num_several = (sum(many > least for many in similar.values()) for least in (0, 1))
        share = (10 * num_several - num_documents) / num_documents
        more = round(OF_FAMILIES * min(1.0, max(0.0, share)))
    strict = min(similarity_at(NO_VALLEY + more, measure), similarity_at(REQUIRED + more, measure) - margin)
    strict = max(similarity_at(CENTER, measure), strict)
    if place != HIGHEST:
        valley = similarity_at(place, measure)
        strict = valley + min(missed) * (strict - valley)
    return round(strict, 2), "one form" if more else "no valley", None


def valley(pairs, measure="jaccard", margin=0.0):
    """Return the choice for pairs of (similarity, document, how many), and the margin of the usual document.

    The result is (threshold, reason, clarity, lowest and highest threshold of halves, whether all of these are near).
    """
    placed = [(place_of(similarity, measure), document, many) for similarity, document, many in pairs]
    threshold, reason, clarity = of_pairs(placed, LEAST_DOCUMENTS, measure, margin)
    halves = []
    for number in range(8):
        # A bit of the document's number, the last one first.
        some = [pair for pair in placed if f"{pair[1]:04b}"[-1 - number // 2] == str(number % 2)]
        halves.append(of_pairs(some, LEAST_DOCUMENTS // 2, measure, margin)[0])
    if reason == "one form":
        threshold = max(threshold, *halves)
    is_near = all(abs(round(100 * half) - round(100 * threshold)) <= 3 for half in halves)
    return threshold, reason, clarity, (min(halves), max(halves)), is_near
