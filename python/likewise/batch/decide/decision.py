"""The decision: which documents are kept, and which kept document matches each removed one.

Documents are decided in order of priority, some thousands at a time. A candidate pair whose earlier document is already
removed is not measured, since it cannot change a verdict or the evidence; so dense clusters cost little, and the result
is the same as when deciding document by document. The output does not depend on chunk size or threads.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import frozen, slices
from likewise.batch.decide.crowd_warning import crowd_warning
from likewise.batch.decide.measured import measured
from likewise.batch.decide.stays import Overruled, Stays
from likewise.batch.decide.verdict_log import VerdictLog, Verdicts
from likewise.batch.decide.verification import Verifier
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.opening import open_search
from likewise.batch.search.references import beyond_references
from likewise.batch.search.search import Search
from likewise.job.context import RunContext, Timing
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, Warned
from likewise.recipe.methods import MinHash, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.groups import KEPT, REMOVED
from likewise.stages.verify import FORM

_PAIRS_AT_ONCE = 65536
_ROWS_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Decision:
    """Verdicts and evidence for all rows."""

    kept: NDArray[np.bool_]
    # Rows of removed documents, ascending
    removed_rows: NDArray[np.int64]
    # The kept document that each removed one matches
    kept_rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    distance: NDArray[np.int32] | None
    # Additional similarity that each pair needed because its names differ; None if names are not compared
    penalty: NDArray[np.float64] | None
    # In what each removed document differs, as bits; None if names are not compared
    differs: NDArray[np.uint8] | None
    # For components: whether the pair does not match
    below_threshold: NDArray[np.bool_] | None
    # Pairs that share a bucket; None if the search does not list pairs (SimHash)
    num_candidates: int | None
    # Number of measured pairs; may differ between runs with the same results
    num_measured: int
    # Number of times that a document reached a full last level, counted per band
    num_capped: int
    # Number of documents that reached a full bucket
    num_crowded: int = 0
    # Documents kept by a user's decision although they match a kept document
    overruled: Overruled | None = None

    def with_references_kept(self, num_references: int) -> "Decision":
        """Return the decision with the first rows, which are reference documents, all kept."""
        if not num_references:
            return self
        kept = self.kept.copy()
        kept[:num_references] = True
        # Removed rows are ascending.
        first = int(np.searchsorted(self.removed_rows, num_references))
        return replace(
            self,
            kept=kept,
            removed_rows=self.removed_rows[first:],
            kept_rows=self.kept_rows[first:],
            similarity=self.similarity[first:],
            distance=None if self.distance is None else self.distance[first:],
            penalty=None if self.penalty is None else self.penalty[first:],
            differs=None if self.differs is None else self.differs[first:],
        )


def decide(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
    log: VerdictLog | None = None,
) -> Decision:
    """Find candidates, measure them, and decide which documents are kept."""
    with context.timing.wall("candidates"):
        search = beyond_references(open_search(documents, collapsed, recipe, context), documents, collapsed)
    stays = Stays(documents, collapsed)
    with Verifier(documents, collapsed, recipe, context) as verifier:
        num_positions = len(collapsed.order)
        if recipe.group == "components":
            verdicts = _by_components(search, verifier, documents, collapsed, recipe, context)
        else:
            verdicts = _by_leaders(search, verifier, num_positions, documents, stays, context, log)
        num_measured = verifier.num_measured
    warning = crowd_warning(recipe, search.num_crowded, search.num_capped)
    if warning is not None:
        context.progress(Warned(warning))
    decision = _spread(documents, collapsed, recipe, verdicts, num_measured, search)
    decision = replace(decision, overruled=stays.overruled(verdicts))
    return decision.with_references_kept(documents.num_references)


def _by_leaders(
    search: Search,
    verifier: Verifier,
    num_positions: int,
    documents: Documents,
    stays: Stays,
    context: RunContext,
    log: VerdictLog | None,
) -> Verdicts:
    space, timing, progress = documents.room.space, context.timing, context.progress
    verdicts = Verdicts(
        states=space.zeros(num_positions, np.uint8),
        best=space.zeros(num_positions, np.uint32),
        similarity=space.zeros(num_positions, np.float64),
        distance=space.zeros(num_positions, np.uint32),
        penalty=space.zeros(num_positions, np.float64),
        differs=space.zeros(num_positions, np.uint8),
        below=None,
        num_considered=0,
    )
    states = frozen(verdicts.states)
    first, num_considered = (0, 0) if log is None else log.restore(verdicts, search)
    began = _start(progress, num_positions)

    for found in measured(
        search, verifier, num_positions, timing, documents.room.max_pairs, states=states, first=first
    ):
        num_considered += found.num_considered
        for measured_block in found.blocks:
            pairs, block = measured_block.pairs, slice(measured_block.low, measured_block.high)
            with timing.wall("deciding"):
                (
                    verdicts.states[block],
                    verdicts.best[block],
                    verdicts.similarity[block],
                    verdicts.distance[block],
                ) = _native.decide_range(
                    states[: block.start],
                    block.stop,
                    pairs.later,
                    pairs.earlier,
                    stays.left(pairs, measured_block.similarity),
                    pairs.distance,
                )
                gone = (np.flatnonzero(states[block] == REMOVED) + block.start).astype(np.uint32)
            with timing.wall("verification"):
                verdicts.penalty[gone], verdicts.differs[gone] = verifier.differences(gone, verdicts.best[gone])
                verifier.discard(gone)
        if log is not None:
            log.note(verdicts, found.high, num_considered, search)
        progress(StageAdvanced("deciding", found.high))
    progress(StageFinished("deciding", Timing.now() - began))
    return replace(verdicts, num_considered=num_considered)


def _by_components(
    search: Search,
    verifier: Verifier,
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
) -> Verdicts:
    num_positions, timing, progress = len(collapsed.order), context.timing, context.progress
    joined, space = _native.Components(num_positions), documents.room.space
    near = recipe.sketch
    num_considered = 0
    began = _start(progress, num_positions)
    for found in measured(search, verifier, num_positions, timing, documents.room.max_pairs):
        num_considered += found.num_considered
        for block in found.blocks:
            with timing.wall("deciding"):
                pairs, _ = block.matching()
                joined.join(pairs.later, pairs.earlier)
        progress(StageAdvanced("deciding", found.high))
    with timing.wall("deciding"):
        best = np.asarray(joined.smallest())
    states = space.zeros(num_positions, np.uint8)
    similarity = space.zeros(num_positions, np.float64)
    distance = space.zeros(num_positions, np.uint32)
    penalty, differs = space.zeros(num_positions, np.float64), space.zeros(num_positions, np.uint8)
    below = space.zeros(num_positions, np.bool_)
    for some in slices(num_positions, _PAIRS_AT_ONCE):
        part = np.arange(some.start, some.stop, dtype=np.uint32)
        is_removed = best[some] != part
        states[some] = np.where(is_removed, REMOVED, KEPT)
        later, earlier = part[is_removed], best[some][is_removed]
        if not len(later):
            continue
        with timing.wall("verification"):
            if isinstance(near, SimHash):
                distance[later] = _distances(documents, collapsed, near.bits, later, earlier)
            if isinstance(near, SimHashDistance):
                values = near.similarity(distance[later])
                similarity[later] = values
                reached = np.where(distance[later] <= near.within, values, np.nan)
                below[later] = np.isnan(verifier.without_unlike_short(later, earlier, reached))
            else:
                similarity[later] = verifier.similarities(later, earlier, recipe.measure, 0.0)
                penalty[later], differs[later] = verifier.differences(later, earlier)
                fewest = verifier.num_features(later, earlier)
                below[later] = similarity[later] < recipe.required_similarity(fewest, penalty[later])
    progress(StageFinished("deciding", Timing.now() - began))
    return Verdicts(states, best, similarity, distance, penalty, differs, below, num_considered)


def _start(progress: Progress, num_positions: int) -> float:
    progress(StageStarted("deciding", num_positions, "documents"))
    return Timing.now()


def _distances(
    documents: Documents, collapsed: Collapsed, bits: int, a: NDArray[np.uint32], b: NDArray[np.uint32]
) -> NDArray[np.uint32]:
    order = collapsed.order
    return np.asarray(_native.distances(documents.sketches, bits, order[a], order[b])).astype(np.uint32)


def _spread(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    verdicts: Verdicts,
    num_measured: int,
    search: Search,
) -> Decision:
    """Give every row the verdict of the document that it collapsed into."""
    space = documents.room.space
    kept = space.growing(np.bool_)
    removed_rows, kept_rows = space.growing(np.int64), space.growing(np.int64)
    similarity, distance, below = space.growing(np.float64), space.growing(np.int32), space.growing(np.bool_)
    penalty, differs = space.growing(np.float64), space.growing(np.uint8)
    for some in slices(len(documents), _ROWS_AT_ONCE):
        first, position = collapsed.first[some], collapsed.position[some]
        first_kept = np.ones(len(first), bool)
        searched = position >= 0
        first_kept[searched] = verdicts.states[position[searched]] == KEPT
        stays = (first == np.arange(some.start, some.stop)) & first_kept
        kept.append(stays)
        removed = np.flatnonzero(~stays)
        # A copy of a kept document is removed by it; a copy of a removed one, by the same document as that one.
        against = first[removed]
        values, errors = np.ones(len(removed)), np.zeros(len(removed), np.int32)
        unlike = np.zeros(len(removed), bool)
        added, differing = np.zeros(len(removed)), np.full(len(removed), FORM, np.uint8)
        inherited = np.flatnonzero(~first_kept[removed])
        places = position[removed[inherited]]
        against[inherited] = collapsed.order[verdicts.best[places]]
        values[inherited] = verdicts.similarity[places]
        errors[inherited] = verdicts.distance[places].astype(np.int32)
        added[inherited], differing[inherited] = verdicts.penalty[places], verdicts.differs[places]
        if verdicts.below is not None:
            unlike[inherited] = verdicts.below[places]
        for column, found in (
            (removed_rows, removed + some.start),
            (kept_rows, against),
            (similarity, values),
            (distance, errors),
            (penalty, added),
            (differs, differing),
            (below, unlike),
        ):
            column.append(found)
    return Decision(
        kept=kept.take(),
        removed_rows=removed_rows.take(),
        kept_rows=kept_rows.take(),
        similarity=similarity.take(),
        distance=distance.take() if isinstance(recipe.sketch, SimHash) else None,
        penalty=None if recipe.name_rules is None else penalty.take(),
        differs=None if recipe.name_rules is None else differs.take(),
        below_threshold=None if verdicts.below is None else below.take(),
        num_candidates=verdicts.num_considered if isinstance(recipe.sketch, MinHash) else None,
        num_measured=num_measured,
        num_capped=search.num_capped,
        num_crowded=search.num_crowded,
    )
