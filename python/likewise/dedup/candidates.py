"""Candidate pairs of positions, by bands or by Hamming distance, a range of later positions at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.bands import NUM_LEVELS, min_equal_slots, open_buckets, open_spilled_buckets
from likewise.dedup.collapse import Collapsed
from likewise.dedup.crowd_search import CrowdSearch
from likewise.dedup.documents import Documents
from likewise.dedup.timing import Timing
from likewise.groups import REMOVED
from likewise.progress import Progress, Warned
from likewise.recipe import Recipe
from likewise.sorting import places_of

_FIRST_RANGE = 256
_RANGE = 16384
# Each range costs a few bits a position, so that of very many documents ranges are longer.
_MOST_RANGES = 2048
# Pairs decided at once: few enough that documents removed among them spare measurements of the next.
_PAIRS_AT_ONCE = 131072
# Bands of bits: later positions of the first pass, how far the next ones reach, and how many times the pairs of one
# search a pass may hold (12 bytes each).
_FIRST_PASS = 65536
_PASS_GROWTH = 8
_SEARCHES_A_PASS = 8
# A search that takes longer is announced.
_LONG_SECONDS = 60.0


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
    """Candidates by MinHash bands, and of documents that come to full buckets by what the recipe's `overflow` says.

    Parameters
    ----------
    documents, collapsed, threads
        As for the other searches.
    recipe : Recipe
        Resolved.
    exact_from : float, optional
        Least similarity that the exact join of documents with full buckets finds; the recipe's threshold where None.
    """

    def __init__(
        self,
        documents: Documents,
        collapsed: Collapsed,
        recipe: Recipe,
        threads: int,
        exact_from: float | None = None,
    ) -> None:
        room = documents.room
        is_exact = recipe.overflow == "exact"
        num_levels = 1 if is_exact else NUM_LEVELS
        self._buckets: _native.BandBuckets | _native.SpilledBuckets
        if room.buckets_bytes is None or room.space.folder is None:
            self._buckets = open_buckets(
                documents.sketches, recipe, collapsed.order, num_levels=num_levels, threads=threads
            )
        else:
            self._buckets = open_spilled_buckets(
                documents.sketches,
                recipe,
                collapsed.order,
                folder=room.space.folder,
                scratch_bytes=room.buckets_bytes,
                num_levels=num_levels,
                threads=threads,
            )
        self._min_equal = min_equal_slots(recipe)
        self._threads = threads
        # The positions that came to a full bucket, rising.
        self.crowd: NDArray[np.uint32] = np.asarray(self._buckets.crowded)
        self._join = None
        if is_exact and len(self.crowd) > 1:
            exact = recipe if exact_from is None else recipe.replace(threshold=exact_from)
            self._join = CrowdSearch(documents, collapsed, exact, self.crowd, threads)
            self._is_crowded = room.space.zeros(len(collapsed.order), np.bool_)
            self._is_crowded[self.crowd] = True
        self.num_capped = 0 if is_exact else self._buckets.num_capped

    @property
    def num_crowded(self) -> int:
        """Documents that came to a full bucket."""
        return len(self.crowd)

    @property
    def joined(self) -> NDArray[np.uint32]:
        """The positions among which every pair from the threshold on is found."""
        return self.crowd[: 0 if self._join is None else None]

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out."""
        if self._join is not None:
            later, earlier, high = self._join.candidates(low, high, states, max_pairs)
        found = self.in_buckets(low, high, states, max_pairs)
        if self._join is None:
            return found
        # Pairs inside the crowd are the join's.
        found = found.select(~(self._is_crowded[found.later] & self._is_crowded[found.earlier]))
        # What is behind the end is asked for next.
        cut = int(places_of(found.end, later))
        return _united(found, later[:cut], earlier[:cut]) if cut else found

    def in_buckets(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return the pairs that share a bucket as :meth:`candidates` does, those of two documents of the crowd too."""
        later, earlier, num, end = self._buckets.candidates_up_to(
            low, high, states, max_pairs, min_equal=self._min_equal, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), None, num, end)


def _united(found: Candidates, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> Candidates:
    """Return candidates with further pairs, sorted."""
    shift = np.uint64(32)
    keys = np.concatenate([found.later, later]).astype(np.uint64) << shift | np.concatenate([found.earlier, earlier])
    # Both are in order, so that a stable sort merges them.
    keys.sort(kind="stable")
    return Candidates((keys >> shift).astype(np.uint32), keys.astype(np.uint32), None, found.num_considered, found.end)


class DistanceSearch:
    """Candidates by Hamming distance of SimHash fingerprints; exact."""

    num_capped = num_crowded = 0

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        assert recipe.bits is not None
        assert recipe.within is not None
        self._tables = _native.HammingTables(
            documents.sketches, recipe.bits, collapsed.order, within=recipe.within, threads=threads
        )
        self._threads = threads
        self.predicted_seconds = self._tables.predicted_seconds / threads

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out."""
        later, earlier, distance, end = self._tables.candidates_up_to(
            low, high, states, max_pairs, threads=self._threads
        )
        return Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), len(later), end)


