"""``likewise index compact``: merge the segments of an index."""

import click

from likewise.cli.index.target import open_index, split_target, target_options


@click.command("compact", short_help="Merge segments and reclaim free space.")
@click.argument("places", nargs=-1, metavar="PATH")
@target_options
def command(places: tuple[str, ...], url: str | None, prefix: str | None) -> None:
    """Merge segments and reclaim free space. Results do not change.

    With --url, shorten the log, and delete the data of documents that expired long ago.
    """
    path, _ = split_target(places, url)
    with open_index(path, url, prefix) as index:
        index.compact()
