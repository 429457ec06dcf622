"""Pairs below and above the threshold, stored to compute what another threshold would have decided.

This is a second search. The pairs that the deciding search compares, and the measurements that estimates save, depend
on the threshold, so a search that also looked below it would decide differently. A separate one cannot change a
verdict. At or above the threshold, it stores the pairs that the run compared, so deciding the stored pairs gives the
run's counts.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.batch.decide.verification import Verifier, measured
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.run import ordered
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import Candidates
from likewise.errors import InvalidParameter
from likewise.io.output.evidence import NearPairFacts, pair_schema, pair_table
from likewise.job.options import RunContext, Timing
from likewise.progress import StageAdvanced, StageFinished, StageStarted
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.recipe.valley import lowest_threshold
from likewise.stages.bands import min_equal_slots
from likewise.stages.sketch import shaped

# Pairs whose slots are compared at once.
_PAIRS_AT_ONCE = 1 << 16


def check_floor(floor: float | None, recipe: Recipe, *, is_against: bool = False) -> None:
    """Raise InvalidParameter if pairs from this similarity on cannot be stored in a run of this recipe."""
    if floor is None:
        return
    if isinstance(recipe.sketch, Exact):
        raise InvalidParameter("store_pairs", "method exact measures no similarity; choose another method")
    if is_against:
        raise InvalidParameter(
            "store_pairs",
            "cannot be combined with --against: reference documents are compared only at the run's threshold",
        )
    # A threshold that is not chosen yet may be this low.
    threshold = lowest_threshold(recipe.measure) if recipe.needs_threshold else recipe.least_similarity
    if not 0.0 < floor <= threshold:
        what = "the lowest threshold that auto chooses" if recipe.needs_threshold else "the threshold of the run"
        raise InvalidParameter("store_pairs", f"{floor} given; it must be above 0 and at most {what}, {threshold:g}")


def write_near_pairs(
    documents: Documents,
    recipe: Recipe,
    floor: float,
    path: Path,
    context: RunContext,
) -> dict[str, object]:
    """Write every verified pair with at least this similarity, and return the summary fields about them.

    This is a separate search, so it cannot change a verdict. It uses the bands, or for cosine the radius, of the run,
    which find pairs below the threshold with a lower probability than at it. Hamming-only recipes find all pairs. At or
    above the threshold, the pairs are those that the run compared (with Bloom filters, a few more).
    """
    import pyarrow.parquet as pq

    collapsed = ordered(documents, recipe, context)
    num_distinct = len(collapsed.order) + int(documents.num_empty > 0)
    schema = pair_schema(
        NearPairFacts(floor, recipe.measure, recipe.group, len(documents), num_distinct, recipe.recipe_id)
    )
    near, lowest = recipe.sketch, {"threshold": floor}
    if isinstance(near, SimHashDistance):
        lowest = {"within": max(d for d in range(near.bits + 1) if near.similarity(d) >= floor)}
    lowered = recipe.replace(**lowest)
    num_pairs = 0
    context.progress(StageStarted("storing pairs", len(collapsed.order), "documents"))
    began = Timing.now()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for pairs, similarity, penalty in _found(documents, collapsed, recipe, lowered, context):
            sides = [side.astype(np.int64) for side in (pairs.later, pairs.earlier)]
            places = [documents.places(collapsed.order[side].astype(np.int64)) for side in sides]
            distance = None if pairs.distance is None else pairs.distance.astype(np.int32)
            sizes = np.minimum(*(documents.num_features[collapsed.order[side]] for side in sides)).astype(np.int64)
            writer.write_table(
                pair_table(schema, (sides[0], sides[1]), (places[0], places[1]), similarity, distance, sizes, penalty)
            )
            num_pairs += len(similarity)
    context.progress(StageFinished("storing pairs", Timing.now() - began))
    return {"stored_pairs": {"floor": floor, "num_pairs": num_pairs}}


def _found(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    lowered: Recipe,
    context: RunContext,
) -> Iterator[tuple[Candidates, NDArray[np.float64], NDArray[np.float64]]]:
    """Yield matching pairs of positions in order of the later one, with their similarities and penalties."""
    timing = context.timing
    with timing.wall("storing_pairs"):
        # Below the threshold of the run, nearly all pairs of documents with full buckets may match.
        exact_from = None if recipe.threshold is None else recipe.similarity_threshold
        search = open_search(documents, collapsed, lowered, context, exact_from=exact_from)
        crowd = np.zeros(len(collapsed.order), bool)
        crowd[search.joined] = True
    with Verifier(documents, collapsed, lowered, context) as verifier:
        num_positions, max_pairs = len(collapsed.order), documents.room.max_pairs
        for found in measured(search, verifier, num_positions, timing, max_pairs, stage="storing_pairs"):
            for block in found.blocks:
                with timing.wall("storing_pairs"):
                    pairs, similarity = block.matching()
                    compared = _were_compared(documents, collapsed, recipe, pairs, similarity)
                    compared |= crowd[pairs.later] & crowd[pairs.earlier]
                if compared.any():
                    pairs = pairs.select(compared)
                    penalty, _ = verifier.differences(pairs.later, pairs.earlier, penalties_only=True)
                    yield pairs, similarity[compared], penalty
            context.progress(StageAdvanced("storing pairs", found.high))


def _were_compared(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    pairs: Candidates,
    similarity: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return which pairs the run itself measured, or would not have matched."""
    compared = np.ones(len(similarity), bool)
    min_equal = min_equal_slots(recipe)
    if not min_equal:
        return compared
    matching = np.flatnonzero(similarity >= recipe.least_similarity)
    slots, order = shaped(documents.sketches, recipe), collapsed.order
    for start in range(0, len(matching), _PAIRS_AT_ONCE):
        part = matching[start : start + _PAIRS_AT_ONCE]
        equal = slots[order[pairs.later[part]]] == slots[order[pairs.earlier[part]]]
        compared[part] = equal.sum(axis=1) >= min_equal
    return compared
