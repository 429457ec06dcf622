"""``likewise index move`` and ``import``: copy an index, with all verdicts, to another place."""

from typing import Any

import click

from likewise.cli.index.target import split_target, target_options
from likewise.cli.options.commands import LongCommand, option
from likewise.cli.options.recipe import QUIET
from likewise.errors import counted

_HELP = """Copy an index with all verdicts to a new place, and check the copy.

SRC and DST are directories, files that end in .parquet, or URLs of Redis or Valkey servers or of any node of a cluster.
Ids, the order of arrival, arrival times, verdicts and the recipe stay the same, so the copy gives the same answers as
SRC. --ttl changes when documents expire. Removed documents are not copied, and seq numbers are assigned again without
gaps. SRC is not changed or deleted.

Stop programs that write to SRC first: if it changes meanwhile, the command fails. If it is interrupted, run it again to
continue. DST cannot be used until it is complete. A server stores no texts.

\b
Examples:
  likewise index move seen.lw redis://localhost:6379/0
  likewise index move redis://localhost:6379/0 redis://node:7000 --to-prefix articles
  likewise index move seen.lw copy.lw --ttl 7776000
"""


_IMPORT_HELP = """Create an index from a Parquet file that `likewise index export -o FILE.parquet` wrote.

The new index gives the same answers as the exported one. It is a directory (PATH) or, with --url, on a server or
cluster. If the import_index is interrupted, run it again to continue; until it is complete, the index cannot be used.

\b
Examples:
  likewise index import seen.parquet seen.lw
  likewise index import seen.parquet --url redis://localhost:6379/0
"""


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


@click.command("move", cls=LongCommand, help=_HELP)
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@option("--prefix NAME", "Prefix of the keys of an index on a server.", default="likewise")
@option("--to-prefix NAME", "Prefix of the keys of DST, if it is on a server.  [default: that of --prefix]")
@copy_options
@QUIET
def command(source: str, destination: str, quiet: bool, **options: Any) -> None:
    """Run the command."""
    run(source, destination, quiet=quiet, **options)


def run(source: str, destination: str, *, quiet: bool, **options: Any) -> None:
    """Move an index, and print the number of documents."""
    from likewise.index import move

    moved = move(source, destination, **options)
    if not quiet:
        earlier = f", {moved.num_continued:,} of them earlier" if moved.num_continued else ""
        click.echo(f"{counted(moved.num_documents, 'document')} moved{earlier}; the copy was checked", err=True)


@click.command("import", cls=LongCommand, help=_IMPORT_HELP)
@click.argument("file", metavar="FILE")
@click.argument("places", nargs=-1, metavar="[PATH]")
@copy_options
@target_options
@QUIET
def import_index(
    file: str, places: tuple[str, ...], url: str | None, prefix: str | None, quiet: bool, **options: Any
) -> None:
    """Run the command."""
    from likewise.errors import InvalidInput, InvalidParameter

    path, _ = split_target(places, url)
    if not file.endswith(".parquet"):
        raise InvalidInput("an index is imported from a file that ends in .parquet", file)
    if url is None and prefix is not None:
        raise InvalidParameter("prefix", "requires --url")
    run(file, url or path, quiet=quiet, prefix=prefix or "likewise", **options)
