"""Interpretation of --weights: a rule, a file, or a rule and its file."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.recipe.word_lists import WordList


def take_weights(given: dict[str, Any], fields: Mapping[str, Any], lists: "Mapping[str, WordList]") -> None:
    """Replace the text of --weights in the recipe options by a rule and, if it names a file, a table."""
    from likewise.errors import InvalidParameter
    from likewise.recipe.rules import TABLE_WEIGHTS, WEIGHTS
    from likewise.stages.weights import read_table

    text = given.get("weights")
    if text is None or (text in WEIGHTS and text != "lexicon"):
        return
    rule, colon, path = text.partition(":")
    if not colon or rule not in TABLE_WEIGHTS:
        rule, path = "", text
    if text == "lexicon" or not Path(path).is_file():
        rules = ", ".join(name for name in WEIGHTS if name != "lexicon")
        raise InvalidParameter(
            "weights",
            f"{text!r} given; it must be one of {rules}, or a file: a table from likewise weights, or a lexicon with "
            "lines of term <tab> weight",
        )
    given["table"] = read_table(path, {**fields, **lists})
    if rule:
        given["weights"] = rule
    else:
        del given["weights"]
