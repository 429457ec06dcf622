"""What a Hamming search takes and gives: keys of a plan, matches as flat arrays with offsets."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter
from likewise.fingerprints import FingerprintRows


class Matches(NamedTuple):
    """What a batch of queries found: the matches of query i are ``offsets[i]:offsets[i + 1]``.

    Parameters
    ----------
    offsets : ndarray of shape (q + 1,), int64
        Where the matches of each query begin.
    rows : ndarray of shape (m,)
        Rows, int64, ascending within a query; ids where the index has ids; of an index without rows the
        fingerprints themselves.
    distances : ndarray of shape (m,), uint16
        Bits that differ.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[Any]
    distances: NDArray[np.uint16]


def with_empty(found: Matches, taken: FingerprintRows, empty_rows: NDArray[Any]) -> Matches:
    """Return the matches of all queries: those of empty texts, `empty_rows`, put between the others that were found."""
    counts = np.zeros(taken.num_rows, np.int64)
    counts[taken.empty_rows] = len(empty_rows)
    is_text = np.ones(taken.num_rows, bool)
    is_text[taken.empty_rows] = False
    counts[is_text] = np.diff(found.offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    of_text = np.repeat(is_text, counts)
    rows = np.empty((len(of_text), *found.rows.shape[1:]), np.result_type(found.rows, empty_rows))
    rows[of_text] = found.rows
    rows[~of_text] = np.tile(empty_rows, len(taken.empty_rows))
    distances = np.zeros(len(of_text), np.uint16)
    distances[of_text] = found.distances
    return Matches(offsets, rows, distances)


def keys_of(plan: Any) -> list[tuple[list[int], int]]:  # noqa: ANN401 - a planned search or keys
    """Return (mask, radius) of each key, the mask as four words."""
    keys: Iterable[Any] = getattr(plan, "keys", plan)
    pairs: Sequence[tuple[int, int]] = [
        (key.mask, key.radius) if hasattr(key, "mask") else (key[0], key[1]) for key in keys
    ]
    for mask, _ in pairs:
        if not 0 <= mask < 1 << 256:
            raise InvalidParameter("plan", f"the mask {mask} does not fit 256 bits")
    word = (1 << 64) - 1
    return [([mask >> shift & word for shift in (0, 64, 128, 192)], radius) for mask, radius in pairs]


def mask_number(mask: Sequence[int]) -> int:
    """Return a mask of words as one number."""
    return sum(word << 64 * i for i, word in enumerate(mask))
