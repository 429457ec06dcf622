"""The decision: who stays, and which kept document speaks against each that goes."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.dedup.candidates import BandSearch, BitBandSearch, DistanceSearch, open_search, ranges_of_candidates
from likewise.dedup.collapse import Collapsed
from likewise.dedup.documents import Documents
from likewise.dedup.reference_search import beyond_references
from likewise.dedup.timing import Timing
from likewise.dedup.verification import Verifier
from likewise.groups import KEPT, REMOVED
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted
from likewise.recipe import Recipe

_PAIRS_AT_ONCE = 65536


@dataclass(frozen=True, eq=False)
class Decision:
    """Verdicts and evidence for all rows.

    Parameters
    ----------
    kept : ndarray of shape (n,), bool
        Who stays.
    removed_rows : ndarray of shape (m,), int64
        Who goes, rising.
    kept_rows : ndarray of shape (m,), int64
        The kept document against each.
    similarity : ndarray of shape (m,), float64
        Their similarity.
    distance : ndarray of shape (m,), int32, optional
        Their Hamming distance.
    below_threshold : ndarray of shape (m,), bool, optional
        For components: pairs that do not match.
    num_candidates : int, optional
        Pairs that shared a bucket; None where the search lists none (SimHash).
    num_measured : int
        Pairs measured; may differ between runs of the same answer.
    num_capped : int
        Documents that met a full last level, once for each band.
    """

    kept: NDArray[np.bool_]
    removed_rows: NDArray[np.int64]
    kept_rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32] | None
    below_threshold: NDArray[np.bool_] | None
    num_candidates: int | None
    num_measured: int
    num_capped: int

    def with_references_kept(self, num_references: int) -> "Decision":
        """Return the same, but that the first rows are reference documents, which all stay."""
        if not num_references:
            return self
        kept = self.kept.copy()
        kept[:num_references] = True
        # Removed rows rise.
        first = int(np.searchsorted(self.removed_rows, num_references))
        return replace(
            self,
            kept=kept,
            removed_rows=self.removed_rows[first:],
            kept_rows=self.kept_rows[first:],
            similarity=self.similarity[first:],
            distance=None if self.distance is None else self.distance[first:],
        )


@dataclass(frozen=True, eq=False)
class _Verdicts:
    """Verdicts of positions: the best earlier position, and what was measured."""

    kept: NDArray[np.bool_]
    best: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32]
    below: NDArray[np.bool_] | None
    num_considered: int


def decide(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    *,
    threads: int,
    timing: Timing,
    progress: Progress,
) -> Decision:
    """Find candidates, measure them, and decide.

    Parameters
    ----------
    documents : Documents
        All documents, sketched.
    collapsed : Collapsed
        Positions in order of priority.
    recipe : Recipe
        Resolved.
    threads : int
        Threads of each call.
    timing : Timing
        Takes the seconds.
    progress : Progress
        Told of documents decided.

    Returns
    -------
    Decision
        Independent of threads and of how the work is cut.
    """
    with timing.wall("candidates"):
        search = beyond_references(open_search(documents, collapsed, recipe, threads, progress), documents, collapsed)
    with Verifier(documents, collapsed, recipe, threads, timing) as verifier:
        rule = _by_components if recipe.group == "components" else _by_leaders
        verdicts = rule(search, verifier, len(collapsed.order), documents, collapsed, recipe, timing, progress)
        num_measured = verifier.num_measured
    decision = _spread(documents, collapsed, recipe, verdicts, num_measured, search.num_capped)
    return decision.with_references_kept(documents.num_references)


def _by_leaders(
    search: BandSearch | DistanceSearch | BitBandSearch,
    verifier: Verifier,
    num_positions: int,
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    timing: Timing,
    progress: Progress,
) -> _Verdicts:
    leaders = _native.Leaders(num_positions)
    states = np.asarray(leaders.states)
    num_considered = 0
    began = _start(progress, num_positions)

    def known_states() -> NDArray[np.uint8]:
        return states

    for low, high, candidates in ranges_of_candidates(search, num_positions, known_states, timing):
        num_considered += candidates.num_considered
        for block_low, block_high, which in candidates.blocks(low, high):
            pairs = candidates.select(which)
            alive = states[pairs.earlier] != REMOVED
            pairs = pairs if alive.all() else pairs.select(alive)
            with timing.wall("verification"):
                similarity = verifier.matches(pairs)
            with timing.wall("deciding"):
                leaders.decide(block_low, block_high, pairs.later, pairs.earlier, similarity, pairs.distance)
                states = np.asarray(leaders.states)
                gone = np.flatnonzero(states[block_low:block_high] == REMOVED) + block_low
                verifier.discard(gone.astype(np.uint32))
        progress(StageAdvanced("deciding", high))
    progress(StageFinished("deciding", Timing.now() - began))
    return _Verdicts(
        kept=states == KEPT,
        best=np.asarray(leaders.best_earlier).astype(np.int64),
        similarity=np.asarray(leaders.best_similarity),
        distance=np.asarray(leaders.best_distance).astype(np.int32),
        below=None,
        num_considered=num_considered,
    )


def _by_components(
    search: BandSearch | DistanceSearch | BitBandSearch,
    verifier: Verifier,
    num_positions: int,
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    timing: Timing,
    progress: Progress,
) -> _Verdicts:
    laters, earliers = [np.zeros(0, np.uint32)], [np.zeros(0, np.uint32)]
    num_considered = 0
    began = _start(progress, num_positions)
    for low, high, candidates in ranges_of_candidates(search, num_positions, lambda: None, timing):
        num_considered += candidates.num_considered
        for _, _, which in candidates.blocks(low, high):
            pairs = candidates.select(which)
            with timing.wall("verification"):
                matching = ~np.isnan(verifier.matches(pairs))
            laters.append(pairs.later[matching])
            earliers.append(pairs.earlier[matching])
        progress(StageAdvanced("deciding", high))
    with timing.wall("deciding"):
        joined = _native.components(num_positions, np.concatenate(laters), np.concatenate(earliers))
        best = np.asarray(joined).astype(np.int64)
    kept = best == np.arange(num_positions)
    removed = np.flatnonzero(~kept)
    similarity = np.full(num_positions, np.nan)
    distance = np.zeros(num_positions, np.int32)
    below = np.zeros(num_positions, bool)
    with timing.wall("verification"):
        for start in range(0, len(removed), _PAIRS_AT_ONCE):
            part = removed[start : start + _PAIRS_AT_ONCE]
            later, earlier = part.astype(np.uint32), best[part].astype(np.uint32)
            if recipe.bits is not None:
                distance[part] = _distances(documents, collapsed, recipe.bits, later, earlier)
            if recipe.is_distance_only:
                assert recipe.bits is not None
                assert recipe.within is not None
                similarity[part] = 1.0 - distance[part] / recipe.bits
                reached = np.where(distance[part] <= recipe.within, similarity[part], np.nan)
                below[part] = np.isnan(verifier.without_unlike_short(later, earlier, reached))
            else:
                assert recipe.threshold is not None
                similarity[part] = verifier.similarities(later, earlier, recipe.measure, 0.0)
                below[part] = similarity[part] < recipe.threshold
    progress(StageFinished("deciding", Timing.now() - began))
    return _Verdicts(kept, best, similarity, distance, below, num_considered)


def _start(progress: Progress, num_positions: int) -> float:
    progress(StageStarted("deciding", num_positions, "documents"))
    return Timing.now()


def _distances(
    documents: Documents, collapsed: Collapsed, bits: int, a: NDArray[np.uint32], b: NDArray[np.uint32]
) -> NDArray[np.int32]:
    order = collapsed.order
    return np.asarray(_native.distances(documents.sketches, bits, order[a], order[b])).astype(np.int32)


def _spread(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    verdicts: _Verdicts,
    num_measured: int,
    num_capped: int,
) -> Decision:
    """Give every row the verdict of the document that it collapsed into."""
    rows = np.arange(len(documents))
    first, position = collapsed.first, collapsed.position
    is_first = first == rows
    first_kept = np.ones(len(documents), bool)
    searched = position >= 0
    first_kept[searched] = verdicts.kept[position[searched]]
    kept = is_first & first_kept
    removed = np.flatnonzero(~kept)
    kept_rows = first[removed].copy()
    similarity = np.ones(len(removed))
    distance = np.zeros(len(removed), np.int32)
    below = np.zeros(len(removed), bool)
    inherited = np.flatnonzero(~first_kept[removed])
    places = position[removed[inherited]]
    kept_rows[inherited] = collapsed.order[verdicts.best[places]]
    similarity[inherited] = verdicts.similarity[places]
    distance[inherited] = verdicts.distance[places]
    if verdicts.below is not None:
        below[inherited] = verdicts.below[places]
    return Decision(
        kept=kept,
        removed_rows=removed,
        kept_rows=kept_rows,
        similarity=similarity,
        distance=distance if recipe.method == "simhash" else None,
        below_threshold=None if verdicts.below is None else below,
        num_candidates=verdicts.num_considered if recipe.method == "minhash" else None,
        num_measured=num_measured,
        num_capped=num_capped,
    )
