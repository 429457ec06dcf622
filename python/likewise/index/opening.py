"""Checks of the arguments that open an index: recipe, stored contents, durability, age limit."""

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, cast, get_args

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch, StoreError, check_choice, check_integer, fraction_check
from likewise.io.places import check_place
from likewise.recipe.fields import EXCERPT_MEASURES, RecipeFields
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe, check_is_recipe
from likewise.recipe.weights import NAMES, companions_of, fields_of_companions

DATABASE = "documents.sqlite"
# Version of the format of the database.
DOCUMENTS_FORMAT = 1
Store = Literal["sketch", "shingles", "text"]
STORES: tuple[Store, ...] = get_args(Store)
# Among which documents neighbors are searched: those that the search of verdicts finds, the kept ones, or all.
Among = Literal["candidates", "kept", "all"]
AMONG: tuple[Among, ...] = get_args(Among)
# Files of an index whose creation was interrupted.
_UNFINISHED = {"writer.lock", "documents.mark", DATABASE, f"{DATABASE}-journal", f"{DATABASE}-wal", f"{DATABASE}-shm"}
# The file that marks an index that is being filled by a move.
FILLING = "moving.json"
# Entries that a file system or a desktop creates in a directory.
OF_THE_SYSTEM = {"lost+found", ".DS_Store"}
_TTL, _TTL_FROM = "ttl_s", "ttl_from"
# From when the age of a document counts: its own arrival, or that of the newest duplicate of its group.
TtlFrom = Literal["first_seen", "last_seen"]
_LONGEST_TTL_S = 2**31
_MOST_NEIGHBORS = 2**31 - 1
_INTERVAL = re.compile(r"interval:(\d+(?:\.\d+)?)(ms|s)")


def directory_of(path: str | os.PathLike[str]) -> Path:
    """Return the absolute path of a directory, which stays valid if the process changes its working directory."""
    if not os.fspath(path):
        raise InvalidParameter("path", "the path is empty; give a directory")
    check_place(path)
    return Path(path).absolute()


def exists(path: Path) -> bool:
    """Return whether the directory contains an index. The remains of an interrupted creation do not count as one."""
    # The database has a journal only while it is being created; afterward, it has a log.
    if not (path / DATABASE).exists() or (path / f"{DATABASE}-journal").exists():
        return False
    try:
        _native.OnlineIndex.describe(path)
    except InvalidParameter:
        return False
    return True


def is_there(path: Path) -> bool:
    """Return whether the directory contains an index; if it does not, an index can be created there."""
    if exists(path):
        return True
    if not path.is_dir():
        return False
    others = sorted({entry.name for entry in path.iterdir()} - _UNFINISHED - OF_THE_SYSTEM - {FILLING})
    if "segments" in others:
        raise StoreError(f"{path}: the index database {DATABASE} is missing or empty; restore it from a snapshot")
    if others:
        raise InvalidParameter(
            "path", f"{path} is not an index but contains other files ({others[0]}); choose a new directory"
        )
    return False


