"""Bands: signatures that share a bucket, P(found), and the plan for a threshold, before anything runs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter, num_threads
from likewise.recipe.methods import Bloom, MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches, min_equal_slots, open_buckets

_POSITIONS_AT_ONCE = 4096


def band_pairs(sketches: Sketches, *, threads: int | None = None) -> NDArray[np.int64]:
    """Return the candidate pairs of MinHash signatures: those that share a bucket in some band.

    Parameters
    ----------
    sketches : Sketches
        MinHash signatures, with a recipe that determines bands, rows and threshold. Empty texts are ignored.
    threads : int, optional
        Number of threads; all processors if None.

    Returns
    -------
    ndarray of shape (m, 2), int64
        Pairs of rows, left < right, sorted and unique. The pairs are not measured, but with Jaccard similarity, pairs
        whose estimate is more than three standard deviations below the threshold are left out.

    Raises
    ------
    InvalidParameter
        If `sketches` are not MinHash sketches.

    Notes
    -----
    A bucket holds 64 documents; later ones are assigned to a level keyed by more rows. There are at most n x bands x
    192 candidates.

    Examples
    --------
    >>> import likewise
    >>> band_pairs(likewise.sketch(["a b c d e", "A b c d e!", "something else"])).tolist()
    [[0, 1]]
    """
    if not isinstance(sketches, Sketches):
        raise InvalidParameter(
            "sketches", f"{type(sketches).__name__} is not Sketches; create them with likewise.sketch"
        )
    recipe = sketches.recipe.resolve()
    signature = recipe.sketch
    if not isinstance(signature, MinHash):
        raise InvalidParameter("sketches", "SimHash fingerprints are not supported; use hamming_pairs")
    workers = num_threads(threads)
    order = np.flatnonzero(~sketches.is_empty).astype(np.uint32)
    buckets = open_buckets(sketches.array, signature, order, threads=workers)
    min_equal = min_equal_slots(recipe)
    found = [np.zeros((0, 2), np.int64)]
    for low in range(0, len(order), _POSITIONS_AT_ONCE):
        high = min(low + _POSITIONS_AT_ONCE, len(order))
        pairs = buckets.candidates(low, high, min_equal=min_equal, threads=workers)
        sides = [order[np.asarray(pairs.earlier)], order[np.asarray(pairs.later)]]
        found.append(np.stack(sides, axis=1).astype(np.int64))
    rows = np.concatenate(found)
    return rows[np.lexsort((rows[:, 1], rows[:, 0]))]


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
    return Plan(resolved, resolved.stated_recall, curve, sketch_bytes(resolved))


def sketch_bytes(recipe: Recipe) -> int:
    """Return the bytes of the sketch of a document; 0 if there is none, or its size is not known yet."""
    match recipe.sketch:
        case MinHash() as signature:
            return signature.num_bytes
        case SimHash() as fingerprint:
            return 8 * fingerprint.num_words
        case Bloom() as bloom:
            return (bloom.filter_bits or 0) // 8
        case _:
            return 0
