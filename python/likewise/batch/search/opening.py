"""Choice of the candidate search for a recipe, and candidates by bands of MinHash signatures."""

import math

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import places_of
from likewise.batch.read.documents import Collapsed
from likewise.batch.search.search import PAIRS_BETWEEN_VERDICTS, Candidates, NoSearch, Search
from likewise.job.reading import RunContext
from likewise.progress import Warned
from likewise.recipe.fields import EXCERPT_MEASURES
from likewise.recipe.methods import NUM_LEVELS, Bloom, Exact, MinHash, Shingles, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import min_equal_slots, open_buckets

# Fewer documents say too little about unrelated ones.
_FEWEST = 20
_NUM_PAIRS = 1 << 16
# Quantile that gives the spread: near-duplicates are a smaller share of all pairs in all but the smallest collections.
_LOW, _LOW_DEVIATIONS = 0.1, 1.2815515655446004
# Expected number of unrelated documents within the radius of each document, from which the run warns.
_MOST_UNRELATED = 0.1

# Searches that take longer are announced.
_LONG_SECONDS = 60.0


def background_warning(collapsed: Collapsed, near: SimHashDistance) -> str | None:
    """Return a warning if the radius includes unrelated documents, by the lower tail of random pairs, or None."""
    num = len(collapsed.order)
    if num < _FEWEST:
        return None
    random = np.random.default_rng(num)
    a, b = (collapsed.order[random.integers(0, num, _NUM_PAIRS)] for _ in range(2))
    distinct = a != b
    distances = np.asarray(_native.distances(collapsed.documents.sketches, near.bits, a[distinct], b[distinct]))
    median, low = (float(value) for value in np.quantile(distances, [0.5, _LOW]))
    deviation = max(0.5, (median - low) / _LOW_DEVIATIONS)
    unrelated = (num - 1) * 0.5 * math.erfc((median - near.within - 0.5) / deviation / math.sqrt(2.0))
    if unrelated < _MOST_UNRELATED:
        return None
    return (
        f"two documents drawn at random differ in {median:.0f} of {near.bits} bits (median; a tenth of the pairs in at "
        f"most {low:.0f}), too close to the radius of {near.within}: expect unrelated documents among the removals; "
        "use --weights none, a larger --shingle or a lower --within, or compare texts with --threshold"
    )


def open_search(
    collapsed: Collapsed, recipe: Recipe, context: RunContext, *, exact_from: float | None = None
) -> Search:
    """Return the search of a resolved recipe; warn about a distance search that is slow or finds unrelated documents.

    `exact_from` is the minimum similarity of pairs of documents with full buckets, if not what the recipe asks.
    """
    if isinstance(recipe.sketch, SimHashDistance):
        warning = background_warning(collapsed, recipe.sketch)
        if warning is not None:
            context.progress(Warned(warning))
    match recipe.sketch:
        case Exact():
            return NoSearch()
        case Shingles():
            return PrefixSearch(collapsed, recipe, context.threads)
        case Bloom() as filters:
            from likewise.batch.search.bloom import BloomSearch

            return BloomSearch(collapsed, recipe, filters, context.threads)
        case MinHash() as signature:
            if recipe.measure in EXCERPT_MEASURES:
                context.progress(
                    Warned(
                        f"MinHash bands rarely bring texts of different sizes together, so most pairs by "
                        f"{recipe.measure} are missed; method shingles finds all of them"
                    )
                )
            return BandSearch(collapsed, recipe, signature, context.threads, exact_from)
        case SimHash() as near:
            from likewise.batch.search.distance import DistanceSearch

            search = DistanceSearch(collapsed, recipe, context.threads)
            if search.predicted_seconds > _LONG_SECONDS:
                context.progress(
                    Warned(
                        f"comparing all fingerprints within {near.within} of {near.bits} bits takes about "
                        f"{search.predicted_seconds:,.0f} s on {context.threads} threads"
                    )
                )
            return search


_SHIFT = np.uint64(32)
# Documents of the crowd whose buckets are looked at for hosts; there are so many times fewer of these.
_SAMPLED = 512
_CROWD_OF_HOST = 8


