"""One measure of two texts, sets, weighted sets or sequences, or of many such pairs."""

import math
from collections.abc import Hashable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ColumnData, as_row_pairs, slices
from likewise.errors import InvalidParameter, check_choice
from likewise.hamming.pairs import hamming_distance
from likewise.measures.table import SET_MEASURES, TABLE, MeasureName
from likewise.measures.texts import Alignment, fingerprint_distance
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe, check_weighable
from likewise.stages.bloom import filter_similarities
from likewise.stages.sketch import Sketches, sketch
from likewise.stages.text import as_texts
from likewise.stages.verify import verify_pairs

_MOST_IN_FLOAT = 2**1000
# Number of text pairs whose features are in memory at once.
_PAIRS_AT_ONCE = 8192

_KINDS = {"simhash": "fingerprints", "minhash": "signatures", "bloom": "filters"}


def similarity(a: ColumnData, b: ColumnData, measure: MeasureName, *, recipe: GivenRecipe | None = None) -> float:
    """Return the similarity of two texts, sets, weighted sets or sequences by one measure.

    Parameters
    ----------
    a, b : str, set, mapping, or list or tuple
        Two texts, two sets, two weighted sets (mappings of items to integer weights of at least 0), or two sequences.
        Both must be of the same kind.
    measure : {"jaccard", "containment", "cosine", "dice", "overlap", "hamming", "lcs", "edit"}
        ``containment`` is the share of `a` found in `b`. Texts support all measures, sets the first five, sequences the
        last three. ``hamming`` requires sequences of equal length.
    recipe : Recipe or str, optional
        For texts only: defines the features and the fingerprint. Default: the preset ``online``; for ``hamming``,
        ``Recipe.simhash()``.

    Returns
    -------
    float
        From 0 to 1. Sums are exact integers; only the division, and the square root of ``cosine``, are rounded.

    Raises
    ------
    InvalidParameter
        If `a` and `b` differ in kind, the measure does not support that kind, or the recipe weighs features by rarity
        and has no weight table.

    Examples
    --------
    >>> similarity({"a", "b", "c"}, {"b", "c", "d"}, "jaccard"), similarity("kitten", "sitting", "edit")
    (0.5, 0.5714285714285714)
    >>> similarity({"a": 3, "b": 1}, {"a": 1}, "containment"), similarity([1, 2, 3], [1, 3], "lcs")
    (0.25, 0.8)
    """
    check_choice("measure", measure, tuple(TABLE))
    kind = _kind(a)
    if kind is None or kind != _kind(b):
        found = " and ".join(type(value).__name__ for value in (a, b))
        raise InvalidParameter(
            "a, b", f"{found} are not supported; both must be str, sets, mappings to weights, or lists or tuples"
        )
    if kind not in TABLE[measure].takes:
        allowed = ", ".join(name for name, facts in TABLE.items() if kind in facts.takes)
        raise InvalidParameter("measure", f"{measure} is not defined on {kind}; use one of {allowed}")
    recipe = None if recipe is None else as_recipe(recipe).across_values
    if recipe is not None and (kind != "texts" or measure in ("lcs", "edit")):
        raise InvalidParameter("recipe", f"a recipe does not apply to {measure} of {kind}")
    if kind == "texts":
        return _of_texts(a, b, measure, recipe)
    if kind == "sequences":
        return _of_sequences(a, b, measure)
    return set_similarity(a, b, measure)


