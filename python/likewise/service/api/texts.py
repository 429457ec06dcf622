"""Operations that need no collection: compare texts and plan recipes."""

from typing import Any

from likewise.errors import InvalidParameter
from likewise.measures.comparison import compare
from likewise.recipe.recipe import Recipe, as_recipe
from likewise.service.collections.service import Service
from likewise.stages.plan import plan

Json = dict[str, Any]
# Fields that refer to tables and lists stored in files next to a recipe.
_BESIDE = frozenset(("weights_id", "stop_words_id", "dictionary_id"))


class Texts:
    """The service's operations without a collection. Each method performs one operation and returns JSON values."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compare(self, body: Any) -> Json:
        """Return the comparison of two texts."""
        recipe = recipe_given(body.recipe)
        found = await self._service.compute(compare, body.a, body.b, recipe)
        shown: Json = found.to_dict()
        return shown

    async def plan(self, body: Any) -> Json:
        """Return the plan of a recipe."""
        found = await self._service.compute(plan, recipe_given(body.recipe))
        shown: Json = found.to_dict()
        return shown


def recipe_given(given: Json | str | None, **defaults: str) -> Recipe:
    """Return the recipe in a request: a preset's name, fields, or JSON; else ``online``, with `defaults`."""
    fields = {name: value for name, value in (given if isinstance(given, dict) else {}).items() if value is not None}
    for name in _BESIDE & fields.keys():
        raise InvalidParameter(f"recipe.{name}", "recipes that read files are not accepted over HTTP")
    try:
        if "sketch_version" in fields:
            return Recipe.from_dict(fields).resolve()
        if isinstance(given, str):
            return as_recipe(given).resolve()
        preset = fields.pop("preset", None)
        fields = defaults | fields
        return (as_recipe(None, fields) if preset is None else Recipe.preset(preset, **fields)).resolve()
    except InvalidParameter as error:
        name = error.name if error.name == "recipe" else f"recipe.{error.name}"
        raise InvalidParameter(name, error.message) from None
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("recipe", "a value has the wrong type") from None
