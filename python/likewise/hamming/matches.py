"""Inputs and results of a Hamming search: keys of a plan, and matches as flat arrays with offsets."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.checks import check_integer
from likewise.errors import InvalidParameter
from likewise.hamming.fingerprints import shown
from likewise.hamming.rows import FingerprintRows


class Matches(NamedTuple):
    """The matches of a batch of queries. The matches of query i are ``offsets[i]:offsets[i + 1]``.

    Parameters
    ----------
    offsets : ndarray of shape (q + 1,), int64
        Position of the first match of each query.
    rows : ndarray of shape (m,)
        Rows as int64, ascending within a query; ids if the index has ids. If the index does not store rows, the
        fingerprints themselves.
    distances : ndarray of shape (m,), uint16
        Hamming distances, in bits.
    """

    offsets: NDArray[np.int64]
    rows: NDArray[Any]
    distances: NDArray[np.uint16]


def with_empty(found: Matches, taken: FingerprintRows, empty_rows: NDArray[Any]) -> Matches:
    """Return the matches of all queries. Queries with an empty text get `empty_rows` as their matches."""
    counts = np.zeros(taken.num_rows, np.int64)
    counts[taken.empty_rows] = len(empty_rows)
    is_text = np.ones(taken.num_rows, bool)
    is_text[taken.empty_rows] = False
    counts[is_text] = np.diff(found.offsets)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
    of_text = np.repeat(is_text, counts)
    rows = np.empty((len(of_text), *found.rows.shape[1:]), np.result_type(found.rows, empty_rows))
    rows[of_text] = found.rows
    rows[~of_text] = np.concatenate([empty_rows] * len(taken.empty_rows))
    distances = np.zeros(len(of_text), np.uint16)
    distances[of_text] = found.distances
    return Matches(offsets, rows, distances)


def native_set(
    taken: FingerprintRows,
    within: int,
    *,
    with_rows: bool,
    plan: Any,
    memory_bytes: int | None,
    threads: int,
) -> _native.HammingSet:
    """Return the search tables of fingerprints."""
    words = taken.words
    keys = None if plan is None else keys_of(plan)
    memory = None if memory_bytes is None else float(memory_bytes)
    try:
        if taken.file is not None:
            file, bits = taken.file.native, taken.bits
            if keys is None:
                keys = _native.plan_hamming_file(file, bits, within=within, with_rows=with_rows, memory_bytes=memory)
            if keys:
                return _native.HammingSet.of_file(
                    file, bits, within=within, keys=keys, with_rows=with_rows, threads=threads
                )
            # Fingerprints that are scanned must be in memory.
            words = np.array(words)
        return _native.HammingSet(
            words,
            taken.bits,
            within=within,
            rows=taken.rows,
            with_rows=with_rows,
            keys=keys,
            memory_bytes=memory,
            threads=threads,
        )
    except InvalidParameter as error:
        # Use the parameter names of the public API.
        names = {"keys": "plan", "memory_bytes": "memory"}
        raise InvalidParameter(names.get(error.name, error.name), error.message) from None


def keys_of(plan: Any) -> list[tuple[list[int], int]]:
    """Return (mask, radius) of each key, the mask as four words."""
    keys = getattr(plan, "keys", plan)
    if isinstance(keys, str | bytes) or not isinstance(keys, Iterable):
        raise InvalidParameter("plan", f"{shown(plan)} is not a search plan or a list of (mask, radius) keys")
    return [_key(key) for key in keys]


def _key(key: Any) -> tuple[list[int], int]:
    pair = (key.mask, key.radius) if hasattr(key, "mask") else key
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise InvalidParameter("plan", f"the key {shown(pair)} is not a (mask, radius) pair")
    mask = check_integer("plan", pair[0], 0, (1 << 256) - 1)
    radius = check_integer("plan", pair[1], 0, 256)
    word = (1 << 64) - 1
    return [mask >> shift & word for shift in (0, 64, 128, 192)], radius


def mask_number(mask: Sequence[int]) -> int:
    """Return a mask, given as words, as one number."""
    return sum(word << 64 * i for i, word in enumerate(mask))
