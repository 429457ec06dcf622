"""What a recipe's threshold and recall need: bands or radius, and what these find."""

from collections.abc import Mapping
from typing import Any

from likewise import _native


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
    if fields["method"] == "minhash":
        if fields["bands"] is not None:
            return {}
        bands, rows, _ = _native.plan_bands(fields["num_slots"], candidate_threshold, fields["recall"])
        return {"bands": bands, "rows": rows}
    if fields["within"] is not None:
        return {}
    within, _ = _native.radius_for(fields["bits"], fields["threshold"], fields["recall"])
    return {"within": within}


def stated_recall(fields: Mapping[str, Any], candidate_threshold: float) -> float | None:
    """Return P(found) for a pair exactly at the threshold of a resolved recipe; None where no model exists."""
    measure = fields["measure"]
    if fields["method"] == "minhash":
        if measure != "jaccard":
            return None
        return _native.s_curve(candidate_threshold, fields["bands"], fields["rows"])
    if measure == "hamming":
        return 1.0
    return recall_within(fields["bits"], fields["threshold"], fields["within"]) if measure == "cosine" else None


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
