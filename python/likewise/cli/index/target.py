"""The index that a command works on, and how it is opened."""

import importlib
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.commands import option

if TYPE_CHECKING:
    from likewise.recipe.recipe import Recipe

URL = option(
    "--url URL",
    "URL of a Redis or Valkey server, or of a node of a cluster, redis://HOST:PORT/DATABASE, instead of PATH.",
)
PREFIX = option("--prefix NAME", "With --url: prefix of the keys of this index.  [default: likewise]")
DURABILITY = option(
    "--durability RULE",
    "commit: print a verdict after its document is synced to disk; interval:200ms: sync that often, so that a "
    "power failure may lose the last documents. Not with --url: see index create --durability.  [default: commit]",
)


def target_options(command: Any) -> Any:
    """Add --url and --prefix."""
    return URL(PREFIX(command))


def split_target(places: tuple[str, ...], url: str | None, wanted: str = "") -> tuple[str, tuple[str, ...]]:
    """Return PATH, empty if there is a URL, and the arguments after it."""
    path, rest = ("", places) if url is not None else (places[0] if places else "", places[1:])
    if url is None and not path:
        raise click.UsageError("Missing argument 'PATH' (or --url).")
    if wanted and not rest:
        raise click.UsageError(f"Missing argument '{wanted}...'.")
    if not wanted and rest:
        raise click.UsageError(f"Got unexpected extra argument ({rest[0]})")
    return path, rest


def open_index(
    path: str,
    url: str | None,
    prefix: str | None,
    recipe: "Recipe | None" = None,
    **options: Any,
) -> Any:
    """Open the index that a command works on."""
    from likewise.errors import InvalidInput, InvalidParameter

    options = {name: value for name, value in options.items() if value is not None}
    if url is not None:
        if options.pop("store", None) is not None:
            raise InvalidParameter(
                "store",
                "does not apply to --url: a server stores sketches, and the features that the recipe compares",
            )
        if prefix is not None:
            options["prefix"] = prefix
        # Imported only when a URL is given: it needs an extra.
        return importlib.import_module("likewise.redis").RedisIndex(url, recipe, **options)
    if prefix is not None:
        raise InvalidParameter("prefix", "requires --url")
    from likewise.index import Index
    from likewise.index.erasing import unfinished_warning
    from likewise.index.opening import is_there
    from likewise.io.places import check_place

    check_place(path)
    if recipe is None and not is_there(Path(path)):
        raise InvalidInput("no index here; create one with `likewise index create`", path)
    with warnings.catch_warnings():
        # The warning is printed below, without its code location.
        warnings.simplefilter("ignore", RuntimeWarning)
        index = Index(path, recipe, **options)
    if (warning := unfinished_warning(index.path)) is not None:
        click.echo(f"note: {warning}", err=True)
    return index
