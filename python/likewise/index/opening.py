"""What an index is opened with: recipe, stored contents, durability, age limit."""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from likewise import _native
from likewise.checks import check_choice, check_integer
from likewise.errors import InvalidParameter, RecipeMismatch, StoreError
from likewise.index.companions import NAMES, companions_of, with_companions
from likewise.io.places import check_place
from likewise.recipe.given import GivenRecipe, RecipeFields, as_recipe
from likewise.recipe.methods import MinHash, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe, check_is_recipe

DATABASE = "documents.sqlite"
Store = Literal["sketch", "shingles", "text"]
STORES: tuple[Store, ...] = get_args(Store)
# What is there of an index that was being made when the process ended.
_UNFINISHED = {"writer.lock", "documents.mark", DATABASE, f"{DATABASE}-journal", f"{DATABASE}-wal", f"{DATABASE}-shm"}
# What the root of a file system, or a desktop, puts into any directory.
_OF_THE_SYSTEM = {"lost+found", ".DS_Store"}
_TTL = "ttl_s"
_LONGEST_TTL_S = 2**31
_INTERVAL = re.compile(r"interval:(\d+(?:\.\d+)?)(ms|s)")
# Weights under which a feature may vanish, so that those counted once are not those that were sketched.
_VANISHING = ("lexicon", "own")


def directory_of(path: str | os.PathLike[str]) -> Path:
    """Return the directory that is meant, wherever the process goes meanwhile.

    Raises
    ------
    InvalidParameter
        If the path is empty.
    InvalidInput
        If it is the address of another place, or leads through a link to nothing.
    """
    if not os.fspath(path):
        raise InvalidParameter("path", "the path is empty; give a directory")
    check_place(path)
    return Path(path).absolute()


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


def is_there(path: Path) -> bool:
    """Return whether the directory holds an index; what holds none may become one.

    Raises
    ------
    StoreError
        If it holds the search tables of an index, but not its database.
    InvalidParameter
        If it holds other files.
    """
    if exists(path):
        return True
    if not path.is_dir():
        return False
    others = sorted({entry.name for entry in path.iterdir()} - _UNFINISHED - _OF_THE_SYSTEM)
    if "segments" in others:
        raise StoreError(f"{path}: the index database {DATABASE} is missing or empty; restore it from a snapshot")
    if others:
        raise InvalidParameter(
            "path", f"{path} is not an index but contains other files ({others[0]}); choose a new directory"
        )
    return False


def check_ttl(ttl: object) -> int | None:
    """Return the age at which documents are forgotten in whole seconds, or raise InvalidParameter."""
    if ttl is None:
        return None
    if isinstance(ttl, float) and 0 < ttl < _LONGEST_TTL_S:
        ttl = max(1, round(ttl))
    return check_integer("ttl", ttl, 1, _LONGEST_TTL_S)


def ttl_of(path: Path, given: int | None) -> int | None:
    """Return the age limit that an index was made with.

    Raises
    ------
    InvalidParameter
        If another one was given.
    """
    kept = _native.index_attached(path, _TTL)
    ttl_s = None if kept is None else int(kept)
    if given is not None and given != ttl_s:
        has = "none" if ttl_s is None else f"{ttl_s} seconds"
        raise InvalidParameter("ttl", f"{given} does not match {path}, which was created with {has}")
    return ttl_s


