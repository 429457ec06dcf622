"""Estimated recall of a run, and its missed matches, pairs of kept documents first."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.opening import open_search
from likewise.batch.search.search import Search
from likewise.job.reading import RunContext, RunRules
from likewise.recipe.methods import Exact, MinHash, Shingles, SimHash
from likewise.recipe.recipe import Recipe
from likewise.runs.audit.intervals import Share, StratumTotals, share
from likewise.runs.audit.opening import OpenRun
from likewise.runs.audit.truth.matches import Matches
from likewise.stages.sketch import min_equal_slots, shaped

REMOVED, NEAR, OTHER = "removed", "kept, similar to another", "kept, others"
# Shares of the sample; if a stratum is too small, the rest goes to the others.
_SHARES = {REMOVED: 0.25, NEAR: 0.3, OTHER: 0.45}
# Number of sorts by random parts of the sketches, and standard deviations below the threshold that still seem near.
_SORTS = 12
_SLOTS_A_KEY = 3
_DEVIATIONS = 3.0
_ROWS_AT_ONCE = 1 << 14

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


@dataclass(frozen=True, eq=False)
class Stratum:
    """A subset of the documents, and a sample of it."""

    name: str
    num_documents: int
    # Sampled rows, ascending: all, or drawn at random without replacement
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> float:
        """Number of documents that a sampled one represents."""
        return self.num_documents / len(self.rows) if len(self.rows) else 0.0


def strata_of(run: OpenRun) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each stratum of a run."""
    kept, num = run.kept, len(run.documents)
    is_near = np.zeros(num, bool)
    is_near[run.collapsed.order[_seem_near(run.documents, run.collapsed, run.recipe)]] = True
    # Reference documents are compared with, but the run decides nothing about them.
    is_own = np.arange(num) >= run.num_references
    return {
        REMOVED: np.flatnonzero(~kept),
        NEAR: np.flatnonzero(is_own & kept & is_near),
        OTHER: np.flatnonzero(is_own & kept & ~is_near),
    }


def draw_strata(groups: dict[str, NDArray[np.int64]], *, num_sampled: int, seed: int) -> list[Stratum]:
    """Return a random sample of each stratum."""
    sizes = _sizes({name: len(rows) for name, rows in groups.items()}, num_sampled)
    random = np.random.default_rng(seed)
    return [
        Stratum(name, len(rows), np.sort(random.choice(rows, sizes[name], replace=False)))
        for name, rows in groups.items()
        if len(rows)
    ]


def _sizes(num_documents: dict[str, int], num_sampled: int) -> dict[str, int]:
    """Return the number of documents to draw from each stratum."""
    sizes = dict.fromkeys(num_documents, 0)
    open_names = {name for name, num in num_documents.items() if num}
    left = max(0, num_sampled)
    while open_names and left > 0:
        total = sum(_SHARES[name] for name in open_names)
        wanted = {name: left * _SHARES[name] / total for name in open_names}
        full = {name for name in open_names if sizes[name] + wanted[name] >= num_documents[name]}
        if not full:
            for name in open_names:
                sizes[name] += int(wanted[name])
            break
        for name in full:
            left -= num_documents[name] - sizes[name]
            sizes[name] = num_documents[name]
        open_names -= full
    return {name: max(size, min(2, num_documents[name])) for name, size in sizes.items()}