class BandSearch(Search):
    """Candidates by MinHash bands; documents that reach full buckets are handled by the recipe's `overflow`."""

    def __init__(
        self, collapsed: Collapsed, recipe: Recipe, signature: MinHash, threads: int, exact_from: float | None
    ) -> None:
        room = collapsed.documents.room
        is_exact = signature.overflow == "exact"
        num_levels = 1 if is_exact else NUM_LEVELS
        in_files = room.buckets_bytes is not None and room.space.folder is not None
        self._buckets = open_buckets(
            collapsed.documents.sketches,
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
        crowd: NDArray[np.uint32] = np.asarray(self._buckets.crowded)
        self.num_crowded = len(crowd)
        self._join = None
        if is_exact and len(crowd) > 1:
            self.joined = crowd
            exact = recipe if exact_from is None else recipe.replace(threshold=exact_from)
            self._is_crowded, self._is_in_join = (room.space.zeros(len(collapsed.order), np.bool_) for _ in range(2))
            self._is_crowded[crowd] = True
            self._is_in_join[crowd] = True
            if exact_from is None:
                self._is_in_join[self._hosts()] = True
            members = np.flatnonzero(self._is_in_join).astype(np.uint32)
            from likewise.batch.search.crowds import CrowdSearch

            self._join = CrowdSearch(collapsed, exact, members, threads, lists_all=exact_from is not None)
        self.num_capped = 0 if is_exact else self._buckets.num_capped

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        if self._join is not None:
            later, earlier, high = self._join.candidates(low, high, states, max_pairs)
        found = self.in_buckets(low, high, states, max_pairs)
        if self._join is None:
            return found
        # Pairs after the end are requested next.
        cut = int(places_of(found.end, later))
        later, earlier = later[:cut], earlier[:cut]
        # The join finds pairs within the crowd; of those with hosts, the buckets determine which.
        counts = self._is_crowded[later] & self._is_crowded[earlier]
        if not counts.all():
            keys, wanted = _keys(found.later, found.earlier), _keys(later, earlier)
            counts |= np.searchsorted(keys, wanted) < np.searchsorted(keys, wanted, "right")
        found = found.select(~(self._is_in_join[found.later] & self._is_in_join[found.earlier]))
        return _united(found, later[counts], earlier[counts]) if counts.any() else found

    def _hosts(self) -> NDArray[np.uint32]:
        """Return documents outside the crowd whose buckets are full of it, by a sample; none if they are many."""
        sample = self.joined[:: max(1, len(self.joined) // _SAMPLED)].tolist()
        found = [self.in_buckets(one, one + 1, None, PAIRS_BETWEEN_VERDICTS).earlier for one in sample]
        hosts: NDArray[np.uint32] = np.unique(np.concatenate(found))
        hosts = hosts[~self._is_crowded[hosts]]
        return hosts if _CROWD_OF_HOST * len(hosts) <= len(self.joined) else hosts[:0]

    def in_buckets(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs that share a bucket as :meth:`candidates` does, including those within the crowd."""
        found = self._buckets.candidates(low, high, states, max_pairs, min_equal=self._min_equal, threads=self._threads)
        return Candidates(np.asarray(found.later), np.asarray(found.earlier), None, found.num_considered, found.end)


def _keys(later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return pairs as numbers, in the same order."""
    return later.astype(np.uint64) << _SHIFT | earlier


def _united(found: Candidates, later: NDArray[np.uint32], earlier: NDArray[np.uint32]) -> Candidates:
    """Return candidates merged with further pairs, sorted."""
    keys = np.concatenate([_keys(found.later, found.earlier), _keys(later, earlier)])
    # Both are sorted, so a stable sort merges them quickly.
    keys.sort(kind="stable")
    return Candidates((keys >> _SHIFT).astype(np.uint32), keys.astype(np.uint32), None, found.num_considered, found.end)


class PrefixSearch(Search):
    """Candidates by an exact join of the feature sets (docs/concepts/shingle-sets.md), whose texts are read again."""

    can_begin_late = False

    def __init__(self, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        documents, self._threads = collapsed.documents, threads
        assert documents.rarity is not None
        from likewise.batch.search.crowds import prefix_join

        self._join = prefix_join(documents, collapsed.order.astype(np.int64), recipe, documents.rarity, threads)

    def pass_over(self, high: int) -> None:
        """Add documents to the lists as earlier ones only."""
        self._join.pass_over(high)

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        if states is not None:
            max_pairs = min(max_pairs, PAIRS_BETWEEN_VERDICTS)
        found = self._join.candidates(low, high, states, max_pairs, threads=self._threads)
        return Candidates(np.asarray(found.later), np.asarray(found.earlier), None, found.num_considered, found.end)
