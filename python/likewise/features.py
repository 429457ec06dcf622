"""Features: the weighted features of a text."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.recipe import Recipe
from likewise.text import as_texts


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
        The texts.
    recipe : Recipe, optional
        Whose tokens, shingle, weights and seed count; ``Recipe.minhash()`` where None.
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
    rules = (recipe or Recipe.minhash()).feature_rules
    offsets, values, weights = _native.features(as_texts(texts), rules, threads=threads)
    return Features(np.asarray(offsets), np.asarray(values), np.asarray(weights))
