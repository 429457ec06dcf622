"""Operations on texts and recipes alone: compare, plan."""

from typing import Any

from likewise.errors import InvalidParameter
from likewise.measures.comparison import compare
from likewise.recipe.recipe import Recipe
from likewise.service.collections.service import Service
from likewise.stages.plan import plan

Json = dict[str, Any]
# Tables and lists that stand in files beside a recipe.
_BESIDE = ("weights_id", "stop_words_id", "dictionary_id")


class Texts:
    """What a service does without a collection: each method answers one operation, with JSON values.

    Parameters
    ----------
    service : Service
        Whose threads do it.
    """

    def __init__(self, service: Service) -> None:
        self._service = service

    async def compare(self, body: Any) -> Json:  # noqa: ANN401 - bodies are made at the start
        """Return how alike two texts are."""
        recipe = recipe_given(body.recipe)
        found = await self._service.compute(compare, body.a, body.b, recipe)
        shown: Json = found.to_dict()
        return shown

    async def plan(self, body: Any) -> Json:  # noqa: ANN401
        """Return what a recipe resolves into."""
        found = await self._service.compute(plan, recipe_given(body.recipe))
        shown: Json = found.to_dict()
        return shown


def recipe_given(fields: Json | None) -> Recipe:
    """Return the recipe that a client wrote; the preset ``online`` where it wrote none.

    Raises
    ------
    InvalidParameter
        If it is none, or needs what stands in files.
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
