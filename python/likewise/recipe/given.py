"""Recipes as callers give them: a recipe, the name of a preset, or single fields."""

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from likewise.errors import InvalidParameter
from likewise.recipe.fields import OPTION_NAMES
from likewise.recipe.presets import PRESETS, Preset, with_base
from likewise.recipe.recipe import Recipe, check_is_recipe

GivenRecipe: TypeAlias = Recipe | Preset


# What users mean by a name: an argument of files or of calls in memory, or one of other tools.
_MEANT = {
    **dict.fromkeys(("id", "id_field", "id_column", "doc_ids", "keys"), "ids"),
    **dict.fromkeys(("text", "column", "field", "text_column", "content", "text_fields"), "text_field"),
    **dict.fromkeys(("on_error", "errors", "missing"), "nulls"),
    **dict.fromkeys(("nulls",), "on_error"),
    **dict.fromkeys(("ids",), "id_field"),
    **dict.fromkeys(("num_perm", "num_hashes"), "num_slots"),
    **dict.fromkeys(("ngram", "ngrams", "ngram_size", "k", "n"), "shingle"),
    **dict.fromkeys(("similarity", "jaccard"), "threshold"),
    **dict.fromkeys(("jobs", "n_jobs", "workers", "num_proc"), "threads"),
    **dict.fromkeys(("memory_bytes", "max_memory"), "memory"),
    **dict.fromkeys(("distance", "max_distance", "radius", "hamming"), "within"),
}


def as_recipe(given: object = None, fields: Mapping[str, Any] | None = None, *, base: str = "online") -> Recipe:
    """Return the recipe for the arguments of a function.

    Parameters
    ----------
    given : Recipe or str, optional
        A recipe, or the name of a preset.
    fields : mapping, optional
        Single fields instead; fields with the value None are ignored. They make the same recipe as the same options of
        a command (:func:`likewise.recipe.presets.with_base`). Only `keep` can be combined with a recipe or a preset.
    base : {"default", "online"}
        Preset used if neither is given; ``default`` is for runs, which read all documents.

    Raises
    ------
    InvalidParameter
        If `given` is neither a recipe nor a preset, a field does not exist, or fields are combined with a recipe or
        preset.

    Examples
    --------
    >>> as_recipe("strict").threshold, as_recipe(None, {"threshold": 0.8}).threshold
    (0.8, 0.8)
    """
    named = {name: value for name, value in (fields or {}).items() if value is not None}
    for name in fields or ():
        if name not in OPTION_NAMES:
            from difflib import get_close_matches

            close = [_MEANT[name]] if name in _MEANT else get_close_matches(name, OPTION_NAMES, 1)
            hint = f"; did you mean {close[0]}?" if close else ""
            raise InvalidParameter(name, f"neither an argument of this function nor a field of a recipe{hint}")
    keep = {} if given is None or "keep" not in named else {"keep": named.pop("keep")}
    if named and given is not None:
        name, value = next(iter(named.items()))
        is_name = isinstance(given, str)
        what = f"preset {given!r}" if is_name else "recipe"
        cure = f"Recipe.preset({given!r}, {name}={value!r})" if is_name else f"recipe.replace({name}={value!r})"
        raise InvalidParameter(name, f"cannot be combined with the {what}; pass {cure} instead")
    if isinstance(given, str) and given in PRESETS:
        return Recipe.preset(cast("Preset", given), **keep)
    if given is not None:
        recipe = check_is_recipe(given)
        return recipe.replace(**keep) if keep else recipe
    options = with_base(base, named)
    return Recipe.from_options(options.pop("method"), **options)
