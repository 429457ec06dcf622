"""``likewise dedup --unit``: parts of documents instead of documents."""

from typing import Any

from likewise.checks import counted
from likewise.cli.options.progress import ShownProgress
from likewise.cli.options.recipe import recipe_line, take_recipe, take_run
from likewise.cli.options.terminal import skipped_line


def check_part_options(unit: str, options: dict[str, Any]) -> None:
    """Raise InvalidParameter where an option of a recipe is given that equal parts, or spans, do not take.

    Parameters
    ----------
    unit : str
        The value of --unit.
    options : dict
        Those of recipe and input; None or empty where not given.
    """
    from likewise.errors import InvalidParameter
    from likewise.recipe.rules import FIELDS_OF_METHOD

    if unit != "span" and any(options[name] is not None for name in ("method", "preset", "recipe_file")):
        return
    every = {name for fields in FIELDS_OF_METHOD.values() for name in fields}
    for name in sorted((every | {"preset"}) - set(FIELDS_OF_METHOD["exact"])):
        if options.get(name) is None:
            continue
        if unit == "span":
            raise InvalidParameter(name, "does not act with --unit span: stretches of words are compared word for word")
        raise InvalidParameter(
            name,
            f"with --unit {unit} it acts beside --method, such as --method minhash; without one, equal parts match",
        )


def run_parts(
    inputs: tuple[str, ...],
    out: str,
    unit: str,
    min_tokens: int | None,
    options: dict[str, Any],
    *,
    dry_run: bool,
    overwrite: bool,
    fresh: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Return the summary of a run over parts; `options` are those of recipe and input."""
    from likewise.batch.parts import PartRules, dedup_parts
    from likewise.errors import InvalidParameter

    if out == "-":
        raise InvalidParameter("out", "with --unit it is a directory")
    recipe, run = take_recipe(options), take_run(options)
    with ShownProgress(quiet=quiet) as progress:
        return dedup_parts(
            inputs,
            out,
            PartRules(unit, min_tokens),
            recipe,
            run=run,
            dry_run=dry_run,
            overwrite=overwrite,
            fresh=fresh,
            progress=progress.report,
        )


def part_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return a summary as lines for people."""
    unit = summary["options"]["unit"]
    seconds = summary["timings"]
    stages = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in seconds["wall_s"].items())
    emptied = summary["num_emptied"]
    lines = [
        summary["verification"],
        f"{counted(summary['num_documents'], 'document')}: {counted(summary['num_removed_parts'], f'repeated {unit}')} "
        f"taken out of {summary['num_changed'] + emptied:,}, {counted(summary['num_removed_bytes'], 'byte')} of text; "
        f"{emptied:,} {'was' if emptied == 1 else 'were'} left empty and went",
    ]
    if summary["recipe"]["method"] != "exact":
        lines += [search_line(summary), recipe_line(summary["recipe"])]
    lines += [
        f"{counted(part['num_times'], 'time')}, {counted(part['num_bytes'], 'byte')}: {part['text']!r}"
        for part in summary["most_removed"]
    ]
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(bad_line(summary))
    if summary["skipped_files"]:
        lines.append(skipped_line(summary["skipped_files"]))
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    lines.append("nothing was written (--dry-run)" if out is None else f"results in {out}")
    return lines


def search_line(summary: dict[str, Any]) -> str:
    """Return how surely a pair at the threshold is found, and what was compared."""
    recall, candidates = summary["recall"], summary["num_candidates"]
    found = "no model of the recall" if recall is None else f"P(found) at the threshold: {recall:.4f}"
    if candidates is None:
        return found
    return f"{found}; {counted(candidates, 'candidate pair')}{crowd_words(summary)}"


def crowd_words(summary: dict[str, Any]) -> str:
    """Return how many documents came to full buckets, and what became of their pairs, as the end of a sentence."""
    num_crowded, num_capped = summary["num_crowded"], summary["num_capped"]
    if not (num_crowded or num_capped):
        return ""
    if summary["recipe"].get("overflow") == "exact":
        return f"; {counted(num_crowded, 'document')} with full buckets compared by an exact join"
    return f"; {counted(num_crowded, 'document')} with full buckets, {num_capped:,} capped: pairs may be missed"


def bad_line(summary: dict[str, Any]) -> str:
    """Return how many rows were bad, and how many lines blank."""
    rows, lines = summary["num_bad_rows"], summary.get("num_bad_lines", 0)
    held = f" of {lines:,} lines" if lines > rows else ""
    return f"{counted(rows, 'bad row')}{held}, {counted(summary['num_blank_lines'], 'blank line')}"
