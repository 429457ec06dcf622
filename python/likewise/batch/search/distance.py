"""Candidates by Hamming distance: a block of positions at a time is joined with earlier ones, and with itself.

A block is loaded when its first position is requested. By then, verdicts on the earlier positions are known, so only
kept documents are joined with the block. Kept documents are further apart than the radius, so few pairs result, whereas
one join of all documents would list all pairs of a cluster. Blocks grow with the number of kept documents, so that all
joins together cost about as much as one, and shrink where pairs are dense.
"""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import frozen, places_of, slices
from likewise.batch.read.documents import Collapsed
from likewise.batch.search.search import Candidates, Search
from likewise.hamming.fingerprints import ALL_PAIRS, joined
from likewise.recipe.methods import SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import REMOVED

# Positions filtered at once by verdict.
_AT_ONCE = 1 << 20
# Minimum positions of a block among sparse pairs, and where memory is limited: smaller blocks are inefficient.
_LEAST_POSITIONS = 1 << 12
# Above this many pairs per position, the next block is made for so many pairs.
_DENSE, _PAIRS_A_BLOCK = 4, 1 << 20
# From this share of a block on, pairs with an earlier document that is surely removed are not searched.
_REMOVED_SHARE = 0.25
# Fingerprints sampled to predict the duration.
_SAMPLED = 1 << 12

_Positions = NDArray[np.uint32]


def join_bytes(near: SimHash) -> int:
    """Return the bytes per fingerprint of a join: the code, distinct codes by hash and by key, and the position."""
    return 28 * near.num_words + 16


