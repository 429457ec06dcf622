"""Pairs of documents that bands omit because their buckets are full, found by an exact join of these documents.

A bucket holds its first 64 documents, and later ones are compared with these. So bands omit a pair that shares a bucket
only if both documents reached a full bucket, and the exact join needs only such documents. An index has no lists of
features and uses levels of buckets instead; a run with an index does the same, so that both give the same results.
"""

from collections.abc import Iterator
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import frozen, places_of
from likewise.batch.read.documents import Collapsed, Documents, on_each_part
from likewise.batch.search.search import PAIRS_BETWEEN_VERDICTS
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import REMOVED

# Bytes of lists and entries of one feature in a prefix, while they are built and joined; and per document.
_BYTES_A_FEATURE = 60
_BYTES_A_WEIGHTED_FEATURE = 72
_BYTES_A_DOCUMENT = 90
# Documents per call while a slab is compared with earlier ones.
_RANGE = 1 << 14
# Sizes the counts with at least one cell per feature.
_TEXT_BYTES_A_FEATURE = 4
# Minimum documents of a slab; smaller slabs are inefficient.
_LEAST_DOCUMENTS = 1 << 10
_NONE = np.zeros(0, np.uint32)

_Pairs = tuple[NDArray[np.uint32], NDArray[np.uint32]]


