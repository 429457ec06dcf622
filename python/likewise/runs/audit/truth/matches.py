"""All matches of some documents among all documents, measured exactly and independently of the run's search."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.budget.timing import Timing
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidParameter
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.runs.audit.truth.measuring import similarities
from likewise.runs.audit.truth.rarest import RarestFeatures

# Maximum number of features of documents read at once, and of sampled documents in one pass.
_FEATURES_AT_ONCE = 2_000_000
_SAMPLE_FEATURES = 8_000_000
_MOST_AT_ONCE = 1 << 16
_STAGE = "comparing the sample with all documents"
# Matches take 16 bytes each; a sample of near-copies of one template has very many.
_MOST_MATCHES = 50_000_000
# Pairs measured per document, and total number of pairs that is always affordable.
_MEASURED_EACH = 100
_FEW_PAIRS = 10_000_000
# The same if all documents are sampled, so that up to 20,000 are always compared with all.
_CENSUS_PAIRS = 450_000_000
# Pairs whose shared masses are summed in the time of one measurement.
_SUMS_A_MEASUREMENT = 16
# Number of other documents that a pilot sample is compared with.
_PILOT_OTHERS = 1000
# Fingerprints: sampled documents compared with all others at once.
_SAMPLED_AT_ONCE = 64


@dataclass(frozen=True, eq=False)
class Matches:
    """Matches of sampled documents.

    Parameters
    ----------
    sampled, others : ndarray of shape (m,), uint32
        Positions, sorted by `sampled`, then by `others`. A pair of two sampled documents occurs twice.
    similarity : ndarray of shape (m,), float64
        By the recipe's measure; containment is that of the later in the earlier.
    """

    sampled: NDArray[np.uint32]
    others: NDArray[np.uint32]
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


def exact_matches(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    sampled: NDArray[np.uint32],
    *,
    threads: int,
    progress: Progress,
) -> Matches:
    """Return all matches of sampled positions among all positions, by the recipe's measure and threshold.

    Parameters
    ----------
    documents : Documents
        All documents.
    collapsed : Collapsed
        Positions in order of priority.
    recipe : Recipe
        Defines a match; resolved. For a Hamming-only recipe: within the radius, and by the short check.
    sampled : ndarray of shape (s,), uint32
        Positions, ascending.
    threads : int
        Number of threads of each call.
    progress : callable
        Receives events.

    Returns
    -------
    Matches
        Exactly all matches.

    Raises
    ------
    InvalidParameter
        If there are more than 50 million matches.

    Notes
    -----
    The result does not depend on sketches, bands or a radius, except for Hamming-only runs, which match fingerprints. A
    pair is measured if the other document has one of the sampled one's rarest features, without which it cannot match
    (:class:`RarestFeatures`); for fingerprints, all pairs are measured. Memory: some 200 MB in addition to the sample's
    features. Cost: a pass over all texts for each 8e6 features of the sample, or s times n distances.
    """
    began = Timing.now()
    if isinstance(recipe.sketch, Exact) or not len(sampled):
        # All matches have collapsed.
        return _sorted([])
    progress(StageStarted(_STAGE, len(collapsed.order), "documents"))
    search = _Search(documents, collapsed, recipe, sampled, threads, progress)
    found, num_found = [], 0
    for some in search.within() if recipe.is_distance_only else search.by_features():
        found.append(some)
        num_found += len(some)
        if num_found > _MOST_MATCHES:
            raise InvalidParameter(
                "sample", f"{len(sampled):,} documents have more than {_MOST_MATCHES:,} matches; lower --sample"
            )
    progress(StageFinished(_STAGE, Timing.now() - began))
    return _sorted(found)


def nearest_kept(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    kept: NDArray[np.bool_],
    sampled: NDArray[np.uint32],
    *,
    threads: int,
    progress: Progress,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the most similar position with a kept document, and the similarity, for each sampled position.

    Parameters
    ----------
    documents, collapsed : Documents, Collapsed
        All documents of the run.
    recipe : Recipe
        Its threshold is the lowest similarity to report; with a set measure.
    kept : ndarray of shape (positions,), bool
        Whether each position has a kept document.
    sampled : ndarray of shape (s,), uint32
        Positions, ascending.
    threads, progress
        As for :func:`exact_matches`.

    Returns
    -------
    positions, similarities : ndarray of shape (s,)
        -1 and 0 if no kept document is similar enough; the first of equally similar ones.
    """
    nearest, best = np.full(len(sampled), -1, np.int64), np.zeros(len(sampled))
    if not len(sampled):
        return nearest, best
    began = Timing.now()
    progress(StageStarted(_STAGE, len(collapsed.order), "documents"))
    search = _Search(documents, collapsed, recipe, sampled, threads, progress)
    for some in search.by_features():
        which = np.flatnonzero(kept[some.others])
        # For each sampled position, the best match of this part comes last.
        order = which[np.lexsort((-some.others[which].astype(np.int64), some.similarity[which]))]
        place = np.searchsorted(sampled, some.sampled[order])
        found, alike = some.others[order].astype(np.int64), some.similarity[order]
        part_best, part_nearest = np.full(len(sampled), -1.0), np.full(len(sampled), -1, np.int64)
        part_best[place], part_nearest[place] = alike, found
        better = (part_best > best) | ((part_best == best) & (part_nearest >= 0) & (part_nearest < nearest))
        nearest[better], best[better] = part_nearest[better], part_best[better]
    progress(StageFinished(_STAGE, Timing.now() - began))
    return nearest, best


