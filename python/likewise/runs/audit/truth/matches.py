"""All matches of some documents among all documents, measured exactly and independently of the run's search."""

from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.decide.verification import LEAST_WITH_BITMAPS
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidParameter
from likewise.progress import stage
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.runs.audit.opening import OpenRun
from likewise.stages.verify import MatchRules

# A feature with its weight, and the overhead of a set.
_BYTES_A_FEATURE = 12
_BYTES_A_SET = 200
_SETS_BYTES = 64 << 20

# Maximum number of features of documents read at once, and of sampled documents in one pass.
_FEATURES_AT_ONCE = 2_000_000
_SAMPLE_FEATURES = 8_000_000
_MOST_AT_ONCE = 1 << 16
# Maximum number of pairs of documents read at once and sampled ones.
_PAIRS_AT_ONCE = 1 << 22
# Matches take 16 bytes each; a sample of near-copies of one template has very many.
_MOST_MATCHES = 50_000_000
# Pairs measured per document, and total number of pairs that is always affordable.
_MEASURED_EACH = 100
_FEW_PAIRS = 10_000_000
# The same if all documents are sampled, so that up to 20,000 are always compared with all.
_CENSUS_PAIRS = 450_000_000
# Entries of lists of features that are read in the time of one measurement.
_ENTRIES_A_MEASUREMENT = 256
# Number of other documents that a pilot sample is compared with.
_PILOT_OTHERS = 1000
# Fingerprints: sampled documents compared with all others at once.
_SAMPLED_AT_ONCE = 64

_T = TypeVar("_T")


def measured(
    run: OpenRun,
    a: NDArray[np.int64],
    b: NDArray[np.int64],
    rules: _native.FeatureRules,
    measure: str,
    *,
    agreeing: bool = False,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the exact similarity of each pair of rows, containment that of `a` in `b`, and the penalty for names."""
    found, penalty = np.zeros(len(a)), np.zeros(len(a))
    # The core applies the rule on identifiers only to pairs that must reach a similarity.
    threshold = float(np.nextafter(0.0, 1.0)) if agreeing else 0.0
    threads = run.threads
    # Pairs with the same b are adjacent, so that its set is made once.
    by_kept = np.lexsort((a, b))
    for part in _parts(run.documents, a[by_kept], b[by_kept]):
        which = by_kept[part]
        rows = np.unique(np.concatenate([a[which], b[which]]))
        sets = _native.FeatureSets(len(rows), rules)
        for some, read in run.documents.texts(rows, 1):
            positions = np.arange(some.start, some.stop, dtype=np.uint32)
            sets.add(positions, read(), bitmaps=False, threads=threads)
        # The core measures the containment of the later document in the earlier one.
        later, earlier = (np.searchsorted(rows, side[which]).astype(np.uint32) for side in (a, b))
        found[which] = np.asarray(sets.verify(later, earlier, measure=measure, threshold=threshold, threads=threads)[0])
        every = np.arange(len(rows), dtype=np.uint32)
        penalty[which] = np.asarray(sets.differences(later, earlier, every, penalties_only=True, threads=threads)[0])
    return found, penalty


def _parts(documents: Documents, a: NDArray[np.int64], b: NDArray[np.int64]) -> Iterator[slice]:
    """Yield slices of pairs, sorted by b, whose feature sets fit the memory limit."""
    if not len(a):
        return
    sizes = documents.num_features[a].astype(np.int64) * _BYTES_A_FEATURE + _BYTES_A_SET
    is_new = np.ones(len(b), bool)
    is_new[1:] = b[1:] != b[:-1]
    sizes[is_new] += documents.num_features[b[is_new]].astype(np.int64) * _BYTES_A_FEATURE + _BYTES_A_SET
    ends = np.cumsum(sizes)
    start = 0
    while start < len(a):
        before = int(ends[start - 1]) if start else 0
        stop = max(start + 1, int(np.searchsorted(ends, before + _SETS_BYTES, "right")))
        yield slice(start, stop)
        start = stop


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches of sampled documents."""

    # Positions, sorted by `sampled`, then by `others`. A pair of two sampled documents occurs twice.
    sampled: NDArray[np.uint32]
    others: NDArray[np.uint32]
    # By the recipe's measure; containment is that of the later in the earlier
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.sampled)

    @property
    def later(self) -> NDArray[np.uint32]:
        """The position of lower priority."""
        return np.maximum(self.sampled, self.others)

    @property
    def earlier(self) -> NDArray[np.uint32]:
        """The position of higher priority."""
        return np.minimum(self.sampled, self.others)