def _seem_near(documents: Documents, collapsed: Collapsed, recipe: Recipe) -> NDArray[np.int64]:
    """Return positions whose sketch is close to another one, by sorting by random parts other than the run's bands."""
    order = collapsed.order
    method = recipe.sketch
    if not isinstance(method, MinHash | SimHash) or len(order) < 2:
        return np.zeros(0, np.int64)
    parts = _bits(documents, method) if isinstance(method, SimHash) else shaped(documents.sketches, recipe)
    random = np.random.default_rng(recipe.seed)
    per_key = _SLOTS_A_KEY if isinstance(method, MinHash) else 4
    least = _least_equal(recipe, method)
    is_near = np.zeros(len(order), bool)
    for _ in range(_SORTS):
        chosen = random.choice(parts.shape[1], min(per_key, parts.shape[1]), replace=False)
        by_key = np.lexsort([parts[:, slot][order] for slot in chosen])
        for start in range(0, len(order) - 1, _ROWS_AT_ONCE):
            some = by_key[start : start + _ROWS_AT_ONCE + 1]
            equal = _num_equal(documents, order[some[1:]], order[some[:-1]], method)
            near = np.flatnonzero(equal >= least)
            is_near[some[near]] = True
            is_near[some[near + 1]] = True
    return np.flatnonzero(is_near)