def num_affordable(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    pilot: NDArray[np.uint32],
    num_sampled: int,
    *,
    seed: int,
    threads: int,
) -> int:
    """Return how many documents to sample, at most `num_sampled`, so that comparing them takes less time than a run.

    Parameters
    ----------
    documents, collapsed : Documents, Collapsed
        All documents of the run.
    recipe : Recipe
        Recipe of the run.
    pilot : ndarray of shape (p,), uint32
        Positions drawn like the sample, but independently of it.
    num_sampled : int
        Number of documents requested.
    seed : int
        Seed for drawing the other documents.
    threads : int
        Number of threads of each call.

    Returns
    -------
    int
        As many as need 100 exact measurements for each document of the run, or ten million in total (450 million if all
        documents are requested).

    Notes
    -----
    If pages share a template, every document has some of a sampled one's rarest features, and all pairs must be
    measured, or at least summed. The pilot estimates the share of such pairs. It is not part of the sample, so that the
    sample is a random one of its size.
    """
    num = len(collapsed.order)
    if isinstance(recipe.sketch, Exact) or recipe.is_distance_only or not len(pilot) or num * num_sampled <= _FEW_PAIRS:
        return num_sampled
    random = np.random.default_rng([seed, 1])
    others = np.sort(random.choice(num, min(num, _PILOT_OTHERS), replace=False))

    def texts_of(positions: NDArray[np.uint32] | NDArray[np.int64]) -> _native.Texts:
        rows = np.sort(collapsed.order[positions].astype(np.int64))
        return _native.Texts.concat([read() for _, read in documents.texts(rows, 1)])

    rarest = RarestFeatures(
        texts_of(pilot),
        recipe.feature_rules,
        measure=recipe.measure,
        threshold=recipe.similarity_threshold,
        threads=threads,
    )
    num_shared = sum(len(near) for near, _ in rarest.sharing(texts_of(others)))
    cost = (num_shared + rarest.num_added_up / _SUMS_A_MEASUREMENT) / (len(pilot) * len(others))
    affordable = max(_MEASURED_EACH, (_FEW_PAIRS if num_sampled < len(documents) else _CENSUS_PAIRS) / num)
    return num_sampled if cost * num_sampled <= affordable else int(affordable / cost)


def _sorted(found: list[Matches]) -> Matches:
    if not found:
        nothing = np.zeros(0, np.uint32)
        return Matches(nothing, nothing, np.zeros(0))
    sampled, others = (np.concatenate([getattr(part, name) for part in found]) for name in ("sampled", "others"))
    similarity = np.concatenate([part.similarity for part in found])
    order = np.lexsort((others, sampled))
    return Matches(sampled[order], others[order], similarity[order])


