"""Candidates by bands of MinHash signatures, or of sampled bits of fingerprints."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import places_of
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.crowds import CrowdSearch
from likewise.batch.search.search import Candidates, Search
from likewise.recipe.methods import NUM_LEVELS, MinHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.bands import min_equal_slots, open_buckets
from likewise.stages.groups import REMOVED

# Bands of bits: later positions in the first pass, growth factor of the next passes, and the number of pairs that a
# pass may hold as a multiple of those of one search (12 bytes each).
_FIRST_PASS = 65536
_PASS_GROWTH = 8
_SEARCHES_A_PASS = 8


class BandSearch(Search):
    """Candidates by MinHash bands; documents that reach full buckets are handled by the recipe's `overflow`."""

    def __init__(
        self,
        documents: Documents,
        collapsed: Collapsed,
        recipe: Recipe,
        signature: MinHash,
        threads: int,
        exact_from: float | None = None,
    ) -> None:
        room = documents.room
        is_exact = signature.overflow == "exact"
        num_levels = 1 if is_exact else NUM_LEVELS
        in_files = room.buckets_bytes is not None and room.space.folder is not None
        self._buckets = open_buckets(
            documents.sketches,
            signature,
            collapsed.order,
            num_levels=num_levels,
            threads=threads,
            folder=room.space.folder if in_files else None,
            scratch_bytes=room.buckets_bytes or 0,
        )
        self._min_equal = min_equal_slots(recipe)
        self._threads = threads
        # Positions that reached a full bucket, ascending.
        self.crowd: NDArray[np.uint32] = np.asarray(self._buckets.crowded)
        self._join = None
        if is_exact and len(self.crowd) > 1:
            exact = recipe if exact_from is None else recipe.replace(threshold=exact_from)
            self._join = CrowdSearch(documents, collapsed, exact, self.crowd, threads)
            self._is_crowded = room.space.zeros(len(collapsed.order), np.bool_)
            self._is_crowded[self.crowd] = True
        self._num_capped = 0 if is_exact else self._buckets.num_capped

    @property
    def num_capped(self) -> int:
        """Number of times that a document reached a full last level, counted per band."""
        return self._num_capped

    @property
    def num_crowded(self) -> int:
        """Number of documents that reached a full bucket."""
        return len(self.crowd)

    @property
    def joined(self) -> NDArray[np.uint32]:
        """The positions among which every pair that reaches the threshold is found."""
        return self.crowd[: 0 if self._join is None else None]

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        if self._join is not None:
            later, earlier, high = self._join.candidates(low, high, states, max_pairs)
        found = self.in_buckets(low, high, states, max_pairs)
        if self._join is None:
            return found
        # The join finds pairs within the crowd.
        found = found.select(~(self._is_crowded[found.later] & self._is_crowded[found.earlier]))
        # Pairs after the end are requested next.
        cut = int(places_of(found.end, later))
        return _united(found, later[:cut], earlier[:cut]) if cut else found

    def in_buckets(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs that share a bucket as :meth:`candidates` does, including those within the crowd."""
        return Candidates.of(
            self._buckets.candidates(low, high, states, max_pairs, min_equal=self._min_equal, threads=self._threads)
        )


def _united(found: Candidates, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> Candidates:
    """Return candidates merged with further pairs, sorted."""
    shift = np.uint64(32)
    keys = np.concatenate([found.later, later]).astype(np.uint64) << shift | np.concatenate([found.earlier, earlier])
    # Both are sorted, so a stable sort merges them quickly.
    keys.sort(kind="stable")
    return Candidates((keys >> shift).astype(np.uint32), keys.astype(np.uint32), None, found.num_considered, found.end)


class BitBandSearch(Search):
    """Candidates by bands of sampled bits of SimHash fingerprints, with the recall that the recipe states.

    Each pass processes all bands for many later positions, and holds their pairs within the radius.
    """

    # Capped documents are counted while ranges are processed.
    can_begin_late = False

    def __init__(
        self, documents: Documents, collapsed: Collapsed, near: SimHashDistance, seed: int, threads: int
    ) -> None:
        bands, rows = near.banding
        self._buckets = _native.BitBandBuckets(
            documents.sketches,
            near.bits,
            collapsed.order,
            within=near.within,
            bands=bands,
            rows=rows,
            seed=seed,
        )
        self._num_positions = len(collapsed.order)
        self._max_pairs = _SEARCHES_A_PASS * documents.room.max_pairs
        self._threads = threads
        self._end = 0
        none = np.zeros(0, np.uint32)
        self._held = Candidates(none, none, none, 0, 0)
        self._num_capped = 0

    @property
    def num_capped(self) -> int:
        """Number of times that a document reached a full last level, counted per band."""
        return self._num_capped

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones.

        Ranges must be requested in order.
        """
        if low >= self._end:
            self._load(low, high)
        high = min(high, self._end)
        start, stop = places_of([low, high], self._held.later).tolist()
        if stop - start > max_pairs:
            # Keep all pairs of a later position together, and process at least one position.
            high = max(low + 1, int(self._held.later[start + max_pairs]))
            stop = int(places_of(high, self._held.later))
        found = self._held.select(slice(start, stop))
        if states is not None:
            alive = states[found.earlier] != REMOVED
            found = found if alive.all() else found.select(alive)
        return Candidates(found.later, found.earlier, found.distance, len(found), high)

    def _load(self, low: int, high: int) -> None:
        """Load the pairs from `low` on, so many that passes over the bands stay few, within the memory limit."""
        end = max(high, min(self._num_positions, max(_FIRST_PASS, _PASS_GROWTH * low)))
        while True:
            # Process at least one position.
            max_pairs = self._max_pairs if end > low + 1 else 2**62
            found = self._buckets.pairs(low, end, max_pairs=max_pairs, threads=self._threads)
            if found is not None:
                break
            end = max(low + 1, low + (end - low) // 4)
        later, earlier, distance, num_capped = found
        self._held = Candidates(np.asarray(later), np.asarray(earlier), np.asarray(distance), 0, end)
        self._end = end
        self._num_capped += num_capped
