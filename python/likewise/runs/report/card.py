"""Text about a run for the card of the dataset that it made, as Markdown."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from likewise.checks import counted
from likewise.errors import InvalidInput
from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.job.shrinkage import shrinkage_lines
from likewise.recipe.recipe import Recipe
from likewise.recipe.valley import choice_lines
from likewise.runs.report.sections import feature_text, value_name
from likewise.runs.viewing import KINDS

_MOST_VALUES = 20


def card(run: Path) -> str:
    """Return a section for a dataset card: what was removed, by which rule, and how to repeat it."""
    summary = read_summary(run)
    if is_over_parts(summary) or "recipe" not in summary:
        raise InvalidInput("a card describes a run of likewise dedup", str(run))
    return "\n".join(_lines(summary))


def _lines(summary: Mapping[str, Any]) -> Iterator[str]:
    recipe, total, removed = Recipe.from_dict(summary["recipe"]), summary["num_documents"], summary["num_removed"]
    share = f" ({removed / total:.1%})" if total else ""
    yield "## Deduplication\n"
    yield (
        f"Near-duplicates were removed with Likewise {summary['version']}. Of {counted(total, 'document')}, "
        f"{summary['num_kept']:,} were kept and {removed:,}{share} removed.\n"
    )
    yield f"- **Rule.** {summary['verification']}"
    if (features := feature_text(recipe)) is not None:
        yield f"- **Features.** {_escaped(features)}."
    if (chosen := summary.get("chosen_threshold")) is not None:
        yield f"- **Threshold.** {choice_lines(chosen)[0]}."
    yield f"- **Kept copy.** The first by {_escaped(recipe.keep)}; ties by position in the input."
    if summary["recall"] is not None:
        yield f"- **Recall.** A pair at the threshold is found with P = {summary['recall']:.4f}."
    if summary["num_bad_rows"]:
        yield f"- **Rows that could not be read.** {summary['num_bad_rows']:,}, not counted above."
    found = [f"{num:,} in {KINDS[kind]}" for kind, num in (summary.get("differences") or {}).items() if num]
    if found:
        yield f"- **Differences.** Some removed documents differ in these: {', '.join(found)}."
    if lost := shrinkage_lines(summary):
        yield f"- **Slices that lost most.** {_escaped('; '.join(lost))}."
    yield f"- **Recipe.** `{summary['recipe_id']}`; repeat the run with `--recipe summary.json`."
    if (counts := summary.get("counts_by")) is not None:
        yield f"\n| {_escaped(counts['field'])} | documents | removed |\n|---|---|---|"
        for one in sorted(counts["values"], key=lambda one: -one["num_removed"])[:_MOST_VALUES]:
            yield f"| {_escaped(value_name(one['value']))} | {one['num_documents']:,} | {one['num_removed']:,} |"
        if (more := counts["num_values"] - _MOST_VALUES) > 0:
            yield f"\nand {more:,} more values"
    yield ""


def _escaped(text: str) -> str:
    """Return a text as Markdown shows it, on one line."""
    return re.sub(r"([\\`*_\[\]<>|#&~$])", r"\\\1", " ".join(text.split()))