@dataclass(frozen=True, eq=False)
class _Search:
    """Exact comparison of sampled documents with all others; its methods yield matches part by part."""

    documents: Documents
    collapsed: Collapsed
    recipe: Recipe
    sampled: NDArray[np.uint32]
    threads: int
    progress: Progress

    def by_features(self) -> Iterator[Matches]:
        """Measure the documents that have one of a sampled document's rarest features."""
        recipe, order = self.recipe, self.collapsed.order
        rules = recipe.feature_rules
        sizes = np.cumsum(self.documents.num_features[order[self.sampled]].astype(np.int64))
        cuts = np.searchsorted(sizes, np.arange(_SAMPLE_FEATURES, sizes[-1], _SAMPLE_FEATURES))
        parts = [part for part in np.split(self.sampled, cuts) if len(part)]
        for number, part in enumerate(parts):
            rows = order[part].astype(np.int64)
            by_row = np.argsort(rows)
            texts = _native.Texts.concat([read() for _, read in self.documents.texts(rows[by_row], 1)])
            # Order texts so that sampled document i of this pass has text i and set i.
            texts = texts.take(np.argsort(by_row))
            rarest = RarestFeatures(
                texts, rules, measure=recipe.measure, threshold=recipe.similarity_threshold, threads=self.threads
            )
            sets = _native.FeatureSets(len(part) + _MOST_AT_ONCE, rules)
            sets.add(np.arange(len(part), dtype=np.uint32), texts, threads=self.threads)
            for done, positions, others in self._all_texts():
                for near, mine in rarest.sharing(others):
                    yield from self._measured(sets, part, positions, others, near, mine)
                self.progress(StageAdvanced(_STAGE, (number * len(order) + done) // len(parts)))

    def _measured(
        self,
        sets: _native.FeatureSets,
        sampled: NDArray[np.uint32],
        positions: NDArray[np.uint32],
        texts: _native.Texts,
        near: NDArray[np.int64],
        mine: NDArray[np.int64],
    ) -> Iterator[Matches]:
        """Measure texts `near` (numbers among `positions`) with the sampled documents `mine` (numbers of sets)."""
        recipe, threads = self.recipe, self.threads
        is_other = positions[near] != sampled[mine]
        near, mine = near[is_other], mine[is_other]
        used = np.unique(near)
        places = (used + len(sampled)).astype(np.uint32)
        sets.add(places, texts.take(used), threads=threads)
        theirs, ours = (near + len(sampled)).astype(np.uint32), mine.astype(np.uint32)
        is_later = positions[near] > sampled[mine]
        later, earlier = np.where(is_later, theirs, ours), np.where(is_later, ours, theirs)
        similarity = np.asarray(
            sets.verify(
                later,
                earlier,
                measure=recipe.measure,
                threshold=recipe.similarity_threshold,
                short_margin=recipe.short_margin or 0.0,
                threads=threads,
            )
        )
        sets.discard(places)
        hits = ~np.isnan(similarity)
        if hits.any():
            yield Matches(sampled[mine[hits]], positions[near[hits]], similarity[hits])

    def _all_texts(self) -> Iterator[tuple[int, NDArray[np.uint32], _native.Texts]]:
        """Yield all positions with their texts, in input order: (number done so far, positions, texts)."""
        order, num_features = self.collapsed.order, self.documents.num_features
        positions = np.argsort(order, kind="stable").astype(np.uint32)
        rows = order[positions].astype(np.int64)
        start = 0
        while start < len(rows):
            some = rows[start : start + _MOST_AT_ONCE]
            ends = np.cumsum(num_features[some].astype(np.int64))
            stop = start + max(1, int(np.searchsorted(ends, _FEATURES_AT_ONCE, "right")))
            texts = [read() for _, read in self.documents.texts(rows[start:stop], 1)]
            stop = min(stop, len(rows))
            yield stop, positions[start:stop], _native.Texts.concat(texts)
            start = stop

    def within(self) -> Iterator[Matches]:
        """Compare all sampled fingerprints with all fingerprints."""
        near, order, sampled = self.recipe.method_as(SimHashDistance), self.collapsed.order, self.sampled
        words = self.documents.sketches.reshape(-1, near.num_words)
        for start in range(0, len(order), _MOST_AT_ONCE):
            theirs = words[order[start : start + _MOST_AT_ONCE]]
            for first in range(0, len(sampled), _SAMPLED_AT_ONCE):
                some = sampled[first : first + _SAMPLED_AT_ONCE]
                mine = words[order[some]]
                distance = np.zeros((len(some), len(theirs)), np.uint16)
                for word in range(near.num_words):
                    distance += np.bitwise_count(mine[:, None, word] ^ theirs[None, :, word])
                close, other = np.nonzero(distance <= near.within)
                is_other = some[close] != start + other
                close, other = close[is_other], other[is_other]
                similarity = near.similarity(distance[close, other])
                found = Matches(some[close], (start + other).astype(np.uint32), similarity)
                if len(found):
                    yield self._alike_if_short(found)
            self.progress(StageAdvanced(_STAGE, min(start + _MOST_AT_ONCE, len(order))))

    def _alike_if_short(self, found: Matches) -> Matches:
        """Return the matches without those of short documents whose features differ too much."""
        documents, recipe, order = self.documents, self.recipe, self.collapsed.order
        near = recipe.method_as(SimHashDistance)
        rows = [order[side].astype(np.int64) for side in (found.sampled, found.others)]
        few = near.is_short(np.minimum(*(documents.num_features[side] for side in rows)))
        ones, others = (side[few] for side in rows)
        alike = similarities(documents, ones, others, recipe.unweighted_rules, measure="jaccard", threads=self.threads)
        stays = np.ones(len(found), bool)
        stays[few] = alike >= near.short_threshold
        return Matches(found.sampled[stays], found.others[stays], found.similarity[stays])
