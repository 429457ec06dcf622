"""``likewise index create``: an empty index by a recipe."""

from pathlib import Path
from typing import Any

import click

from likewise.cli.index_target import open_index, split_target, target_options
from likewise.cli.options import QUIET, recipe_line, search_options, take_recipe

_HELP = """Make an empty index in the new directory PATH, by a recipe that it keeps for good.

Methods are simhash and minhash; the one that stays is always the first that came. --store says what is kept of a
document: sketch (by distance alone: fingerprint, and the features of short texts), shingles (all features, for
recipes that measure them), text (packed).

\b
Examples:
  likewise index create seen.lw --method simhash --within 3
  likewise index create seen.lw --threshold 0.8
  likewise index create seen.lw --recipe run/summary.json --store text
  likewise index create --url redis://localhost:6379/0 --method simhash --within 3
"""


@click.command("create", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@search_options
@click.option(
    "--store",
    type=click.Choice(["sketch", "shingles", "text"]),
    help="What is kept of each document.  [default: sketch by distance alone, else shingles]",
)
@target_options
@QUIET
def command(
    places: tuple[str, ...],
    store: str | None,
    url: str | None,
    prefix: str | None,
    quiet: bool,  # noqa: FBT001 - click's call
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.errors import InvalidInput, InvalidParameter

    path, _ = split_target(places, url)
    is_file = options["recipe_file"] is not None
    recipe = take_recipe(options)
    if not is_file:
        # Containment prefers the longest in a run; an index has only the order of arrival.
        recipe = recipe.replace(keep="first")
    if recipe.needs_counting:
        raise InvalidParameter(
            "weights", "an index takes a table that is there already: make one by `likewise weights`"
        )
    if recipe.table is not None or recipe.stop_words is not None or recipe.dictionary is not None:
        raise InvalidParameter(
            "weights" if recipe.table is not None else "stop_words",
            "commands open an index by the recipe in it, without the tables and lists beside it; use likewise.Index",
        )
    if path and Path(path).exists():
        raise InvalidInput("it exists already; name a new directory", path)
    with open_index(path, url, prefix, recipe, store=store) as index:
        if not quiet:
            click.echo(recipe_line(index.recipe.resolve().to_dict()), err=True)
            click.echo(f"recipe {index.recipe.recipe_id}; an empty index in {url or path}", err=True)
