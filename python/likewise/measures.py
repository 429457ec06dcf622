"""Measures: every similarity of two texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise import _native
from likewise.documents import Tokenizer, as_documents
from likewise.hamming import hamming_distance
from likewise.recipe import Recipe
from likewise.sketch import EMPTY, SHORT, Sketches, sketch, sketch_texts
from likewise.verify import SET_MEASURES

_SHAPES = {0: "full", SHORT: "short", EMPTY: "empty"}


@dataclass(frozen=True)
class Measures:
    """How alike two texts are, by every measure.

    Parameters
    ----------
    jaccard, cosine : float
        Of the weighted feature sets, 0 to 1.
    containment_a_in_b, containment_b_in_a : float
        Share of the one's features found in the other.
    hamming : float
        1 - distance / bits.
    distance : int
        Bits in which the fingerprints differ.
    bits : int
        Width of the fingerprints.
    fingerprints : tuple of int
        Both SimHash fingerprints.
    equal_slots, num_slots : int
        Equal slots of the MinHash signatures, of how many.
    num_features : tuple of int
        Distinct features of both.
    num_shared : int
        Distinct features in both.
    shapes : tuple of str
        ``full``, ``short`` (fewer tokens than one shingle) or ``empty``.
    """

    jaccard: float
    containment_a_in_b: float
    containment_b_in_a: float
    cosine: float
    hamming: float
    distance: int
    bits: int
    fingerprints: tuple[int, int]
    equal_slots: int
    num_slots: int
    num_features: tuple[int, int]
    num_shared: int
    shapes: tuple[str, str]

    @property
    def minhash_estimate(self) -> float:
        """Jaccard similarity as the signatures estimate it."""
        return self.equal_slots / self.num_slots


def measure(
    a: Any,  # noqa: ANN401 - texts, bytes, lists of tokens
    b: Any,  # noqa: ANN401
    recipe: Recipe | None = None,
    *,
    tokenizer: Tokenizer | None = None,
) -> Measures:
    """Return how alike two documents are, by every measure.

    Parameters
    ----------
    a, b : str
        The texts; bytes or lists of tokens where the recipe takes those.
    recipe : Recipe, optional
        Whose features, bits and slots count; ``Recipe.minhash()`` where None.
    tokenizer : callable, optional
        Cuts tokens ``user`` from each text.

    Returns
    -------
    Measures
        All on the same features.

    Examples
    --------
    >>> found = measure("a b c d", "a b c d e")
    >>> found.jaccard, found.containment_a_in_b, found.num_shared
    (0.6666666666666666, 1.0, 2)
    """
    recipe = recipe or Recipe.minhash()
    rules = recipe.feature_rules
    texts = as_documents([a, b], recipe, tokenizer=tokenizer)
    both = np.array([0, 1], np.uint32)
    sets = _native.FeatureSets(2, rules)
    sets.add(both, texts)
    values = {
        name: np.asarray(sets.verify(both, both[::-1].copy(), measure=name, threshold=0.0)).tolist()
        for name in SET_MEASURES
    }
    offsets, features, _ = (np.asarray(part) for part in _native.features(texts, rules))
    ours, theirs = features[offsets[0] : offsets[1]], features[offsets[1] : offsets[2]]
    fingerprints = _fingerprints(texts, recipe)
    signatures = _signatures(texts, recipe)
    distance = int(hamming_distance(fingerprints.array[0:1], fingerprints.array[1:2])[0])
    shapes = np.asarray(sketch_texts(texts, fingerprints.recipe, sets=False, threads=1).shapes).tolist()
    bits = fingerprints.recipe.bits or 64
    return Measures(
        jaccard=values["jaccard"][0],
        containment_a_in_b=values["containment"][0],
        containment_b_in_a=values["containment"][1],
        cosine=values["cosine"][0],
        hamming=1.0 - distance / bits,
        distance=distance,
        bits=bits,
        fingerprints=(_as_int(fingerprints.array[0]), _as_int(fingerprints.array[1])),
        equal_slots=int((signatures.array[0] == signatures.array[1]).sum()),
        num_slots=signatures.array.shape[1],
        num_features=(len(ours), len(theirs)),
        num_shared=len(np.intersect1d(ours, theirs)),
        shapes=(_SHAPES[shapes[0]], _SHAPES[shapes[1]]),
    )


def _fingerprints(texts: _native.Texts, recipe: Recipe) -> Sketches:
    if recipe.method == "simhash":
        return sketch(texts, recipe, threads=1)
    return sketch(texts, Recipe.from_options("simhash", bits=64, **recipe.feature_options()), threads=1)


def _signatures(texts: _native.Texts, recipe: Recipe) -> Sketches:
    if recipe.method == "minhash":
        return sketch(texts, recipe, threads=1)
    return sketch(texts, Recipe.from_options("minhash", **recipe.feature_options()), threads=1)


def _as_int(fingerprint: object) -> int:
    words = np.atleast_1d(np.asarray(fingerprint, np.uint64)).tolist()
    return sum(word << (64 * i) for i, word in enumerate(words))
