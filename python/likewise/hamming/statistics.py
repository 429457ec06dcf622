"""How the bits of a set of fingerprints agree, for its plan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.checks import check_integer
from likewise.errors import InvalidParameter
from likewise.hamming.fingerprints import take_fingerprints


def bit_statistics(fingerprints: Any, *, bits: int | None = None) -> tuple[NDArray[np.float64], float]:  # noqa: ANN401 - array-like
    """Return the share of ones at each bit, and how far the bits' differing depends on each other.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int
        A sample from all over the set; ten thousand are enough.
    bits : int, optional
        Width; all bits of the words where None.

    Returns
    -------
    frequencies : ndarray of shape (bits,), float64
        For :func:`~likewise.hamming.plan.plan_hamming`.
    dependence : float
        Mean correlation of two bits' being different in a pair of fingerprints, 0 to 0.5: that by which the variance of
        the distance of two is above that of independent bits.

    Raises
    ------
    InvalidParameter
        If the array is of another kind, empty, or of another width.

    Examples
    --------
    >>> frequencies, dependence = bit_statistics(np.array([0, 1, 3, 3], np.uint64))
    >>> frequencies[:3].tolist()
    [0.75, 0.5, 0.0]
    """
    taken = take_fingerprints("fingerprints", fingerprints)
    if not len(taken):
        raise InvalidParameter("fingerprints", "empty; at least one is required")
    num_words = -(-taken.bits // 64)
    bits = taken.bits if bits is None else check_integer("bits", bits, 32, 256)
    if -(-bits // 64) != num_words:
        raise InvalidParameter("bits", f"{bits} does not match the fingerprints, which have {num_words} 64-bit words")
    frequencies, dependence = _native.bit_statistics(taken.words, bits)
    return np.asarray(frequencies), dependence


def bit_frequencies(fingerprints: Any, *, bits: int | None = None) -> NDArray[np.float64]:  # noqa: ANN401 - array-like
    """Return the share of fingerprints with a one at each bit, the first of :func:`bit_statistics`.

    Parameters
    ----------
    fingerprints, bits
        As for :func:`bit_statistics`.

    Returns
    -------
    ndarray of shape (bits,), float64
        For :func:`~likewise.hamming.plan.plan_hamming`.

    Raises
    ------
    InvalidParameter
        As :func:`bit_statistics`.
    """
    return bit_statistics(fingerprints, bits=bits)[0]
