"""Features: the weighted features of a text."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import TextData
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.stages.text import Tokenizer, as_documents
from likewise.stages.weights import with_counted


class Features(NamedTuple):
    """Features of several texts as flat arrays."""

    # The features of text i are at ``offsets[i]:offsets[i + 1]``
    offsets: NDArray[np.int64]
    # Distinct features of each text in order of first occurrence
    features: NDArray[np.uint64]
    weights: NDArray[np.uint32]


def features(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    tokenizer: Tokenizer | None = None,
    threads: int = 1,
) -> Features:
    """Return the distinct weighted features of each text.

    Examples
    --------
    >>> features(["a b c d", ""]).offsets.tolist()
    [0, 2, 2]
    """
    recipe = as_recipe(recipe)
    batch = as_documents(texts, recipe, tokenizer=tokenizer)
    rules = with_counted(recipe, [batch], threads=threads).feature_rules
    offsets, values, weights = _native.features(batch, rules, threads=threads)
    return Features(np.asarray(offsets), np.asarray(values), np.asarray(weights))


def tokens(document: Any, recipe: GivenRecipe | None = None, *, tokenizer: Tokenizer | None = None) -> list[Any]:
    """Return the tokens of a document under a recipe, in order, including stop words.

    Parameters
    ----------
    document : str, bytes, or list of tokens
        The document, in the form that the recipe requires.
    recipe : Recipe or str, optional
        Determines text rules and tokens; the preset ``online`` if None.
    tokenizer : callable, optional
        Function that splits a text into tokens, for tokens ``user``.

    Returns
    -------
    list of str, or of bytes
        Normalized tokens; bytes for tokens ``bytes`` and ``chunks``.

    Raises
    ------
    InvalidInput
        If the document has a different type.

    Examples
    --------
    >>> from likewise import Recipe
    >>> tokens("<p>One, two.</p><p>Three</p>", Recipe.minhash(tokens="line", markup="html", fold="punctuation"))
    ['one two', 'three']
    """
    recipe = as_recipe(recipe).across_values
    found: list[Any] = recipe.feature_rules.cut(as_documents([document], recipe, tokenizer=tokenizer))[0]
    return found
