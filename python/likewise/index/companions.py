"""Tables and word lists that a recipe refers to but that its JSON does not contain, as bytes.

An index stores its weight table, stop words and dictionary itself: the process that opens it has no input to count,
and a snapshot or a server's backup must be complete.
"""

import json
from collections.abc import Mapping

from likewise.errors import InvalidInput
from likewise.recipe.identity import canonical_json
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights
from likewise.recipe.word_lists import WordList

_LISTS = ("stop_words", "dictionary")
NAMES = ("weights", *_LISTS)


def companions_of(recipe: Recipe) -> dict[str, bytes]:
    """Return what a recipe needs in addition to its fields: its weight table as in the file, word lists as JSON."""
    found = {} if recipe.table is None else {"weights": recipe.table.to_bytes()}
    for name in _LISTS:
        words: WordList | None = getattr(recipe, name)
        if words is not None:
            found[name] = canonical_json({"words": [list(entry) for entry in words.entries]}).encode()
    return found


def with_companions(recipe: Recipe, kept: Mapping[str, bytes]) -> Recipe:
    """Return a recipe with the data from :func:`companions_of`, checked against the identities in the recipe.

    Raises
    ------
    InvalidInput
        If a table or list is damaged.
    RecipeMismatch
        If a table or list belongs to a different recipe.
    """
    changes: dict[str, object] = {}
    if "weights" in kept:
        changes["table"] = Weights.from_bytes(kept["weights"])
    for name in _LISTS:
        if name in kept:
            try:
                changes[name] = WordList(tuple(entry) for entry in json.loads(kept[name])["words"])
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(f"the {name} stored with the recipe are corrupt") from error
    return recipe.replace(**changes)
