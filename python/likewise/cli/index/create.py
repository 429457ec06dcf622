"""``likewise index create``: create an empty index with a recipe."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.commands import FOLDER, LongCommand, option
from likewise.cli.options.recipe import QUIET, recipe_line, search_options, take_recipe
from likewise.errors import counted

if TYPE_CHECKING:
    from likewise.recipe.recipe import Recipe

_HELP = """Create an empty index with a recipe.

PATH is a new directory. The recipe of an index, with its weight tables and word lists, cannot be changed later. The
method is simhash or minhash; the first of several copies is kept. --store sets what is stored per document: sketch
(Hamming-only recipes: the fingerprint, and the features of short texts), shingles (all features, to measure
similarity) or text (compressed text).

With --url, the index is on a server or on all nodes of a cluster. All clients may create the same index at startup.
--expected, --partitions and --durability require --url and cannot be changed later. In a directory, each index add
chooses its own durability.

The default recipe is the preset online: unweighted word 3-grams, Jaccard similarity 0.55, higher for short documents.
Use --like to take the threshold and weights that a run chose from a sample.

\b
Examples:
  likewise index create seen.lw --threshold 0.8
  likewise index create seen.lw --like run
  likewise index create seen.lw --recipe run/summary.json --store text
  likewise index create --url redis://localhost:6379/0 --method simhash --within 3 --expected 50000000
"""


@click.command("create", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH")
@search_options
@option(
    "--like RUN", "Use the recipe of a dedup run (its output directory), with its chosen threshold and weights.", FOLDER
)
@option(
    "--store",
    "What to store per document: sketch, shingles or text.  [default: sketch for Hamming-only recipes, otherwise "
    "shingles]",
    ("sketch", "shingles", "text"),
)
@option("--ttl SECONDS", "Expire documents after this time.  [default: never]", click.IntRange(1))
@option(
    "--ttl-from",
    "With --ttl: count the age of a document from its arrival, or from that of its group's newest duplicate, "
    "which is kept in its place. With --url: first_seen only.  [default: first_seen]",
    ("first_seen", "last_seen"),
)
@option(
    "--expected N",
    "With --url: expected number of documents, which determines the size of tables.  [default: 1000000]",
    click.IntRange(1),
)
@option(
    "--partitions N",
    "With --url: number of partitions, which the nodes of a cluster share.  [default: 1 on a server, 64 on a cluster]",
    click.IntRange(1, 1024),
)
@option(
    "--durability",
    "With --url: answer when the masters have the writes, or when a replica of each has confirmed them.  "
    "[default: written]",
    ("written", "replicated"),
)
@target_options
@QUIET
def command(
    places: tuple[str, ...], like: Path | None, url: str | None, prefix: str | None, quiet: bool, **options: Any
) -> None:
    """Run the command."""
    from likewise.errors import InvalidInput, InvalidParameter

    own = {name: options.pop(name) for name in ("store", "ttl", "ttl_from")}
    path, _ = split_target(places, url)
    shared = {name: options.pop(name) for name in ("expected", "partitions", "durability")}
    given = [name for name, value in shared.items() if value is not None]
    if url is None and given:
        raise InvalidParameter(given[0], "requires --url")
    is_file = options["recipe_file"] is not None
    recipe = take_recipe(options, quiet=quiet) if like is None else _recipe_of(like, options)
    if not is_file:
        # Containment keeps the longest document by default in a run; an index supports only the order of arrival.
        recipe = recipe.replace(keep="first")
    if recipe.needs_counting:
        raise InvalidParameter(
            "weights", "an index needs a precomputed weight table; create one with `likewise weights`"
        )
    if path and Path(path).exists():
        raise InvalidInput("already exists; choose a new directory", path)
    with open_index(path, url, prefix, recipe, **own, **shared) as index:
        if not quiet:
            click.echo(recipe_line(index.recipe.resolve().to_dict()), err=True)
            # Never print the URL of a server: it may contain a password.
            place = path or f"{index.place}, with {counted(len(index), 'document')}"
            click.echo(f"recipe {index.recipe.recipe_id}; index in {place}", err=True)


def _recipe_of(run: Path, options: dict[str, Any]) -> "Recipe":
    from likewise.batch.read.kept_sketches import recipe_of_run
    from likewise.errors import InvalidParameter

    for name in sorted(options):
        if options.pop(name) not in (None, ()):
            raise InvalidParameter(name, "cannot be combined with --like, which uses the whole recipe of a run")
    recipe = recipe_of_run(run)
    if recipe.needs_counting:
        raise InvalidParameter(
            "like",
            f"{run} counted its own weights, and its directory recipe, which stores them, is missing; repeat the run, "
            "or use --recipe and --weights TABLE",
        )
    return recipe
