"""Operations that need no collection: compare texts and plan recipes."""

from typing import Any

from likewise.errors import InvalidParameter
from likewise.measures.comparison import compare
from likewise.recipe.recipe import Recipe
from likewise.service.collections.service import Service
from likewise.stages.plan import plan

Json = dict[str, Any]
# Fields that refer to tables and lists stored in files next to a recipe.
_BESIDE = ("weights_id", "stop_words_id", "dictionary_id")


class Texts:
    """The service's operations without a collection. Each method performs one operation and returns JSON values.

    Parameters
    ----------
    service : Service
        Its threads do the work.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compare(self, body: Any) -> Json:  # noqa: ANN401 - bodies are made at the start
        """Return the comparison of two texts."""
        recipe = recipe_given(body.recipe)
        found = await self._service.compute(compare, body.a, body.b, recipe)
        shown: Json = found.to_dict()
        return shown

    async def plan(self, body: Any) -> Json:  # noqa: ANN401
        """Return the plan of a recipe."""
        found = await self._service.compute(plan, recipe_given(body.recipe))
        shown: Json = found.to_dict()
        return shown


def recipe_given(fields: Json | None) -> Recipe:
    """Return the recipe in a request; the preset ``online`` if there is none.

    Raises
    ------
    InvalidParameter
        If it is not a valid recipe, or refers to files.
    """
    if fields is None:
        return Recipe.preset("online")
    for name in _BESIDE:
        if fields.get(name) is not None:
            raise InvalidParameter(f"recipe.{name}", "recipes that read files are not accepted over HTTP")
    try:
        return Recipe.from_dict({name: value for name, value in fields.items() if value is not None}).resolve()
    except InvalidParameter as error:
        name = error.name if error.name == "recipe" else f"recipe.{error.name}"
        raise InvalidParameter(name, error.message) from None
    except (TypeError, ValueError, OverflowError):
        raise InvalidParameter("recipe", "a value has the wrong type") from None