def similarities(
    a: ColumnData,
    b: ColumnData,
    measure: MeasureName,
    *,
    recipe: GivenRecipe | None = None,
    threads: int | None = None,
) -> NDArray[np.float64]:
    """Return the similarity of the entries of two columns, row by row, by one measure: float64 of shape (n,).

    Parameters
    ----------
    a, b : list, Arrow data, or iterable
        The same number of texts, as for :func:`likewise.dedup`, or lists of sets, weighted sets or sequences.
    measure, recipe
        As for :func:`similarity`, whose errors apply.
    threads : int, optional
        Number of threads; all processors if None. Results do not depend on it.

    Raises
    ------
    InvalidInput
        If a text is null.

    Examples
    --------
    >>> similarities(["kitten", "one fine day"], ["sitting", "one fine day"], "edit").round(4).tolist()
    [0.5714, 1.0]
    """
    check_choice("measure", measure, tuple(TABLE))
    are_things = all(isinstance(side, list | tuple) and side and not isinstance(side[0], str) for side in (a, b))
    left, right = (side if are_things else as_texts(side) for side in (a, b))
    if len(left) != len(right):
        raise InvalidParameter("a, b", f"{len(left)} and {len(right)} entries; both columns must have the same length")
    recipe = None if recipe is None else as_recipe(recipe).across_values
    if are_things or measure in ("lcs", "edit"):
        sides = (left, right) if are_things else (left.to_list(), right.to_list())
        pairs = zip(*sides, strict=True)
        return np.array([similarity(one, other, measure, recipe=recipe) for one, other in pairs], np.float64)
    if measure == "hamming":
        recipe = _of_fingerprints(recipe)
        arrays = [sketch(side, recipe, threads=threads).array for side in (left, right)]
        return np.asarray(1.0 - hamming_distance(*arrays) / recipe.method_as(SimHash).bits)
    if recipe is not None:
        check_weighable(recipe)
    found = np.empty(len(left))
    for part in slices(len(left), _PAIRS_AT_ONCE):
        rows = np.arange(part.start, part.stop)
        texts = Texts.concat([left.take(rows), right.take(rows)])
        pairs_of_rows = np.stack([rows - part.start, rows - part.start + len(rows)], axis=1)
        found[part] = verify_pairs(texts, pairs_of_rows, recipe, measure=measure, threads=threads)
    return found


def _of_fingerprints(recipe: Recipe | None) -> Recipe:
    recipe = Recipe.simhash() if recipe is None else recipe
    if not isinstance(recipe.sketch, SimHash):
        raise InvalidParameter("recipe", "hamming requires SimHash fingerprints; give a recipe with method simhash")
    return recipe


def _kind(value: object) -> str | None:
    if isinstance(value, str):
        return "texts"
    if isinstance(value, Mapping):
        return "weighted sets"
    if isinstance(value, AbstractSet):
        return "sets"
    return "sequences" if isinstance(value, list | tuple) else None


def _of_texts(a: str, b: str, measure: str, recipe: Recipe | None) -> float:
    if measure in ("lcs", "edit"):
        aligned = Alignment.of_texts(a, b)
        return aligned.lcs if measure == "lcs" else aligned.edit
    if measure == "hamming":
        recipe = _of_fingerprints(recipe)
        return 1.0 - fingerprint_distance(a, b, recipe) / recipe.method_as(SimHash).bits
    if recipe is not None:
        check_weighable(recipe)
    return float(verify_pairs([a, b], np.array([[0, 1]]), recipe, measure=measure, threads=1)[0])


def _of_sequences(a: Sequence[Hashable], b: Sequence[Hashable], measure: str) -> float:
    if measure == "hamming":
        if len(a) != len(b):
            raise InvalidParameter("a, b", f"{len(a)} and {len(b)} items; hamming requires sequences of equal length")
        return sum(x == y for x, y in zip(a, b, strict=True)) / len(a) if a else 1.0
    aligned = Alignment.of_sequences(a, b)
    return aligned.lcs if measure == "lcs" else aligned.edit


def set_similarity(
    a: AbstractSet[Hashable] | Mapping[Hashable, int], b: AbstractSet[Hashable] | Mapping[Hashable, int], measure: str
) -> float:
    """Return the similarity of two sets or weighted sets by one set measure.

    Parameters
    ----------
    a, b : set, or mapping to int
        A mapping gives each item an integer weight of at least 0. Items of weight 0 are ignored.
    measure : {"jaccard", "containment", "cosine", "dice", "overlap"}
        ``containment`` is the share of `a` found in `b`.

    Returns
    -------
    float
        From 0 to 1: 1 for two empty sets, 0 for an empty set and a set with items.

    Raises
    ------
    InvalidParameter
        If a weight is not an integer of at least 0.

    Examples
    --------
    >>> set_similarity({1, 2, 3, 4}, {1, 2}, "overlap"), set_similarity({1, 2, 3, 4}, {1, 2}, "dice")
    (1.0, 0.6666666666666666)
    """
    check_choice("measure", measure, SET_MEASURES)
    left, right = _weighted(a), _weighted(b)
    if not left or not right:
        return float(not left and not right)
    if measure == "cosine":
        product = sum(weight * right[item] for item, weight in left.items() if item in right)
        norm_a, norm_b = (sum(weight * weight for weight in side.values()) for side in (left, right))
        # If the norms are equal, the root is the norm, so that equal sets have similarity 1 at any weight.
        if norm_a == norm_b:
            return product / norm_a
        squares = norm_a * norm_b
        # Beyond the range of floats, the integer part of the root has more digits than they do.
        return product / (math.sqrt(squares) if squares < _MOST_IN_FLOAT else math.isqrt(squares))
    shared = sum(min(weight, right[item]) for item, weight in left.items() if item in right)
    in_a, in_b = sum(left.values()), sum(right.values())
    whole = {"jaccard": in_a + in_b - shared, "containment": in_a, "dice": in_a + in_b, "overlap": min(in_a, in_b)}
    return (2 * shared if measure == "dice" else shared) / whole[measure]


