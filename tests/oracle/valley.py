"""The chosen threshold of a collection as defined in docs/developers/definitions.md, pair by pair in plain Python."""

import math

HALF_WIDTH, PULL, CENTER = 40, 20, 0.5
LOWEST, HIGHEST, STEP = 300, 950, 10
LEAST_DOCUMENTS, LEAST_CLARITY = 20, 2
CAUTIOUS = {
    ("few pairs", "jaccard"): 0.8,
    ("few pairs", "cosine"): 0.89,
    ("no valley", "jaccard"): 0.65,
    ("no valley", "cosine"): 0.79,
}


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


def density_at(place, places):
    """Return the number of pairs (place, how many), weighted by the triangular kernel."""
    return sum(many * max(0, HALF_WIDTH - abs(place - other)) for other, many in places)


def scores(places):
    """Return the score by place; the threshold minimizes it."""
    found = {}
    for place in range(LOWEST, HIGHEST + 1, STEP):
        density = density_at(place, places) + HALF_WIDTH
        found[place] = math.log(density) + PULL * (place / 1000 - CENTER) ** 2
    return found


def lowest(places):
    found = scores(places)
    # Logarithms of equal densities may differ in their last digits.
    least = min(found.values())
    return min((abs(place - 500), place) for place, score in found.items() if score < least + 1e-11)[1]


def valley(pairs, measure="jaccard", few=None):
    """Return the choice for pairs of (similarity, document, how many); `few` is the threshold for too few documents.

    The result is (threshold, reason, clarity, lowest and highest threshold of halves, whether all of these are near);
    the last three are None if there is a reason.
    """
    places = [(place_of(similarity, measure), many) for similarity, _, many in pairs]
    place = lowest(places)
    documents = {document for (at, _), (_, document, _) in zip(places, pairs, strict=True) if at >= place}
    peak = max(density_at(at, places) for at in range(place, 1001))
    clarity = (peak + HALF_WIDTH) / (density_at(place, places) + HALF_WIDTH)
    reason = None
    if few is not None:
        reason = "few documents"
    elif len(documents) < LEAST_DOCUMENTS:
        reason = "few pairs"
    elif place == HIGHEST or clarity < LEAST_CLARITY:
        reason = "no valley"
    if reason:
        return CAUTIOUS.get((reason, measure), few), reason, None, None, None
    halves = []
    for number in range(8):
        # A bit of the document's number, the last one first.
        some = [
            at
            for at, (_, document, _) in zip(places, pairs, strict=True)
            if f"{document:04b}"[-1 - number // 2] == str(number % 2)
        ]
        halves.append(lowest(some))
    ends = similarity_at(min(halves), measure), similarity_at(max(halves), measure)
    return similarity_at(place, measure), None, clarity, ends, all(-30 <= half - place <= 30 for half in halves)
