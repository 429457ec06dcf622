"""All verified pairs, with collapsed documents expanded."""

import time
from collections.abc import Iterator
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import slices, stable_order
from likewise.batch.budget.room import Room
from likewise.batch.decide.verification import Verifier, crowd_warning, measured
from likewise.batch.read.documents import Collapsed
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import Across, Search, Splits, first_split_first
from likewise.errors import InvalidParameter
from likewise.job.reading import RunContext
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, Warned
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import Recipe

# Documents processed at once.
_AT_ONCE = 1 << 18

# Default limit on the number of pairs.
MAX_PAIRS = 10_000_000
# Maximum comparisons and sampled documents for an estimate of the number of pairs.
_COMPARED = 4_000_000
_SAMPLED = 64
# The run fails early if the estimate exceeds the limit by this factor.
_FAR_ABOVE = 2


class PairCounts:
    """Numbers of pairs that are expected, allowed and found, and of documents in full buckets."""

    num_pairs: int = 0
    # Number of pairs of equal documents, plus an estimate for documents with full buckets
    num_expected: int = 0
    # As in :class:`likewise.batch.decide.decision.Decision`
    num_crowded: int = 0
    num_capped: int = 0

    def __init__(self, max_pairs: int = MAX_PAIRS) -> None:
        self.max_pairs = max_pairs

    def add(self, num_pairs: int) -> None:
        """Count further pairs and check the limit."""
        self.num_pairs += num_pairs
        if self.num_pairs > self.max_pairs:
            raise InvalidParameter(
                "max_pairs",
                f"there are more than {self.max_pairs:,} pairs (about {max(self.num_expected, self.num_pairs):,} or "
                "more expected); raise --max-pairs or the threshold",
            )

    def expect(self, num_equal: int, num_similar: int, progress: Progress) -> None:
        """Record the numbers of equal and, estimated, of other pairs, and check them against the limit."""
        self.num_expected = num_equal + num_similar
        if num_equal > self.max_pairs or num_similar > _FAR_ABOVE * self.max_pairs:
            raise InvalidParameter(
                "max_pairs",
                f"{num_equal:,} pairs of equal documents and about {num_similar:,} of documents with full buckets "
                f"exceed the limit of {self.max_pairs:,}; raise --max-pairs or the threshold",
            )
        if self.num_expected > self.max_pairs // 10:
            progress(Warned(f"about {self.num_expected:,} pairs are expected; the run fails above {self.max_pairs:,}"))


class PairBatch(NamedTuple):
    """A batch of verified pairs."""

    # Rows, ``row_a < row_b``, a in the later split; for containment, a is contained in b, in either order.
    row_a: NDArray[np.int64]
    row_b: NDArray[np.int64]
    similarity: NDArray[np.float64]
    # Hamming distance; None for MinHash
    distance: NDArray[np.int32] | None


def verified_pairs(
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
    *,
    counts: PairCounts | None = None,
    splits: Splits | None = None,
    is_distinct: bool = False,
) -> Iterator[PairBatch]:
    """Yield every verified pair once (containment: each direction that reaches the threshold).

    With `is_distinct`, only the first of equal documents is in pairs.
    """
    counts, timing, progress = PairCounts() if counts is None else counts, context.timing, context.progress
    room = collapsed.documents.room
    if splits is not None:
        collapsed = first_split_first(collapsed, splits)
    members = _Members(collapsed, room, splits, is_distinct=is_distinct)
    num_positions = len(collapsed.order)
    progress(StageStarted("pairing", num_positions, "documents"))
    began = time.perf_counter()
    with timing.wall("candidates"):
        search = open_search(collapsed, recipe, context)
        if splits is not None:
            search = Across(search, collapsed, splits)
        counts.num_crowded = search.num_crowded
        counts.expect(members.num_equal(recipe), _num_similar(search, collapsed, recipe, members), progress)
    for batch in members.empty_pairs(recipe):
        counts.add(len(batch.row_a))
        yield batch
    with Verifier(collapsed, recipe, context) as verifier:
        max_pairs, both_ways = room.max_pairs, recipe.measure == "containment"
        for found in measured(search, verifier, num_positions, timing, max_pairs, both_ways=both_ways):
            for block in found.blocks:
                inside = () if block.is_turned else members.class_pairs(block.low, block.high, recipe)
                pairs, similarity = block.matching()
                distance = None if pairs.distance is None else pairs.distance.astype(np.int32)
                own = PairBatch(pairs.later.astype(np.int64), pairs.earlier.astype(np.int64), similarity, distance)
                for batch in chain(inside, members.spread(own, recipe)):
                    counts.add(len(batch.row_a))
                    yield batch
            progress(StageAdvanced("pairing", found.high))
    counts.num_capped = search.num_capped
    warning = crowd_warning(recipe, counts.num_crowded, counts.num_capped)
    if warning is not None:
        progress(Warned(warning))
    progress(StageFinished("pairing", time.perf_counter() - began))


