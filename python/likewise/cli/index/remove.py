"""``likewise index remove``: remove documents and reassign their duplicates."""

import sys
from collections.abc import Iterable

import click

from likewise.cli.index.documents import write_lines
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.commands import option
from likewise.cli.options.recipe import QUIET
from likewise.errors import counted

_HELP = """Remove documents and reassign their duplicates.

Takes ids, or - to read one id per line from standard input, and prints one JSON object per id. When a kept document is
removed, each of its duplicates is reassigned to another matching kept document or becomes kept itself. A kept document
is never demoted. Fields: doc_id, was_kept, promoted (ids) and moved (doc_id and its new kept_id).

\b
Examples:
  likewise index remove seen.lw doc-17 doc-23
  likewise index remove seen.lw - < withdrawn.txt
"""


@click.command("remove", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH ID...")
@option("--on-error", "What to do with unknown ids: fail or skip.", ("fail", "skip"), "fail")
@target_options
@QUIET
def command(places: tuple[str, ...], on_error: str, url: str | None, prefix: str | None, quiet: bool) -> None:
    """Run the command."""
    path, ids = split_target(places, url, "ID")
    num_skipped = 0
    with open_index(path, url, prefix) as index:
        for doc_id in _ids(ids):
            if on_error == "skip" and index.get(doc_id) is None:
                num_skipped += 1
                continue
            removal = index.remove(doc_id)
            moved = [{"doc_id": member, "kept_id": kept_id} for member, kept_id in removal.moved]
            promoted = list(removal.promoted)
            write_lines(
                [{"doc_id": removal.doc_id, "was_kept": removal.was_kept, "promoted": promoted, "moved": moved}]
            )
    if num_skipped and not quiet:
        click.echo(f"{counted(num_skipped, 'id')} not in the index, skipped", err=True)


def _ids(given: tuple[str, ...]) -> Iterable[str]:
    if given != ("-",):
        return given
    lines = (line.rstrip(b"\r\n").decode("utf-8", "replace") for line in sys.stdin.buffer)
    return (line for line in lines if line)
