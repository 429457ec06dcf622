"""Tables and word lists that a recipe refers to but that its JSON does not contain, as bytes and as files.

An index and a finished run store the weight table, stop words and dictionary themselves: the process that opens them
has no input to count, and a snapshot or a server's backup must be complete.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from likewise.errors import InvalidInput
from likewise.recipe.fields import canonical_json
from likewise.recipe.weights import Weights
from likewise.recipe.word_lists import WordList

_LISTS = ("stop_words", "dictionary")
NAMES = ("weights", *_LISTS)
#: Directory with these files in the output of a run, next to its summary.
RECIPE = "recipe"
_FILES = {"weights": "weights.lww", "stop_words": "stop_words.json", "dictionary": "dictionary.json"}


class Completed(Protocol):
    """A recipe, as far as this module needs it."""

    @property
    def table(self) -> Weights | None:
        """Its weight table."""

    @property
    def stop_words(self) -> WordList | None:
        """Its stop words."""

    @property
    def dictionary(self) -> WordList | None:
        """Its dictionary."""


def companions_of(recipe: Completed) -> dict[str, bytes]:
    """Return what a recipe needs in addition to its fields: its weight table as in the file, word lists as JSON."""
    found = {} if recipe.table is None else {"weights": recipe.table.to_bytes()}
    for name in _LISTS:
        words: WordList | None = getattr(recipe, name)
        if words is not None:
            found[name] = canonical_json({"words": [list(entry) for entry in words.entries]}).encode()
    return found


def fields_of_companions(kept: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the data from :func:`companions_of` as fields of a recipe, which checks them against its identities."""
    fields: dict[str, Any] = {}
    if "weights" in kept:
        fields["table"] = Weights.from_bytes(kept["weights"])
    for name in _LISTS:
        if name in kept:
            try:
                fields[name] = WordList(tuple(entry) for entry in json.loads(kept[name])["words"])
            except (ValueError, KeyError, TypeError) as error:
                raise InvalidInput(f"the {name} stored with the recipe are corrupt") from error
    return fields


def write_companions(recipe: Completed, directory: Path) -> None:
    """Write what a recipe needs in addition to its fields to a directory: it explains the run, and repeats it."""
    for name, content in companions_of(recipe).items():
        directory.mkdir(exist_ok=True)
        (directory / _FILES[name]).write_bytes(content)


def read_companions(directory: Path) -> dict[str, Any]:
    """Return the fields that :func:`write_companions` wrote; none if the directory is missing."""
    files = {name: directory / file for name, file in _FILES.items() if (directory / file).is_file()}
    try:
        return fields_of_companions({name: file.read_bytes() for name, file in files.items()})
    except InvalidInput as error:
        raise InvalidInput(f"the stored recipe is damaged: {error.message}; repeat the run", str(directory)) from error
