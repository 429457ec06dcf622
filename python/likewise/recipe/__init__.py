"""Recipes: all settings that determine a result, validated, with identity and defaults."""
