"""Options for click, and the word lists that options name."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from likewise.recipe.word_lists import WordList


def facts(**given: Any) -> dict[str, Any]:
    """Return the arguments of an option for click."""
    return given


def named_options(options: dict[str, dict[str, Any]]) -> dict[str, Callable[[Any], Any]]:
    """Return options by the names of the fields that they set."""
    return {name: click.option("--" + name.replace("_", "-"), **about) for name, about in options.items()}


def take_word_lists(given: dict[str, Any]) -> "dict[str, WordList]":
    """Read the word lists that recipe options name, and remove these from `given`."""
    named = {name: given.pop(name) for name in ("stop_words", "dictionary") if name in given}
    if not named:
        return {}
    from likewise.recipe.word_lists import WordList

    readers = {"stop_words": WordList.read_stop_words, "dictionary": WordList.read_dictionary}
    return {name: readers[name](path) for name, path in named.items()}
