"""Terminal output: errors with a hint, escaped control characters, and colors only if supported."""

import errno
import glob
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import click

from likewise.errors import InvalidInput, InvalidParameter, LikewiseError, MissingExtra, RecipeMismatch, counted
from likewise.progress import printable

_HINTS: dict[type[BaseException], str] = {
    InvalidParameter: "`likewise COMMAND --help` lists options with their ranges.",
    RecipeMismatch: "use the same recipe, or a new output or index.",
}


def chosen_lines(summary: Mapping[str, Any]) -> list[str]:
    """Return the lines that describe how a run chose its threshold, if it did."""
    from likewise.recipe.valley import choice_lines

    return choice_lines(summary["chosen_threshold"]) if "chosen_threshold" in summary else []


def has_color(stream: TextIO) -> bool:
    """Return whether a stream supports colors: it is a terminal, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR")


def explain(error: Exception) -> int:
    """Print the error and a hint to stderr; return the exit status."""
    if isinstance(error, FileNotFoundError | NotADirectoryError | IsADirectoryError | PermissionError):
        _say(
            str(error) if error.filename is None else f"{error.filename}: {(error.strerror or str(error)).lower()}",
            _hint_of(error),
        )
        return 2
    if isinstance(error, OSError):
        # Code that writes to a file names it in the error.
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        hint = "free some space, or choose another location." if is_full else None
        place = error.filename or ("standard output" if is_full else "system")
        _say(f"{place}: {(error.strerror or str(error)).lower()}", hint)
        return 1
    if isinstance(error, LikewiseError):
        text = str(error)
        if isinstance(error, InvalidParameter):
            name = _ARGUMENTS.get(error.name, f"--{error.name.replace('_', '-')}")
            text = f"{name}: {error.message}" if name else error.message
        _say(text, next((hint for kind, hint in _HINTS.items() if isinstance(error, kind)), None))
        return 2 if isinstance(error, InvalidParameter | InvalidInput | RecipeMismatch | MissingExtra) else 1
    traceback.print_exc()
    _say(f"unexpected: {error}", "this is a bug in likewise; please report it with the traceback above.")
    return 1


# Parameters that are not options, or options of other names, as the help names them.
_ARGUMENTS = {"path": "", "splits": "", "source": "SRC", "destination": "DST"}
_ARGUMENTS |= {"max_body_bytes": "--max-body", "max_requests_per_second": "--max-rate", "deadline_s": "--deadline"}


def _hint_of(error: OSError) -> str:
    # `filename` is the name that was given, not a temporary one; files opened by descriptor have none.
    name = os.fsdecode(error.filename) if isinstance(error.filename, str | bytes) else ""
    if store := re.match(r"[A-Za-z][A-Za-z0-9+.-]+:/", name):
        is_read = name[store.end() :].startswith("/")
        return "check the name." if is_read else "this must be a local path: copy the file to or from the store."
    for folder in reversed(Path(name).parents):
        if os.path.lexists(folder) and not folder.is_dir():
            return f"{folder} is not a directory: choose another path."
        # A part of a glob is not a directory that could be created.
        if isinstance(error, FileNotFoundError) and not glob.has_magic(str(folder)) and not folder.exists():
            return f"no directory {folder}: create it first, or check the path."
    if isinstance(error, PermissionError):
        return "check its permissions."
    return f"check the {'pattern; quote it so that likewise expands it' if glob.has_magic(name) else 'name'}."


def _say(text: str, hint: str | None) -> None:
    color = has_color(sys.stderr)
    click.echo(click.style("error: ", fg="red", bold=True) + printable(text), err=True, color=color)
    if hint:
        click.echo(click.style("hint: ", fg="cyan") + hint, err=True, color=color)


def skipped_lines(names: Sequence[str]) -> list[str]:
    """Return a line about the files of directories and globs that were not read, if any."""
    if not names:
        return []
    shown = ", ".join(map(printable, names[:3])) + (f" and {len(names) - 3:,} more" if len(names) > 3 else "")
    return [
        f"skipped {counted(len(names), 'file')} of other kinds (or links, text files next to records, or directories "
        f"matched by a glob): {shown}"
    ]


def table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


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
        from likewise.job.output import shrinkage_lines

        for line in [] if table is None else table_lines(table(summary)):
            click.echo(printable(line))
        for line in (*lines(summary, out), *shrinkage_lines(summary)):
            click.echo(printable(line), err=True)


def reading_lines(summary: dict[str, Any]) -> list[str]:
    """Return lines about rows and files that were not read."""
    return [*bad_lines(summary), *skipped_lines(summary["skipped_files"])]


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


def bad_lines(summary: dict[str, Any]) -> list[str]:
    """Return a line with the numbers of bad rows and blank lines, if any."""
    rows, blank, lines = summary["num_bad_rows"], summary["num_blank_lines"], summary.get("num_bad_lines", 0)
    held = f" of {lines:,} lines" if lines > rows else ""
    return [f"{counted(rows, 'bad row')}{held}, {counted(blank, 'blank line')}"] if rows or blank else []
