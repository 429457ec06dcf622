"""Fingerprints as Python numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter

# More of a value is not shown.
_MAX_DIGITS = 40


def shown(value: object) -> str:
    """Return a value as messages show it."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _MAX_DIGITS else f"{text[: _MAX_DIGITS - 3]}..."


def as_words(name: str, given: Any) -> NDArray[np.uint64]:  # noqa: ANN401 - lists and arrays
    """Return an array of any shape, or a list, as words of fingerprints, bit by bit.

    Parameters
    ----------
    name : str
        The parameter, for errors.
    given : array of uint64, or of int64 of the same bits; or as for :func:`words_of_list`
        The words.

    Raises
    ------
    InvalidParameter
        If they are of any other type: nothing is rounded, cut or wrapped.
    """
    if isinstance(given, list | tuple):
        return words_of_list(name, given)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(name, f"{type(given).__name__} given; expected fingerprints") from error
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise InvalidParameter(name, "some of them are masked; leave these out")
    if array.dtype == object and array.ndim == 1:
        return words_of_list(name, array.tolist())
    if array.dtype.kind in "iu" and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned:
        array = array.copy()
    if array.dtype == np.int64:
        return np.ascontiguousarray(array).view(np.uint64).reshape(array.shape)
    if array.dtype != np.uint64:
        raise InvalidParameter(
            name,
            f"{type(given).__name__} of {array.dtype}, shape {array.shape}, given; they must be uint64, or int64 of "
            "the same bits",
        )
    return array


def words_of_list(name: str, given: Sequence[Any]) -> NDArray[np.uint64]:
    """Return a list of numbers, or of lists of words of one length, as an array of shape (n,) or (n, words).

    Parameters
    ----------
    name : str
        The parameter, for errors.
    given : sequence of int, or of sequences of int
        Each from 0 to 2^64 - 1.

    Raises
    ------
    InvalidParameter
        Naming the first that is anything else.
    """
    is_nested = bool(given) and all(
        isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1) for row in given
    )
    if is_nested:
        rows = [words_of_list(name, row.tolist() if isinstance(row, np.ndarray) else row) for row in given]
        if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1:
            raise InvalidParameter(name, "lists of different lengths given; each fingerprint has the same words")
        return np.stack(rows)
    if not all(type(value) is int for value in given):
        given = [_word(name, number, value) for number, value in enumerate(given)]
    try:
        return np.array(given, np.uint64)
    except OverflowError:
        number, value = next((i, value) for i, value in enumerate(given) if not 0 <= value < 1 << 64)
        raise InvalidParameter(
            name, f"{shown(value)} given as number {number}; a word of a fingerprint is from 0 to 2^64 - 1"
        ) from None


def _word(name: str, number: int, value: object) -> int:
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise InvalidParameter(name, f"{shown(value)} given as number {number}; fingerprints are whole numbers")
    return int(value.__index__())
