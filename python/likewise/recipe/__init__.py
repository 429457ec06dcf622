"""Recipes: all settings that determine a result, validated, with identity and defaults."""

from likewise.recipe.given import as_recipe
from likewise.recipe.recipe import Recipe, check_is_recipe

__all__ = ["Recipe", "as_recipe", "check_is_recipe"]
