"""Opens an index by its place: a directory, or a service."""

import os

from likewise.errors import InvalidParameter
from likewise.index import Index
from likewise.recipe.recipe import GivenRecipe
from likewise.service.client import Client


def open_index(
    place: str | os.PathLike[str],
    recipe: GivenRecipe | None = None,
    *,
    collection: str | None = None,
    key: str | None = None,
    read_only: bool = False,
) -> Index | Client:
    """Open an index."""
    if str(place).startswith(("http://", "https://")):
        if recipe is not None:
            raise InvalidParameter("recipe", "a service has its own recipe")
        return Client(str(place), key, collection=collection)
    if collection is not None or key is not None:
        raise InvalidParameter("index", f"a collection or a key requires the URL of a service, not {str(place)!r}")
    return Index(place, recipe, read_only=read_only)
