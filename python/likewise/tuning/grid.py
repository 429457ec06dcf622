"""Recipes to try, a small grid, and the similarities of all pairs of the sample by each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter
from likewise.recipe.fields import OWN_WEIGHTS
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import USER_TOKENS

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


# Similarities within a step have the same rank.
_STEPS = 1 << 14
# Pairs ranked lower than this many per document are never counted as duplicates.
_PAIRS_A_DOCUMENT = 40
# A fit uses this many of the most similar pairs, and equally many spread over all others.
_MOST_LOOKED_AT = 3000
# The similarity feature is in units of a tenth, with its zero in the middle.
_TENTHS = 10.0
_MIDDLE = 0.5


class Sample:
    """Pairs of a sample with their ranks, and the features of a pair for the model.

    Similarities of different recipes are not comparable, but ranks are: the number of pairs of the sample that are at
    least as similar. Features of a pair: 1; the mean over the candidates of -ln(rank / documents); the mean similarity,
    in tenths; and for each candidate, the difference between its own value of -ln(rank / documents) and the mean.
    """

    def __init__(
        self,
        similarities: Sequence[NDArray[np.float32]],
        settings: Sequence[NDArray[np.float64]],
        num_documents: int,
    ) -> None:
        self.settings = list(settings)
        self._log_documents = float(np.log(max(1, num_documents)))
        self._log_ranks = []
        mean = np.zeros(len(similarities[0]))
        # One candidate at a time: a large sample has millions of pairs.
        for similarity in similarities:
            step = _step(similarity)
            self._log_ranks.append(_log_ranks(step))
            mean += self._log_ranks[-1][step]
        pool = np.argsort(mean, kind="stable")[: _PAIRS_A_DOCUMENT * num_documents]
        self._in_pool = np.full(len(mean), -1, np.int32)
        self._in_pool[pool] = np.arange(len(pool))
        self.num_above = []
        self._pool_passed = []
        for similarity, some in zip(similarities, settings, strict=True):
            # Similarities have single precision, so settings are compared in single precision too.
            passed = np.searchsorted(some.astype(np.float32), similarity, side="right")
            self.num_above.append(_from_above(passed, len(some)))
            self._pool_passed.append(passed[pool])
        self.features_of_pool = self.features(np.stack([similarity[pool] for similarity in similarities]))
        step_of_rest = max(1, -(-(len(pool) - _MOST_LOOKED_AT) // _MOST_LOOKED_AT))
        rest = np.arange(_MOST_LOOKED_AT, len(pool), step_of_rest)
        few = np.concatenate([np.arange(min(_MOST_LOOKED_AT, len(pool))), rest])
        self.few_features = self.features_of_pool[few]
        self.few_stand_for = np.where(few < _MOST_LOOKED_AT, 1.0, float(step_of_rest))

    def features(self, similarity: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the features of pairs, from their similarities of shape (candidates, m): shape (m, candidates + 3)."""
        similarity = similarity.astype(np.float32)
        above = np.stack(
            [
                self._log_documents - log_ranks[_step(some)]
                for log_ranks, some in zip(self._log_ranks, similarity, strict=True)
            ]
        )
        mean = above.mean(axis=0)
        tenths = _TENTHS * (similarity.astype(np.float64).mean(axis=0) - _MIDDLE)
        return np.vstack([np.ones_like(mean), mean, tenths, above - mean]).T

    def expected_f1(
        self,
        probability: NDArray[np.float64],
        known: NDArray[np.int64] | None = None,
        is_duplicate: NDArray[np.bool_] | None = None,
        excluded: NDArray[np.int64] | None = None,
    ) -> list[NDArray[np.float64]]:
        """Return the F1 of each candidate at each of its settings, on the sample."""
        probability = probability.copy()
        if known is not None and is_duplicate is not None:
            places = self._in_pool[known]
            is_duplicate, places = is_duplicate[places >= 0], places[places >= 0]
            # Labeled duplicates are among the expected ones, not in addition to them.
            num_left = float(probability.sum()) - np.count_nonzero(is_duplicate)
            probability[places] = 0.0
            num_expected = float(probability.sum())
            if num_expected > 0.0:
                probability *= min(1.0, max(0.0, num_left) / num_expected)
            probability[places] = is_duplicate
        places = np.zeros(0, np.int32) if excluded is None else self._in_pool[excluded]
        places = places[places >= 0]
        probability[places] = 0.0
        num_duplicates = float(probability.sum())
        curves = []
        for passed, num_above in zip(self._pool_passed, self.num_above, strict=True):
            hits = _from_above(passed, len(num_above), probability)
            num_taken = num_above - _from_above(passed[places], len(num_above))
            curves.append(2 * hits / np.maximum(num_taken + num_duplicates, np.finfo(float).tiny))
        return curves


def _step(similarity: NDArray[np.float32]) -> NDArray[np.int64]:
    return np.clip(similarity * _STEPS, 0, _STEPS).astype(np.int64)


def _log_ranks(step: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return ln of the middle rank in each step of similarity; the most similar pair has rank 1."""
    counts = np.bincount(step, minlength=_STEPS + 1)
    above = np.cumsum(counts[::-1])[::-1] - counts
    found: NDArray[np.float64] = np.log(above + (counts + 1) / 2)
    return found


def _from_above(
    passed: NDArray[np.int64], num_settings: int, weight: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """Return the number (or weight) of pairs at or above each setting, from the number of settings each pair passes."""
    counts = np.bincount(passed, weights=weight, minlength=num_settings + 1).astype(np.float64)
    found: NDArray[np.float64] = np.cumsum(counts[::-1])[::-1][1:]
    return found
