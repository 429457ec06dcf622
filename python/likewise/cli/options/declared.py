"""Declarations of options, in the words of the help."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

# What an option takes: a file to read, a file to write, a directory to read, or any place.
READ = click.Path(exists=True, dir_okay=False, path_type=Path)
WRITE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
PLACE = click.Path(path_type=Path)


def option(shown: str, about: str, kind: Any = None, default: Any = None, **more: Any) -> Callable[[Any], Any]:
    """Declare an option as the help shows it, such as ``-o --out OUT``; a default is shown, and a tuple is a choice."""
    *names, metavar = [*shown.split(" "), None] if shown.rpartition(" ")[2].startswith("-") else shown.split(" ")
    if default is not None:
        more = {"default": default, "show_default": True} | more
    kind = click.Choice(list(kind)) if isinstance(kind, tuple) else kind
    to = [more.pop("to")] if "to" in more else []
    return click.option(*names, *to, type=kind, metavar=metavar, help=about, **more)


def flag(shown: str, about: str, **more: Any) -> Callable[[Any], Any]:
    """Declare an option without a value."""
    return option(shown, about, is_flag=True, **more)


OVERWRITE = flag("--overwrite", "Replace a finished run in OUT.")
FRESH = flag("--fresh", "Discard an unfinished run in OUT instead of continuing it.")
DRY_RUN = flag("--dry-run", "Report what would be removed and write nothing.")
MEMORY = option(
    "--memory SIZE",
    "Memory limit such as 2GB (at least 256MB). Data that does not fit is written to disk. Results do not change, "
    "except that rarity weights may be approximate, which the summary reports.  [default: no limit]",
)


def as_json(about: str) -> Callable[[Any], Any]:
    """Declare --json."""
    return flag("--json", about, to="as_json")


JSON = as_json("Print the summary as JSON to stdout.")
