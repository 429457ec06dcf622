"""Features: the weighted features of a text."""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.recipe import Recipe
from likewise.recipe_check import OWN_WEIGHTS, check_integer
from likewise.text import as_texts
from likewise.weight_table import MAX_WEIGHT
from likewise.weights import with_counted


class Features(NamedTuple):
    """Features of several texts as flat arrays.

    Parameters
    ----------
    offsets : ndarray of shape (n + 1,), int64
        Those of text i are at ``offsets[i]:offsets[i + 1]``.
    features : ndarray, uint64
        Distinct features of each text in order of first occurrence.
    weights : ndarray, uint32
        Their integer weights.
    """

    offsets: NDArray[np.int64]
    features: NDArray[np.uint64]
    weights: NDArray[np.uint32]


def features(texts: Any, recipe: Recipe | None = None, *, threads: int = 1) -> Features:  # noqa: ANN401
    """Return the distinct weighted features of each text.

    Parameters
    ----------
    texts : list of str, Arrow data, or iterable of str
        The texts; of weights ``own`` lists of (token, weight).
    recipe : Recipe, optional
        Whose tokens, shingle, weights and seed count; ``Recipe.minhash()`` where None. Weights by rarity that have no
        table yet are counted on these texts.
    threads : int
        Threads of this call.

    Returns
    -------
    Features
        Offsets, features, weights.

    Raises
    ------
    InvalidInput
        If an entry is no text.

    Examples
    --------
    >>> features(["a b c d", ""]).offsets.tolist()
    [0, 2, 2]
    """
    recipe = recipe or Recipe.minhash()
    if recipe.weights == OWN_WEIGHTS:
        return own_features(texts, recipe)
    batch = as_texts(texts)
    rules = with_counted(recipe, [batch], threads=threads).feature_rules
    offsets, values, weights = _native.features(batch, rules, threads=threads)
    return Features(np.asarray(offsets), np.asarray(values), np.asarray(weights))


def own_features(documents: Iterable[Iterable[tuple[str, int]]], recipe: Recipe) -> Features:
    """Return the features of documents that the user cut and weighed.

    Parameters
    ----------
    documents : iterable of iterables of (str, int)
        Tokens as they are, in order, with their weights, 0 to 15.
    recipe : Recipe
        Whose shingle and seed count.

    Returns
    -------
    Features
        A shingle weighs as the heaviest of its tokens; the weights of equal features of a document add up. Features of
        weight 0 are left out, unless all are: then each weighs 1. Fewer tokens than a shingle are one feature.

    Raises
    ------
    InvalidInput
        If a document is no sequence of pairs.
    InvalidParameter
        If a weight is no whole number from 0 to 15.
    """
    offsets, tokens, weights = [0], [], []
    for row, document in enumerate(documents):
        try:
            pairs = [] if isinstance(document, str) else [(token, weight) for token, weight in document]
        except (TypeError, ValueError):
            pairs = None
        if pairs is None or isinstance(document, str):
            raise InvalidInput("weights own take documents as lists of (token, weight)", row=row)
        for token, weight in pairs:
            if not isinstance(token, str):
                raise InvalidInput(f"the token {token!r} is no str", row=row)
            tokens.append(token)
            weights.append(check_integer("weights", weight, 0, MAX_WEIGHT))
        offsets.append(len(tokens))
    rules = recipe.unweighted_rules
    found = _native.features_of_own_tokens(
        np.array(offsets, np.int64), _native.Texts.from_list(tokens), np.array(weights, np.uint32), rules
    )
    return Features(*(np.asarray(part) for part in found))
