"""Pairs of rows that a user gives."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter


def as_row_pairs(pairs: Any, num_rows: int) -> NDArray[np.int64]:  # noqa: ANN401 - anything that NumPy makes an array of
    """Return pairs of rows as int64 of shape (m, 2).

    Parameters
    ----------
    pairs : array of shape (m, 2), or nothing
        Whole numbers.
    num_rows : int
        Rows there are.

    Raises
    ------
    InvalidParameter
        If the shape is another, or a row is no whole number from 0 to below `num_rows`.
    """
    try:
        found = np.asarray(pairs)
    except ValueError as error:
        raise InvalidParameter("pairs", f"these are no pairs of rows: {error}") from error
    if not found.size and found.ndim:
        return np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InvalidParameter(
            "pairs", f"{found.dtype} of shape {found.shape} given; they must be whole numbers of shape (m, 2)"
        )
    if not (found.min() >= 0 and found.max() < num_rows):
        raise InvalidParameter("pairs", f"rows must be from 0 to {num_rows - 1}")
    return found.astype(np.int64)
