"""Estimated recall of a run, and its missed matches, pairs of kept documents first."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.runs.audit.intervals import Share, StratumTotals, share
from likewise.runs.audit.opening import OpenRun
from likewise.runs.audit.search import FOUND, NOT_ACTED_ON, STAGES
from likewise.runs.audit.strata import Stratum
from likewise.runs.audit.truth.matches import Matches


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