def _num_similar(search: Search, collapsed: Collapsed, recipe: Recipe, members: "_Members") -> int:
    """Return the approximate number of pairs among documents with full buckets, estimated from some signatures."""
    crowd = search.joined
    if len(crowd) < 2:
        return 0
    signature, documents = recipe.method_as(MinHash), collapsed.documents
    num_sampled = max(1, min(_SAMPLED, len(crowd), _COMPARED // len(crowd)))
    sample = crowd[np.linspace(0, len(crowd) - 1, num_sampled).astype(np.int64)]
    step = max(1, len(crowd) * num_sampled // _COMPARED)
    others = crowd[::step]
    weights = members.sizes(others)
    num_features = documents.num_features[collapsed.order[others]]
    total = 0.0
    for position in sample:
        smaller = np.minimum(num_features, documents.num_features[collapsed.order[position]])
        equal = _native.num_equal(
            documents.sketches,
            signature.num_slots,
            signature.slot_bytes,
            np.full(len(others), collapsed.order[position]),
            collapsed.order[others],
        )
        alike = np.asarray(equal) >= recipe.as_jaccard(recipe.required_similarity(smaller)) * signature.num_slots
        alike &= others != position
        total += float(members.sizes(position)) * float(weights[alike].sum())
    both_ways = 1 if recipe.measure == "containment" else 2
    return round(total * step * len(crowd) / num_sampled / both_ways)


class _Members:
    """The rows that collapsed into each position."""

    def __init__(self, collapsed: Collapsed, room: Room, splits: Splits | None, *, is_distinct: bool) -> None:
        self._splits = splits
        # Pairs of one class are yielded in batches: ten thousand copies have fifty million pairs.
        self._at_once = room.rows_at_once
        self._position = position = collapsed.position
        space = room.space
        self._rows = stable_order(position, space)
        num_positions = len(collapsed.order)
        counts = space.zeros(num_positions + 1, np.int64)
        for part in slices(len(position), _AT_ONCE):
            # Empty documents, whose position is -1, come first.
            places, found = np.unique(position[part] + 1, return_counts=True)
            counts[places] += found
        starts, total = space.growing(np.int64), 0
        for part in slices(num_positions + 1, _AT_ONCE):
            ends = np.cumsum(counts[part]) + total
            starts.append(ends)
            total = int(ends[-1])
        # Members of position p are rows[starts[p]:starts[p + 1]].
        self._starts = starts.take()
        self._counts = counts[1:]
        self._empty = self._rows[: self._starts[0]]
        if is_distinct:
            self._counts, self._empty = np.minimum(self._counts, 1), self._empty[:1]

    def sizes(self, positions: NDArray[np.uint32]) -> NDArray[np.int64]:
        """Return the number of rows that collapsed into each position."""
        return self._counts[positions]

    def num_equal(self, recipe: Recipe) -> int:
        """Return the number of pairs of rows that collapsed into the same position."""
        if self._splits is not None:
            num_places = len(self._counts) + 1
            before, num_pairs = np.zeros(num_places, np.int64), 0
            for rows in self._splits.rows():
                here = np.bincount(self._position[rows] + 1, minlength=num_places)
                num_pairs += int((before * here).sum())
                before += here
            return num_pairs
        total = len(self._empty) * (len(self._empty) - 1)
        for part in slices(len(self._counts), _AT_ONCE):
            counts = self._counts[part]
            total += int((counts * (counts - 1)).sum())
        return total if recipe.measure == "containment" else total // 2

    def empty_pairs(self, recipe: Recipe) -> Iterator[PairBatch]:
        """Yield all pairs of empty documents, whose similarity is 1."""
        yield from self._all_pairs(self._empty, recipe)

    def class_pairs(self, low: int, high: int, recipe: Recipe) -> Iterator[PairBatch]:
        """Yield all pairs within the classes of these positions, whose similarity is 1."""
        for position in (np.flatnonzero(self._counts[low:high] > 1) + low).tolist():
            yield from self._all_pairs(self._rows[self._starts[position] : self._starts[position + 1]], recipe)

    def _all_pairs(self, rows: NDArray[np.int64], recipe: Recipe) -> Iterator[PairBatch]:
        if self._splits is None:
            yield from _all_pairs(rows, recipe, self._at_once)
            return
        for first, end in pairwise(np.searchsorted(rows, self._splits.starts[1:]).tolist()):
            earlier, others = rows[:first], rows[first:end]
            step = max(1, self._at_once // max(1, first))
            for start in range(0, len(others) if first else 0, step):
                some = others[start : start + step]
                row_a, row_b = np.repeat(some, first), np.tile(earlier, len(some))
                distance = np.zeros(len(row_a), np.int32) if isinstance(recipe.sketch, SimHash) else None
                yield PairBatch(row_a, row_b, np.ones(len(row_a)), distance)

    def spread(self, pairs: PairBatch, recipe: Recipe) -> Iterator[PairBatch]:
        """Yield pairs of rows for pairs of positions."""
        if not len(pairs.row_a):
            return
        counts = self._counts[pairs.row_a] * self._counts[pairs.row_b]
        bounds = np.concatenate([[0], np.cumsum(counts)])
        for start in range(0, int(bounds[-1]), self._at_once):
            products = np.arange(start, min(start + self._at_once, int(bounds[-1])))
            pair = np.searchsorted(bounds, products, side="right") - 1
            offset = products - bounds[pair]
            a, b = pairs.row_a[pair], pairs.row_b[pair]
            row_a = self._rows[self._starts[a] + offset // self._counts[b]]
            row_b = self._rows[self._starts[b] + offset % self._counts[b]]
            if recipe.measure != "containment":
                row_a, row_b = np.minimum(row_a, row_b), np.maximum(row_a, row_b)
            if self._splits is not None:
                if recipe.measure != "containment":
                    row_a, row_b = row_b, row_a
                crosses = self._splits.of(row_a) > self._splits.of(row_b)
                row_a, row_b, pair = row_a[crosses], row_b[crosses], pair[crosses]
            distance = None if pairs.distance is None else pairs.distance[pair]
            yield PairBatch(row_a, row_b, pairs.similarity[pair], distance)


def _all_pairs(rows: NDArray[np.int64], recipe: Recipe, at_once: int) -> Iterator[PairBatch]:
    step = max(1, at_once // max(1, len(rows)))
    for start in range(0, len(rows) - 1, step):
        left = np.arange(start, min(start + step, len(rows) - 1))
        counts = len(rows) - 1 - left
        first = np.repeat(left, counts)
        second = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts) + first + 1
        a, b = rows[first], rows[second]
        if recipe.measure == "containment":
            a, b = np.concatenate([a, b]), np.concatenate([b, a])
        distance = np.zeros(len(a), np.int32) if isinstance(recipe.sketch, SimHash) else None
        yield PairBatch(a, b, np.ones(len(a)), distance)
