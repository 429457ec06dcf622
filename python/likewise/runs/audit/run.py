"""Audit of a finished run: its output checked row by row, and its misses estimated by exact comparison of a sample."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ColumnData, TextData
from likewise.batch.in_memory import document_source
from likewise.batch.read.documents import Collapsed
from likewise.batch.texts import Deduplication
from likewise.errors import InvalidParameter, check_integer, counted
from likewise.io.places import check_unchanged, stamps
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.recipe import GivenRecipe, Recipe
from likewise.runs.audit.certificate import input_facts, output_facts, sealed
from likewise.runs.audit.checks import Check, TextSimilarity, check_run
from likewise.runs.audit.intervals import Share
from likewise.runs.audit.opening import GivenFiles, OpenRun, open_result, open_run
from likewise.runs.audit.recall import (
    NOT_ACTED_ON,
    STAGES,
    Missed,
    Recall,
    Stratum,
    draw_strata,
    estimate,
    missed_pairs,
    stages_of,
    strata_of,
)
from likewise.runs.audit.truth.matches import Matches, exact_matches, num_affordable
from likewise.stages.text import TextField, Tokenizer

NUM_SAMPLED = 5000
# Number of documents in the pilot sample, which predicts the cost of the sample.
_NUM_PILOT = 256
_MOST_LISTED = 1000
_MOST_NAMED = 5


@dataclass(frozen=True, eq=False)
class Audit:
    """Result of an audit.

    Parameters
    ----------
    checks : tuple of Check
        Checks over all documents and removals.
    strata : list of Stratum
        The documents that were compared with all others.
    recall : Recall
        Share of matching pairs that the run compared, and share of removable documents that it removed.
    precision : Share, optional
        Share of the removals that match a kept document of higher priority; all were measured. None if the run compared
        only fingerprints.
    within_radius : Share, optional
        For such a run: share of the removals whose kept document is within the radius.
    text_similarity : TextSimilarity, optional
        For such a run: similarity of the removed texts to the kept ones.
    num_compared_pairs : int
        Total number of matches of the sampled documents.
    certificate : dict
        All results, with hashes of inputs and outputs, as JSON values.
    """

    checks: tuple[Check, ...]
    strata: list[Stratum]
    recall: Recall
    precision: Share | None
    within_radius: Share | None
    text_similarity: TextSimilarity | None
    num_compared_pairs: int
    certificate: dict[str, Any]

    def __repr__(self) -> str:
        failed = [f"  failed: {check.name} ({check.num_failed:,})" for check in self.checks if not check.passed]
        shares: dict[str, Share | None] = {
            "matching pairs compared": self.recall.pairs,
            "duplicates removed": self.recall.removals,
        }
        shares |= {"correct removals": self.precision, "removals within the radius": self.within_radius}
        lines = [
            f"  {name}: {share.value:.4f} ({share.low:.4f} to {share.high:.4f})"
            for name, share in shares.items()
            if share is not None
        ]
        state = "passed" if self.passed else f"{counted(len(failed), 'check')} failed"
        return "\n".join([f"<Audit: {state}", *failed[:_MOST_NAMED], *lines]) + ">"

    @property
    def passed(self) -> bool:
        """Whether every check passed. The recall is not part of it."""
        return all(check.passed for check in self.checks)


@shows_progress
def audit(
    run: str | Path | Deduplication,
    texts: TextData = None,
    recipe: GivenRecipe | None = None,
    *,
    ids: ColumnData = None,
    text_field: TextField = "text",
    tokenizer: Tokenizer | None = None,
    num_sampled: int = NUM_SAMPLED,
    seed: int = 0,
    inputs: Path | None = None,
    weights: Path | None = None,
    stop_words: Path | None = None,
    dictionary: Path | None = None,
    threads: int | None = None,
    memory: float | str | None = None,
    progress: Progress | bool | None = None,
) -> Audit:
    """Measure the recall and precision of a finished run, with 95% intervals.

    For a run that compared only fingerprints, matches are pairs within the radius, and the similarity of the removed
    texts takes the place of the precision.

    Parameters
    ----------
    run : str, Path or Deduplication
        The output directory of ``dedup_files``, which is not changed, or the result of :func:`likewise.dedup`.
    texts, ids, text_field, tokenizer
        For a result in memory: its documents, as they were given to :func:`likewise.dedup`.
    recipe : Recipe or str, optional
        For a result in memory: its recipe, if it has a weight table or word lists.
    num_sampled : int
        Maximum number of documents to compare with all others. If this covers all documents, the figures are exact.
        Fewer are compared if most documents share features, so that the audit takes less time than the run.
    seed : int
        Seed of the random sample.
    inputs : Path, optional
        Current directory of the inputs, if they were moved.
    weights : Path, optional
        Weight table or lexicon used by the run. Weights that the run counted are stored with it.
    stop_words, dictionary : Path, optional
        Word files used by the run.
    threads : int, optional
        Number of threads; all processors if None.
    memory : float or str, optional
        Memory limit for columns and buckets, as in a run, plus about 500 MB for the comparison.
    progress : bool or callable, optional
        As for :func:`likewise.dedup`.

    Raises
    ------
    InvalidInput
        If the directory contains no finished run, its inputs are missing, or it is of a kind that cannot be audited.
    InvalidParameter
        If the run used a word list that is not given, or a list is given that the run did not use.
    RecipeMismatch
        If weights that the run did not store cannot be counted again, or the word lists differ from those of the run.

    Notes
    -----
    An audit reads and sketches the inputs as the run did, measures every removal again, and reads the texts once more
    to compare the sample with all documents. The page "How sure the figures are" explains the figures.

    Examples
    --------
    >>> found = audit("out")  # doctest: +SKIP
    >>> found.recall.pairs.low  # doctest: +SKIP
    0.948
    """
    report = taken(progress)
    num_sampled = check_integer("sample", num_sampled, 2, 2**31 - 1)
    seed = check_integer("seed", seed, 0, 2**63 - 1)
    given = GivenFiles(weights, stop_words, dictionary)
    with ExitStack() as stack:
        if isinstance(run, Deduplication):
            if texts is None:
                raise InvalidParameter("texts", "a result in memory does not contain its documents; pass them again")
            source = document_source(
                texts,
                ids,
                Recipe.from_dict(run.summary["recipe"]),
                text_field=text_field,
                nulls="drop",
                tokenizer=tokenizer,
                is_read_again=True,
            )
            opened = stack.enter_context(open_result(run, source, recipe, threads=threads, progress=report))
        else:
            if texts is not None:
                raise InvalidParameter("texts", "a run over files reads its inputs again; remove texts")
            opened = stack.enter_context(
                open_run(Path(run), given, inputs=inputs, threads=threads, memory=memory, progress=report)
            )
        read = (opened.inputs, opened.references)
        before = [stamps(files) for files in read]
        documents, recipe = opened.documents, opened.recipe
        checked = check_run(opened)
        strata, matches = sampled_matches(opened, num_sampled, seed)
        searched = stages_of(opened, matches)
        num_right = int(checked.is_right.sum())
        recall = estimate(opened, strata, matches, searched, num_right=num_right)
        missed = missed_pairs(opened, matches, recall.stages, _MOST_LISTED)
        checks = (*checked.checks, _acted_on(recall, missed, len(matches)))
        num_removed = len(opened.evidence.rows)
        right = num_right / num_removed if num_removed else float("nan")
        share = Share(right, right, right, is_exact=True) if num_removed else Share(right, 0.0, 1.0, is_exact=True)
        precision, within_radius = (None, share) if recipe.is_distance_only else (share, None)
        fields = {
            "run": {name: opened.summary[name] for name in ("recipe_id", "sketch_id", "version", "verification")},
            "recipe": recipe.to_dict(),
            "num_documents": len(documents) - documents.num_references,
            **({"num_references": documents.num_references} if documents.num_references else {}),
            "num_removed": num_removed,
            **sample_facts(strata, seed, checks),
            "pair_recall": recall.pairs.to_dict(),
            "removal_recall": recall.removals.to_dict(),
            "removal_precision": None if precision is None else precision.to_dict(),
            **({} if within_radius is None else {"removals_within_radius": within_radius.to_dict()}),
            **({} if checked.texts is None else {"text_similarity": checked.texts.to_dict()}),
            "stated_recall": opened.summary["recall"],
            "estimated": {
                "num_pairs": round(recall.num_pairs, 1),
                "num_overlooked": round(recall.num_overlooked, 1),
                "num_lost_pairs": {name: round(num, 1) for name, num in recall.by_stage.items()},
            },
            "num_missed_seen": missed.num_seen,
            "missed_pairs": missed.rows,
            "inputs": input_facts(opened.inputs),
            **({"references": input_facts(opened.references)} if opened.references.files else {}),
            "outputs": output_facts(opened.path),
        }
        for files, stamp in zip(read, before, strict=True):
            check_unchanged(files, stamp)
    found = (recall, precision, within_radius, checked.texts)
    return Audit(checks, strata, *found, len(matches), sealed(fields))


def sampled_matches(opened: OpenRun, num_sampled: int, seed: int) -> tuple[list[Stratum], Matches]:
    """Return a sample of the documents, as large as affordable, and all their matches."""
    groups = strata_of(opened)
    pilot = _positions(draw_strata(groups, num_sampled=_NUM_PILOT, seed=seed + 1), opened.collapsed)
    affordable = num_affordable(opened, pilot, num_sampled, seed)
    strata = draw_strata(groups, num_sampled=affordable, seed=seed)
    return strata, exact_matches(opened, _positions(strata, opened.collapsed))


def sample_facts(strata: list[Stratum], seed: int, checks: Sequence[Check]) -> dict[str, Any]:
    """Return what a certificate says about a sample and the checks, as JSON values."""
    return {
        "seed": seed,
        "sample": [{"name": one.name, "num_documents": one.num_documents, "num_sampled": len(one)} for one in strata],
        "passed": all(check.passed for check in checks),
        "checks": [check.to_dict() for check in checks],
    }


def _positions(strata: list[Stratum], collapsed: Collapsed) -> NDArray[np.uint32]:
    """Return the distinct positions of all sampled documents, ascending."""
    rows = np.concatenate([np.zeros(0, np.int64), *(stratum.rows for stratum in strata)])
    positions = collapsed.position[rows]
    return np.unique(positions[positions >= 0]).astype(np.uint32)


def _acted_on(recall: Recall, missed: Missed, num_matches: int) -> Check:
    """Return whether the run followed its recipe, as far as the sample shows."""
    failures = tuple(
        f"{pair['doc_id_a']} and {pair['doc_id_b']} at {pair['similarity']!r}"
        for pair in missed.rows
        if pair["stage"] == STAGES[NOT_ACTED_ON]
    )
    num_failed = int((recall.stages == NOT_ACTED_ON).sum())
    if recall.by_stage[STAGES[NOT_ACTED_ON]] and not num_failed:
        # Copies of one text collapse, so that they are not among the matches.
        num_failed = 1
    name = "the run used all matches in the sample that its search finds"
    return Check(name, num_matches, num_failed, failures[:_MOST_NAMED])