def block_length(near: SimHash, joins_bytes: int) -> int:
    """Return the maximum number of positions of a block, given that a join has two blocks."""
    return max(_LEAST_POSITIONS, joins_bytes // (2 * join_bytes(near)))


class _TooManyPairs(Exception):
    """A block has more pairs than allowed."""


class DistanceSearch(Search):
    """Candidates by Hamming distance of SimHash fingerprints; exact."""

    def __init__(self, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        self._near = recipe.method_as(SimHash)
        documents, self._order, self._threads = collapsed.documents, collapsed.order, threads
        self._documents = documents
        # A document near a kept one is removed for its distance alone, unless texts or a user decide.
        self._removes = (
            isinstance(self._near, SimHashDistance) and recipe.name_rules is None and documents.stays is None
        )
        bound = documents.room.tables_bytes
        self._most_positions = len(self._order) if bound is None else block_length(self._near, bound)
        self._num_positions = _LEAST_POSITIONS
        # The loaded block, and its pairs.
        self._begin = self._end = 0
        self._held = _merged([])

    @property
    def predicted_seconds(self) -> float:
        """Predicted duration of the search in seconds."""
        num, near = len(self._order), self._near
        sample = self._words(np.arange(0, num, max(1, num // _SAMPLED), dtype=np.uint32))
        seconds = _native.predicted_join_seconds(sample, near.bits, within=near.radius, num=num)
        # Each block is joined with all blocks before it.
        return seconds * max(1.0, num / max(1, self._most_positions)) / self._threads

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        if not self._begin <= low < self._end:
            self._load(low, states, max_pairs)
        high = min(high, self._end)
        start, stop = places_of([low, high], self._held.later).tolist()
        if stop - start > max_pairs:
            # All pairs of a later position together, and at least one position.
            high = max(low + 1, int(self._held.later[start + max_pairs]))
            stop = int(places_of(high, self._held.later))
        found = self._held.select(slice(start, stop))
        if states is not None:
            alive = states[found.earlier] != REMOVED
            found = found if alive.all() else found.select(alive)
        return replace(found, num_considered=len(found.later), end=high)

    def _load(self, low: int, states: NDArray[np.uint8] | None, max_pairs: int) -> None:
        """Load the pairs of the block that begins with a position."""
        size = min(self._num_positions, self._most_positions)
        while True:
            end = min(low + size, len(self._order))
            try:
                # One position may have more pairs.
                found, num_before, density = self._joined(low, end, states, max_pairs if end > low + 1 else ALL_PAIRS)
                break
            except _TooManyPairs:
                size = max(1, (end - low) // 4)
        self._held, self._begin, self._end = _merged(found), low, end
        self._num_positions = max(_LEAST_POSITIONS, 3 * num_before)
        if density > _DENSE:
            self._num_positions = max(1, min(self._num_positions // 3, int(_PAIRS_A_BLOCK / density)))

    def _joined(
        self, low: int, end: int, states: NDArray[np.uint8] | None, max_pairs: int
    ) -> tuple[list[Candidates], int, float]:
        """Return the pairs of a block, the number of positions before its end, and its own pairs per position."""
        block, is_removed = np.arange(low, end, dtype=np.uint32), np.zeros(end - low, np.bool_)
        found, num_before = [], 0
        for before in self._pieces_before(low, states):
            found.append(self._pairs(block, before, max_pairs))
            num_before, max_pairs = num_before + len(before), max_pairs - len(found[-1].later)
            if states is not None and self._removes:
                is_removed[self._surely_removed(found[-1]) - low] = True
        rest = block
        if is_removed.mean() > _REMOVED_SHARE:
            rest = block[~is_removed]
            found.append(self._pairs(block[is_removed], rest, max_pairs))
            max_pairs -= len(found[-1].later)
        found.append(self._pairs(rest, None, max_pairs))
        return found, num_before + len(rest), len(found[-1].later) / max(1, len(rest))

    def _pieces_before(self, low: int, states: NDArray[np.uint8] | None) -> Iterator[_Positions]:
        """Yield the positions before a block that were not removed, ascending, up to the length of a block at once."""
        held: list[_Positions] = []
        for some in slices(low, min(_AT_ONCE, self._most_positions)):
            part = np.arange(some.start, some.stop, dtype=np.uint32)
            held.append(part if states is None else part[states[some] != REMOVED])
            if sum(map(len, held)) >= self._most_positions:
                positions = np.concatenate(held)
                yield positions[: self._most_positions]
                held = [positions[self._most_positions :]]
        if any(map(len, held)):
            yield np.concatenate(held)

    def _pairs(self, later: _Positions, earlier: _Positions | None, max_pairs: int) -> Candidates:
        """Return the pairs of later and earlier positions, or of some with each other."""
        words = None if earlier is None else self._words(earlier)
        bits, within = self._near.bits, self._near.radius
        found = joined(self._words(later), words, bits, within=within, max_pairs=max_pairs, threads=self._threads)
        if found is None:
            raise _TooManyPairs
        left, right, distance = found
        if earlier is None:
            earlier, left, right = later, right, left
        pairs = Candidates(later[left], earlier[right], distance.astype(np.uint32), 0, 0)
        # Removed positions of a block are joined with all others of it.
        return pairs.select(pairs.earlier < pairs.later)

    def _words(self, positions: _Positions) -> NDArray[np.uint64]:
        codes = np.asarray(self._documents.sketches).reshape(-1, self._near.num_words)
        return frozen(codes[self._order[positions]].reshape(-1))

    def _surely_removed(self, pairs: Candidates) -> NDArray[np.uint32]:
        """Return the later positions of pairs with kept documents, without pairs whose texts are compared."""
        assert isinstance(self._near, SimHashDistance)
        num_features, order = self._documents.num_features, self._order
        fewest = np.minimum(num_features[order[pairs.later]], num_features[order[pairs.earlier]])
        decided: NDArray[np.uint32] = pairs.later[~self._near.is_short(fewest)]
        return decided


def _merged(found: list[Candidates]) -> Candidates:
    """Return the pairs of all joins, sorted by (later, earlier)."""
    none = np.zeros(0, np.uint32)
    later, earlier, distance = (
        np.concatenate([none, *(getattr(pairs, name) for pairs in found)]) for name in ("later", "earlier", "distance")
    )
    # Nearly all are sorted, so a stable sort merges them quickly.
    order = np.argsort(later.astype(np.uint64) << np.uint64(32) | earlier, kind="stable")
    return Candidates(later[order], earlier[order], distance[order], 0, 0)