def attached_parts(recipe: Recipe, ttl_s: int | None) -> dict[str, bytes]:
    """Return what a new index keeps beside its recipe's fields, by name."""
    return companions_of(recipe) | ({} if ttl_s is None else {_TTL: str(ttl_s).encode()})


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with its search chosen, or raise InvalidParameter if an index cannot go by it."""
    check_is_recipe(recipe)
    method = recipe.sketch
    if not isinstance(method, MinHash | SimHash):
        raise InvalidParameter("method", f"an index supports minhash and simhash, not {recipe.method}")
    if recipe.keep != "first":
        raise InvalidParameter(
            "keep", f'{recipe.keep!r} is not supported; an index keeps the first document: use keep="first"'
        )
    if recipe.group != "leaders":
        raise InvalidParameter("group", f"{recipe.group!r} is not supported; an index groups by leaders")
    if recipe.needs_counting and recipe.weights_id is None:
        raise InvalidParameter(
            "weights", "an index needs a precomputed weight table; create one with `likewise weights`"
        )
    if recipe.needs_threshold:
        raise InvalidParameter(
            "threshold",
            "an index cannot choose a threshold in advance. Run likewise dedup --threshold auto on a "
            "sample, and create the index with --like OUT",
        )
    if isinstance(method, SimHashDistance) and method.recall is not None:
        raise InvalidParameter(
            "recall", "recall does not apply: an index finds every document within the distance; remove it"
        )
    if recipe.is_distance_only and recipe.weights in _VANISHING:
        raise InvalidParameter(
            "weights", f"weights {recipe.weights} need a threshold in an index; a distance alone is not enough"
        )
    return recipe.for_index().resolve()


def check_store(store: str | None, recipe: Recipe) -> str:
    """Return what is kept of each document; what suits the recipe where None."""
    if store is None:
        return "sketch" if recipe.is_distance_only else "shingles"
    check_choice("store", store, STORES)
    if store == "sketch" and not recipe.is_distance_only:
        raise InvalidParameter(
            "store", "pairs are measured on feature sets, which store sketch does not keep; use shingles or text"
        )
    return store


def sync_seconds(durability: str) -> float | None:
    """Return seconds between syncs; None where each commit is one."""
    if durability == "commit":
        return None
    match = _INTERVAL.fullmatch(durability) if isinstance(durability, str) else None
    if match is None:
        raise InvalidParameter("durability", f'{durability!r} is not "commit" or an interval such as "interval:200ms"')
    seconds = float(match[1]) * (0.001 if match[2] == "ms" else 1.0)
    if not 0.001 <= seconds <= 3600:
        raise InvalidParameter("durability", f"{durability!r}: the interval must be from 1ms to 3600s")
    return seconds


def named_recipe(recipe: GivenRecipe | None, fields: RecipeFields) -> Recipe | None:
    """Return the recipe that a caller names, None where there is none; by fields it keeps the first document."""
    if recipe is None and not fields:
        return None
    # Containment prefers the longest in a run; an index has only the order of arrival.
    return as_recipe(recipe, fields if recipe is not None else {"keep": "first", **fields})


def recipe_of(path: Path, given: Recipe | None) -> tuple[Recipe, str]:
    """Return the recipe of an index that is there, and what it keeps.

    Raises
    ------
    RecipeMismatch
        If another recipe was given, naming the fields.
    """
    text, recipe_id, _, store = _native.OnlineIndex.describe(path)
    if given is not None:
        given = check_recipe(given)
        if given.recipe_id != recipe_id:
            differences = given.differences(Recipe.from_json(text).for_index())
            raise RecipeMismatch(
                f"{path} was created with a different recipe",
                differences or {"recipe_id": (given.recipe_id, recipe_id)},
            )
        if not given.is_incomplete:
            return given, store
    recipe = Recipe.from_json(text).for_index()
    names = [name for name in NAMES if getattr(recipe, f"{name}_id") is not None]
    kept = {name: content for name in names if (content := _native.index_attached(path, name)) is not None}
    return with_companions(recipe, kept).resolve(), store


# None where the method has no such field.
_NATIVE_FIELDS = ("bits", "within", "num_slots", "slot_bits", "scheme", "bands", "rows", "short_threshold")


def recipe_parts(recipe: Recipe, store: str, attached: Mapping[str, bytes]) -> dict[str, Any]:
    """Return what the native core takes of a resolved recipe."""
    fields = recipe.fields
    return {
        **{name: fields[name] for name in _NATIVE_FIELDS},
        "measure": recipe.measure,
        "threshold": recipe.threshold,
        "short_margin": recipe.short_margin or 0.0,
        "seed": recipe.seed,
        "takes_tokens": recipe.takes_tokens,
        "recipe_json": recipe.to_json(),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "store": store,
        "attached": dict(attached),
    }
