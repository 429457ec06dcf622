"""Commands of ``likewise index`` on a whole index: stats, verify, compact, snapshot, export."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import click

from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.commands import flag, option
from likewise.progress import printable

_HELP = """Check the integrity of an index.

Checks the database, and the checksums of documents and search tables. Prints one line per problem. Exit status: 0 if
there are none, otherwise 1. If a search table is damaged, no data is lost: the next process that adds documents
rebuilds it from the database.

With --url, checks that the partitions have all writes of the log, and lists operations that failovers lost and whose
documents are still missing.
"""


@click.command("export", short_help="Write all documents and verdicts to a file.")
@click.argument("places", nargs=-1, metavar="PATH")
@option("-o --out FILE", "Output file.  [default: standard output]", default="-", show_default=False)
@target_options
def export(places: tuple[str, ...], out: str, url: str | None, prefix: str | None) -> None:
    """Write each document as one JSON object per line, in order of arrival: id, verdict, evidence and stored data.

    A FILE that ends in .parquet also contains the recipe and everything that verdicts depend on: `likewise index
    import` creates an index from it.
    """
    from likewise.io.output.directory import scratch_directory

    path, _ = split_target(places, url)
    with open_index(path, url, prefix, read_only=True) as index:
        if out != "-":
            index.export(Path(out))
            return
        with scratch_directory() as work:
            whole = work / "export.jsonl"
            index.export(whole)
            with whole.open("rb") as lines:
                shutil.copyfileobj(lines, sys.stdout.buffer)


@click.command("snapshot", short_help="Copy an index, even while it is in use.")
@click.argument("path", metavar="PATH")
@click.argument("target", type=click.Path(path_type=Path), metavar="TARGET")
def snapshot(path: str, target: Path) -> None:
    """Copy the index PATH to the new directory TARGET. The copy is consistent, even while the index is in use.

    Do not copy the files of an open index by other means: a transaction may be lost.
    """
    with open_index(path, None, None, read_only=True) as index:
        index.snapshot(target)


@click.command("compact", short_help="Merge segments and reclaim free space.")
@click.argument("places", nargs=-1, metavar="PATH")
@target_options
def compact(places: tuple[str, ...], url: str | None, prefix: str | None) -> None:
    """Merge segments and reclaim free space. Results do not change.

    With --url, shorten the log, and delete the data of documents that expired long ago.
    """
    path, _ = split_target(places, url)
    with open_index(path, url, prefix) as index:
        index.compact()


@click.command("stats", short_help="Print counts, sizes, recipe and versions as JSON.")
@click.argument("places", nargs=-1, metavar="PATH")
@target_options
def stats(places: tuple[str, ...], url: str | None, prefix: str | None) -> None:
    """Print counts, sizes, recipe and versions as JSON, even while the index is in use."""
    path, _ = split_target(places, url)
    with open_index(path, url, prefix, read_only=True) as index:
        click.echo(json.dumps(index.stats, indent=2, ensure_ascii=False))


@click.command("verify", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@flag("--full", "Also compare all search tables with the documents, which reads the whole index.")
@flag("--accept-loss", "Open an index whose database or log lost acknowledged documents, and print the losses.")
@flag("--accept-clock", "Accept the current time for --ttl, even if it is far ahead of the last recorded time.")
@target_options
def verify(
    places: tuple[str, ...],
    full: bool,
    accept_loss: bool,
    accept_clock: bool,
    url: str | None,
    prefix: str | None,
) -> int:
    """Run the command."""
    path, _ = split_target(places, url)
    accepted: dict[str, Any] = {"accept_loss": accept_loss or None, "accept_clock": accept_clock or None}
    if url is not None and (accept_loss or accept_clock):
        raise click.UsageError("--accept-loss and --accept-clock apply to PATH, not to --url.")
    with open_index(path, url, prefix, read_only=None if accept_loss or accept_clock else True, **accepted) as index:
        findings = index.verify(full=full)
        loss = index.stats["loss"] if accept_loss else None
    if loss is not None:
        click.echo(f"lost: {loss}", err=True)
    for finding in findings:
        click.echo(printable(str(finding)))
    if not findings:
        click.echo("no problems found", err=True)
    return 1 if findings else 0
