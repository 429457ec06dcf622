"""What an index is opened with: recipe, what it keeps, durability."""

import re
from pathlib import Path
from typing import Any

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe import Recipe
from likewise.recipe_check import check_choice

DATABASE = "documents.sqlite"
STORES = ("sketch", "shingles", "text")
_INTERVAL = re.compile(r"interval:(\d+(?:\.\d+)?)(ms|s)")
# Weights under which a feature may vanish, so that those counted once are not those that were sketched.
_VANISHING = ("lexicon", "own")


def exists(path: Path) -> bool:
    """Return whether the directory holds an index; what a process left that was killed while it made one is none."""
    # Only while it is made has the database a journal beside it: from then on there is a log.
    if not (path / DATABASE).exists() or (path / f"{DATABASE}-journal").exists():
        return False
    try:
        _native.OnlineIndex.describe(path)
    except InvalidParameter:
        return False
    return True


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with its search chosen, or raise InvalidParameter if an index cannot go by it."""
    if recipe.method not in ("minhash", "simhash"):
        raise InvalidParameter("method", f"an index goes by minhash or simhash; {recipe.method} was given")
    if recipe.keep != "first":
        raise InvalidParameter("keep", f'{recipe.keep!r} was given; an index keeps who came first: keep="first"')
    if recipe.group != "leaders":
        raise InvalidParameter("group", f"{recipe.group!r} was given; an index decides by leaders")
    if recipe.needs_counting:
        raise InvalidParameter("weights", "an index cannot count what is yet to come; give a table (likewise weights)")
    if recipe.is_distance_only and recipe.recall is not None:
        raise InvalidParameter("recall", "an index searches by distance exactly; leave recall out")
    if recipe.is_distance_only and recipe.weights in _VANISHING:
        raise InvalidParameter(
            "weights", f"weights {recipe.weights} do not go with distance alone in an index; give a threshold"
        )
    return recipe.resolve()


def check_store(store: str | None, recipe: Recipe) -> str:
    """Return what is kept of each document; what suits the recipe where None."""
    if store is None:
        return "sketch" if recipe.is_distance_only else "shingles"
    check_choice("store", store, STORES)
    if store == "sketch" and not recipe.is_distance_only:
        raise InvalidParameter(
            "store", "pairs are measured on feature sets, which sketch does not keep; shingles or text"
        )
    return store


def sync_seconds(durability: str) -> float | None:
    """Return seconds between syncs; None where each commit is one."""
    if durability == "commit":
        return None
    match = _INTERVAL.fullmatch(durability) if isinstance(durability, str) else None
    if match is None:
        raise InvalidParameter("durability", f'{durability!r} is neither "commit" nor such as "interval:200ms"')
    seconds = float(match[1]) * (0.001 if match[2] == "ms" else 1.0)
    if not 0.001 <= seconds <= 3600:
        raise InvalidParameter("durability", f"{durability!r}: an interval is from 1ms to 3600s")
    return seconds


def recipe_of(path: Path, given: Recipe | None) -> tuple[Recipe, str]:
    """Return the recipe of an index that is there, and what it keeps.

    Raises
    ------
    RecipeMismatch
        If another recipe was given, naming the fields, or the index needs tables that do not stand in its recipe.
    """
    text, recipe_id, _, store = _native.OnlineIndex.describe(path)
    if given is not None:
        given = check_recipe(given)
        if given.recipe_id != recipe_id:
            stored = Recipe.from_json(text) if not needs_companions(text) else None
            differences = {} if stored is None else given.differences(stored)
            raise RecipeMismatch(
                f"{path} was made by another recipe", differences or {"recipe_id": (given.recipe_id, recipe_id)}
            )
        return given, store
    if needs_companions(text):
        raise InvalidParameter(
            "recipe", f"the recipe of {path} reads tables or lists of words that do not stand in it; give the recipe"
        )
    return Recipe.from_json(text).resolve(), store


def needs_companions(text: str) -> bool:
    """Return whether a recipe in JSON names tables or lists that travel beside it."""
    return any(f'"{name}"' in text for name in ("weights_id", "stop_words_id", "dictionary_id"))


def recipe_parts(recipe: Recipe, store: str) -> dict[str, Any]:
    """Return what the native core takes of a resolved recipe."""
    return {
        "bits": recipe.bits,
        "within": recipe.within,
        "num_slots": recipe.num_slots,
        "slot_bits": recipe.slot_bits,
        "scheme": recipe.scheme,
        "bands": recipe.bands,
        "rows": recipe.rows,
        "measure": recipe.measure,
        "threshold": recipe.threshold,
        "short_threshold": recipe.short_threshold,
        "seed": recipe.seed,
        "takes_tokens": recipe.takes_tokens,
        "recipe_json": recipe.to_json(),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "store": store,
    }
