"""The description of an index: recipe, layout, age limit, identity; stored on the server and checked on opening."""

import secrets
from dataclasses import dataclass

from likewise import _native
from likewise.checks import check_integer
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, StoreError
from likewise.index.companions import NAMES, companions_of, with_companions
from likewise.index.opening import check_recipe
from likewise.index.redis.layout import FORMAT, Layout, layout_of
from likewise.index.redis.server import Server
from likewise.recipe.recipe import Recipe

_DEFAULT_LAYOUT = "packed"
# Key of the weight table and the lists of words.
_COMPANIONS = b"companions"


@dataclass(frozen=True, eq=False)
class Description:
    """The description of an index.

    Parameters
    ----------
    recipe : Recipe
        The resolved recipe.
    layout : Layout
        Layout of the keys.
    ttl_s : int, optional
        Age in seconds at which documents expire.
    identity : bytes
        Random value, drawn when the index was created.
    """

    recipe: Recipe
    layout: Layout
    ttl_s: int | None
    identity: bytes


def open_description(
    server: Server, recipe: Recipe | None, layout: str | None, ttl: int | None, *, create: bool
) -> Description:
    """Return the description of the index on the server. If there is none, create it.

    Raises
    ------
    RecipeMismatch, InvalidParameter
        If an argument does not match the existing index, or the recipe is not supported.
    InvalidInput
        If there is no index, and no recipe is given or `create` is False.
    StoreError
        If the keys are not an index, or it has another format.
    """
    server.check()
    if ttl is not None:
        ttl = check_integer("ttl", ttl, 1, 2**31)
    stored = server.call("HGETALL", server.prefix + b"meta")
    if not stored:
        if recipe is None or not create:
            raise InvalidInput(
                f"no index with this prefix on {server.name}; create one with a recipe, "
                "Recipe.simhash(within=3), or `likewise index create --url`"
            )
        recipe = check_served(recipe)
        chosen = layout_of(recipe, _DEFAULT_LAYOUT if layout is None else layout)
        server.set_layout(chosen)
        # Written first, so that no index lacks them, and named by content, since another client may create the index.
        for name, content in companions_of(recipe).items():
            server.call("HSET", server.prefix + _COMPANIONS, _companion(name, recipe), content)
        stored = server.run("create", *_fields(recipe, chosen, ttl))
        # Another client may have created the index first: its description applies.
        stored = dict(zip(stored[::2], stored[1::2], strict=True))
    return _checked(server, {k.decode(): v for k, v in stored.items()}, recipe, layout, ttl)


def check_served(recipe: Recipe) -> Recipe:
    """Return the recipe, resolved.

    Raises
    ------
    InvalidParameter
        If an index on a server does not support it.
    """
    if not recipe.is_distance_only:
        raise InvalidParameter(
            "recipe", "an index on a server supports only SimHash with a distance: Recipe.simhash(within=3)"
        )
    return check_recipe(recipe)


def _companion(name: str, recipe: Recipe) -> str:
    """Return the field name of a companion: data that a recipe reads in addition to its fields."""
    return f"{name}:{getattr(recipe, f'{name}_id')}"


def _with_companions(server: Server, recipe: Recipe) -> Recipe:
    """Return a recipe with the weight table and word lists that were given when the index was created."""
    names = [name for name in NAMES if getattr(recipe, f"{name}_id") is not None]
    if not names:
        return recipe
    fields = [_companion(name, recipe) for name in names]
    found = server.call("HMGET", server.prefix + _COMPANIONS, *fields)
    lost = [name for name, content in zip(names, found, strict=True) if content is None]
    if lost:
        raise StoreError(f"the index on {server.name} has lost its {lost[0]}; open it with the recipe that created it")
    return with_companions(recipe, dict(zip(names, found, strict=True)))


def _fields(recipe: Recipe, layout: Layout, ttl: int | None) -> list[object]:
    fields: dict[str, object] = {
        "format": FORMAT,
        "identity": secrets.token_hex(16),
        "recipe": recipe.to_json(),
        "recipe_id": recipe.recipe_id,
        "sketch_id": recipe.sketch_id,
        "layout": layout.kind,
        "library": _native.__version__,
    }
    if ttl is not None:
        fields["ttl_s"] = ttl
    return [one for field in fields.items() for one in field]


def _checked(
    server: Server, stored: dict[str, bytes], recipe: Recipe | None, layout: str | None, ttl: int | None
) -> Description:
    if "format" not in stored or "recipe" not in stored:
        raise StoreError(f"the keys with this prefix on {server.name} are not a Likewise index")
    if int(stored["format"]) != FORMAT:
        raise StoreError(
            f"the index on {server.name} has format {int(stored['format'])}; this version reads format {FORMAT}"
        )
    text, recipe_id = stored["recipe"].decode(), stored["recipe_id"].decode()
    if recipe is None or (recipe.is_incomplete and recipe.recipe_id == recipe_id):
        recipe = _with_companions(server, Recipe.from_json(text))
    if recipe.recipe_id != recipe_id:
        differing = recipe.differences(Recipe.from_json(text)) or {"recipe_id": (recipe.recipe_id, recipe_id)}
        raise RecipeMismatch(f"the index on {server.name} has a different recipe; open it without one", differing)
    kind = stored["layout"].decode()
    if layout is not None and layout != kind:
        raise InvalidParameter("layout", f"{layout!r} does not match the index on {server.name}, which has {kind!r}")
    ttl_s = int(stored["ttl_s"]) if "ttl_s" in stored else None
    if ttl is not None and ttl != ttl_s:
        raise InvalidParameter("ttl", f"{ttl} does not match the index on {server.name}, which has {ttl_s}")
    chosen = layout_of(recipe, kind)
    server.set_layout(chosen)
    return Description(check_served(recipe), chosen, ttl_s, stored["identity"])
