"""``likewise index create``: an empty index by a recipe."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.checks import counted
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.recipe import QUIET, recipe_line, search_options, take_recipe

if TYPE_CHECKING:
    from likewise.recipe.recipe import Recipe

_HELP = """Make an empty index in the new directory PATH, by a recipe that it keeps for good.

Methods are simhash and minhash; the one that stays is always the first that came. --store says what is kept of a
document: sketch (by distance alone: fingerprint, and the features of short texts), shingles (all features, for
recipes that measure them), text (packed). Weight tables and lists of words are kept with the recipe. On a server the
same index may be created by every client that starts.

An index cannot look at documents that are yet to come, so its default is the preset online: word 3-grams that count
alike, Jaccard similarity 0.55 and more for short documents. To use what a run chose from a sample, name it with --like.

\b
Examples:
  likewise index create seen.lw --method simhash --within 3
  likewise index create seen.lw --threshold 0.8
  likewise index create seen.lw --like run
  likewise index create seen.lw --recipe run/summary.json --store text
  likewise index create --url redis://localhost:6379/0 --method simhash --within 3
"""


@click.command("create", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@search_options
@click.option(
    "--like",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="RUN",
    help="Use the recipe of a finished dedup run (its output directory), with the threshold and weights that it chose.",
)
@click.option(
    "--store",
    type=click.Choice(["sketch", "shingles", "text"]),
    help="What is kept of each document.  [default: sketch by distance alone, else shingles]",
)
@click.option(
    "--ttl",
    type=click.IntRange(1),
    metavar="SECONDS",
    help="Forget documents after so long; nothing is promoted then.  [default: never]",
)
@click.option(
    "--layout",
    type=click.Choice(["packed", "classic"]),
    help="With --url: packed strings, or sorted sets as is customary on Redis, for radii up to 3.  [default: packed]",
)
@target_options
@QUIET
def command(
    places: tuple[str, ...],
    like: Path | None,
    store: str | None,
    ttl: int | None,
    layout: str | None,
    url: str | None,
    prefix: str | None,
    quiet: bool,  # noqa: FBT001 - click's call
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.errors import InvalidInput, InvalidParameter

    path, _ = split_target(places, url)
    is_file = options["recipe_file"] is not None
    recipe = take_recipe(options) if like is None else _recipe_of(like, options)
    if not is_file:
        # Containment prefers the longest in a run; an index has only the order of arrival.
        recipe = recipe.replace(keep="first")
    if recipe.needs_counting:
        raise InvalidParameter(
            "weights", "an index takes a table that is there already: make one by `likewise weights`"
        )
    if path and Path(path).exists():
        raise InvalidInput("it exists already; name a new directory", path)
    with open_index(path, url, prefix, recipe, store=store, ttl=ttl, layout=layout) as index:
        if not quiet:
            click.echo(recipe_line(index.recipe.resolve().to_dict()), err=True)
            # Of a server never the URL: it may hold a password.
            place = path or f"{index.place}, which holds {counted(len(index), 'document')}"
            click.echo(f"recipe {index.recipe.recipe_id}; an index in {place}", err=True)


def _recipe_of(run: Path, options: dict[str, Any]) -> "Recipe":
    from likewise.batch.read.kept_sketches import recipe_of_run
    from likewise.errors import InvalidParameter

    for name in sorted(options):
        if options.pop(name) not in (None, ()):
            raise InvalidParameter(name, "does not go with --like, which takes the whole recipe of a run")
    recipe = recipe_of_run(run)
    if recipe.needs_counting:
        raise InvalidParameter(
            "like",
            f"{run} counted its own weights and did not keep them. Run it with --keep-sketches, or give the recipe "
            "and a table of weights",
        )
    return recipe
