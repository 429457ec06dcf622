"""Similarity of documents, from their sketches alone."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import as_row_pairs
from likewise.checks import check_choice
from likewise.errors import InvalidParameter
from likewise.hamming.pairs import hamming_distance
from likewise.measures.table import TABLE
from likewise.recipe.methods import SimHash
from likewise.stages.bloom import filter_similarities
from likewise.stages.sketch import Sketches

_KINDS = {"simhash": "fingerprints", "minhash": "signatures", "bloom": "filters"}


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