def _weighted(items: AbstractSet[Hashable] | Mapping[Hashable, int]) -> dict[Hashable, int]:
    if not isinstance(items, Mapping):
        return dict.fromkeys(items, 1)
    found = {}
    for item, weight in items.items():
        if isinstance(weight, bool) or not hasattr(weight, "__index__") or int(weight.__index__()) < 0:
            raise InvalidParameter("weights", f"{weight!r} is not an integer of at least 0")
        if weight:
            found[item] = int(weight.__index__())
    return found


def sketch_similarities(sketches: Sketches, pairs: NDArray[np.int64], *, measure: str) -> NDArray[np.float64]:
    """Return the similarity of pairs of sketches: exact for ``hamming``, an estimate for the other measures.

    Parameters
    ----------
    sketches : Sketches
        SimHash fingerprints (hamming, cosine), MinHash signatures (jaccard, dice) or Bloom filters (all but
        containment, on their bits).
    pairs : ndarray of shape (m, 2), int64
        Row numbers in `sketches`, two for each pair.
    measure : {"hamming", "cosine", "jaccard", "dice", "overlap"}
        The measure. Which ones are available depends on the sketches.

    Returns
    -------
    ndarray of shape (m,), float64
        From 0 to 1, in the order of `pairs`. An estimate is 1 for two empty documents and 0 for an empty document and
        another.

    Raises
    ------
    InvalidParameter
        If a row does not exist, or these sketches cannot estimate the measure. Containment and overlap depend on the
        sizes of the sets. Sketches do not store them; :func:`likewise.stages.sets.sample` does.

    Notes
    -----
    For fingerprints of b bits at distance d, the cosine is estimated as ``max(0, cos(pi d / b))``; weights are never
    negative. For signatures with e of m equal slots, the Jaccard similarity J is estimated as ``e / m``, with standard
    error below ``sqrt(J (1 - J) / m)``, and dice as ``2J / (1 + J)``. Sources: Charikar 2002; Broder 1997.

    Examples
    --------
    >>> import likewise
    >>> prints = likewise.sketch(["one fine day", "one fine day", "another text"], likewise.Recipe.simhash())
    >>> sketch_similarities(prints, np.array([[0, 1]]), measure="cosine").tolist()
    [1.0]
    """
    check_choice("measure", measure, tuple(TABLE))
    kind = _KINDS[sketches.recipe.method]
    if kind not in TABLE[measure].takes:
        allowed = ", ".join(name for name, facts in TABLE.items() if kind in facts.takes)
        raise InvalidParameter("measure", f"{kind} cannot estimate {measure}; use one of {allowed}")
    rows = as_row_pairs(pairs, len(sketches.array))
    if kind == "filters":
        return filter_similarities(sketches, rows, measure=measure)
    left, right = rows[:, 0], rows[:, 1]
    if measure == "hamming":
        return 1.0 - _distance_share(sketches, left, right)
    if measure == "cosine":
        found = np.maximum(0.0, np.cos(np.pi * _distance_share(sketches, left, right)))
    else:
        found = np.mean(sketches.array[left] == sketches.array[right], axis=1)
        if measure == "dice":
            found = 2 * found / (1 + found)
    empty_a, empty_b = sketches.is_empty[left], sketches.is_empty[right]
    found = np.where(empty_a | empty_b, np.where(empty_a & empty_b, 1.0, 0.0), found)
    return np.asarray(found, np.float64)


def _distance_share(sketches: Sketches, left: NDArray[np.int64], right: NDArray[np.int64]) -> NDArray[np.float64]:
    distances: NDArray[Any] = hamming_distance(sketches.array[left], sketches.array[right])
    return np.asarray(distances / sketches.recipe.method_as(SimHash).bits, np.float64)
