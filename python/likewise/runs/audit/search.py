"""Pairs that the run's search compares, and the stage that loses each match it misses."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import Search
from likewise.job.options import RunContext
from likewise.recipe.methods import Exact, MinHash, Shingles, SimHash
from likewise.recipe.recipe import Recipe
from likewise.runs.audit.truth.matches import Matches
from likewise.stages.bands import min_equal_slots
from likewise.stages.sketch import shaped

FOUND = 0
STAGES = {
    1: "not a candidate",
    2: "full bucket",
    3: "estimate below the threshold",
    4: "found and not acted on",
}
_NOT_CANDIDATE, _FULL_BUCKET, _BELOW_ESTIMATE, NOT_ACTED_ON = STAGES
# Later positions this close are queried together.
_GAP = 16
_PAIRS_AT_ONCE = 1 << 16


def stages_of(
    matches: Matches,
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
) -> NDArray[np.uint8]:
    """Return for each match whether the run's search finds it (0), or the number of the stage that loses it."""
    stages = np.zeros(len(matches), np.uint8)
    if not len(matches):
        return stages
    later, earlier = matches.later.astype(np.int64), matches.earlier.astype(np.int64)
    method = recipe.sketch
    if isinstance(method, SimHash):
        order = collapsed.order
        distance = _native.distances(documents.sketches, method.bits, order[later], order[earlier])
        stages[np.asarray(distance) > method.radius] = _NOT_CANDIDATE
        return stages
    if isinstance(method, Exact | Shingles):
        return stages
    keys = later * len(collapsed.order) + earlier
    wanted = np.unique(keys)
    is_found = np.zeros(len(wanted), bool)
    search = open_search(documents, collapsed, recipe, context)
    if len(search.joined):
        # The exact join finds all pairs among these.
        is_joined = np.zeros(len(collapsed.order), bool)
        is_joined[search.joined] = True
        is_found = is_joined[wanted // len(is_joined)] & is_joined[wanted % len(is_joined)]
    for found in _candidates(search, documents, len(collapsed.order), np.unique(later)):
        places = np.searchsorted(wanted, found)
        places[places == len(wanted)] = 0
        is_found[places[wanted[places] == found]] = True
    lost = np.flatnonzero(~is_found[np.searchsorted(wanted, keys)])
    stages[lost] = _NOT_CANDIDATE
    for start in range(0, len(lost), _PAIRS_AT_ONCE):
        part = lost[start : start + _PAIRS_AT_ONCE]
        rows = collapsed.order[later[part]], collapsed.order[earlier[part]]
        stages[part] = _stage_of_lost(documents, recipe, *rows)
    return stages


def _candidates(
    search: Search,
    documents: Documents,
    num_positions: int,
    later: NDArray[np.int64],
) -> Iterator[NDArray[np.int64]]:
    """Yield candidates as later * n + earlier, including all candidates of the given later positions."""
    max_pairs = documents.room.max_pairs
    starts = np.flatnonzero(np.diff(later, prepend=-_GAP - 1) > _GAP)
    for run in np.split(later, starts[1:]):
        low, end = int(run[0]), int(run[-1]) + 1
        while low < end:
            found = search.in_buckets(low, end, None, max_pairs)
            yield found.later.astype(np.int64) * num_positions + found.earlier
            low = found.end


def _stage_of_lost(
    documents: Documents, recipe: Recipe, a: NDArray[np.uint32], b: NDArray[np.uint32]
) -> NDArray[np.uint8]:
    stages = np.full(len(a), _NOT_CANDIDATE, np.uint8)
    method = recipe.sketch
    if not isinstance(method, MinHash):
        return stages
    bands, rows = method.banding
    slots = shaped(documents.sketches, recipe)
    equal = slots[a] == slots[b]
    in_bands = equal[:, : bands * rows].reshape(len(a), bands, rows)
    is_candidate = in_bands.all(axis=2).any(axis=1)
    is_below = equal.sum(axis=1) < min_equal_slots(recipe)
    stages[is_candidate] = _FULL_BUCKET
    stages[is_candidate & is_below] = _BELOW_ESTIMATE
    return stages
