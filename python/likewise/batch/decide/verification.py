"""Exact similarity of candidate pairs, on feature sets rebuilt from their texts and cached within a budget.

Texts are read again for a whole range of pairs at once, while verdicts advance in smaller steps, since documents
removed on the way save measurements of later pairs.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import distinct, frozen
from likewise.batch.read.documents import Collapsed
from likewise.batch.search.search import Candidates, Search
from likewise.errors import counted
from likewise.job.reading import RunContext, Timing
from likewise.recipe.methods import MinHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import REMOVED
from likewise.stages.verify import MatchRules

_FIRST_RANGE = 256
_RANGE = 16384
# Each range costs a few bits per position, so ranges are longer if there are very many documents.
_MOST_RANGES = 2048
# Pairs decided at once: few enough that removals among them save measurements of the next.
_PAIRS_AT_ONCE = 131072
# A feature, and its bits in the bitmap: at most 2 bytes; with a weight 4 more, and bits for up to 15 copies.
_BYTES_A_FEATURE = 8 + 2
_BYTES_A_WEIGHTED_FEATURE = 8 + 4 + 15 * 2
# Bytes of a set in addition to its features, as counted by the budget.
_BYTES_A_SET = 200
# The same with the names of a document: first words, and the slots of a short one.
_BYTES_A_NAMED_SET = 1000
# Maximum bytes of feature sets for the texts that one call reads again.
_MOST_READ_BYTES = 16 << 20
# Pairs for each new set from which bitmaps of the sets save more time than it takes to make them.
LEAST_WITH_BITMAPS = 8


class Verifier:
    """Measures pairs of positions; as a context, since it owns threads that read texts."""

    def __init__(self, collapsed: Collapsed, recipe: Recipe, context: RunContext) -> None:
        num_positions, documents = len(collapsed.order), collapsed.documents
        self._documents = documents
        self._order = collapsed.order
        self._recipe = recipe
        # The method that decides in Hamming-only recipes.
        self._near = recipe.sketch if isinstance(recipe.sketch, SimHashDistance) else None
        self._threads, self._timing = context.threads, context.timing
        self._budget = documents.room.sets_bytes
        # The short check counts each feature once.
        rules = recipe.feature_rules if self._near is None else recipe.unweighted_rules
        # Sets are in slots; 0 means none. The only column for all documents has one 32-bit number each.
        is_weighted = self._near is None and recipe.weights != "none"
        self._bytes_a_feature = _BYTES_A_WEIGHTED_FEATURE if is_weighted else _BYTES_A_FEATURE
        self._bytes_a_set = _BYTES_A_SET if recipe.name_rules is None else _BYTES_A_NAMED_SET
        self._slot_of = documents.room.space.zeros(num_positions, np.uint32)
        num_slots = min(num_positions, self._budget // self._bytes_a_set + 2) + 1
        self._sets = _native.FeatureSets(num_slots, rules)
        self._position_of = np.zeros(num_slots, np.uint32)
        self._last_used = np.zeros(num_slots, np.int64)
        self._free = np.arange(num_slots - 1, 0, -1, dtype=np.uint32)
        self._num_free = num_slots - 1
        self._tick = 0
        self._pool = ThreadPoolExecutor(context.threads, thread_name_prefix="likewise-verify")
        self.num_measured = 0

    def __enter__(self) -> "Verifier":
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def hold(self, pairs: Candidates) -> bool:
        """Load the feature sets of pairs all at once, if that leaves memory for as many more."""
        if self._near is not None or not len(pairs.later):
            return False
        positions = self._distinct(pairs.later, pairs.earlier)
        if self._bytes_of(positions) > self._budget // 2:
            return False
        self._load(positions, len(pairs.later))
        return True

    def matches(
        self, pairs: Candidates, *, are_held: bool = False, states: NDArray[np.uint8] | None = None
    ) -> NDArray[np.float64]:
        """Return the similarity of each matching pair, NaN for others."""
        recipe = self._recipe
        if not len(pairs.later):
            return np.zeros(0)
        if are_held:
            return self._measure(pairs.later, pairs.earlier, MatchRules.of(recipe), states)
        if states is not None:
            return self._matches_alive(pairs, states)
        if self._near is None:
            return self.similarities(pairs.later, pairs.earlier, MatchRules.of(recipe))
        assert pairs.distance is not None
        values = self._near.similarity(pairs.distance)
        values[pairs.distance > self._near.within] = np.nan
        return self.without_unlike_short(pairs.later, pairs.earlier, values)

    def _matches_alive(self, pairs: Candidates, states: NDArray[np.uint8]) -> NDArray[np.float64]:
        """Return the result of :meth:`matches` without loading sets of pairs that need no measurement."""
        alive = states[pairs.earlier] != REMOVED
        if alive.all():
            return self.matches(pairs)
        values = np.full(len(pairs.later), np.nan)
        values[alive] = self.matches(pairs.select(alive))
        return values

    def without_unlike_short(
        self, later: NDArray[np.uint32], earlier: NDArray[np.uint32], values: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the values, NaN if a document is short and the Jaccard similarity of the pair is too low."""
        near = self._recipe.method_as(SimHashDistance)
        few = near.is_short(np.minimum(self._num_features(later), self._num_features(earlier)))
        few &= ~np.isnan(values)
        if few.any():
            measured = self.similarities(later[few], earlier[few], MatchRules("jaccard", near.short_threshold))
            values[np.flatnonzero(few)[np.isnan(measured)]] = np.nan
        return values

    def similarities(
        self, later: NDArray[np.uint32], earlier: NDArray[np.uint32], rules: MatchRules
    ) -> NDArray[np.float64]:
        """Return exact similarities that reach the threshold, with margin and penalty; NaN for others."""
        found = [self._measure(later[part], earlier[part], rules) for part in self._loaded(later, earlier)]
        return np.concatenate([np.zeros(0), *found])

    def _loaded(self, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> Iterator[slice]:
        """Yield the pairs in halves that the budget allows, in order, while their sets are loaded."""
        parts = [slice(0, len(later))] if len(later) else []
        while parts:
            part = parts.pop()
            positions, num = self._distinct(later[part], earlier[part]), part.stop - part.start
            if self._bytes_of(positions) > self._budget and num > 1:
                middle = part.start + num // 2
                parts += [slice(middle, part.stop), slice(part.start, middle)]
                continue
            self._load(positions, num)
            yield part

    def _measure(
        self,
        later: NDArray[np.uint32],
        earlier: NDArray[np.uint32],
        rules: MatchRules,
        states: NDArray[np.uint8] | None = None,
    ) -> NDArray[np.float64]:
        """Return similarities of pairs whose sets are loaded, NaN if the earlier document is removed."""
        values, num_measured = self._sets.verify(
            later,
            earlier,
            # The core shares read-only arrays. Nothing writes to this one during the call.
            frozen(self._slot_of),
            states,
            **rules._asdict(),
            threads=self._threads,
        )
        self.num_measured += num_measured
        return np.asarray(values)

    def differences(
        self, later: NDArray[np.uint32], earlier: NDArray[np.uint32], *, penalties_only: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
        """Return the additional similarity that each pair needs because its names differ, and in what it differs."""
        penalty, bits = np.zeros(len(later)), np.zeros(len(later), np.uint8)
        for part in self._loaded(later, earlier) if self._recipe.name_rules is not None else ():
            penalty[part], bits[part] = self._sets.differences(
                later[part], earlier[part], frozen(self._slot_of), penalties_only=penalties_only, threads=self._threads
            )
        # Names may be read for other rules than this.
        return penalty * (self._recipe.siblings is not None), bits

    def num_features(self, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the number of distinct features of the smaller document of each pair."""
        return np.minimum(self._num_features(later), self._num_features(earlier))

    def _num_features(self, positions: NDArray[np.uint32]) -> NDArray[np.uint32]:
        return self._documents.num_features[self._order[positions]]

    def _bytes_of(self, positions: NDArray[np.uint32]) -> int:
        return int(self._num_features(positions).sum(dtype=np.int64)) * self._bytes_a_feature + self._bytes_a_set * len(
            positions
        )

    def _distinct(self, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Return the positions of some pairs, ascending; by marks if sorting the pairs would cost more."""
        if 1024 * len(later) < len(self._order):
            return distinct(np.concatenate([later, earlier]))
        return np.asarray(_native.distinct_documents(later, earlier, len(self._order)))

    def discard(self, positions: NDArray[np.uint32]) -> None:
        """Discard feature sets that no later pair needs."""
        slots = self._slot_of[positions]
        self._drop(slots[slots > 0])

    def _drop(self, slots: NDArray[np.uint32]) -> None:
        if not len(slots):
            return
        self._sets.discard(slots)
        self._slot_of[self._position_of[slots]] = 0
        self._last_used[slots] = 0
        self._free[self._num_free : self._num_free + len(slots)] = slots
        self._num_free += len(slots)

    def _load(self, positions: NDArray[np.uint32], num_pairs: int) -> None:
        self._tick += 1
        slots = self._slot_of[positions]
        self._last_used[slots[slots > 0]] = self._tick
        missing = positions[slots == 0]
        if not len(missing):
            return
        bitmaps = num_pairs >= LEAST_WITH_BITMAPS * len(missing)
        needed = self._bytes_of(missing)
        if self._sets.num_bytes + needed > self._budget or len(missing) > self._num_free:
            self._evict(needed, len(missing))
        self._num_free -= len(missing)
        slots = self._free[self._num_free : self._num_free + len(missing)].copy()
        rows = self._order[missing].astype(np.int64)
        by_row = np.argsort(rows)
        rows, missing = rows[by_row], missing[by_row]
        # Read in parts that fit in memory in addition to the sets.
        parts = max(self._threads, -(-needed // _MOST_READ_BYTES))
        for job in [
            self._pool.submit(self._add, slots[part], read, bitmaps=bitmaps)
            for part, read in self._documents.texts(rows, parts)
        ]:
            job.result()
        self._slot_of[missing] = slots
        self._position_of[slots] = missing
        self._last_used[slots] = self._tick

    def _add(self, positions: NDArray[np.uint32], read: Callable[[], _native.Texts], *, bitmaps: bool) -> None:
        began = time.perf_counter()
        texts = read()
        read_at = time.perf_counter()
        self._sets.add(np.ascontiguousarray(positions, np.uint32), texts, bitmaps=bitmaps, threads=1)
        self._timing.add_thread(reading_again=read_at - began, making_sets=time.perf_counter() - read_at)

    def _evict(self, needed: int, num_needed: int) -> None:
        """Evict the least recently used sets, never those just requested, down to half of the budget."""
        idle = np.flatnonzero((self._last_used > 0) & (self._last_used < self._tick)).astype(np.uint32)
        idle = idle[np.argsort(self._last_used[idle], kind="stable")]
        features = self._num_features(self._position_of[idle]).astype(np.int64)
        freed = np.cumsum(features * self._bytes_a_feature + self._bytes_a_set)
        excess = self._sets.num_bytes + needed - self._budget // 2
        num = max(int(np.searchsorted(freed, excess)) + 1, num_needed - self._num_free)
        self._drop(idle[:num])


class Block(NamedTuple):
    """Consecutive later positions, and the measured similarities of their pairs."""

    # Range of the positions
    low: int
    high: int
    # Pairs, measured from later to earlier document; if `is_turned`, the two are swapped
    pairs: Candidates
    # Similarity of each matching pair; NaN for others
    similarity: NDArray[np.float64]
    # Whether these are the pairs of the previous block in the opposite direction
    is_turned: bool = False

    def matching(self) -> tuple[Candidates, NDArray[np.float64]]:
        """Return the matching pairs and their similarities."""
        hits = ~np.isnan(self.similarity)
        return self.pairs.select(hits), self.similarity[hits]


class MeasuredRange(NamedTuple):
    """A range of later positions."""

    high: int
    # Number of distinct pairs before any filter
    num_considered: int
    # Positions in order, measured lazily, since decisions on one block save measurements of the next
    blocks: Iterator[Block]


def ranges_of_candidates(
    search: Search,
    num_positions: int,
    states: NDArray[np.uint8] | None,
    timing: Timing,
    max_pairs: int,
    first: int = 0,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions from `first` on with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided, then larger, and small again where pairs are dense: documents
    of one template that are near each other without matching have thousands of pairs each. The size of the next range
    is estimated from the last one, and the search stops early if it contains more pairs. Results do not depend on the
    ranges. `states` is a view of the verdicts, which change during the iteration.
    """
    low, size = first, _FIRST_RANGE
    while low < num_positions:
        with timing.wall("candidates"):
            found = search.candidates(low, min(low + size, num_positions), states, max_pairs)
        yield low, found.end, found
        size = min(size * 2, max(_RANGE, num_positions // _MOST_RANGES))
        if len(found.later):
            size = min(size, max(1, (found.end - low) * max_pairs // len(found.later)))
        low = found.end


def measured(
    search: Search,
    verifier: Verifier,
    num_positions: int,
    timing: Timing,
    max_pairs: int,
    *,
    states: NDArray[np.uint8] | None = None,
    first: int = 0,
    both_ways: bool = False,
    stage: str = "verification",
) -> Iterator[MeasuredRange]:
    """Yield consecutive ranges of later positions with their measured candidates."""

    def blocks(low: int, candidates: Candidates) -> Iterator[Block]:
        are_held: bool | None = None
        for block_low, block_high, pairs in _divided(candidates, low):
            for is_turned in (False, True) if both_ways else (False,):
                if is_turned:
                    pairs = Candidates(pairs.earlier, pairs.later, pairs.distance, 0, pairs.end)
                with timing.wall(stage):
                    if are_held is None:
                        are_held = verifier.hold(candidates)
                    similarity = verifier.matches(pairs, are_held=are_held, states=states)
                yield Block(block_low, block_high, pairs, similarity, is_turned)

    for low, high, candidates in ranges_of_candidates(search, num_positions, states, timing, max_pairs, first):
        yield MeasuredRange(high, candidates.num_considered, blocks(low, candidates))


def _divided(candidates: Candidates, low: int) -> Iterator[tuple[int, int, Candidates]]:
    """Divide the positions from `low` on into consecutive ranges with a limited number of pairs: (low, high, pairs)."""
    later, start, num = candidates.later, 0, len(candidates.later)
    while num - start > _PAIRS_AT_ONCE:
        # Keep all pairs of a later position together.
        last = later[start + _PAIRS_AT_ONCE]
        stop = int(np.searchsorted(later, last, "left"))
        if stop <= start:
            stop = int(np.searchsorted(later, last, "right"))
        if stop >= num:
            break
        middle = int(later[stop])
        yield low, middle, candidates.select(slice(start, stop))
        low, start = middle, stop
    yield low, candidates.end, candidates.select(slice(start, num)) if start else candidates


def crowd_warning(recipe: Recipe, num_crowded: int, num_capped: int) -> str | None:
    """Return a warning about pairs that full buckets may have hidden, or None."""
    if not recipe.has_levels or not (num_crowded or num_capped):
        return None
    bound, stated = recipe.recall_with(num_crowded, num_capped), recipe.stated_recall
    found = (
        ""
        if bound is None
        else f" For such pairs P(found) at the threshold is at least {bound:.4f} instead of {stated:.4f}."
    )
    remedy = " A run without an index finds them with --overflow exact." if isinstance(recipe.sketch, MinHash) else ""
    who = (
        f"{counted(num_crowded, 'document')} fell into full buckets"
        if num_crowded
        else f"documents fell into full buckets {counted(num_capped, 'time')}"
    )
    return f"{who}; pairs of two such documents may be missed.{found}{remedy}"
