"""Plan: the bands or radius that a threshold needs, and the pairs they will find, before anything runs."""

from dataclasses import dataclass

from likewise.recipe.methods import Bloom, MinHash, SimHash
from likewise.recipe.recipe import Recipe

_SIMILARITIES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0)


@dataclass(frozen=True)
class Plan:
    """The settings that a recipe resolves to, and what they will find."""

    # The resolved recipe, with bands and rows, or the radius
    recipe: Recipe
    # Probability that a pair exactly at the threshold is found; None if there is no model
    recall: float | None
    # Similarity (Jaccard for bands, cosine for a radius) and the probability to be found; empty without either.
    curve: tuple[tuple[float, float], ...]
    # Memory of one sketch; 0 if there is none (shingles and exact, which find every match) or it is not known yet
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
    """Return the plan of a recipe.

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
