"""How the bits of a set of fingerprints agree, for its plan."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter
from likewise.recipe_check import check_integer


def bit_statistics(fingerprints: Any, *, bits: int | None = None) -> tuple[NDArray[np.float64], float]:  # noqa: ANN401 - array-like
    """Return the share of ones at each bit, and how far the bits' differing depends on each other.

    Parameters
    ----------
    fingerprints : array of shape (n,) or (n, words), uint64
        A sample from all over the set; ten thousand are enough.
    bits : int, optional
        Width; all bits of the words where None.

    Returns
    -------
    frequencies : ndarray of shape (bits,), float64
        For :func:`plan_hamming`.
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
    array = np.asarray(fingerprints)
    if array.dtype != np.uint64 or array.ndim not in (1, 2) or not array.size:
        raise InvalidParameter(
            "fingerprints",
            f"shape {array.shape}, {array.dtype}; they must be uint64 of shape (n,) or (n, words), at least one",
        )
    num_words = 1 if array.ndim == 1 else array.shape[1]
    bits = 64 * num_words if bits is None else check_integer("bits", bits, 32, 256)
    if -(-bits // 64) != num_words:
        raise InvalidParameter("bits", f"{bits} given; the fingerprints have {num_words} words of 64")
    frequencies, dependence = _native.bit_statistics(np.ascontiguousarray(array).reshape(-1), bits)
    return np.asarray(frequencies), dependence
