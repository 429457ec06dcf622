"""Search tables of stored fingerprints, built once per Python worker, and the search of other fingerprints in them.

The tables are those of :func:`likewise.hamming_stream`, built from one side and searched in batches with the other. On
a million fingerprints, they are 2.5 times as fast as a mapped index at 64 bits within 3, and 12 times as fast at 128
bits within 20.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native

# Maximum numbers of fingerprints and of hits of one call.
ROWS_AT_ONCE = 1 << 19
HITS_AT_ONCE = 1 << 20
_SAMPLE = 100_000


class Held:
    """Cache of the last value in a worker process. It has one entry, since tables take most of the memory."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._value: Any = None

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the value for a key, from the cache or from `make`."""
        if key != self._key:
            # Free the old value first, since both may not fit in memory.
            self._key, self._value = None, None
            self._value = make()
            self._key = key
        return self._value


# Worker processes run many tasks.
HELD = Held()


def lay_out(words: NDArray[np.uint64], bits: int, within: int, sample: NDArray[np.uint64]) -> _native.StreamTables:
    """Return search tables of fingerprints, chosen for a stream of fingerprints like `sample`."""
    step = max(1, len(sample) // _SAMPLE)
    some = np.ascontiguousarray(sample[::step]).reshape(-1)
    return _native.StreamTables(np.ascontiguousarray(words).reshape(-1), bits, some, within=within, threads=1)


def hits(
    tables: _native.StreamTables, words: NDArray[np.uint64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
    """Yield all pairs within the radius, in parts: rows of `words`, rows of the tables, and distances."""
    row = 0
    while row < len(words):
        some = np.ascontiguousarray(words[row : row + ROWS_AT_ONCE]).reshape(-1)
        rows, found, distances, done = tables.search(some, row, max_hits=HITS_AT_ONCE, threads=1)
        yield np.asarray(rows), np.asarray(found).astype(np.int64), np.asarray(distances).astype(np.int32)
        row += done
