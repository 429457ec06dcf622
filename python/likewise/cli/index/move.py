"""``likewise index move``: copy an index, with all verdicts, to another place."""

from typing import Any

import click

from likewise.checks import counted
from likewise.cli.options.help import LongCommand
from likewise.cli.options.recipe import QUIET

_HELP = """Copy an index with all verdicts to a new place, and check the copy.

SRC and DST are directories, files that end in .parquet, or URLs of Redis or Valkey servers or of any node of a cluster.
Ids, the order of arrival, arrival times, verdicts and the recipe stay the same, so the copy gives the same answers as
SRC. Removed documents are not copied, and seq numbers are assigned again without gaps. SRC is not changed or deleted.

Stop programs that write to SRC first: if it changes meanwhile, the command fails. If it is interrupted, run it again to
continue. DST cannot be used until it is complete. A server stores no texts.

\b
Examples:
  likewise index move seen.lw redis://localhost:6379/0
  likewise index move redis://localhost:6379/0 redis://node:7000 --to-prefix articles
  likewise index move seen.lw copy.lw
"""


def servers_options(command: Any) -> Any:
    """Add the options of a new index on a server."""
    expected = click.option(
        "--expected",
        type=click.IntRange(1),
        metavar="N",
        help="On a server: expected number of documents.  [default: the number of documents, at least 1000000]",
    )
    partitions = click.option(
        "--partitions",
        type=click.IntRange(1, 1024),
        metavar="N",
        help="On a server: number of partitions.  [default: 1 on a server, 64 on a cluster]",
    )
    durability = click.option(
        "--durability",
        type=click.Choice(["written", "replicated"]),
        help="On a server: when a write is acknowledged.  [default: that of a source on servers, or written]",
    )
    return expected(partitions(durability(command)))


@click.command("move", cls=LongCommand, help=_HELP)
@click.argument("source", metavar="SRC")
@click.argument("destination", metavar="DST")
@click.option(
    "--prefix",
    default="likewise",
    show_default=True,
    metavar="NAME",
    help="Prefix of the keys of an index on a server.",
)
@click.option(
    "--to-prefix", metavar="NAME", help="Prefix of the keys of DST, if it is on a server.  [default: that of --prefix]"
)
@servers_options
@QUIET
def command(
    source: str,
    destination: str,
    prefix: str,
    to_prefix: str | None,
    expected: int | None,
    partitions: int | None,
    durability: str | None,
    quiet: bool,
) -> None:
    """Run the command."""
    options = {"expected": expected, "partitions": partitions, "durability": durability}
    run(source, destination, quiet=quiet, prefix=prefix, to_prefix=to_prefix, **options)


def run(source: str, destination: str, *, quiet: bool, **options: Any) -> None:
    """Move an index, and print the number of documents."""
    from likewise.index import move

    moved = move(source, destination, **options)
    if not quiet:
        earlier = f", {moved.num_continued:,} of them earlier" if moved.num_continued else ""
        click.echo(f"{counted(moved.num_documents, 'document')} moved{earlier}; the copy was checked", err=True)
