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
# Pairs at which a search stops: 48 MB with their distances, twice that at the most.
_MAX_PAIRS = 1 << 22


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
    end : int
        Later positions from here on were not looked at.
    """

    later: NDArray[np.uint32]
    earlier: NDArray[np.uint32]
    distance: NDArray[np.uint32] | None
    num_considered: int
    end: int

    def __len__(self) -> int:
        return len(self.later)

    def select(self, which: slice | NDArray[np.bool_]) -> "Candidates":
        """Return some of the pairs."""
        distance = None if self.distance is None else self.distance[which]
        return Candidates(self.later[which], self.earlier[which], distance, self.num_considered, self.end)

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

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out."""
        later, earlier, num, end = self._buckets.candidates_up_to(
            low, high, states, max_pairs, min_equal=self._min_equal, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), None, num, end)


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

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out."""
        later, earlier, distance, end = self._tables.candidates_up_to(
            low, high, states, max_pairs, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), len(later), end)


def open_search(documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> Any:  # noqa: ANN401
    """Return the search of a resolved recipe: :class:`BandSearch` or :class:`DistanceSearch`."""
    search = BandSearch if recipe.method == "minhash" else DistanceSearch
    return search(documents, collapsed, recipe, threads)


def ranges_of_candidates(
    search: Any,  # noqa: ANN401 - of one of two kinds
    num_positions: int,
    states: Callable[[], NDArray[np.uint8] | None],
    timing: Timing,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided yet, then larger, and small again where pairs stand dense:
    documents of one template that are near each other and do not match would be thousands of pairs each. The next
    range is guessed from the last, and where it holds more the search stops. How they are cut is seen in no result.
    """
    low, size = 0, _FIRST_RANGE
    while low < num_positions:
        with timing.wall("candidates"):
            found = search.candidates(low, min(low + size, num_positions), states(), _MAX_PAIRS)
        yield low, found.end, found
        size = min(size * 2, _RANGE)
        if len(found):
            size = min(size, max(1, (found.end - low) * _MAX_PAIRS // len(found)))
        low = found.end
