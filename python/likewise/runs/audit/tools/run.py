"""Audit of another tool's output: removals without a match, remaining duplicates, chains."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.write.summary import check_of
from likewise.errors import InvalidParameter, check_integer
from likewise.io.places import check_unchanged, stamps
from likewise.job.reading import FileRun
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, as_recipe
from likewise.runs.audit.certificate import file_facts, input_facts, sealed
from likewise.runs.audit.checks import Check, Removals, are_matching, measure_pairs
from likewise.runs.audit.intervals import Share, StratumTotals, share
from likewise.runs.audit.opening import OpenRun
from likewise.runs.audit.recall import FOUND, REMOVED, Counts, Recall, Stratum, estimate, missed_pairs
from likewise.runs.audit.run import NUM_SAMPLED, sample_facts, sampled_matches
from likewise.runs.audit.tools.opening import Claims, OpenOutput, ToolFiles, open_output
from likewise.runs.audit.truth.matches import Matches, nearest_kept, num_affordable

_MOST_LISTED = 1000
_MOST_NAMED = 5
# For removals without a match: maximum number listed, and maximum number whose nearest kept document is searched.
_MOST_WORST = 50
_MOST_NEAREST = 1000
# Number of documents in the pilot sample, which predicts the cost of this comparison.
_PILOT = 256
# Nearest kept documents below this similarity are not searched.
_LEAST_TOLD = 0.1


@dataclass(frozen=True, eq=False)
class OutputAudit:
    """Result of an audit of another tool's output.

    Parameters
    ----------
    checks, strata
        As in :class:`likewise.runs.audit.Audit`; whether the tool's files agree, and its removals match a kept one.
    unmatched : Share
        Share of the removed documents that match no kept document.
    recall : Recall
        ``removals``: share of the removable documents that were removed, that is, of those that match a kept document.
        ``pairs``: share of the matching pairs of which at least one document was removed.
    num_removed : int
        Documents of the inputs that were not kept.
    certificate : dict
        All results, with hashes of the files, as JSON values. ``worst_removals`` lists up to 50 removed documents
        without a match, with the nearest kept one, and ``left_pairs`` pairs of kept documents that match.
    """

    checks: tuple[Check, ...]
    strata: list[Stratum]
    unmatched: Share
    recall: Recall
    num_removed: int
    certificate: dict[str, Any]

    @property
    def passed(self) -> bool:
        """Whether every check passed. The recall is not part of it."""
        return all(check.passed for check in self.checks)


@shows_progress
def audit_output(
    inputs: Sequence[str | Path] | str | Path,
    kept: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe,
    *,
    removed: str | Path | None = None,
    clusters: str | Path | None = None,
    run: FileRun | None = None,
    num_sampled: int = NUM_SAMPLED,
    seed: int = 0,
    progress: Progress | bool | None = None,
) -> OutputAudit:
    """Measure how many removals of another tool have no match, and how many duplicates it left.

    Parameters
    ----------
    inputs, kept : path or sequence of paths
        The documents that the tool read, and those that it kept, in any format that ``dedup`` reads. Documents are
        identified by their ids, or by their normalized texts if the inputs or the kept documents have no ids.
    recipe : Recipe or str
        What a match is: tokens, measure and threshold; or the name of a preset. The threshold can be ``"auto"``.
    removed : path, optional
        Table (CSV, TSV, JSON Lines, Parquet) with the column ``id``, and optionally ``kept_id``: the kept document for
        which each was removed.
    clusters : path, optional
        Table with the columns ``id`` and ``cluster``.
    run : FileRun, optional
        How the files are read.
    num_sampled, seed, progress
        As for :func:`likewise.audit`.

    Raises
    ------
    InvalidInput
        If the kept documents cannot be found among the inputs, or a table names documents that do not exist.
    InvalidParameter
        If an option is out of range, or two options exclude each other.

    Notes
    -----
    A removal is correct if any kept document matches, whichever the tool preferred.
    The page "Audit another tool" of the documentation explains the figures.

    Examples
    --------
    >>> found = audit_output("articles.jsonl", "theirs.jsonl", likewise.Recipe.minhash(0.8))  # doctest: +SKIP
    >>> found.unmatched.high  # doctest: +SKIP
    0.0213
    """
    if removed is not None and clusters is not None:
        raise InvalidParameter("removed", "cannot be combined with clusters; give one of them")
    asked = as_recipe(recipe).resolve()
    if asked.group != "leaders":
        asked = asked.replace(group="leaders")
    report, run = taken(progress), run or FileRun()
    num_sampled = check_integer("sample", num_sampled, 2, 2**31 - 1)
    seed = check_integer("seed", seed, 0, 2**63 - 1)
    read, stayed = ([names] if isinstance(names, str | Path) else list(names) for names in (inputs, kept))
    tables = [None if path is None else Path(path) for path in (removed, clusters)]
    given = ToolFiles(read, stayed, *tables)
    with open_output(given, asked, run, report) as output:
        opened = output.run
        before = stamps(opened.inputs), stamps(output.kept)
        strata, matches = sampled_matches(opened, num_sampled, seed)
        found_by_all = np.full(len(matches), FOUND, np.uint8)
        recall = estimate(opened, strata, matches, found_by_all, num_right=None)
        wrong, unmatched = _unmatched(opened, strata, matches, found_by_all)
        twins = _removed_twins(opened, wrong, matches)
        worst = _worst(opened, wrong, twins, seed)
        left = missed_pairs(opened, matches, recall.stages, _MOST_LISTED)
        num_removed = len(opened.evidence.rows)
        checks, chains = [*output.checks], {}
        if output.claims is not None:
            check, chains["chains"] = _chains(output, output.claims)
            checks.append(check)
        checks.append(_no_unmatched(strata, worst, len(wrong)))
        documents = opened.documents
        certificate = {
            "match": check_of(opened.recipe),
            "recipe": opened.recipe.to_dict(),
            "recipe_id": opened.recipe.recipe_id,
            "identified_by": output.by,
            "num_documents": len(documents),
            "num_kept": len(documents) - num_removed,
            "num_removed": num_removed,
            "num_bad_rows": sum(map(len, documents.bad_rows)),
            **sample_facts(strata, seed, checks),
            "unmatched_removals": unmatched.to_dict(),
            "removal_recall": recall.removals.to_dict(),
            "pair_recall": recall.pairs.to_dict(),
            "estimated": {
                "num_unmatched": _count(unmatched, num_removed),
                "num_pairs": round(recall.num_pairs, 1),
                "num_left_pairs": round(sum(recall.by_stage.values()), 1),
                "num_left_documents": round(recall.num_overlooked, 1),
            },
            "num_unmatched_seen": len(wrong),
            "num_removed_with_all_copies": int(np.count_nonzero(twins >= 0)),
            "worst_removals": worst,
            "num_left_seen": left.num_seen,
            "left_pairs": [
                {name: value for name, value in pair.items() if name not in ("stage", "both_stayed")}
                for pair in left.rows
            ],
            **chains,
            "inputs": input_facts(opened.inputs),
            "outputs": input_facts(output.kept) + [file_facts(path, path.name) for path in tables if path is not None],
        }
        check_unchanged(opened.inputs, before[0])
        check_unchanged(output.kept, before[1])
    return OutputAudit(tuple(checks), strata, unmatched, recall, num_removed, sealed(certificate))


def _count(part: Share, total: int) -> float | None:
    """Return a share of a number of documents; None if it is unknown."""
    if total and part.value != part.value:
        return None
    return round(part.value * total, 1) if total else 0.0


def _unmatched(
    opened: OpenRun, strata: list[Stratum], matches: Matches, stages: NDArray[np.uint8]
) -> tuple[NDArray[np.int64], Share]:
    """Return the sampled removed documents without a matching kept one, and their share among all removed documents."""
    counts = Counts(opened, matches, stages)
    removed = [stratum for stratum in strata if stratum.name == REMOVED]
    if not removed:
        return np.zeros(0, np.int64), Share(float("nan"), 0.0, 1.0, is_exact=True)
    (stratum,) = removed
    is_wrong = counts.without_kept(stratum.rows)
    totals = StratumTotals(stratum.num_documents, np.ones(len(stratum)), is_wrong.astype(np.float64))
    return stratum.rows[is_wrong], share([totals], least_part=1.0, least_other=1.0)


def _removed_twins(opened: OpenRun, rows: NDArray[np.int64], matches: Matches) -> NDArray[np.int64]:
    """Return for each removed document without a kept match its most similar match, removed too; -1 if none."""
    collapsed = opened.collapsed
    twins = np.full(len(rows), -1, np.int64)
    positions = collapsed.position[rows]
    starts = np.searchsorted(matches.sampled, positions)
    ends = np.searchsorted(matches.sampled, positions, side="right")
    by_position = np.argsort(collapsed.position, kind="stable")
    sorted_positions = collapsed.position[by_position]
    for i, (row, position) in enumerate(zip(rows.tolist(), positions.tolist(), strict=True)):
        low, high = np.searchsorted(sorted_positions, [position, position + 1]).tolist()
        copies = by_position[low:high]
        if len(copies) > 1:
            twins[i] = copies[0] if copies[0] != row else copies[1]
        elif position >= 0 and starts[i] < ends[i]:
            best = starts[i] + int(np.argmax(matches.similarity[starts[i] : ends[i]]))
            twins[i] = collapsed.order[matches.others[best]]
    return twins


def _worst(opened: OpenRun, rows: NDArray[np.int64], twins: NDArray[np.int64], seed: int) -> list[dict[str, Any]]:
    """Return the removed documents whose nearest kept document is least similar, as JSON values."""
    documents, collapsed, recipe = opened.documents, opened.collapsed, opened.recipe
    nearest, similarity = np.full(len(rows), -1, np.int64), np.zeros(len(rows))
    is_known = np.zeros(len(rows), bool)
    is_measured = not isinstance(recipe.sketch, Exact) and not recipe.is_distance_only
    if is_measured and len(rows):
        threshold = min(_LEAST_TOLD, recipe.similarity_threshold)
        lowered = replace(opened, recipe=recipe.replace(threshold=threshold, short_margin=0.0))
        position = collapsed.position[rows]
        random = np.random.default_rng([seed, 2])
        drawn = np.flatnonzero(position >= 0)
        drawn = np.sort(random.choice(drawn, min(_MOST_NEAREST, len(drawn)), replace=False))
        some = np.unique(position[drawn]).astype(np.uint32)
        pilot = np.random.default_rng([seed, 3]).choice(some, min(_PILOT, len(some)), replace=False)
        if len(some):
            most = max(_MOST_WORST, num_affordable(lowered, pilot, len(some), seed))
            some = np.sort(random.choice(some, min(len(some), most), replace=False))
        kept = np.zeros(len(collapsed.order), bool)
        of_kept = collapsed.position[opened.kept]
        kept[of_kept[of_kept >= 0]] = True
        found, best = nearest_kept(lowered, kept, some)
        place = np.minimum(np.searchsorted(some, np.maximum(position, 0)), max(0, len(some) - 1))
        is_known = (position >= 0) & (some[place] == position) if len(some) else is_known
        nearest[is_known], similarity[is_known] = found[place[is_known]], best[place[is_known]]
        # At each position, a kept document comes before removed ones.
        has_nearest = nearest >= 0
        nearest[has_nearest] = collapsed.order[nearest[has_nearest]].astype(np.int64)
    # Documents with a known nearest one first, then the least similar first.
    order = np.lexsort((rows, similarity, ~is_known))[:_MOST_WORST]
    ids = documents.doc_ids(rows[order]).to_pylist()
    worst = []
    for doc_id, number in zip(ids, order.tolist(), strict=True):
        kept_row = int(nearest[number])
        kept_id = documents.doc_ids(nearest[number : number + 1]).to_pylist()[0] if kept_row >= 0 else None
        twin = twins[number : number + 1]
        worst.append(
            {
                "doc_id": doc_id,
                "row": int(rows[number]),
                "nearest_kept_id": kept_id,
                "nearest_kept_row": kept_row if kept_row >= 0 else None,
                "similarity": float(similarity[number]) if kept_row >= 0 else None,
                "is_below": bool(is_known[number] and kept_row < 0),
                "removed_match_id": documents.doc_ids(twin).to_pylist()[0] if twin[0] >= 0 else None,
            }
        )
    return worst


def _no_unmatched(strata: list[Stratum], worst: list[dict[str, Any]], num_wrong: int) -> Check:
    num_checked = sum(len(stratum) for stratum in strata if stratum.name == REMOVED)
    failures = tuple(removal_line(removal) for removal in worst[:_MOST_NAMED])
    return Check("every removed document of the sample matches a kept one", num_checked, num_wrong, failures)


def removal_line(removal: dict[str, Any]) -> str:
    """Return a line about a removed document, the nearest kept one, and a match that was removed too."""
    twin = removal["removed_match_id"]
    also = "" if twin is None else f"; its match {twin} was removed too"
    if removal["nearest_kept_id"] is not None:
        return f"{removal['doc_id']}: nearest kept {removal['nearest_kept_id']} at {removal['similarity']:.4f}{also}"
    if removal["is_below"]:
        return f"{removal['doc_id']}: no kept document at {_LEAST_TOLD:g} or above{also}"
    return f"{removal['doc_id']}{also}"


def _chains(output: OpenOutput, claims: Claims) -> tuple[Check, dict[str, Any]]:
    """Check whether removed documents match the kept ones that the tool records; all are measured."""
    run, documents = output.run, output.run.documents
    rows, kept_rows = claims.rows, claims.kept_rows
    claimed = Removals(rows, kept_rows, np.ones(len(rows), bool))
    similarity, required = measure_pairs(run, claimed)
    matches = are_matching(run, claimed, similarity, required) & run.kept[kept_rows] & (rows != kept_rows)
    removed, place = np.unique(rows, return_inverse=True)
    has_match, best = np.zeros(len(removed), bool), np.full(len(removed), -1.0)
    np.logical_or.at(has_match, place, matches)
    np.maximum.at(best, place, similarity)
    is_best = similarity == best[place]
    best_kept = np.full(len(removed), -1, np.int64)
    best_kept[place[is_best][::-1]] = kept_rows[is_best][::-1]
    wrong = np.flatnonzero(~has_match)
    worst = wrong[np.lexsort((removed[wrong], best[wrong]))][:_MOST_WORST]
    ids = documents.doc_ids(removed[worst]).to_pylist()
    kept_ids = documents.doc_ids(best_kept[worst]).to_pylist()
    pairs = [
        {"doc_id": doc_id, "kept_id": kept_id, "similarity": float(best[number])}
        for doc_id, kept_id, number in zip(ids, kept_ids, worst.tolist(), strict=True)
    ]
    facts: dict[str, Any] = {"num_checked": len(removed), "num_unmatched": len(wrong), "worst_pairs": pairs}
    named = tuple(f"{one['doc_id']} and {one['kept_id']} at {one['similarity']:.4f}" for one in pairs[:_MOST_NAMED])
    return Check(f"every removed document matches {claims.what}", len(removed), len(wrong), named), facts
