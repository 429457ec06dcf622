"""``likewise index verify``: what is on disk against itself."""

import click

from likewise.cli.index_target import open_index, split_target, target_options
from likewise.cli.terminal import printable

_HELP = """Check what is on disk: the database by its own check, documents and search tables by their checksums.

Prints a line for each finding. Exit status 1 if there are any, 0 if all is well. A damaged search table is no loss:
it is built again from the database when the index is next opened by a process that adds.
"""


@click.command("verify", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@click.option("--full", is_flag=True, help="Also compare every search table with the documents.")
@target_options
def command(places: tuple[str, ...], full: bool, url: str | None, prefix: str | None) -> int:  # noqa: FBT001
    """Run the command."""
    path, _ = split_target(places, url)
    with open_index(path, url, prefix, read_only=True) as index:
        findings = index.verify(full=full)
    for finding in findings:
        click.echo(printable(str(finding)))
    if not findings:
        click.echo("nothing found amiss", err=True)
    return 1 if findings else 0
