"""The matches that a run missed, one by one, those first that stand in its result."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.runs.audit.intervals import Share, StratumTotals, share
from likewise.runs.audit.opening import OpenRun
from likewise.runs.audit.search import FOUND, NOT_ACTED_ON, STAGES
from likewise.runs.audit.strata import Stratum
from likewise.runs.audit.truth import Matches


@dataclass(frozen=True, eq=False)
class Recall:
    """What a run found of what there is.

    Parameters
    ----------
    pairs : Share
        Of the pairs that match, those that the run compared.
    removals : Share
        Of the documents that ought to go, those that went.
    num_pairs : float
        Estimated pairs that match.
    num_overlooked : float
        Estimated documents that stayed beside an earlier kept one which they match.
    by_stage : dict of str to float
        Estimated pairs that each stage lost.
    stages : ndarray of shape (m,), uint8
        Of each match, what lost it (0: nothing), the run's verdicts taken into account.
    """

    pairs: Share
    removals: Share
    num_pairs: float
    num_overlooked: float
    by_stage: dict[str, float]
    stages: NDArray[np.uint8]


def estimate(
    run: OpenRun, strata: list[Stratum], matches: Matches, stages: NDArray[np.uint8], *, num_right: int
) -> Recall:
    """Return what the run found of what there is.

    Parameters
    ----------
    run : OpenRun
        The run and its documents.
    strata : list of Stratum
        The sample.
    matches : Matches
        All matches of the sampled documents' positions.
    stages : ndarray of shape (m,), uint8
        What of the search loses each.
    num_right : int
        Removals that were right, of all documents.

    Returns
    -------
    Recall
        With intervals, the sampled document being the unit: a pair counts half for each of its two.
    """
    counts = _Counts(run, matches, stages)
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
    return Recall(
        pairs=share(of_pairs, least_part=0.5, least_other=0.5).rest,
        removals=share(of_removals, least_part=1.0, least_other=0.0, known_total=float(num_right)).rest,
        num_pairs=sum(one.weight * float(one.totals.sum()) for one in of_pairs),
        num_overlooked=num_overlooked,
        by_stage={name: float(lost[number]) for number, name in STAGES.items()},
        stages=counts.stages,
    )


class _Counts:
    """What single documents have, by the matches of their positions: copies that collapsed count each."""

    def __init__(self, run: OpenRun, matches: Matches, stages: NDArray[np.uint8]) -> None:
        collapsed, kept = run.collapsed, run.kept
        num_positions = len(collapsed.order)
        self._run, self._matches = run, matches
        # What the search makes of each match, and what became of it.
        self._searched, self.stages = stages, stages.copy()
        self._kept, self._position = kept, collapsed.position
        placed = self._position[self._position >= 0]
        self._members = np.bincount(placed, minlength=num_positions)
        self._kept_members = np.bincount(self._position[kept & (self._position >= 0)], minlength=num_positions)
        is_empty = self._position < 0
        self._num_empty, self._num_kept_empty = int(is_empty.sum()), int((is_empty & kept).sum())
        self._stated = np.full(len(kept), np.nan)
        rows = run.evidence.rows
        known = (rows >= 0) & (rows < len(kept))
        self._stated[rows[known]] = run.evidence.similarity[known]
        self._starts = np.searchsorted(matches.sampled, np.arange(num_positions + 1))

    def are_removed(self, rows: NDArray[np.int64]) -> bool:
        """Whether these documents are removed ones."""
        return bool(len(rows)) and not bool(self._kept[rows[0]])

    def of(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.bool_]]:
        """Return of each document half its pairs, half of those lost by stage (0: found), and if it ought to go."""
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
            else (int(self._members[position]), int(self._kept_members[position]))
        )
        # Copies are one document to the search; two that stayed were compared with nobody.
        twice_kept = kept_copies - 1 if is_kept else 0
        halves[FOUND] += 0.5 * (copies - 1 - twice_kept)
        halves[NOT_ACTED_ON] += 0.5 * twice_kept
        overlooked = is_kept and twice_kept > 0 and self._has_earlier_copy(row, position)
        if position < 0:
            return halves, overlooked
        part = slice(int(self._starts[position]), int(self._starts[position + 1]))
        others = self._matches.others[part]
        stages = self._searched[part]
        members, kept_members = self._members[others], self._kept_members[others]
        is_earlier = others < position
        for number in STAGES:
            halves[number] += 0.5 * float(members[stages == number].sum())
        found = stages == FOUND
        if is_kept:
            # Both stayed although the search brought them together.
            contradicted = np.where(found, kept_members, 0)
            overlooked = overlooked or bool((kept_members[is_earlier] > 0).any())
        else:
            # The best match speaks against a document: one that is better than what is stated was not heard.
            stated = self._stated[row]
            better = is_earlier & (kept_members > 0) & (self._matches.similarity[part] > stated)
            is_leader = self._run.recipe.group == "leaders"
            contradicted = np.where(found & better, 1, 0) if is_leader else np.zeros(len(others), np.int64)
        halves[NOT_ACTED_ON] += 0.5 * float(contradicted.sum())
        halves[FOUND] += 0.5 * float((np.where(found, members, 0) - contradicted).sum())
        self.stages[part][contradicted > 0] = NOT_ACTED_ON
        return halves, overlooked

    def _has_earlier_copy(self, row: int, position: int) -> bool:
        """Whether a copy of higher priority stayed too."""
        first = int(self._run.collapsed.first[row])
        # The first of the copies has the highest priority; where it went, any other but one is overlooked too.
        if self._kept[first]:
            return first != row
        copies = np.flatnonzero(self._kept & (self._position == position))
        return int(copies[0]) != row


@dataclass(frozen=True)
class Missed:
    """Missed pairs.

    Parameters
    ----------
    num_seen : int
        How many the sampled documents have; documents that nothing tells apart count as one.
    rows : list of dict
        The first of them as JSON values: doc_id_a, doc_id_b, row_a, row_b, similarity, stage, and whether both stayed.
    """

    num_seen: int
    rows: list[dict[str, Any]]


def missed_pairs(run: OpenRun, matches: Matches, stages: NDArray[np.uint8], most: int) -> Missed:
    """Return the missed pairs of the sample: those of which both stayed first, then by similarity, the highest first.

    Parameters
    ----------
    run : OpenRun
        The run and its documents.
    matches : Matches
        All matches of the sample.
    stages : ndarray of shape (m,), uint8
        What lost each.
    most : int
        Rows that are returned.
    """
    lost = np.flatnonzero(stages != FOUND)
    later, earlier = matches.later[lost].astype(np.int64), matches.earlier[lost].astype(np.int64)
    # A pair of two sampled documents was met from both sides.
    _, once = np.unique(later * len(run.collapsed.order) + earlier, return_index=True)
    lost, later, earlier = lost[once], later[once], earlier[once]
    a, b = (run.collapsed.order[side].astype(np.int64) for side in (earlier, later))
    both_stayed = run.kept[a] & run.kept[b]
    order = np.lexsort((later, earlier, -matches.similarity[lost], ~both_stayed))[:most]
    ids = [run.documents.doc_ids(side[order]).to_pylist() for side in (a, b)]
    rows = [
        {
            "doc_id_a": id_a,
            "doc_id_b": id_b,
            "row_a": int(a[i]),
            "row_b": int(b[i]),
            "similarity": float(matches.similarity[lost[i]]),
            "stage": STAGES[int(stages[lost[i]])],
            "both_stayed": bool(both_stayed[i]),
        }
        for i, id_a, id_b in zip(order.tolist(), *ids, strict=True)
    ]
    return Missed(len(lost), rows)