class NoSearch:
    """No candidates: what matches has collapsed already (method exact)."""

    num_capped = num_crowded = 0

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return no pairs."""
        nothing = np.zeros(0, np.uint32)
        return Candidates(nothing, nothing, None, 0, high)


class BitBandSearch:
    """Candidates by bands of sampled bits of SimHash fingerprints, with the recall that the recipe states.

    All bands are gone through at once for many later positions, whose pairs within the radius are then held.
    """

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        assert recipe.bits is not None
        assert recipe.within is not None
        assert recipe.bands is not None
        assert recipe.rows is not None
        self._buckets = _native.BitBandBuckets(
            documents.sketches,
            recipe.bits,
            collapsed.order,
            within=recipe.within,
            bands=recipe.bands,
            rows=recipe.rows,
            seed=recipe.seed,
        )
        self._num_positions = len(collapsed.order)
        self._max_pairs = _SEARCHES_A_PASS * documents.room.max_pairs
        self._threads = threads
        self._end = 0
        none = np.zeros(0, np.uint32)
        self._held = Candidates(none, none, none, 0, 0)
        self.num_capped = self.num_crowded = 0

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out.

        Ranges are asked for one after the other.
        """
        if low >= self._end:
            self._load(low, high)
        high = min(high, self._end)
        start, stop = places_of([low, high], self._held.later).tolist()
        if stop - start > max_pairs:
            # All pairs of one later position stay together, and at least one position is looked at.
            high = max(low + 1, int(self._held.later[start + max_pairs]))
            stop = int(places_of(high, self._held.later))
        found = self._held.select(slice(start, stop))
        if states is not None:
            alive = states[found.earlier] != REMOVED
            found = found if alive.all() else found.select(alive)
        return Candidates(found.later, found.earlier, found.distance, len(found), high)

    def _load(self, low: int, high: int) -> None:
        """Hold the pairs from `low` on: so far that going through the bands again stays rare, and memory holds them."""
        end = max(high, min(self._num_positions, max(_FIRST_PASS, _PASS_GROWTH * low)))
        while True:
            # One position is always looked at.
            max_pairs = self._max_pairs if end > low + 1 else 2**62
            found = self._buckets.pairs(low, end, max_pairs=max_pairs, threads=self._threads)
            if found is not None:
                break
            end = max(low + 1, low + (end - low) // 4)
        later, earlier, distance, num_capped = found
        self._held = Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), 0, end)
        self._end = end
        self.num_capped += num_capped


def open_search(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    threads: int,
    progress: Progress,
    *,
    exact_from: float | None = None,
) -> Any:  # noqa: ANN401 - of one of seven kinds
    """Return the search of a resolved recipe; a distance search that will take long is announced.

    From `exact_from` on pairs of documents with full buckets are found, where it is not the recipe's threshold.
    """
    from likewise.dedup.bloom_search import BloomSearch
    from likewise.dedup.prefix_search import PrefixSearch
    from likewise.dedup.slab_search import open_distance_search

    if recipe.method == "exact":
        return NoSearch()
    if recipe.method == "shingles":
        return PrefixSearch(documents, collapsed, recipe, threads)
    if recipe.method == "bloom":
        return BloomSearch(documents, collapsed, recipe, threads)
    if recipe.method == "minhash":
        return BandSearch(documents, collapsed, recipe, threads, exact_from)
    if recipe.bands is not None:
        return BitBandSearch(documents, collapsed, recipe, threads)
    search = open_distance_search(documents, collapsed, recipe, threads)
    if search.predicted_seconds > _LONG_SECONDS:
        advice = "; --recall 0.95 compares far fewer" if recipe.is_distance_only else ""
        progress(
            Warned(
                f"comparing all fingerprints within {recipe.within} of {recipe.bits} bits takes about "
                f"{search.predicted_seconds:,.0f} s on {threads} threads{advice}"
            )
        )
    return search


def ranges_of_candidates(
    search: Any,  # noqa: ANN401 - of one of six kinds
    num_positions: int,
    states: Callable[[], NDArray[np.uint8] | None],
    timing: Timing,
    max_pairs: int,
    first: int = 0,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions from `first` on with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided yet, then larger, and small again where pairs stand dense:
    documents of one template that are near each other and do not match would be thousands of pairs each. The next
    range is guessed from the last, and where it holds more the search stops. How they are cut is seen in no result.
    """
    low, size = first, _FIRST_RANGE
    while low < num_positions:
        with timing.wall("candidates"):
            found = search.candidates(low, min(low + size, num_positions), states(), max_pairs)
        yield low, found.end, found
        size = min(size * 2, max(_RANGE, num_positions // _MOST_RANGES))
        if len(found):
            size = min(size, max(1, (found.end - low) * max_pairs // len(found)))
        low = found.end
