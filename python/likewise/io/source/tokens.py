"""Tokens that another program has cut: how they are read, and what their weights count."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from likewise._native import Texts
from likewise.checks import as_index
from likewise.errors import InvalidInput
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import MAX_OWN_WEIGHT, OWN_WEIGHTS


@dataclass(frozen=True)
class TokenRules:
    """How lists of tokens are read.

    Parameters
    ----------
    is_weighted : bool
        Whether each entry is a pair of a token and its weight.
    scale : float, optional
        What real weights are multiplied by before they are rounded; without it weights are whole numbers.
    """

    is_weighted: bool
    scale: float | None

    @classmethod
    def of(cls, recipe: Recipe) -> "TokenRules | None":
        """Return the rules of a recipe that takes tokens; None for others."""
        return cls(recipe.weights == OWN_WEIGHTS, recipe.weight_scale) if recipe.takes_tokens else None


def own_weight(token: str, weight: object, scale: float | None, row: int) -> int:
    """Return the weight of a token as a whole number, by the scale of the recipe.

    Raises
    ------
    InvalidInput
        If it is not a number of at least 0, or too large; without a scale, if it is not an integer.
    """
    if scale is None:
        number = as_index(weight)
        if number is not None and 0 <= number <= MAX_OWN_WEIGHT:
            return number
        how = "; for real weights set weight_scale" if isinstance(weight, Real) and float(weight) >= 0 else ""
        raise InvalidInput(
            f"the weight of {token!r} is {weight!r}, not an integer from 0 to {MAX_OWN_WEIGHT}{how}", row=row
        )
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
        raise InvalidInput(f"the weight of {token!r} is {weight!r}, not a number of at least 0", row=row)
    scaled = round(float(weight) * scale)
    if scaled > MAX_OWN_WEIGHT:
        raise InvalidInput(
            f"the weight of {token!r} is {weight!r}, {scaled} when scaled; the limit is {MAX_OWN_WEIGHT}. "
            "Use a smaller weight_scale",
            row=row,
        )
    return scaled


class CutText(str):
    """A document of tokens as it is shown: the tokens with spaces between them.

    Parameters
    ----------
    document : Texts
        It alone, which is what the recipe compares.
    """

    document: Texts

    def __new__(cls, document: Texts) -> "CutText":
        """Make it of a batch of one document."""
        made = super().__new__(cls, document[0])
        made.document = document
        return made


def shown_document(documents: Texts, row: int) -> Any:  # noqa: ANN401 - str, CutText, or bytes
    """Return a document of a batch as it is shown and, by its recipe, compared."""
    return CutText(documents.take(np.array([row], np.int64))) if documents.kind == "tokens" else documents[row]
