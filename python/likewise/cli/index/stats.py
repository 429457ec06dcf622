"""``likewise index stats``: print counts, sizes, recipe and versions."""

import json

import click

from likewise.cli.index.target import open_index, split_target, target_options


@click.command("stats", short_help="Print counts, sizes, recipe and versions as JSON.")
@click.argument("places", nargs=-1, metavar="PATH")
@target_options
def command(places: tuple[str, ...], url: str | None, prefix: str | None) -> None:
    """Print counts, sizes, recipe and versions as JSON, even while the index is in use."""
    path, _ = split_target(places, url)
    with open_index(path, url, prefix, read_only=True) as index:
        click.echo(json.dumps(index.stats, indent=2, ensure_ascii=False))
