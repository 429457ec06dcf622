"""Leaders by their definition, one document at a time, in plain Python."""


def leaders(pairs):
    """Return {removed: (kept, similarity, distance)} for pairs (later, earlier, similarity, distance).

    In order, a document is removed if it is paired with a kept earlier one. Its evidence is the most similar such pair;
    among equally similar ones, the pair with the earliest document.
    """
    of_later = {}
    for later, earlier, similarity, distance in pairs:
        of_later.setdefault(later, []).append((earlier, similarity, distance))
    found = {}
    for later in sorted(of_later):
        best = None
        for earlier, similarity, distance in sorted(of_later[later]):
            if earlier not in found and (best is None or similarity > best[1]):
                best = (earlier, similarity, distance)
        if best is not None:
            found[later] = best
    return found
