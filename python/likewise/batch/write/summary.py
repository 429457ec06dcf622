"""The summary of a run: what was verified how, the counts, the recipe, the seconds."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from likewise.batch.budget.timing import Timing
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.io.output.directory import SUMMARY
from likewise.recipe.methods import Exact, SimHashDistance
from likewise.recipe.recipe import Recipe


def check_of(recipe: Recipe) -> str:
    """Return by which measure a match is verified, as the end of a sentence."""
    near = recipe.sketch
    if isinstance(near, SimHashDistance):
        check = (
            f"by Hamming distance <= {near.within} of {near.bits} bits (measure=hamming, similarity "
            f"= 1 - distance/bits), texts under 64 features also by Jaccard similarity >= {near.short_threshold}"
        )
        if near.bands is not None:
            check += f", among pairs that share one of {near.bands} bands of {near.rows} sampled bits"
    elif isinstance(near, Exact):
        check = "by equal normalized texts (128-bit digests)"
    else:
        check = f"by exact {recipe.measure} similarity >= {recipe.threshold}"
        if recipe.short_margin is not None:
            check += f" + {recipe.short_margin} / sqrt(distinct features of the smaller document)"
    return check


def statement(recipe: Recipe) -> str:
    """Return in one sentence by which measure every removal was verified."""
    check = check_of(recipe)
    if recipe.group == "components":
        return f"Every pair was verified {check}, but groups are connected components: see below_threshold."
    if recipe.is_distance_only:
        return (
            f"Every removal was verified {check}. Texts were not compared. A radius that suits one collection can be "
            "far too wide for another: run likewise audit, or compare texts with --threshold."
        )
    return f"Every removal was verified {check}, measured between the removed and the kept document."


def summarize(documents: Documents, recipe: Recipe, decision: Decision, timing: Timing) -> dict[str, Any]:
    """Return the summary; its first entry says how removals were verified.

    Parameters
    ----------
    documents : Documents
        All documents.
    recipe : Recipe
        Resolved.
    decision : Decision
        Verdicts.
    timing : Timing
        Seconds so far.

    Returns
    -------
    dict
        JSON values only. ``timings`` and ``num_measured`` alone may differ between runs of the same answer.
    """
    from likewise import __version__

    num_references = documents.num_references
    num_kept = int(np.count_nonzero(decision.kept)) - num_references
    below = decision.below_threshold
    return {
        "verification": statement(recipe),
        "num_documents": len(documents) - num_references,
        "num_kept": num_kept,
        "num_removed": len(decision.removed_rows),
        "num_empty": documents.num_empty,
        "num_short": documents.num_short,
        "num_blank_lines": documents.num_blank,
        "num_bad_rows": sum(map(len, documents.bad_rows[documents.num_reference_sources :])),
        "num_bad_lines": sum(
            row.num_lines for bad in documents.bad_rows[documents.num_reference_sources :] for row in bad
        ),
        **({"num_without_id": documents.num_without_id} if documents.num_without_id else {}),
        **({"num_without_field": documents.num_without_field} if documents.num_without_field else {}),
        "num_candidates": decision.num_candidates,
        "num_measured": decision.num_measured,
        "num_capped": decision.num_capped,
        "num_crowded": decision.num_crowded,
        "num_below_threshold": None if below is None else int(np.count_nonzero(below)),
        "recall": recipe.recall_with(decision.num_crowded, decision.num_capped),
        "recipe": recipe.to_dict(),
        **({} if recipe.table is None else {"weights": recipe.table.to_dict()}),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "version": __version__,
        "timings": timing.to_dict(),
    }


def write_summary(work: Path, summary: dict[str, Any]) -> None:
    """Write a summary into the directory of a run."""
    (work / SUMMARY).write_text(
        json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
    )
