"""Bit statistics of a set of fingerprints, as input of a search plan."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ColumnData
from likewise.checks import check_integer
from likewise.errors import InvalidParameter
from likewise.hamming.fingerprints import take_fingerprints


def bit_statistics(fingerprints: ColumnData, *, bits: int | None = None) -> tuple[NDArray[np.float64], float]:
    """Return the share of ones at each bit, and how strongly differences at two bits are correlated.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int
        A sample from across the set; 10,000 fingerprints are enough.
    bits : int, optional
        Width of a fingerprint. Default: all bits of its words.

    Returns
    -------
    frequencies : ndarray of shape (bits,), float64
        Shares from 0 to 1, bit 0 first, for :func:`~likewise.hamming.plan.plan_hamming`.
    dependence : float
        Mean correlation, from 0 to 0.5, between differences at two bits of a pair of fingerprints. It explains how far
        the variance of the distance of a pair is above that of independent bits.

    Raises
    ------
    InvalidParameter
        If the type or the width of the array does not fit, or the array is empty.

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


def bit_frequencies(fingerprints: ColumnData, *, bits: int | None = None) -> NDArray[np.float64]:
    """Return the share of fingerprints with a one at each bit, as :func:`bit_statistics` does.

    Parameters
    ----------
    fingerprints, bits
        See :func:`bit_statistics`.

    Returns
    -------
    ndarray of shape (bits,), float64
        Shares from 0 to 1, bit 0 first, for :func:`~likewise.hamming.plan.plan_hamming`.

    Raises
    ------
    InvalidParameter
        See :func:`bit_statistics`.
    """
    return bit_statistics(fingerprints, bits=bits)[0]
