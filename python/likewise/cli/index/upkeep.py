"""``likewise index stats``, ``verify``, ``compact``, ``snapshot``, ``export``, ``import``, ``move``."""

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.index.target import Target, on_index
from likewise.cli.options.commands import LongCommand, flag, option
from likewise.cli.options.recipe import QUIET
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.progress import printable


@click.command("export", short_help="Write all documents and verdicts to a file.")
@option("-o --out FILE", "Output file.  [default: standard output]", default="-", show_default=False)
@on_index
def export(out: str, on: Target) -> None:
    """Write each document as one JSON object per line, in order of arrival: id, verdict, evidence and stored data.

    A FILE that ends in .parquet also contains the recipe and everything that verdicts depend on: `likewise index
    import` creates an index from it.
    """
    from likewise.io.output.whole import scratch_directory

    with on.open(read_only=True) as index:
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
    with Target(path, (), None, None).open(read_only=True) as index:
        index.snapshot(target)


@click.command("compact", short_help="Merge segments and reclaim free space.")
@on_index
def compact(on: Target) -> None:
    """Merge segments and reclaim free space. Results do not change.

    With --url, shorten the log, and delete the data of documents that expired long ago.
    """
    with on.open() as index:
        index.compact()


@click.command("stats", short_help="Print counts, sizes, recipe and versions as JSON.")
@on_index
def stats(on: Target) -> None:
    """Print counts, sizes, recipe and versions as JSON, even while the index is in use."""
    with on.open(read_only=True) as index:
        click.echo(json.dumps(index.stats, indent=2, ensure_ascii=False))


@click.command("verify")
@flag("--full", "Also compare all search tables with the documents, which reads the whole index.")
@flag("--accept-loss", "Open an index whose database or log lost acknowledged documents, and print the losses.")
@flag("--accept-clock", "Accept the current time for --ttl, even if it is far ahead of the last recorded time.")
@on_index
def verify(full: bool, accept_loss: bool, accept_clock: bool, on: Target) -> int:
    """Check the integrity of an index.

    Checks the database, and the checksums of documents and search tables. Prints one line per problem. Exit status: 0
    if there are none, otherwise 1. If a search table is damaged, no data is lost: the next process that adds documents
    rebuilds it from the database.

    With --url, checks that the partitions have all writes of the log, and lists operations that failovers lost and
    whose documents are still missing.
    """
    accepted: dict[str, Any] = {"accept_loss": accept_loss or None, "accept_clock": accept_clock or None}
    if on.url is not None and (accept_loss or accept_clock):
        raise click.UsageError("--accept-loss and --accept-clock apply to PATH, not to --url.")
    with on.open(read_only=None if accept_loss or accept_clock else True, **accepted) as index:
        findings = index.verify(full=full)
        loss = index.stats["loss"] if accept_loss else None
    if loss is not None:
        click.echo(f"lost: {loss}", err=True)
    for finding in findings:
        click.echo(printable(str(finding)))
    if not findings:
        click.echo("no problems found", err=True)
    return 1 if findings else 0


def copy_options(command: Any) -> Any:
    """Add the options of a copy, most of them of one on a server."""
    expected = option(
        "--expected N",
        "On a server: expected number of documents.  [default: the number of documents, at least 1000000]",
        click.IntRange(1),
    )
    partitions = option(
        "--partitions N",
        "On a server: number of partitions.  [default: 1 on a server, 64 on a cluster]",
        click.IntRange(1, 1024),
    )
    durability = option(
        "--durability",
        "On a server: when a write is acknowledged.  [default: that of a source on servers, or written]",
        ("written", "replicated"),
    )
    ttl = option(
        "--ttl SECONDS",
        "Expire documents of the copy after this time; 0: never.  [default: that of the source]",
        click.IntRange(0),
    )
    return ttl(expected(partitions(durability(command))))


@click.command("move", cls=LongCommand)
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@option("--prefix NAME", "Prefix of the keys of an index on a server.", default="likewise")
@option("--to-prefix NAME", "Prefix of the keys of DST, if it is on a server.  [default: that of --prefix]")
@copy_options
@QUIET
def move(source: str, destination: str, quiet: bool, **options: Any) -> None:
    """Copy an index with all verdicts to a new place, and check the copy.

    SRC and DST are directories, files that end in .parquet, or URLs of Redis or Valkey servers or of any node of a
    cluster. Ids, the order of arrival, arrival times, verdicts and the recipe stay the same, so the copy gives the same
    answers as SRC. --ttl changes when documents expire. Removed documents are not copied, and seq numbers are assigned
    again without gaps. SRC is not changed or deleted.

    Stop programs that write to SRC first: if it changes meanwhile, the command fails. If it is interrupted, run it
    again to continue. DST cannot be used until it is complete. A server stores no texts.

    \b
    Examples:
      likewise index move seen.lw redis://localhost:6379/0
      likewise index move redis://localhost:6379/0 redis://node:7000 --to-prefix articles
      likewise index move seen.lw copy.lw --ttl 7776000
    """
    run(source, destination, quiet=quiet, **options)


def run(source: str, destination: str, *, quiet: bool, **options: Any) -> None:
    """Move an index, and print the number of documents."""
    from likewise.index import move

    moved = move(source, destination, **options)
    if not quiet:
        earlier = f", {moved.num_continued:,} of them earlier" if moved.num_continued else ""
        click.echo(f"{counted(moved.num_documents, 'document')} moved{earlier}; the copy was checked", err=True)


@click.command("import", cls=LongCommand)
@click.argument("file", metavar="FILE")
@copy_options
@partial(on_index, shown="[PATH]")
@QUIET
def import_index(file: str, on: Target, quiet: bool, **options: Any) -> None:
    """Create an index from a Parquet file that `likewise index export -o FILE.parquet` wrote.

    The new index gives the same answers as the exported one. It is a directory (PATH) or, with --url, on a server or
    cluster. If the import is interrupted, run it again to continue; until it is complete, the index cannot be
    used.

    \b
    Examples:
      likewise index import seen.parquet seen.lw
      likewise index import seen.parquet --url redis://localhost:6379/0
    """
    if not file.endswith(".parquet"):
        raise InvalidInput("an index is imported from a file that ends in .parquet", file)
    if on.url is None and on.prefix is not None:
        raise InvalidParameter("prefix", "requires --url")
    run(file, on.url or on.path, quiet=quiet, prefix=on.prefix or "likewise", **options)