def filling_mark(path: Path) -> dict[str, Any] | None:
    """Return the mark of an index that is being filled by a move, an empty one if it is damaged, or None."""
    try:
        fields = json.loads((path / FILLING).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def check_complete(path: Path) -> None:
    """Raise StoreError if the index of a directory is being filled by a move."""
    if filling_mark(path) is not None:
        raise StoreError(
            f"{path} is incomplete, because a move into it is running or was interrupted; complete it with "
            "`likewise index move`, or delete the directory"
        )


def check_ttl(ttl: object) -> int | None:
    """Return the age at which documents expire, in whole seconds, or raise InvalidParameter."""
    if ttl is None:
        return None
    if isinstance(ttl, float) and 0 < ttl < _LONGEST_TTL_S:
        ttl = max(1, round(ttl))
    return check_integer("ttl", ttl, 1, _LONGEST_TTL_S)


def check_ttl_from(ttl_from: str, ttl_s: int | None) -> TtlFrom:
    """Return from when the age of documents counts, or raise InvalidParameter."""
    check_choice("ttl_from", ttl_from, get_args(TtlFrom))
    if ttl_s is None and ttl_from != "first_seen":
        raise InvalidParameter("ttl_from", "requires ttl")
    return cast("TtlFrom", ttl_from)


def ttl_of(path: Path, given: int | None, ttl_from: str | None) -> tuple[int | None, TtlFrom]:
    """Return the age limit of an existing index, and from when the age counts."""
    kept, kept_from = (_native.index_attached(path, name) for name in (_TTL, _TTL_FROM))
    ttl_s = None if kept is None else int(kept)
    counts_from: TtlFrom = "first_seen" if kept_from is None else "last_seen"
    has = "none" if ttl_s is None else f"{ttl_s} seconds"
    for name, value, stored, shown in (
        ("ttl", given, ttl_s, has),
        ("ttl_from", ttl_from, counts_from, f"{counts_from!r}"),
    ):
        if value is not None and value != stored:
            raise InvalidParameter(name, f"{value} does not match {path}, which was created with {shown}")
    return ttl_s, counts_from


def attached_parts(recipe: Recipe, ttl_s: int | None, ttl_from: TtlFrom) -> dict[str, bytes]:
    """Return the data that a new index stores in addition to the fields of its recipe, by name."""
    parts = companions_of(recipe) | ({} if ttl_s is None else {_TTL: str(ttl_s).encode()})
    return parts | ({} if ttl_from == "first_seen" else {_TTL_FROM: ttl_from.encode()})


def check_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe with its search parameters, or raise InvalidParameter if an index cannot use it."""
    check_is_recipe(recipe)
    method = recipe.sketch
    if not isinstance(method, MinHash | SimHash):
        if recipe.measure in EXCERPT_MEASURES:
            raise InvalidParameter(
                "measure",
                f"an index cannot search by {recipe.measure}, the measure of the options or the preset, which compares "
                "texts of any sizes; use likewise dedup --against or likewise pairs",
            )
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
    return recipe.for_index().resolve()


def check_store(store: str | None, recipe: Recipe) -> str:
    """Return which data of each document is stored. None selects the default for the recipe."""
    if store is None and recipe.name_rules is not None:
        return "text"
    if store is None:
        return "sketch" if recipe.is_distance_only else "shingles"
    check_choice("store", store, STORES)
    if store == "sketch" and not recipe.is_distance_only:
        raise InvalidParameter(
            "store", 'pairs are measured on feature sets, which "sketch" does not store; use "shingles" or "text"'
        )
    if recipe.name_rules is not None and store != "text":
        raise InvalidParameter("store", f'{store} given; siblings, unsure and keep_new compare texts, so use "text"')
    return store


_similarity = fraction_check(zero=True, one=True)


def check_nearest(k: object, min_similarity: object) -> tuple[int, float]:
    """Return the maximum number of neighbors and their minimum similarity, or raise InvalidParameter."""
    return check_integer("k", k, 1, _MOST_NEIGHBORS), _similarity("min_similarity", min_similarity)


def check_among(among: object) -> Among:
    """Return among which documents neighbors are searched, or raise InvalidParameter."""
    check_choice("among", among, AMONG)
    return cast("Among", among)


def sync_seconds(durability: str) -> float | None:
    """Return the number of seconds between syncs, or None if each commit is synced."""
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
    """Return the recipe given as such or as fields, or None. A recipe given as fields defaults to keep="first"."""
    if recipe is None and not fields:
        return None
    # With containment, a run keeps the longest document; an index knows only the order of arrival.
    return as_recipe(recipe, fields if recipe is not None else {"keep": "first", **fields})


def other_recipe(path: Path, given: Recipe, found: Recipe, found_id: str) -> RecipeMismatch:
    """Return the error for an index that was created with a different recipe."""
    differences = given.differences(found) or {"recipe_id": (given.recipe_id, found_id)}
    return RecipeMismatch(f"{path} was created with a different recipe", differences)


def recipe_of(path: Path, given: Recipe | None) -> tuple[Recipe, str]:
    """Return the recipe of an existing index, and which data it stores."""
    text, recipe_id, _, store = _native.OnlineIndex.describe(path)
    if given is not None:
        given = check_recipe(given)
        if given.recipe_id != recipe_id:
            raise other_recipe(path, given, Recipe.from_json(text).for_index(), recipe_id)
        if not given.is_incomplete:
            return given, store
    recipe = Recipe.from_json(text).for_index()
    names = [name for name in NAMES if getattr(recipe, f"{name}_id") is not None]
    kept = {name: content for name in names if (content := _native.index_attached(path, name)) is not None}
    return recipe.replace(**fields_of_companions(kept)).resolve(), store


# A field is None if the method does not have it.
_NATIVE_FIELDS = ("bits", "within", "num_slots", "slot_bits", "scheme", "bands", "rows", "short_threshold")


def recipe_parts(recipe: Recipe, store: str, attached: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the parameters of a resolved recipe for the native core."""
    fields = recipe.fields
    return {
        **{name: fields[name] for name in _NATIVE_FIELDS},
        "measure": recipe.measure,
        "threshold": recipe.threshold,
        "short_margin": recipe.short_margin or 0.0,
        "names": recipe.name_rules,
        "identifiers": recipe.identifiers is not None,
        "seed": recipe.seed,
        "takes_tokens": recipe.takes_tokens,
        "recipe_json": recipe.to_json(),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "store": store,
        "attached": dict(attached),
    }