def _bits(documents: Documents, method: SimHash) -> NDArray[np.uint8]:
    """Return the bytes of fingerprints: shape (n, bits / 8)."""
    words = np.ascontiguousarray(documents.sketches).view(np.uint64).reshape(-1, method.num_words)
    return words.astype("<u8", copy=False).view(np.uint8)[:, : method.bits // 8]


def _num_equal(
    documents: Documents, a: NDArray[np.uint32], b: NDArray[np.uint32], method: MinHash | SimHash
) -> NDArray[np.int64]:
    """Return the number of equal slots or bits of pairs of rows."""
    if isinstance(method, MinHash):
        equal = _native.num_equal(documents.sketches, method.num_slots, method.slot_bytes, a, b)
        return np.asarray(equal).astype(np.int64)
    return method.bits - np.asarray(_native.distances(documents.sketches, method.bits, a, b)).astype(np.int64)


def _least_equal(recipe: Recipe, method: MinHash | SimHash) -> float:
    """Return the number of equal slots or bits from which two documents seem near."""
    if isinstance(method, MinHash):
        num, share = method.num_slots, recipe.candidate_threshold
    else:
        num, share = method.bits, float(method.similarity(method.radius))
        if recipe.is_distance_only:
            return num * share
    return num * share - _DEVIATIONS * float(np.sqrt(num * share * (1.0 - share)))


def stages_of(run: OpenRun, matches: Matches) -> NDArray[np.uint8]:
    """Return for each match whether the run's search finds it (0), or the number of the stage that loses it."""
    documents, collapsed, recipe = run.documents, run.collapsed, run.recipe
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
    search = open_search(collapsed, recipe, RunContext(RunRules(run.threads), progress=run.progress))
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
    search: Search, documents: Documents, num_positions: int, later: NDArray[np.int64]
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


@dataclass(frozen=True, eq=False)
class Recall:
    """The recall of a run.

    Parameters
    ----------
    pairs : Share
        Share of the matching pairs that the run compared.
    removals : Share
        Share of the removable documents that the run removed.
    num_pairs : float
        Estimated number of matching pairs.
    num_overlooked : float
        Estimated number of kept documents that match an earlier kept document.
    by_stage : dict of str to float
        Estimated number of pairs that each stage lost.
    stages : ndarray of shape (m,), uint8
        For each match, the stage that lost it (0: none), considering the verdicts of the run.
    """

    pairs: Share
    removals: Share
    num_pairs: float
    num_overlooked: float
    by_stage: dict[str, float]
    stages: NDArray[np.uint8] = field(repr=False)


def estimate(
    run: OpenRun, strata: list[Stratum], matches: Matches, stages: NDArray[np.uint8], *, num_right: int | None
) -> Recall:
    """Return the estimated recall of a run."""
    counts = Counts(run, matches, stages)
    of_pairs, of_removals = [], []
    num_overlooked = 0.0
    lost = np.zeros(len(STAGES) + 1)
    for stratum in strata:
        totals, by_stage, overlooked = counts.of(stratum.rows)
        missed = by_stage[:, 1:].sum(axis=1)
        of_pairs.append(StratumTotals(stratum.num_documents, totals, missed))
        lost += stratum.weight * by_stage.sum(axis=0)
        if not counts.are_removed(stratum.rows):
            ought = overlooked.astype(np.float64)
            of_removals.append(StratumTotals(stratum.num_documents, ought, ought))
            num_overlooked += stratum.weight * float(ought.sum())
        elif num_right is None:
            right = (~counts.without_kept(stratum.rows)).astype(np.float64)
            of_removals.append(StratumTotals(stratum.num_documents, right, np.zeros(len(right))))
    known_right, least_right = (0.0, 1.0) if num_right is None else (float(num_right), 0.0)
    return Recall(
        pairs=share(of_pairs, least_part=0.5, least_other=0.5).rest,
        removals=share(of_removals, least_part=1.0, least_other=least_right, known_total=known_right).rest,
        num_pairs=sum(one.weight * float(one.totals.sum()) for one in of_pairs),
        num_overlooked=num_overlooked,
        by_stage={name: float(lost[number]) for number, name in STAGES.items()},
        stages=counts.stages,
    )


class Counts:
    """Counts for single documents, from the matches of their positions; collapsed copies count individually."""

    def __init__(self, run: OpenRun, matches: Matches, stages: NDArray[np.uint8]) -> None:
        collapsed, kept = run.collapsed, run.kept
        num_positions = len(collapsed.order)
        self._run, self._matches = run, matches
        # Result of the search for each match, and the result after the run's verdicts.
        self._searched, self.stages = stages, stages.copy()
        self._kept, self._position = kept, collapsed.position
        placed = self._position[self._position >= 0]
        # A pair of two documents of the run counts half for each; one with a reference only for the other.
        shares = np.ones(len(kept))
        shares[: run.num_references] = 2.0
        is_placed = self._position >= 0
        self._members = np.bincount(placed, weights=shares[is_placed], minlength=num_positions)
        self._kept_shares = np.bincount(placed, weights=(shares * kept)[is_placed], minlength=num_positions)
        self._kept_members = np.bincount(self._position[kept & (self._position >= 0)], minlength=num_positions)
        is_empty = self._position < 0
        self._num_empty, self._num_kept_empty = float(shares[is_empty].sum()), float(shares[is_empty & kept].sum())
        self._stated = np.full(len(kept), np.nan)
        rows = run.evidence.rows
        known = (rows >= 0) & (rows < len(kept))
        self._stated[rows[known]] = run.evidence.similarity[known]
        self._starts = np.searchsorted(matches.sampled, np.arange(num_positions + 1))

    def are_removed(self, rows: NDArray[np.int64]) -> bool:
        """Return whether these documents were removed."""
        return bool(len(rows)) and not bool(self._kept[rows[0]])

    def without_kept(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return whether each removed document has no matching kept document."""
        position = self._position[rows]
        has_kept = np.where(position < 0, self._num_kept_empty > 0, self._kept_members[position] > 0)
        starts, others = self._starts, self._matches.others
        is_kept = np.append(0, np.cumsum(self._kept_members[others] > 0))
        has_match = is_kept[starts[position + 1]] > is_kept[starts[np.maximum(position, 0)]]
        return ~(has_kept | ((position >= 0) & has_match))

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return per document half its pairs, half those lost by stage (0: found), and whether it should be removed."""
        totals, lost = np.zeros(len(rows)), np.zeros((len(rows), len(STAGES) + 1))
        overlooked = np.zeros(len(rows), bool)
        for i, row in enumerate(rows.tolist()):
            lost[i], overlooked[i] = self._of_one(row)
            totals[i] = lost[i].sum()
        return totals, lost, overlooked

    def _of_one(self, row: int) -> tuple[NDArray[np.float64], bool]:
        halves = np.zeros(len(STAGES) + 1)
        position, is_kept = int(self._position[row]), bool(self._kept[row])
        copies, kept_copies = (
            (self._num_empty, self._num_kept_empty)
            if position < 0
            else (float(self._members[position]), float(self._kept_shares[position]))
        )
        # The search treats copies as one document; two kept copies were not compared.
        twice_kept = kept_copies - 1.0 if is_kept else 0.0
        halves[FOUND] += 0.5 * (copies - 1 - twice_kept)
        halves[NOT_ACTED_ON] += 0.5 * twice_kept
        overlooked = is_kept and twice_kept > 0 and self._has_earlier_copy(row, position)
        part = slice(int(self._starts[position]), int(self._starts[position + 1]))
        # Most documents match no other.
        if position < 0 or part.start == part.stop:
            return halves, overlooked
        others = self._matches.others[part]
        stages = self._searched[part]
        members, kept_members, kept_shares = (
            counts[others] for counts in (self._members, self._kept_members, self._kept_shares)
        )
        is_earlier = others < position
        for number in STAGES:
            halves[number] += 0.5 * float(members[stages == number].sum())
        found = stages == FOUND
        if is_kept:
            # Both were kept although the search found the pair.
            contradicted = np.where(found, kept_shares, 0.0)
            overlooked = overlooked or bool((kept_members[is_earlier] > 0).any())
        else:
            # The best match removes a document: a match better than the recorded one was ignored.
            stated = self._stated[row]
            better = is_earlier & (kept_members > 0) & (self._matches.similarity[part] > stated)
            is_leader = self._run.recipe.group == "leaders"
            one = kept_shares / np.maximum(kept_members, 1)
            contradicted = np.where(found & better, one, 0.0) if is_leader else np.zeros(len(others))
        halves[NOT_ACTED_ON] += 0.5 * float(contradicted.sum())
        halves[FOUND] += 0.5 * float((np.where(found, members, 0) - contradicted).sum())
        self.stages[part][contradicted > 0] = NOT_ACTED_ON
        return halves, overlooked

    def _has_earlier_copy(self, row: int, position: int) -> bool:
        """Return whether a copy of higher priority was also kept."""
        first = int(self._run.collapsed.first[row])
        # The first copy has the highest priority; if it was removed, all kept copies but the first are overlooked.
        if self._kept[first]:
            return first != row
        copies = np.flatnonzero(self._kept & (self._position == position))
        return int(copies[0]) != row


@dataclass(frozen=True)
class Missed:
    """Missed pairs."""

    # Number of missed pairs of the sampled documents; identical documents count as one
    num_seen: int
    # The first missed pairs as JSON values: doc_id_a, doc_id_b, row_a, row_b, similarity, stage, and whether both
    # documents were kept. Copies are named by the first copy; a reference document has no row.
    rows: list[dict[str, Any]]


def missed_pairs(run: OpenRun, matches: Matches, stages: NDArray[np.uint8], most: int) -> Missed:
    """Return the missed pairs of the sample: pairs of kept documents first, then by descending similarity."""
    lost = np.flatnonzero(stages != FOUND)
    later, earlier = matches.later[lost].astype(np.int64), matches.earlier[lost].astype(np.int64)
    # A pair of two sampled documents occurs twice, once from each side.
    _, once = np.unique(later * len(run.collapsed.order) + earlier, return_index=True)
    lost, later, earlier = lost[once], later[once], earlier[once]
    a, b = (run.collapsed.order[side].astype(np.int64) for side in (earlier, later))
    first = run.num_references
    both_stayed = run.kept[a] & run.kept[b]
    order = np.lexsort((later, earlier, -matches.similarity[lost], ~both_stayed))[:most]
    ids = [run.documents.doc_ids(side[order]).to_pylist() for side in (a, b)]
    rows = [
        {
            "doc_id_a": id_a,
            "doc_id_b": id_b,
            "row_a": int(a[i]) - first if a[i] >= first else None,
            "row_b": int(b[i]) - first if b[i] >= first else None,
            "similarity": float(matches.similarity[lost[i]]),
            "stage": STAGES[int(stages[lost[i]])],
            "both_stayed": bool(both_stayed[i]),
        }
        for i, id_a, id_b in zip(order.tolist(), *ids, strict=True)
    ]
    return Missed(len(lost), rows)
