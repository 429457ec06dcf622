"""Exact similarity of candidate pairs, on feature sets made again from their texts and held within a budget."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.dedup.candidates import Candidates
from likewise.dedup.collapse import SHORT_FEATURES, Collapsed
from likewise.dedup.documents import Documents
from likewise.dedup.timing import Timing
from likewise.recipe import Recipe

BUDGET_BYTES = 128 << 20
# A feature and its weight, as the budget counts them.
_BYTES_A_FEATURE = 12


class Verifier:
    """Measures pairs of positions; as a context, since it holds threads that read.

    Parameters
    ----------
    documents : Documents
        All documents.
    collapsed : Collapsed
        Positions and their rows.
    recipe : Recipe
        Measure and threshold.
    threads : int
        Threads of a call.
    timing : Timing
        Takes the seconds.
    budget_bytes : int
        Feature sets beyond it are dropped, the least recently used first, and made again when needed.
    """

    def __init__(
        self,
        documents: Documents,
        collapsed: Collapsed,
        recipe: Recipe,
        threads: int,
        timing: Timing,
        budget_bytes: int = BUDGET_BYTES,
    ) -> None:
        num_positions = len(collapsed.order)
        self._documents = documents
        self._order = collapsed.order.astype(np.int64)
        self._recipe = recipe
        self._threads = threads
        self._timing = timing
        self._budget = budget_bytes
        # The short check counts each feature once.
        rules = recipe.unweighted_rules if recipe.is_distance_only else recipe.feature_rules
        self._sets = _native.FeatureSets(num_positions, rules)
        self._features = documents.num_features[self._order]
        self._resident = np.zeros(num_positions, bool)
        self._last_used = np.zeros(num_positions, np.int64)
        self._tick = 0
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-verify")
        self.num_measured = 0

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def matches(self, pairs: Candidates) -> NDArray[np.float64]:
        """Return the similarity of each pair that matches by the recipe, NaN of the others.

        Parameters
        ----------
        pairs : Candidates
            The later document is measured against the earlier one.

        Returns
        -------
        ndarray of shape (m,), float64
            By the recipe's measure.
        """
        recipe = self._recipe
        if not len(pairs):
            return np.zeros(0)
        if not recipe.is_distance_only:
            assert recipe.threshold is not None
            return self.similarities(pairs.later, pairs.earlier, recipe.measure, recipe.threshold)
        assert recipe.bits is not None
        assert recipe.within is not None
        assert pairs.distance is not None
        values = 1.0 - pairs.distance / recipe.bits
        values[pairs.distance > recipe.within] = np.nan
        return self.without_unlike_short(pairs.later, pairs.earlier, values)

    def without_unlike_short(
        self, later: NDArray[np.uint32], earlier: NDArray[np.uint32], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the values, NaN where a document is short and the Jaccard similarity of the pair is too low."""
        assert self._recipe.short_threshold is not None
        few = (self._features[later] < SHORT_FEATURES) | (self._features[earlier] < SHORT_FEATURES)
        few &= ~np.isnan(values)
        if few.any():
            measured = self.similarities(later[few], earlier[few], "jaccard", self._recipe.short_threshold)
            values[np.flatnonzero(few)[np.isnan(measured)]] = np.nan
        return values

    def similarities(
        self, later: NDArray[np.uint32], earlier: NDArray[np.uint32], measure: str, threshold: float
    ) -> NDArray[np.float64]:
        """Return exact similarities where they reach the threshold, NaN below it."""
        if not len(later):
            return np.zeros(0)
        positions = self._distinct(later, earlier)
        needed = int(self._features[positions].sum(dtype=np.int64)) * _BYTES_A_FEATURE
        if needed > self._budget and len(later) > 1:
            middle = len(later) // 2
            halves = [slice(0, middle), slice(middle, None)]
            return np.concatenate([self.similarities(later[h], earlier[h], measure, threshold) for h in halves])
        self._load(positions, needed)
        self.num_measured += len(later)
        later, earlier = np.ascontiguousarray(later), np.ascontiguousarray(earlier)
        return np.array(self._sets.verify(later, earlier, measure=measure, threshold=threshold, threads=self._threads))

    def _distinct(self, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the positions of some pairs, rising; by marks where a sort of the pairs would cost more."""
        if 8 * len(later) < len(self._order):
            return np.unique(np.concatenate([later, earlier]))
        marks = np.zeros(len(self._order), bool)
        marks[later] = True
        marks[earlier] = True
        return np.flatnonzero(marks).astype(np.uint32)

    def discard(self, positions: NDArray[np.uint32]) -> None:
        """Forget feature sets that no later pair can ask for."""
        gone = positions[self._resident[positions]].astype(np.uint32)
        if len(gone):
            self._sets.discard(gone)
            self._resident[gone] = False

    def _load(self, positions: NDArray[np.uint32], needed: int) -> None:
        self._tick += 1
        self._last_used[positions] = self._tick
        missing = np.asarray(self._sets.missing(positions.astype(np.uint32)))
        if not len(missing):
            return
        if self._sets.num_bytes + needed > self._budget:
            self._evict(needed)
        rows = self._order[missing]
        by_row = np.argsort(rows)
        rows, missing = rows[by_row], missing[by_row]
        reads = self._documents.texts(rows, self._threads)
        for job in [self._pool.submit(self._add, missing[part], read) for part, read in reads]:
            job.result()
        self._resident[missing] = True

    def _add(self, positions: NDArray[np.uint32], read: Callable[[], _native.Texts]) -> None:
        began = time.perf_counter()
        texts = read()
        read_at = time.perf_counter()
        self._sets.add(np.ascontiguousarray(positions, np.uint32), texts, threads=1)
        self._timing.add_thread("reading_again", read_at - began)
        self._timing.add_thread("making_sets", time.perf_counter() - read_at)

    def _evict(self, needed: int) -> None:
        """Drop what was used longest ago, never what was just asked for, down to half of what is free."""
        idle = np.flatnonzero(self._resident & (self._last_used < self._tick))
        idle = idle[np.argsort(self._last_used[idle], kind="stable")]
        freed = np.cumsum(self._features[idle].astype(np.int64) * _BYTES_A_FEATURE)
        excess = self._sets.num_bytes + needed - self._budget // 2
        self.discard(idle[: int(np.searchsorted(freed, excess)) + 1].astype(np.uint32))
