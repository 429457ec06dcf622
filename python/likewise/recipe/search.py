"""What a recipe's threshold and recall need: bands or radius, and what these find."""

import math
from collections.abc import Mapping
from typing import Any

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


# They find every pair that matches.
_WITHOUT_CHOICE = ("shingles", "exact")
# Slots that nominate Bloom filters where there are many.
NOMINATING_SLOTS = 128
# Of buckets, each keyed by twice the rows of the one before.
_NUM_LEVELS = 3


def chosen_search(fields: Mapping[str, Any], candidate_threshold: float) -> dict[str, Any]:
    """Return the bands and rows, or the radius, that fields of a recipe leave open.

    Parameters
    ----------
    fields : mapping
        All fields, by name.
    candidate_threshold : float
        The Jaccard similarity that bands are chosen for.

    Returns
    -------
    dict
        Fields by name; empty where nothing is open.

    Raises
    ------
    InvalidParameter
        If no bands reach the recall at this threshold.
    """
    if fields["method"] in (*_WITHOUT_CHOICE, "bloom"):
        return {}
    if fields["method"] == "minhash":
        if fields["bands"] is not None:
            return {}
        bands, rows, _ = _native.plan_bands(fields["num_slots"], candidate_threshold, fields["recall"])
        return {"bands": bands, "rows": rows}
    if fields["within"] is not None:
        if fields["measure"] != "hamming" or fields["recall"] is None or fields["bands"] is not None:
            return {}
        bands, rows, _ = _native.plan_bit_bands(fields["bits"], fields["within"], fields["recall"])
        return {"bands": bands, "rows": rows}
    within, _ = _native.radius_for(fields["bits"], fields["threshold"], fields["recall"])
    return {"within": within}


def stated_recall(fields: Mapping[str, Any], candidate_threshold: float) -> float | None:
    """Return P(found) for a pair exactly at the threshold of a resolved recipe; None where no model exists."""
    if fields["method"] in _WITHOUT_CHOICE:
        return 1.0
    measure = fields["measure"]
    if fields["method"] == "bloom":
        if measure == "cosine" and fields["weights"] != "none":
            return None
        if fields["bands"] is None:
            return float(fields["recall"])
        found = _native.s_curve(candidate_threshold, fields["bands"], fields["rows"])
        return filter_recall(fields) * found if measure in ("jaccard", "dice") else None
    if fields["method"] == "minhash":
        # Dice is 2J / (1 + J) for any two sets, so that the candidate threshold says the same; others depend on sizes.
        if measure not in ("jaccard", "dice"):
            return None
        return _native.s_curve(candidate_threshold, fields["bands"], fields["rows"])
    if measure == "hamming":
        if fields["recall"] is None:
            return 1.0
        return _native.bit_band_recall(fields["bits"], fields["within"], fields["bands"], fields["rows"])
    return recall_within(fields["bits"], fields["threshold"], fields["within"]) if measure == "cosine" else None


def recall_of_crowd(fields: Mapping[str, Any], candidate_threshold: float, num_capped: int) -> float:
    """Return a lower bound of P(found) for a pair at the threshold of two documents that came to full buckets.

    Where levels of buckets serve them and none was full to the last, documents that share a key of the last level meet.
    Keys that have no slot in common are independent.
    """
    if fields["method"] != "minhash" or num_capped:
        return 0.0
    num_rows = min(fields["num_slots"], fields["rows"] << (_NUM_LEVELS - 1))
    return _native.s_curve(candidate_threshold, fields["num_slots"] // num_rows, num_rows)


def filter_recall(fields: Mapping[str, Any]) -> float:
    """Return P(a pair at the threshold shares bits enough): beside bands, which may miss as much, the recall's root."""
    recall = float(fields["recall"])
    return recall if fields["bands"] is None else math.sqrt(recall)


def chosen_filter_bands(fields: Mapping[str, Any], candidate_threshold: float) -> dict[str, int]:
    """Return the bands and rows that nominate Bloom filters, by name."""
    recall = math.sqrt(fields["recall"])
    bands, rows, _ = _native.plan_bands(NOMINATING_SLOTS, candidate_threshold, recall)
    return {"bands": bands, "rows": rows}
