"""What makes the features of a recipe, whatever is done with them: one set of fields for every method that has some."""

from collections.abc import Mapping
from typing import Any

from likewise.recipe_defaults import FeatureChoice, features_of
from likewise.recipe_tokens import text_options
from likewise.recipe_weights import Weighing


def feature_fields(
    method: str, tokens: str, weighing: Weighing, *, weights_id: str | None, hash: str, text: Mapping[str, Any]
) -> tuple[FeatureChoice, dict[str, Any]]:
    """Return the features chosen, and the fields of a recipe that say so.

    Parameters
    ----------
    method : str
        The method, which has features.
    tokens : str
        Kind of token.
    weighing : Weighing
        What the user named, completed from the table.
    weights_id : str, optional
        Identity of the table.
    hash : str
        Hash of a token.
    text : mapping
        Options of :class:`likewise.recipe_tokens.TextOptions` that the user named.

    Raises
    ------
    InvalidParameter
        If there is no such kind of token, or no such option.
    """
    features = features_of(method, tokens, weighing.shingle, weighing.weights)
    fields = {
        "method": method,
        "tokens": tokens,
        "shingle": features.shingle,
        "weights": features.weights,
        "weights_id": weights_id,
        "table": weighing.table,
        "seed": weighing.seed,
        "hash": hash,
        **text_options(text, weighing.rules),
    }
    return features, fields
