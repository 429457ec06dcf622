"""Where ids stand: sorted runs of 64-bit keys, merged as they grow."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts

# Which of these rows are still there.
IsHeld = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def id_keys(column: Any) -> NDArray[np.uint64]:  # noqa: ANN401 - an Arrow array
    """Return a 64-bit key of each id: of a number its own bits, of text a hash."""
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
        return numbers.view(np.uint64)
    return np.asarray(Texts.from_arrow(column).hashes())


def first_double(column: Any, keys: NDArray[np.uint64]) -> tuple[int, int] | None:  # noqa: ANN401 - an Arrow array
    """Return where the first id stands that was there before, and where that was; None if all ids differ.

    About 0.1 us an id.
    """
    ranked = np.sort(keys)
    if not (ranked[1:] == ranked[:-1]).any():
        return None
    order = np.argsort(keys, kind="stable")
    ranked = keys[order]
    starts = np.flatnonzero(np.concatenate([[True], ranked[1:] != ranked[:-1]]))
    sizes = np.diff(np.append(starts, len(keys)))
    doubles = []
    # Unequal ids of one key are no doubles.
    for start, size in zip(starts[sizes > 1].tolist(), sizes[sizes > 1].tolist(), strict=True):
        before: dict[object, int] = {}
        for row in order[start : start + size].tolist():
            value = column[row].as_py()
            if value in before:
                doubles.append((row, before[value]))
                break
            before[value] = row
    return min(doubles, default=None)


class IdLookup:
    """The rows of ids, as keys; 12 bytes an id.

    A run holds keys in order and their rows. A new one is merged with those before that are less than four times as
    long, so that each key is moved a logarithmic number of times.
    """

    def __init__(self) -> None:
        self._runs: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = []

    def add(self, keys: NDArray[np.uint64], first_row: int) -> None:
        """Take the keys of the rows from `first_row` on."""
        order = np.argsort(keys, kind="stable")
        runs = [*self._runs, (keys[order], (first_row + order).astype(np.uint32))]
        while len(runs) > 1 and len(runs[-2][0]) < 4 * len(runs[-1][0]):
            both = np.concatenate([runs[-2][0], runs[-1][0]])
            rows = np.concatenate([runs[-2][1], runs[-1][1]])
            # Stable, and two sorted parts: a merge.
            order = np.argsort(both, kind="stable")
            runs[-2:] = [(both[order], rows[order])]
        self._runs = runs

    def candidates(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a position in `keys` and a row of that key."""
        positions, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        # In order, so that neighbours are looked up in the same cache lines.
        order = np.argsort(keys)
        keys = keys[order]
        for held, held_rows in self._runs:
            low = np.searchsorted(held, keys)
            if len(keys) == 1:
                # One id, the usual case: a slice.
                high = np.searchsorted(held, keys, "right")
            else:
                is_there = held[np.minimum(low, len(held) - 1)] == keys
                high = low.copy()
                high[is_there] = np.searchsorted(held, keys[is_there], "right")
            counts = high - low
            num = int(counts.sum())
            if num:
                positions.append(np.repeat(np.arange(len(keys)), counts))
                starts = np.repeat(low - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
                rows.append(held_rows[starts + np.arange(num)].astype(np.int64))
        return order[np.concatenate(positions)], np.concatenate(rows)
