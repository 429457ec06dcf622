"""``likewise index verify``: check the integrity of an index."""

from typing import Any

import click

from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.declared import flag
from likewise.progress import printable

_HELP = """Check the integrity of an index.

Checks the database, and the checksums of documents and search tables. Prints one line per problem. Exit status: 0 if
there are none, otherwise 1. If a search table is damaged, no data is lost: the next process that adds documents
rebuilds it from the database.

With --url, checks that the partitions have all writes of the log, and lists operations that failovers lost and whose
documents are still missing.
"""


@click.command("verify", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@flag("--full", "Also compare all search tables with the documents, which reads the whole index.")
@flag("--accept-loss", "Open an index whose database or log lost acknowledged documents, and print the losses.")
@flag("--accept-clock", "Accept the current time for --ttl, even if it is far ahead of the last recorded time.")
@target_options
def command(
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
