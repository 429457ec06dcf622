"""Hamming search: the fingerprints that lie within k bits of each other."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter
from likewise.hamming_stream import hamming_stream as hamming_stream
from likewise.recipe_check import check_fraction, check_integer
from likewise.sketch import Sketches
from likewise.threads import num_threads

# Fingerprints searched in one call: large enough to fill the threads, small enough for Ctrl-C and memory.
_POSITIONS_AT_ONCE = 65536


def hamming_distance(a: Any, b: Any) -> NDArray[np.int64]:  # noqa: ANN401 - array-likes
    """Return the number of differing bits of fingerprints, element by element.

    Parameters
    ----------
    a, b : array-like of uint64, shape (n,) or (n, words)
        Fingerprints of the same shape, or shapes that broadcast.

    Returns
    -------
    ndarray of shape (n,), int64
        Distances in bits.

    Raises
    ------
    InvalidParameter
        If the shapes do not fit.

    Examples
    --------
    >>> import numpy as np
    >>> hamming_distance(np.array([0, 7], np.uint64), np.array([1, 0], np.uint64)).tolist()
    [1, 3]
    """
    left, right = np.asarray(a, np.uint64), np.asarray(b, np.uint64)
    try:
        ones: NDArray[np.int64] = np.bitwise_count(left ^ right).astype(np.int64)
    except ValueError as error:
        raise InvalidParameter("b", f"shapes {left.shape} and {right.shape} do not fit together") from error
    return ones if ones.ndim < 2 else np.asarray(ones.sum(axis=-1), np.int64)


def hamming_pairs(
    fingerprints: Any,  # noqa: ANN401 - Sketches or array-like
    *,
    within: int,
    recall: float | None = None,
    seed: int = 0,
    threads: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.uint16]]:
    """Find every pair of fingerprints at distance `within` or less, or each with the probability that `recall` names.

    Parameters
    ----------
    fingerprints : Sketches, or array of shape (n,) or (n, words), uint64
        Of :class:`Sketches`, empty texts pair with empty texts only.
    within : int
        Radius in bits, 0 to the width.
    recall : float, optional
        Above 0, below 1: only pairs that agree in one of some bands of sampled bits are compared, so many that a pair
        at a distance of exactly `within` is found with this probability or more, over the seeds. Exact where None.
    seed : int
        What the bits of the bands follow from.
    threads : int, optional
        Threads of this call; all processors where None.

    Returns
    -------
    pairs : ndarray of shape (m, 2), int64
        Rows, left < right, sorted, unique.
    distances : ndarray of shape (m,), uint16
        Bits that differ.

    Raises
    ------
    InvalidParameter
        If `within` or `recall` is out of range, or no bands reach the recall.

    Notes
    -----
    Exact: blocks by the generalised pigeonhole principle, or where they do not pay a blocked scan of all pairs (10^6
    fingerprints of 128 bits: about a minute on two cores). Bands: bit sampling (Indyk, Motwani 1998), buckets not
    capped.

    Examples
    --------
    >>> import numpy as np
    >>> pairs, distances = hamming_pairs(np.array([0, 7, 255], np.uint64), within=3)
    >>> pairs.tolist(), distances.tolist()
    ([[0, 1]], [3])
    """
    empty = np.zeros(0, np.int64)
    if isinstance(fingerprints, Sketches):
        if fingerprints.recipe.bits is None:
            raise InvalidParameter("fingerprints", "these are MinHash signatures; use band_pairs")
        array, bits = fingerprints.array, fingerprints.recipe.bits
        empty = np.flatnonzero(fingerprints.is_empty)
    else:
        array = np.asarray(fingerprints)
        if array.dtype != np.uint64 or array.ndim not in (1, 2):
            raise InvalidParameter(
                "fingerprints", f"shape {array.shape}, {array.dtype}; they must be uint64 of shape (n,) or (n, words)"
            )
        bits = 64 * (array.shape[1] if array.ndim == 2 else 1)
    within = check_integer("within", within, 0, bits)
    order = np.arange(len(array), dtype=np.uint32)
    order = np.delete(order, empty) if len(empty) else order
    words, workers = np.ascontiguousarray(array).reshape(-1), num_threads(threads)
    if recall is None:
        left, right, distance = _search(words, bits, order, within, workers)
    else:
        left, right, distance = _search_bands(words, bits, order, within, recall, seed, workers)
    if len(empty) > 1:
        first, second = np.triu_indices(len(empty), 1)
        left, right = np.concatenate([left, empty[first]]), np.concatenate([right, empty[second]])
        distance = np.concatenate([distance, np.zeros(len(first), np.uint16)])
    ranks = np.lexsort((right, left))
    return np.stack([left, right], axis=1)[ranks], distance[ranks]


def _search_bands(
    words: NDArray[np.uint64],
    bits: int,
    order: NDArray[np.uint32],
    within: int,
    recall: float,
    seed: int,
    threads: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]:
    recall = check_fraction("recall", recall)
    seed = check_integer("seed", seed, 0, 2**64 - 1)
    left, right, distance, _ = _native.bit_band_pairs(
        words, bits, order, within=within, recall=recall, seed=seed, threads=threads
    )
    return (
        np.asarray(left).astype(np.int64),
        np.asarray(right).astype(np.int64),
        np.asarray(distance).astype(np.uint16),
    )


def _search(
    array: NDArray[np.uint64], bits: int, order: NDArray[np.uint32], within: int, threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]:
    tables = _native.HammingTables(array, bits, order, within=within, threads=threads)
    lefts, rights, distances = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.uint16)]
    for low in range(0, len(order), _POSITIONS_AT_ONCE):
        high = min(low + _POSITIONS_AT_ONCE, len(order))
        later, earlier, distance = tables.candidates(low, high, None, threads=threads)
        # `order` rises, so the earlier position is the smaller row.
        lefts.append(order[np.asarray(earlier)].astype(np.int64))
        rights.append(order[np.asarray(later)].astype(np.int64))
        distances.append(np.asarray(distance).astype(np.uint16))
    return np.concatenate(lefts), np.concatenate(rights), np.concatenate(distances)
