"""``likewise index import``: create an index from an exported Parquet file."""

from typing import Any

import click

from likewise.cli.index.move import copy_options, run
from likewise.cli.index.target import split_target, target_options
from likewise.cli.options.help import LongCommand
from likewise.cli.options.recipe import QUIET

_HELP = """Create an index from a Parquet file that `likewise index export -o FILE.parquet` wrote.

The new index gives the same answers as the exported one. It is a directory (PATH) or, with --url, on a server or
cluster. If the command is interrupted, run it again to continue; until it is complete, the index cannot be used.

\b
Examples:
  likewise index import seen.parquet seen.lw
  likewise index import seen.parquet --url redis://localhost:6379/0
"""


@click.command("import", cls=LongCommand, help=_HELP)
@click.argument("file", metavar="FILE")
@click.argument("places", nargs=-1, metavar="[PATH]")
@copy_options
@target_options
@QUIET
def command(
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
