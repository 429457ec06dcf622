"""The fields of a recipe from JSON: its own file, or the summary of a run."""

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe_check import FIELDS_OF_METHOD
from likewise.recipe_tokens import libraries_of


def fields_of_text(text: str) -> dict[str, Any]:
    """Return the fields that JSON holds, or raise InvalidParameter if it is broken."""
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("recipe", f"the recipe is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise InvalidParameter("recipe", "the recipe must be a JSON object with its fields")
    return fields


def fields_of_file(path: Path) -> dict[str, Any]:
    """Return the fields in a JSON file, or in the ``recipe`` of a run's summary.json."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidParameter("recipe", f"{path}: this is no recipe in JSON: {error}") from error
    if isinstance(fields, dict) and isinstance(fields.get("recipe"), dict):
        inner: dict[str, Any] = fields["recipe"]
        return inner
    return fields_of_text(text)


def options_of(fields: Mapping[str, Any], known: set[str]) -> dict[str, Any]:
    """Return the fields that a constructor of the recipe's method takes; null is as good as a field left out.

    Raises
    ------
    InvalidParameter
        If a field is unknown, or there is no method.
    RecipeMismatch
        If the recipe was made by another version of the text rules or of the sketches.
    """
    unknown = sorted(set(fields) - known)
    if unknown:
        raise InvalidParameter("recipe", f"unknown fields {', '.join(unknown)}; known are {', '.join(sorted(known))}")
    if "method" not in fields:
        methods = ", ".join(FIELDS_OF_METHOD)
        raise InvalidParameter("method", f"the recipe names no method; it must be one of {methods}")
    versions = {"text_version": _native.TEXT_VERSION, "sketch_version": _native.SKETCH_VERSION}
    differing = {n: (fields[n], v) for n, v in versions.items() if n in fields and fields[n] != v}
    if "libraries" in fields:
        # A field that is of another kind is named by its own check, later.
        with contextlib.suppress(TypeError, ValueError):
            now = libraries_of(fields)
            if fields["libraries"] != now:
                differing["libraries"] = (fields["libraries"], now or "none")
    if differing:
        raise RecipeMismatch("the recipe was made by another version of Likewise; make it anew", differing)
    left_out = {*versions, "libraries", "method"}
    if fields["method"] == "minhash" and "overflow" not in fields and versions.keys() <= fields.keys():
        # Recipes are written without it where it is this, as they were before there was a choice.
        fields = {**fields, "overflow": "levels"}
    return {name: value for name, value in fields.items() if value is not None and name not in left_out}
