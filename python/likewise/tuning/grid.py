"""Recipes to try: a small grid of features and measures, each with all thresholds or radii."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter
from likewise.recipe.fields import OWN_WEIGHTS
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.text import USER_TOKENS

# Words (or single characters in scripts without spaces), and characters; recipes that need no counting come first.
# No candidate has a margin for short documents: labels set the threshold, and another free parameter would fit noise.
_OF_WORDS = ((3, "none"), (2, "none"), (1, "none"), (2, "idf"), (3, "idf"), (1, "idf"))
_OF_CHARACTERS = ((9, "none"), (5, "none"), (9, "idf"), (5, "idf"))
_COSINE = ((2, "log-count"), (1, "log-count-idf"))
_DISTANCE = (
    ("char", 5, "log-count"),
    ("auto", 1, "log-count-idf"),
    ("auto", 2, "log-count"),
    ("char", 5, "log-count-idf"),
)
BITS = 128
# Unrelated texts differ in about half of the bits.
_WIDEST = 52
# Tokens of users: the width that other systems store, in four blocks of 16 bits, and the radii that they search
_BITS_OF_OWN = 64
_WIDEST_OF_OWN = 20
# With fewer rows, bands would compare every pair that shares a slot.
_LEAST_ROWS = 2
METHODS = ("minhash", "simhash")
# In steps of 0.01: labels never support a finer choice.
_THRESHOLDS = np.arange(2, 99) / 100.0


@dataclass(frozen=True)
class Candidate:
    """Features and a measure, without a threshold or radius."""

    # Jaccard by MinHash or exactly; cosine by verified SimHash; Hamming-only SimHash
    measure: str
    # As in a recipe
    tokens: str
    shingle: int
    weights: str
    # Further recipe options, the same for all candidates
    rules: Mapping[str, Any]
    # Whether short documents are compared by distance alone, too
    is_distance_alone: bool = False

    @property
    def bits(self) -> int:
        """Width of fingerprints."""
        return _BITS_OF_OWN if self.tokens == USER_TOKENS else BITS

    @property
    def name(self) -> str:
        """Short description."""
        by = {"jaccard": "Jaccard", "cosine": "SimHash, cosine", "hamming": f"SimHash, distance of {self.bits} bits"}
        alone = ", short threshold 0" if self.is_distance_alone else ""
        return f"{by[self.measure]}; {self.tokens} {self.shingle}, weights {self.weights}{alone}"

    @property
    def settings(self) -> NDArray[np.float64]:
        """Thresholds to try, ascending; for distances, 1 - k / bits."""
        widest = _WIDEST_OF_OWN if self.tokens == USER_TOKENS else _WIDEST
        return 1.0 - np.arange(widest, -1, -1) / self.bits if self.measure == "hamming" else _THRESHOLDS

    def features(self) -> Recipe:
        """Return a recipe with these features."""
        options: dict[str, Any] = {
            "tokens": self.tokens,
            "shingle": self.shingle,
            "weights": self.weights,
            **self.rules,
        }
        if self.measure == "hamming":
            options |= {"short_threshold": 0.0} if self.is_distance_alone else {}
            return Recipe.simhash(within=0, bits=self.bits, **options)
        if self.measure == "cosine":
            return Recipe.simhash(threshold=0.5, bits=self.bits, **options)
        return Recipe.shingles(0.5, **options)

    def radius(self, setting: float) -> int:
        """Return the radius of a setting."""
        return round((1.0 - setting) * self.bits)

    def recipe(self, setting: float) -> Recipe:
        """Return the recipe for one setting; exact shingle sets if MinHash would compare nearly every pair."""
        features = self.features()
        if self.measure == "hamming":
            return features.replace(within=self.radius(setting))
        if self.measure == "cosine":
            return features.replace(threshold=setting)
        try:
            found = Recipe.minhash(setting, **features.feature_options())
            _, rows = found.resolve().method_as(MinHash).banding
        except InvalidParameter:
            # The threshold is so low that no bands reach the default recall.
            return features.replace(threshold=setting)
        return found if rows >= _LEAST_ROWS else features.replace(threshold=setting)


def grid(
    *,
    method: str | None = None,
    tokens: str | None = None,
    weights: str | None = None,
    rules: Mapping[str, Any] | None = None,
) -> list[Candidate]:
    """Return the candidates; earlier ones win ties."""
    if method not in (None, *METHODS):
        raise InvalidParameter("method", f"{method!r} given; it must be one of {', '.join(METHODS)}")
    if weights not in (None, OWN_WEIGHTS):
        raise InvalidParameter("weights", f"{weights!r} given; tuning chooses them, except {OWN_WEIGHTS}")
    rules = rules or {}
    of_words, cosine = (_OF_WORDS, _COSINE) if weights is None else (((1, weights),), ((1, weights),))
    kinds = [("auto", _OF_WORDS), ("char", _OF_CHARACTERS)]
    if tokens is not None:
        kinds = [(tokens, _OF_CHARACTERS if tokens == "char" else of_words)]
    found = []
    if method != "simhash":
        found += [
            Candidate("jaccard", kind, shingle, weights, rules) for kind, some in kinds for shingle, weights in some
        ]
    if method != "minhash":
        for kind, _ in kinds:
            shingles = ((5, "log-count"), (5, "log-count-idf")) if kind == "char" else cosine
            if kind != "char" or tokens == "char":
                found += [Candidate("cosine", kind, shingle, weights, rules) for shingle, weights in shingles]
        distances = (
            _DISTANCE if tokens is None else [(tokens, *some) for some in ((5, "log-count"), (5, "log-count-idf"))]
        )
        if tokens not in (None, "char"):
            assert tokens is not None
            distances = [(tokens, *some) for some in cosine]
        alone = (False, True) if tokens == USER_TOKENS else (False,)
        found += [Candidate("hamming", *some, rules, is_alone) for some in distances for is_alone in alone]
    return found
