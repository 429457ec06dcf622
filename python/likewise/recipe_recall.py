"""P(found) of a pair by a recipe's radius, before anything runs."""

from likewise import _native


def recall_within(bits: int, threshold: float, within: int) -> float:
    """Return P(Binomial(bits, acos(threshold)/pi) <= within): P(found) of a pair of this cosine.

    Notes
    -----
    Asks the core's radius rule for ever closer recalls, so that no logarithm of this system has a say.
    """
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if not 0.0 < middle < 1.0:
            break
        radius, recall = _native.radius_for(bits, threshold, middle)
        if radius == within:
            return recall
        low, high = (middle, high) if radius < within else (low, middle)
    return 1.0 if low > 0.5 else 0.0
