"""Tokens that another program produced: how they and their weights are read."""

import math
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from likewise._native import Texts
from likewise.checks import as_index
from likewise.errors import InvalidInput
from likewise.recipe.fields import MAX_OWN_WEIGHT, OWN_WEIGHTS
from likewise.recipe.recipe import Recipe


@dataclass(frozen=True)
class TokenRules:
    """How lists of tokens are read."""

    # Whether each entry is a pair of a token and its weight
    is_weighted: bool
    # Factor for real weights before rounding; if None, weights must be integers
    scale: float | None

    @classmethod
    def of(cls, recipe: Recipe) -> "TokenRules | None":
        """Return the rules of a recipe that takes tokens; None for other recipes."""
        return cls(recipe.weights == OWN_WEIGHTS, recipe.weight_scale) if recipe.takes_tokens else None


def own_weight(token: str, weight: object, scale: float | None, row: int) -> int:
    """Return the weight of a token as an integer, using the scale of the recipe."""
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
    """The displayed form of a document of tokens: the tokens separated by spaces."""

    # The document as a batch of one, which the recipe compares
    document: Texts

    def __new__(cls, document: Texts) -> "CutText":
        """Create it from a batch of one document."""
        made = super().__new__(cls, document[0])
        made.document = document
        return made


def shown_document(documents: Texts, row: int) -> Any:
    """Return a document of a batch in its displayed form, from which the recipe can also compare it."""
    return CutText(documents.take(np.array([row], np.int64))) if documents.kind == "tokens" else documents[row]
