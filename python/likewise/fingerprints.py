"""Fingerprints as users give them: Sketches, NumPy, Arrow."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter
from likewise.recipe import Recipe
from likewise.sketch import Sketches


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Fingerprints of one width, row-major, and where they stand.

    Parameters
    ----------
    words : ndarray of shape (n * words,), uint64
        Those of texts that are not empty.
    bits : int
        Width.
    num_rows : int
        Rows, empty texts included.
    rows : ndarray of shape (n,), uint32, optional
        Row of each fingerprint; its position where None.
    empty_rows : ndarray, int64
        Rows of empty texts.
    recipe : Recipe, optional
        What made them.
    """

    words: NDArray[np.uint64]
    bits: int
    num_rows: int
    rows: NDArray[np.uint32] | None
    empty_rows: NDArray[np.int64]
    recipe: Recipe | None


def take_fingerprints(
    fingerprints: Any,  # noqa: ANN401 - Sketches, Arrow data or array-like
    bits: int | None = None,
) -> Fingerprints:
    """Return fingerprints of any accepted form.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, or array of shape (n,) or (n, words), uint64 or int64 of the same bits
        What to take.
    bits : int, optional
        Width they must have; 64 a word where None.

    Raises
    ------
    InvalidParameter
        If type, shape or width do not fit, or a bit beyond the width is set.
    """
    recipe, empty = None, np.zeros(0, np.int64)
    if isinstance(fingerprints, Sketches):
        recipe = fingerprints.recipe
        if recipe.bits is None:
            raise InvalidParameter("fingerprints", "these are MinHash signatures; use band_pairs")
        if bits is not None and bits != recipe.bits:
            raise InvalidParameter("fingerprints", f"they have {recipe.bits} bits; expected {bits}")
        bits, array = recipe.bits, fingerprints.array
        empty = np.flatnonzero(fingerprints.is_empty)
    else:
        array = _as_array(fingerprints)
    num_words = 1 if array.ndim == 1 else array.shape[1]
    bits = 64 * num_words if bits is None else bits
    if not 32 <= bits <= 256 or bits % 32:
        raise InvalidParameter("bits", f"{bits} is not a multiple of 32 from 32 to 256")
    if num_words != -(-bits // 64):
        raise InvalidParameter("fingerprints", f"they have {num_words} words; {bits} bits take {-(-bits // 64)}")
    array = np.ascontiguousarray(array)
    if bits % 64 and array.size:
        last = array if array.ndim == 1 else array[:, -1]
        if (last >> np.uint64(bits % 64)).any():
            raise InvalidParameter("fingerprints", f"a bit beyond the {bits} of a fingerprint is set")
    rows = None
    num_rows = len(array)
    if empty.size:
        is_text = np.ones(num_rows, bool)
        is_text[empty] = False
        rows = np.flatnonzero(is_text).astype(np.uint32)
        array = array[is_text]
    return Fingerprints(array.reshape(-1), bits, num_rows, rows, empty, recipe)


def _as_array(fingerprints: Any) -> NDArray[np.uint64]:  # noqa: ANN401 - Arrow data or array-like
    if hasattr(fingerprints, "__arrow_c_stream__") or hasattr(fingerprints, "__arrow_c_array__"):
        array = _of_arrow(fingerprints)
    else:
        array = np.asarray(fingerprints)
    if array.dtype == np.int64:
        array = array.view(np.uint64) if isinstance(fingerprints, np.ndarray) or array.size == 0 else array
    if array.dtype != np.uint64 or array.ndim not in (1, 2):
        raise InvalidParameter(
            "fingerprints", f"shape {array.shape}, {array.dtype}; they must be uint64 of shape (n,) or (n, words)"
        )
    return array


def _of_arrow(data: Any) -> NDArray[Any]:  # noqa: ANN401 - Arrow data
    import pyarrow as pa

    column = pa.chunked_array(data) if hasattr(data, "__arrow_c_stream__") else pa.array(data)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    if column.null_count:
        raise InvalidParameter("fingerprints", f"{column.null_count} of them are null")
    if pa.types.is_fixed_size_list(column.type):
        flat: NDArray[Any] = column.flatten().to_numpy()
        return flat.view(np.uint64).reshape(len(column), -1)
    array: NDArray[Any] = column.to_numpy()
    return array.view(np.uint64) if array.dtype == np.int64 else array