def exact_matches(run: OpenRun, sampled: NDArray[np.uint32]) -> Matches:
    """Return all matches of sampled positions among all positions, by the recipe's measure and threshold.

    The result does not depend on sketches, bands or a radius, except for Hamming-only runs, which match fingerprints. A
    pair is measured if the other document has so many of the sampled one's rarest features that it can match
    (``crates/core/src/sets/rarest.rs``); for fingerprints, all pairs are measured. Memory: some 300 MB in addition
    to the sample's features. Cost: a pass over all texts for each 8e6 features of the sample, or s times n distances.
    """
    if isinstance(run.recipe.sketch, Exact) or not len(sampled):
        # All matches have collapsed.
        return _sorted([])
    found, num_found = [], 0
    with _searched(run, sampled) as parts:
        for some in parts:
            found.append(some)
            num_found += len(some)
            if num_found > _MOST_MATCHES:
                raise InvalidParameter(
                    "sample", f"{len(sampled):,} documents have more than {_MOST_MATCHES:,} matches; lower --sample"
                )
    return _sorted(found)


def nearest_kept(
    run: OpenRun, kept: NDArray[np.bool_], sampled: NDArray[np.uint32]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most similar position with a kept document, and the similarity, for each sampled position."""
    nearest, best = np.full(len(sampled), -1, np.int64), np.zeros(len(sampled))
    if not len(sampled):
        return nearest, best
    with _searched(run, sampled) as parts:
        for some in parts:
            which = np.flatnonzero(kept[some.others])
            # For each sampled position, the best match of this part comes last.
            order = which[np.lexsort((-some.others[which].astype(np.int64), some.similarity[which]))]
            place = np.searchsorted(sampled, some.sampled[order])
            found, alike = some.others[order].astype(np.int64), some.similarity[order]
            part_best, part_nearest = np.full(len(sampled), -1.0), np.full(len(sampled), -1, np.int64)
            part_best[place], part_nearest[place] = alike, found
            better = (part_best > best) | ((part_best == best) & (part_nearest >= 0) & (part_nearest < nearest))
            nearest[better], best[better] = part_nearest[better], part_best[better]
    return nearest, best


def num_affordable(run: OpenRun, pilot: NDArray[np.uint32], num_sampled: int, seed: int) -> int:
    """Return how many documents to sample, at most `num_sampled`, so that comparing them takes less time than a run.

    If pages share a template, every document has some of a sampled one's rarest features, whose lists are long, and
    many pairs must be measured. The pilot estimates this cost. It is not part of the sample, so that the sample is a
    random one of its size.
    """
    recipe, num = run.recipe, len(run.collapsed.order)
    if isinstance(recipe.sketch, Exact) or recipe.is_distance_only or not len(pilot) or num * num_sampled <= _FEW_PAIRS:
        return num_sampled
    random = np.random.default_rng([seed, 1])
    others = np.sort(random.choice(num, min(num, _PILOT_OTHERS), replace=False))

    def texts_of(positions: NDArray[np.uint32] | NDArray[np.int64]) -> _native.Texts:
        return _texts(run, np.sort(run.collapsed.order[positions].astype(np.int64)))

    rarest = _rarest(texts_of(pilot), recipe, run.threads)
    near, _, num_entries = rarest.may_match(texts_of(others), threads=run.threads)
    cost = (len(near) + num_entries / _ENTRIES_A_MEASUREMENT) / (len(pilot) * len(others))
    affordable = max(_MEASURED_EACH, (_FEW_PAIRS if num_sampled < len(run.documents) else _CENSUS_PAIRS) / num)
    return num_sampled if cost * num_sampled <= affordable else int(affordable / cost)


def _texts(run: OpenRun, rows: NDArray[np.int64]) -> _native.Texts:
    return _native.Texts.concat([read() for _, read in run.documents.texts(rows, 1)])


def _rarest(texts: _native.Texts, recipe: Recipe, threads: int) -> _native.RarestFeatures:
    return _native.RarestFeatures(
        texts,
        recipe.feature_rules,
        measure=recipe.measure,
        threshold=recipe.similarity_threshold,
        short_margin=recipe.short_margin or 0.0,
        threads=threads,
    )


def _one_ahead(items: Iterator[_T], threads: int) -> Generator[_T]:
    """Yield items, the next one computed meanwhile if there are threads; close it to wait for that one."""
    if threads == 1:
        yield from items
        return
    with ThreadPoolExecutor(1, thread_name_prefix="likewise-audit") as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item


def _cuts(num_features: NDArray[np.int64]) -> list[int]:
    """Return where documents are cut, so that a part has a limited number of documents and features."""
    features, documents = np.cumsum(num_features) // _FEATURES_AT_ONCE, np.arange(len(num_features)) // _MOST_AT_ONCE
    return (np.flatnonzero(np.diff(features) | np.diff(documents)) + 1).tolist()


def _sorted(found: list[Matches]) -> Matches:
    if not found:
        nothing = np.zeros(0, np.uint32)
        return Matches(nothing, nothing, np.zeros(0))
    sampled, others = (np.concatenate([getattr(part, name) for part in found]) for name in ("sampled", "others"))
    similarity = np.concatenate([part.similarity for part in found])
    order = np.lexsort((others, sampled))
    return Matches(sampled[order], others[order], similarity[order])


@contextmanager
def _searched(run: OpenRun, sampled: NDArray[np.uint32]) -> Iterator[Iterator[Matches]]:
    """Compare sampled documents with all others, as a context of the matches."""
    with stage(run.progress, "comparing the sample with all documents", len(run.collapsed.order), "documents") as done:
        search = _Search(run, sampled, done)
        with closing(search.within() if run.recipe.is_distance_only else search.by_features()) as parts:
            yield parts


@dataclass(frozen=True, eq=False)
class _Search:
    """Exact comparison of sampled documents with all others; its methods yield matches part by part."""

    run: OpenRun
    sampled: NDArray[np.uint32]
    advance: Callable[[int], None]

    def by_features(self) -> Generator[Matches]:
        """Measure the documents that have one of a sampled document's rarest features."""
        run, order = self.run, self.run.collapsed.order
        sizes = np.cumsum(run.documents.num_features[order[self.sampled]].astype(np.int64))
        cuts = np.searchsorted(sizes, np.arange(_SAMPLE_FEATURES, sizes[-1], _SAMPLE_FEATURES))
        parts = [part for part in np.split(self.sampled, cuts) if len(part)]
        for number, part in enumerate(parts):
            rows = order[part].astype(np.int64)
            by_row = np.argsort(rows)
            # Order texts so that sampled document i of this pass has text i and set i.
            texts = _texts(run, rows[by_row]).take(np.argsort(by_row))
            rarest = _rarest(texts, run.recipe, run.threads)
            sets = _native.FeatureSets(len(part) + _MOST_AT_ONCE, run.recipe.feature_rules)
            num_done = 0
            candidates = self._may_match(rarest, _PAIRS_AT_ONCE // len(part) + 1)
            with closing(_one_ahead(candidates, run.threads)) as coming:
                for num_read, others, mine in coming:
                    yield from self._measured(sets, part, texts, others, mine)
                    num_done += num_read
                    self.advance((number * len(order) + num_done) // len(parts))

    def _measured(
        self,
        sets: _native.FeatureSets,
        sampled: NDArray[np.uint32],
        texts: _native.Texts,
        others: NDArray[np.uint32],
        mine: NDArray[np.uint32],
    ) -> Iterator[Matches]:
        """Measure positions `others` with the sampled documents `mine` (numbers of texts and sets)."""
        run, threads = self.run, self.run.threads
        is_other = others != sampled[mine]
        others, mine = others[is_other], mine[is_other]
        if not len(others):
            return
        # Most sampled documents resemble no other.
        missing = np.asarray(sets.missing(mine))
        sets.add(missing, texts.take(missing), threads=threads)
        used, place = np.unique(run.collapsed.order[others], return_inverse=True)
        by_place = np.argsort(place, kind="stable")
        others, mine, place = others[by_place], mine[by_place], place[by_place]
        cuts = [0, *_cuts(run.documents.num_features[used].astype(np.int64)), len(used)]
        for low, high in pairwise(cuts):
            pairs = slice(*np.searchsorted(place, [low, high]))
            places = np.arange(len(sampled), len(sampled) + high - low, dtype=np.uint32)
            bitmaps = pairs.stop - pairs.start >= LEAST_WITH_BITMAPS * len(places)
            sets.add(places, _texts(run, used[low:high].astype(np.int64)), bitmaps=bitmaps, threads=threads)
            theirs, is_later = places[place[pairs] - low], others[pairs] > sampled[mine[pairs]]
            later, earlier = np.where(is_later, theirs, mine[pairs]), np.where(is_later, mine[pairs], theirs)
            found = sets.verify(later, earlier, **MatchRules.of(run.recipe)._asdict(), threads=threads)
            similarity = np.asarray(found[0])
            sets.discard(places)
            hits = ~np.isnan(similarity)
            if hits.any():
                yield Matches(sampled[mine[pairs][hits]], others[pairs][hits], similarity[hits])

    def _may_match(
        self, rarest: _native.RarestFeatures, most: int
    ) -> Iterator[tuple[int, NDArray[np.uint32], NDArray[np.uint32]]]:
        """Yield the number of documents read, then positions with the sampled ones that each may match, by row."""
        run, position = self.run, self.run.collapsed.position
        # Only one of several copies has a position.
        left = np.sort(run.collapsed.order).astype(np.int64)
        start = 0
        while start < len(left):
            rows = left[start : start + min(most, _MOST_AT_ONCE)]
            ends = np.cumsum(run.documents.num_features[rows].astype(np.int64))
            rows = rows[: max(1, int(np.searchsorted(ends, _FEATURES_AT_ONCE, "right")))]
            near, mine, _ = map(np.asarray, rarest.may_match(_texts(run, rows), threads=run.threads))
            yield len(rows), position[rows[near]].astype(np.uint32), mine
            start += len(rows)

    def within(self) -> Generator[Matches]:
        """Compare all sampled fingerprints with all fingerprints."""
        run, sampled = self.run, self.sampled
        near, order = run.recipe.method_as(SimHashDistance), run.collapsed.order
        words = run.documents.sketches.reshape(-1, near.num_words)
        for start in range(0, len(order), _MOST_AT_ONCE):
            theirs = words[order[start : start + _MOST_AT_ONCE]].ravel()
            # Without tables, a search computes all distances.
            scan = _native.HammingSet(theirs, near.bits, within=near.within, scan=True, threads=run.threads)
            for first in range(0, len(sampled), _SAMPLED_AT_ONCE):
                some = sampled[first : first + _SAMPLED_AT_ONCE]
                offsets, others, _, distances = map(
                    np.asarray, scan.search(words[order[some]].ravel(), near.within, threads=run.threads)
                )
                mine, others = np.repeat(some, np.diff(offsets)), others + np.uint32(start)
                is_other = mine != others
                found = Matches(mine[is_other], others[is_other], near.similarity(distances[is_other]))
                if len(found):
                    yield self._alike_if_short(found)
            self.advance(min(start + _MOST_AT_ONCE, len(order)))

    def _alike_if_short(self, found: Matches) -> Matches:
        """Return the matches without those of short documents whose features differ too much."""
        run = self.run
        near = run.recipe.method_as(SimHashDistance)
        rows = [run.collapsed.order[side].astype(np.int64) for side in (found.sampled, found.others)]
        few = near.is_short(np.minimum(*(run.documents.num_features[side] for side in rows)))
        ones, others = (side[few] for side in rows)
        alike, _ = measured(run, ones, others, run.recipe.unweighted_rules, "jaccard")
        stays = np.ones(len(found), bool)
        stays[few] = alike >= near.short_threshold
        return Matches(found.sampled[stays], found.others[stays], found.similarity[stays])
