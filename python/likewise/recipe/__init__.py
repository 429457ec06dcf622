"""Recipes: everything that an answer depends on, checked, with its identity and its defaults."""

from likewise.recipe.given import as_recipe
from likewise.recipe.recipe import Recipe, check_is_recipe

__all__ = ["Recipe", "as_recipe", "check_is_recipe"]
