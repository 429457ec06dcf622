"""Candidate pairs of positions, by bands or by Hamming distance, a range of later positions at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.bands import min_equal_slots, open_buckets
from likewise.dedup.collapse import Collapsed
from likewise.dedup.documents import Documents
from likewise.dedup.timing import Timing
from likewise.recipe import Recipe

_FIRST_RANGE = 256
_RANGE = 4096
# Pairs decided at once: few enough that documents removed among them spare measurements of the next.
_PAIRS_AT_ONCE = 32768
# Pairs that a range should list at most: 48 MB with their distances.
_PAIRS_A_RANGE = 1 << 22


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate pairs, sorted by (later, earlier).

    Parameters
    ----------
    later, earlier : ndarray of shape (m,), uint32
        Positions.
    distance : ndarray of shape (m,), uint32, optional
        Hamming distances; None for bands.
    num_considered : int
        Distinct pairs before any filter (bands), or those listed.
    """

    later: NDArray[np.uint32]
    earlier: NDArray[np.uint32]
    distance: NDArray[np.uint32] | None
    num_considered: int

    def __len__(self) -> int:
        return len(self.later)

    def select(self, which: slice | NDArray[np.bool_]) -> "Candidates":
        """Return some of the pairs."""
        distance = None if self.distance is None else self.distance[which]
        return Candidates(self.later[which], self.earlier[which], distance, self.num_considered)

    def blocks(self, low: int, high: int) -> list[tuple[int, int, slice]]:
        """Cut the positions low..high into consecutive ranges of not too many pairs: (low, high, pairs)."""
        blocks = []
        start = 0
        while len(self) - start > _PAIRS_AT_ONCE:
            # All pairs of one later position stay together.
            last = self.later[start + _PAIRS_AT_ONCE]
            stop = int(np.searchsorted(self.later, last, "left"))
            if stop <= start:
                stop = int(np.searchsorted(self.later, last, "right"))
            if stop >= len(self):
                break
            middle = int(self.later[stop])
            blocks.append((low, middle, slice(start, stop)))
            low, start = middle, stop
        blocks.append((low, high, slice(start, len(self))))
        return blocks


class BandSearch:
    """Candidates by MinHash bands."""

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        self._buckets = open_buckets(documents.sketches, recipe, collapsed.order, threads=threads)
        self._min_equal = min_equal_slots(recipe)
        self._threads = threads

    @property
    def num_capped(self) -> int:
        """Documents that met a full last level, once for each band."""
        return self._buckets.num_capped

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None) -> Candidates:
        """Return pairs whose later position is in low..high; those of removed earlier ones are left out."""
        later, earlier, num = self._buckets.candidates(
            low, high, states, min_equal=self._min_equal, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), None, num)


class DistanceSearch:
    """Candidates by Hamming distance of SimHash fingerprints; exact."""

    num_capped = 0

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        assert recipe.bits is not None
        assert recipe.within is not None
        self._tables = _native.HammingTables(
            documents.sketches, recipe.bits, collapsed.order, within=recipe.within, threads=threads
        )
        self._threads = threads

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None) -> Candidates:
        """Return pairs whose later position is in low..high; those of removed earlier ones are left out."""
        later, earlier, distance = self._tables.candidates(low, high, states, threads=self._threads)
        return Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), len(later))


class NoSearch:
    """No candidates: what matches has collapsed already (method exact)."""

    num_capped = 0

    def __init__(self, *_: object) -> None:
        pass

    def candidates(self, *_: object) -> Candidates:
        """Return no pairs."""
        nothing = np.zeros(0, np.uint32)
        return Candidates(nothing, nothing, None, 0)


def open_search(documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> Any:  # noqa: ANN401
    """Return the search of a resolved recipe: it has `candidates` and `num_capped`."""
    from likewise.dedup.prefix_search import PrefixSearch

    searches: dict[str, Any] = {
        "minhash": BandSearch,
        "simhash": DistanceSearch,
        "shingles": PrefixSearch,
        "exact": NoSearch,
    }
    return searches[recipe.method](documents, collapsed, recipe, threads)


def ranges_of_candidates(
    search: Any,  # noqa: ANN401 - of one of two kinds
    num_positions: int,
    states: Callable[[], NDArray[np.uint8] | None],
    timing: Timing,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided yet, then larger, and small again where pairs stand dense:
    documents of one template that are near each other and do not match would be thousands of pairs each. How they
    are cut is seen in no result.
    """
    low, size = 0, _FIRST_RANGE
    while low < num_positions:
        high = min(low + size, num_positions)
        with timing.wall("candidates"):
            found = search.candidates(low, high, states())
        yield low, high, found
        size = min(size * 2, _RANGE)
        if len(found):
            size = min(size, max(1, (high - low) * _PAIRS_A_RANGE // len(found)))
        low = high
