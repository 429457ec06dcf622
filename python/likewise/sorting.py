"""Orders of more keys than memory holds."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.growing import ArraySpace

# Keys that are sorted at once where they do not all lie in memory: about 20 MB.
_AT_ONCE = 1 << 19
_SAMPLE = 1 << 16


def stable_order(keys: NDArray[Any], space: ArraySpace) -> NDArray[np.int64]:
    """Return the places of keys in ascending order, equal ones in theirs.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        Integers.
    space : ArraySpace
        Where the result lies. In files the keys are sorted part by part, in a bounded amount of memory.

    Returns
    -------
    ndarray of shape (n,), int64
        As ``numpy.argsort(keys, kind="stable")``.
    """
    if space.folder is None or len(keys) <= _AT_ONCE:
        return np.argsort(keys, kind="stable")
    cuts = _cuts(keys)
    ends = np.zeros(len(cuts) + 1, np.int64)
    for part in slices(len(keys), _AT_ONCE):
        ends += np.bincount(np.searchsorted(cuts, keys[part], "right"), minlength=len(ends))
    ends = np.cumsum(ends)
    order = _spread(keys, cuts, np.concatenate([[0], ends[:-1]]), space)
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        places = order[start:end]
        values = keys[places]
        if end - start > 1 and values.min() != values.max():
            order[start:end] = places[np.argsort(values, kind="stable")]
    return order


def places_of(values: Any, keys: NDArray[Any]) -> NDArray[np.intp]:  # noqa: ANN401 - a number or several
    """Return where values would stand in ascending keys, each before its equals.

    Parameters
    ----------
    values : int or array-like of int
        Numbers that the type of the keys can hold.
    keys : ndarray of shape (n,)
        Ascending; maybe in a file.

    Returns
    -------
    intp or ndarray of intp
        As ``numpy.searchsorted(keys, values)``, which makes a copy of all keys where the values are of another type.
    """
    return np.searchsorted(keys, np.asarray(values, keys.dtype))


def slices(length: int, step: int) -> Iterator[slice]:
    """Yield consecutive slices of so many entries, the last shorter."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _cuts(keys: NDArray[Any]) -> NDArray[Any]:
    """Return keys at which parts begin; one that many share begins a part and ends it."""
    sample = np.sort(keys[:: max(1, len(keys) // _SAMPLE)])
    num_parts = -(-2 * len(keys) // _AT_ONCE)
    cuts = sample[np.arange(1, num_parts) * len(sample) // num_parts]
    behind = cuts[cuts < np.iinfo(keys.dtype).max] + keys.dtype.type(1)
    return np.unique(np.concatenate([cuts, behind]))


def _spread(keys: NDArray[Any], cuts: NDArray[Any], starts: NDArray[np.int64], space: ArraySpace) -> NDArray[np.int64]:
    """Return places part by part, rising in each."""
    spread = space.zeros(len(keys), np.int64)
    starts = starts.copy()
    for some in slices(len(keys), _AT_ONCE):
        number = np.searchsorted(cuts, keys[some], "right")
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=len(starts))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        for part in np.flatnonzero(counts).tolist():
            places = order[bounds[part] : bounds[part + 1]]
            spread[starts[part] : starts[part] + len(places)] = places + some.start
        starts += counts
    return spread