class CrowdSearch:
    """Candidates among documents in full buckets, all that may match; in slabs if memory does not suffice."""

    def __init__(
        self,
        collapsed: Collapsed,
        recipe: Recipe,
        positions: NDArray[np.uint32],
        threads: int,
        *,
        lists_all: bool = False,
    ) -> None:
        documents, self._recipe, self._threads = collapsed.documents, recipe, threads
        self._documents = documents
        # Whether pairs that reach the threshold are listed too if they need more to match
        self._lists_all = lists_all
        self._positions, self._order = positions, collapsed.order
        self._states = documents.room.space.zeros(len(positions), np.uint8)
        # Members before `_next` were searched; the states of those before `_known` are final.
        self._next = self._known = 0
        # Counted on first use.
        self._rarity: _native.Rarity | None = None
        self._bounds = self._slabs(documents.room.crowd_bytes)
        self._end = 0
        self._begin = 0
        self._before: list[_Pairs] = []
        self._own: _native.Searcher | None = None
        self._held: tuple[NDArray[np.uint32], NDArray[np.uint32], int] = (_NONE, _NONE, 0)

    def candidates(
        self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], int]:
        """Return at most about `max_pairs` pairs with later positions in low..high, and the end of the search.

        Ranges must be ascending; the last one may be requested again from a later position on. Earlier documents
        already removed are left out.
        """
        if low < self._held[2]:
            later, earlier, end = self._held
            start, stop = places_of([low, high := min(high, end)], later).tolist()
            return later[start:stop], earlier[start:stop], high
        if states is not None:
            max_pairs = min(max_pairs, PAIRS_BETWEEN_VERDICTS)
        first, last = places_of([low, high], self._positions).tolist()
        if states is not None:
            self._states[self._known : first] = states[self._positions[self._known : first]]
            self._known = max(self._known, first)
        while self._next < first:
            # Positions that are never requested: references, and those decided by the run that this one continues.
            self._search(first, states is not None, max_pairs)
        if first == last:
            return _NONE, _NONE, high
        later, earlier = self._search(last, states is not None, max_pairs)
        end = high if self._next == last else int(self._positions[self._next])
        self._held = (self._positions[later], self._positions[earlier], end)
        return self._held

    def _search(self, high: int, has_states: bool, max_pairs: int) -> _Pairs:  # noqa: FBT001
        """Return pairs of members from the next one up to `high`, as long as they are not too many."""
        low = self._next
        if low >= self._end:
            self._load(has_states=has_states, max_pairs=max_pairs)
        assert self._own is not None
        begin, high = self._begin, min(high, self._end)
        for later, _ in self._before:
            # Process at least one member.
            start = int(places_of(low, later))
            if start + max_pairs < len(later):
                high = min(high, max(low + 1, int(later[start + max_pairs])))
        states = frozen(self._states[begin : self._end]) if has_states else None
        own = self._own.candidates(low - begin, high - begin, states, max_pairs, threads=self._threads)
        self._next = own.end + begin
        parts = [(np.asarray(own.later) + np.uint32(begin), np.asarray(own.earlier) + np.uint32(begin))]
        for later, earlier in self._before:
            start, stop = places_of([low, self._next], later).tolist()
            parts.append((later[start:stop], earlier[start:stop]))
        later, earlier = (np.concatenate(side) for side in zip(*parts, strict=True))
        if self._before:
            order = np.argsort(later, kind="stable")
            later, earlier = later[order], earlier[order]
        return later, earlier

    def _load(self, *, has_states: bool, max_pairs: int) -> None:
        """Prepare the slab of the next member."""
        self._own, self._before = None, []
        number = int(np.searchsorted(self._bounds, self._next, side="right"))
        self._begin, self._end = self._bounds[number - 1], self._bounds[number]
        own = np.arange(self._begin, self._end)
        for before in self._pieces_before(has_states=has_states):
            self._before.append(self._against(before, own, max_pairs))
        self._own = self._join(own)

    def _pieces_before(self, *, has_states: bool) -> Iterator[NDArray[np.int64]]:
        """Yield the members before the slab that were not removed, ascending, in pieces that fit in memory."""
        before = np.arange(self._begin)
        if has_states:
            before = before[self._states[: self._begin] != REMOVED]
        if not len(before):
            return
        assert self._documents.room.crowd_bytes is not None
        cuts = _cuts(self._bytes()[before], self._documents.room.crowd_bytes // 2)
        for low, high in pairwise(cuts):
            yield before[low:high]

    def _against(self, before: NDArray[np.int64], own: NDArray[np.int64], max_pairs: int) -> _Pairs:
        """Return the pairs of the slab with some members before it."""
        columns = [self._documents.room.space.growing(np.uint32) for _ in range(2)]
        join = self._join(np.concatenate([before, own]))
        join.pass_over(low := len(before))
        # Pairs within the slab are found later, when verdicts are available.
        states = np.full(len(before) + len(own), REMOVED, np.uint8)
        states[:low] = 0
        while low < len(states):
            high = min(low + _RANGE, len(states))
            found = join.candidates(low, high, frozen(states), max_pairs, threads=self._threads)
            columns[0].append(own[np.asarray(found.later) - len(before)].astype(np.uint32))
            columns[1].append(before[np.asarray(found.earlier)].astype(np.uint32))
            low = found.end
        return columns[0].take(), columns[1].take()

    def _join(self, members: NDArray[np.int64]) -> _native.Searcher:
        if self._rarity is None:
            self._rarity = self._counted()
        rows = self._rows_of(members)
        return prefix_join(self._documents, rows, self._recipe, self._rarity, self._threads, lists_all=self._lists_all)

    def _counted(self) -> _native.Rarity:
        """Count the members that have each feature."""
        rows = np.sort(self._rows_of(slice(None)))
        num_features = int(self._documents.num_features[rows].sum(dtype=np.int64))
        rarity = _native.Rarity(_TEXT_BYTES_A_FEATURE * num_features)
        count = partial(_native.count_sets, rules=self._recipe.unweighted_rules, rarity=rarity, threads=1)
        on_each_part(self._documents, rows, self._threads, lambda _, texts: count(texts))
        return rarity

    def _rows_of(self, members: NDArray[np.int64] | slice) -> NDArray[np.int64]:
        return self._order[self._positions[members]].astype(np.int64)

    def _bytes(self) -> NDArray[np.int64]:
        """Return the maximum bytes that the join needs for each member."""
        num_features, recipe = self._documents.num_features[self._rows_of(slice(None))].astype(np.int64), self._recipe
        a_feature = _BYTES_A_FEATURE if recipe.weights == "none" else _BYTES_A_WEIGHTED_FEATURE
        # With siblings heavy features come first: of these, a prefix has at most its share of the mass.
        is_heavy_first = recipe.weights == "idf" and recipe.siblings is not None and not self._lists_all
        is_bounded = recipe.measure == "jaccard" and (recipe.weights == "none" or is_heavy_first)
        share = 1.0 - recipe.similarity_threshold if is_bounded else 1.0
        return (num_features * share).astype(np.int64) * a_feature + (_BYTES_A_DOCUMENT + a_feature)

    def _slabs(self, crowd_bytes: int | None) -> list[int]:
        """Return the bounds of the slabs; a single slab if memory suffices."""
        needed = self._bytes()
        if crowd_bytes is None or int(needed.sum()) <= crowd_bytes:
            return [0, len(needed)]
        # A slab and equally many earlier documents are in memory at once.
        return _cuts(needed, crowd_bytes // 2)


def prefix_join(
    documents: Documents,
    rows: NDArray[np.int64],
    recipe: Recipe,
    rarity: _native.Rarity,
    threads: int,
    *,
    lists_all: bool = False,
) -> _native.Searcher:
    """Return the exact join of the feature sets of some rows, in this order, whose texts are read again."""
    join = _native.PrefixJoin(
        len(rows),
        recipe.feature_rules,
        rarity,
        measure=recipe.measure,
        threshold=recipe.similarity_threshold,
        short_margin=0.0 if lists_all else recipe.short_margin or 0.0,
        siblings=recipe.siblings is not None and not lists_all,
    )
    by_row = np.argsort(rows, kind="stable").astype(np.uint32)
    rows = rows[by_row]
    if join.needs_marks:
        on_each_part(documents, rows, threads, lambda _, texts: join.mark(texts))
    on_each_part(documents, rows, threads, lambda some, texts: join.add(by_row[some], texts))
    return join.finish(threads=threads)


def _cuts(needed: NDArray[np.int64], most: int) -> list[int]:
    """Return bounds of consecutive parts that need at most `most` bytes but have a minimum number of documents."""
    ends = np.cumsum(needed)
    cuts = [0]
    while cuts[-1] < len(needed):
        before = int(ends[cuts[-1] - 1]) if cuts[-1] else 0
        stop = int(np.searchsorted(ends, before + most, "right"))
        cuts.append(min(len(needed), max(stop, cuts[-1] + _LEAST_DOCUMENTS)))
    return cuts
