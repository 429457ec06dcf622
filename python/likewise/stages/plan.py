"""Plan: what a threshold needs, and what it will find, before anything runs."""

from dataclasses import dataclass

from likewise.errors import InvalidParameter
from likewise.recipe.recipe import Recipe
from likewise.recipe.search import recall_within
from likewise.stages.bands import s_curve

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
    num_bytes = _bytes_a_document(resolved)
    curve: tuple[tuple[float, float], ...] = ()
    if resolved.method == "minhash" and not resolved.needs_threshold:
        points = sorted({*_SIMILARITIES, resolved.candidate_threshold})
        curve = tuple((point, found(resolved, point)) for point in points)
    elif resolved.method == "simhash" and not resolved.needs_threshold:
        assert resolved.bits is not None
        assert resolved.within is not None
        points = sorted({*_SIMILARITIES, 1.0 if resolved.threshold is None else resolved.similarity_threshold})
        curve = tuple((point, recall_within(resolved.bits, point, resolved.within)) for point in points)
    return Plan(resolved, resolved.stated_recall, curve, num_bytes)


def _bytes_a_document(recipe: Recipe) -> int:
    if recipe.method == "minhash":
        assert recipe.num_slots is not None
        assert recipe.slot_bits is not None
        return recipe.num_slots * recipe.slot_bits // 8
    return (recipe.filter_bits or 0) // 8 if recipe.method == "bloom" else 8 * recipe.num_words


def found(recipe: Recipe, similarity: float) -> float:
    """Return P(found) of a pair of this Jaccard similarity by the bands of a resolved MinHash recipe."""
    if recipe.bands is None or recipe.rows is None:
        raise InvalidParameter("recipe", "only a resolved MinHash recipe has bands")
    return s_curve(similarity, recipe.bands, recipe.rows)
