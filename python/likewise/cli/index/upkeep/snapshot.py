"""``likewise index snapshot``: copy an index that is in use."""

from pathlib import Path

import click

from likewise.cli.index.target import open_index


@click.command("snapshot", short_help="Copy an index, even while it is in use.")
@click.argument("path", metavar="PATH")
@click.argument("target", type=click.Path(path_type=Path), metavar="TARGET")
def command(path: str, target: Path) -> None:
    """Copy the index PATH to the new directory TARGET. The copy is consistent, even while the index is in use.

    Do not copy the files of an open index by other means: a transaction may be lost.
    """
    with open_index(path, None, None, read_only=True) as index:
        index.snapshot(target)
