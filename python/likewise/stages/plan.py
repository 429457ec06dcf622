"""Plan: what a threshold needs, and what it will find, before anything runs."""

from dataclasses import dataclass

from likewise.recipe.methods import Bloom, MinHash, SimHash
from likewise.recipe.recipe import Recipe

_SIMILARITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Plan:
    """What a recipe resolves into.

    Parameters
    ----------
    recipe : Recipe
        Resolved: bands and rows, or the radius.
    recall : float, optional
        P(found) of a pair exactly at the threshold; None where no model exists.
    curve : tuple of (float, float)
        Similarity, and P(found) of a pair: of this Jaccard similarity by the bands, or of this cosine by the radius;
        none for methods without either, or where a run chooses the threshold.
    bytes_a_document : int
        Memory of one sketch; 0 where there is none (shingles, exact; every match is found) or none is known yet.
    """

    recipe: Recipe
    recall: float | None
    curve: tuple[tuple[float, float], ...]
    bytes_a_document: int

    def to_dict(self) -> dict[str, object]:
        """Return the plan as JSON values."""
        return {
            "recipe": self.recipe.to_dict(),
            "recipe_id": self.recipe.recipe_id,
            "recall": self.recall,
            "curve": [{"similarity": similarity, "found": found} for similarity, found in self.curve],
            "bytes_a_document": self.bytes_a_document,
        }


def plan(recipe: Recipe) -> Plan:
    """Return what a recipe resolves into.

    Parameters
    ----------
    recipe : Recipe
        Any recipe.

    Returns
    -------
    Plan
        Bands or radius, the recall they state, the S-curve.

    Raises
    ------
    InvalidParameter
        If no bands reach the recall.

    Examples
    --------
    >>> plan(Recipe.simhash(threshold=0.9)).recall >= 0.95
    True
    """
    resolved = recipe.resolve()
    curve: tuple[tuple[float, float], ...] = ()
    if isinstance(resolved.sketch, MinHash | SimHash) and not resolved.needs_threshold:
        asked = resolved.asked
        at_threshold = asked.as_jaccard if isinstance(resolved.sketch, MinHash) else asked.threshold
        curve = tuple((point, resolved.sketch.found(point)) for point in sorted({*_SIMILARITIES, at_threshold}))
    return Plan(resolved, resolved.stated_recall, curve, _bytes_a_document(resolved))


def _bytes_a_document(recipe: Recipe) -> int:
    match recipe.sketch:
        case MinHash() as signature:
            return signature.num_bytes
        case SimHash() as fingerprint:
            return 8 * fingerprint.num_words
        case Bloom() as bloom:
            return (bloom.filter_bits or 0) // 8
        case _:
            return 0
