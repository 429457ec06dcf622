"""Verify: the exact similarity of two feature sets, and in what documents differ."""

from collections.abc import Mapping
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import TextData, as_row_pairs
from likewise.errors import num_threads
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.text import as_documents
from likewise.stages.weights import with_counted

# Bits of the core, in the order in which they are named.
_NAMES = ("form", "numbers", "lead", "slots", "section", "subject", "end", "crowd")
NAMES: Mapping[int, str] = {1 << place: name for place, name in enumerate(_NAMES)}
FORM = 1
# The names of each set of differences as text; empty for changed words elsewhere.
NAMES_OF = tuple(",".join(name for bit, name in NAMES.items() if bits & bit) for bits in range(sum(NAMES) + 1))


class MatchRules(NamedTuple):
    """When the native module reports the similarity of a pair."""

    measure: str
    threshold: float
    # Added for short documents
    short_margin: float = 0.0
    # As in `Recipe.name_rules`
    names: tuple[bool, bool, int] | None = None

    @classmethod
    def of(cls, recipe: Recipe) -> Self:
        """Return the rules by which two documents match."""
        return cls(recipe.measure, recipe.similarity_threshold, recipe.short_margin or 0.0, recipe.name_rules)


def verify_pairs(
    texts: TextData,
    pairs: NDArray[np.int64],
    recipe: GivenRecipe | None = None,
    *,
    measure: str = "jaccard",
    threads: int | None = None,
    once: bool = False,
) -> NDArray[np.float64]:
    """Return the exact similarity of pairs of texts; with `once`, each feature counts once, whatever its weight."""
    sets, later, earlier, workers = _sets(texts, pairs, as_recipe(recipe), threads, once=once)
    return np.asarray(sets.verify(later, earlier, measure=measure, threshold=0.0, threads=workers)[0])


def matching_pairs(
    texts: TextData, pairs: NDArray[np.int64], recipe: Recipe, *, threads: int | None = None
) -> NDArray[np.float64]:
    """Return the exact similarity of pairs of texts, or NaN for pairs that do not match by the recipe."""
    sets, later, earlier, workers = _sets(texts, pairs, recipe, threads)
    return np.asarray(sets.verify(later, earlier, **MatchRules.of(recipe)._asdict(), threads=workers)[0])


def pair_differences(
    texts: TextData, pairs: NDArray[np.int64], recipe: Recipe, *, threads: int | None = None
) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Return the penalty of each pair for different names, and in what its first document differs from the second."""
    if recipe.name_rules is None:
        return np.zeros(len(pairs)), np.zeros(len(pairs), np.uint8)
    sets, later, earlier, workers = _sets(texts, pairs, recipe, threads)
    places = np.arange(len(as_documents(texts, recipe)), dtype=np.uint32)
    penalty, bits = sets.differences(later, earlier, places, threads=workers)
    # Names may be read for other rules than this.
    return np.asarray(penalty) * (recipe.siblings is not None), np.asarray(bits)


def _sets(
    texts: TextData, pairs: NDArray[np.int64], recipe: Recipe, threads: int | None, *, once: bool = False
) -> tuple[_native.FeatureSets, NDArray[np.uint32], NDArray[np.uint32], int]:
    """Return the feature sets of the documents in pairs, both sides of the pairs, and the number of threads."""
    batch = as_documents(texts, recipe)
    rows = as_row_pairs(pairs, len(batch))
    workers = num_threads(threads)
    recipe = recipe if once else with_counted(recipe, [batch], threads=workers)
    sets = _native.FeatureSets(len(batch), recipe.unweighted_rules if once else recipe.feature_rules)
    used = np.unique(rows).astype(np.uint32)
    sets.add(used, batch.take(used), threads=workers)
    # The core returns the containment of the later document in the earlier one.
    later, earlier = (np.ascontiguousarray(rows[:, side], np.uint32) for side in (0, 1))
    return sets, later, earlier, workers


def needed(recipe: Recipe, required: float, penalty: float | None) -> str:
    """Return a required similarity with what it is the sum of."""
    margin = required - recipe.similarity_threshold - (penalty or 0.0)
    terms = [f"{recipe.similarity_threshold:g}"]
    terms += [f"{margin:.4f} for short documents"] if recipe.short_margin is not None else []
    terms += [f"{penalty:.4f} for different names"] if penalty else []
    return f"{required:.4f}" if required >= 1.0 or len(terms) == 1 else f"{required:.4f} ({' + '.join(terms)})"
