"""What --weights means: a rule, a file, or a rule and its file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likewise.recipe import Recipe


def take_weights(given: dict[str, Any], recipe: "Recipe | None") -> None:
    """Replace the text of --weights among the options of a recipe by a rule and, where it names a file, its table.

    Parameters
    ----------
    given : dict
        The options that were named.
    recipe : Recipe, optional
        The one that they are added to, where it was read from a file.

    Raises
    ------
    InvalidParameter
        If it is no rule and no file.
    InvalidInput
        If the file is neither a table nor a lexicon.
    """
    from likewise.errors import InvalidParameter
    from likewise.recipe_check import OWN_WEIGHTS, TABLE_WEIGHTS, WEIGHTS
    from likewise.weights import read_table

    text = given.get("weights")
    if text is None or (text in WEIGHTS and text not in ("lexicon", OWN_WEIGHTS)):
        return
    rule, colon, path = text.partition(":")
    if not colon or rule not in TABLE_WEIGHTS:
        rule, path = "", text
    if text in ("lexicon", OWN_WEIGHTS) or not Path(path).is_file():
        rules = ", ".join(name for name in WEIGHTS if name not in ("lexicon", OWN_WEIGHTS))
        raise InvalidParameter(
            "weights",
            f"{text!r} given; it must be one of {rules}, or name a file: a table that likewise "
            "weights made, or a lexicon of lines term <tab> weight",
        )
    if recipe is None:
        given["table"] = read_table(path, tokens=given.get("tokens", "auto"), seed=given.get("seed", 0))
    else:
        given["table"] = read_table(path, tokens=recipe.tokens, seed=recipe.seed)
    if rule:
        given["weights"] = rule
    else:
        del given["weights"]
