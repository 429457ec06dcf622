"""Tables and word lists that a recipe names but its JSON does not contain, as bytes.

An index stores its table, stop words and dictionary itself: who opens it has no input to count, and a snapshot or a
server's backup must be complete.
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
    """Return what a recipe reads beside its fields: a weight table as in its file, lists of words as JSON."""
    found = {} if recipe.table is None else {"weights": recipe.table.to_bytes()}
    for name in _LISTS:
        words: WordList | None = getattr(recipe, name)
        if words is not None:
            found[name] = canonical_json({"words": [list(entry) for entry in words.entries]}).encode()
    return found


def with_companions(recipe: Recipe, kept: Mapping[str, bytes]) -> Recipe:
    """Return a recipe with what :func:`companions_of` gave of it; each is checked by its identity in the recipe.

    Raises
    ------
    InvalidInput
        If one is damaged.
    RecipeMismatch
        If one is of another recipe.
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
