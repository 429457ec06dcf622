"""Text lines for run summaries, shared by all commands that make a run."""

import json
from collections.abc import Callable
from typing import Any

import click

from likewise.checks import counted
from likewise.cli.options.terminal import skipped_line, table_lines
from likewise.progress import printable


def print_summary(
    summary: dict[str, Any],
    out: Any,
    *,
    as_json: bool,
    quiet: bool,
    lines: Callable[[dict[str, Any], Any], list[str]],
    table: Callable[[dict[str, Any]], list[list[str]]] | None = None,
) -> None:
    """Print a summary: as JSON to stdout, or as a table to stdout and lines to stderr unless `quiet`."""
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        from likewise.job.shrinkage import shrinkage_lines

        for line in [] if table is None else table_lines(table(summary)):
            click.echo(printable(line))
        for line in (*lines(summary, out), *shrinkage_lines(summary)):
            click.echo(printable(line), err=True)


def reading_lines(summary: dict[str, Any]) -> list[str]:
    """Return lines about rows and files that were not read."""
    lines = [bad_line(summary)] if summary["num_bad_rows"] or summary["num_blank_lines"] else []
    return [*lines, *([skipped_line(summary["skipped_files"])] if summary["skipped_files"] else [])]


def search_line(summary: dict[str, Any]) -> str:
    """Return a line with the recall at the threshold and the number of candidate pairs."""
    recall, candidates = summary["recall"], summary["num_candidates"]
    found = f"P(found) at the threshold: {'unknown for this measure' if recall is None else f'{recall:.4f}'}"
    if candidates is None:
        return found
    return f"{found}; {counted(candidates, 'candidate pair')}{crowd_words(summary)}"


def crowd_words(summary: dict[str, Any]) -> str:
    """Return the number of documents in full buckets and how they were compared, to append to a line."""
    num_crowded, num_capped = summary["num_crowded"], summary["num_capped"]
    if not (num_crowded or num_capped):
        return ""
    if summary["recipe"].get("overflow") == "exact":
        return f"; {counted(num_crowded, 'document')} in full buckets, compared by an exact join"
    return f"; {counted(num_crowded, 'document')} in full buckets, {num_capped:,} capped; pairs may be missed"


def bad_line(summary: dict[str, Any]) -> str:
    """Return a line with the numbers of bad rows and blank lines."""
    rows, lines = summary["num_bad_rows"], summary.get("num_bad_lines", 0)
    held = f" of {lines:,} lines" if lines > rows else ""
    return f"{counted(rows, 'bad row')}{held}, {counted(summary['num_blank_lines'], 'blank line')}"
