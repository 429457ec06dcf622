"""``likewise index verify``: what is on disk against itself."""

from typing import Any

import click

from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.terminal import printable

_HELP = """Check what is on disk: the database by its own check, documents and search tables by their checksums.

Prints a line for each finding. Exit status 1 if there are any, 0 if all is well. A damaged search table is no loss:
it is built again from the database when the index is next opened by a process that adds.
"""


@click.command("verify", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@click.option("--full", is_flag=True, help="Also compare every search table with the documents.")
@click.option(
    "--accept-loss",
    is_flag=True,
    help="Open an index whose database or log lost acknowledged documents, and print what was lost.",
)
@click.option("--accept-clock", is_flag=True, help="Trust this machine's clock for --ttl, however far ahead it is.")
@target_options
def command(
    places: tuple[str, ...],
    full: bool,  # noqa: FBT001
    accept_loss: bool,  # noqa: FBT001
    accept_clock: bool,  # noqa: FBT001
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
        click.echo("nothing found amiss", err=True)
    return 1 if findings else 0
