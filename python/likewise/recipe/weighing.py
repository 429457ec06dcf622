"""Weights of a recipe, given as the name of a rule, as a table, or both."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe.rules import TABLE_WEIGHTS
from likewise.recipe.weights import Weights, check_table

_HOW_TO_GET_A_TABLE = (
    "create one with likewise weights and give its file, or let dedup, pairs or sketch count the input"
)


@dataclass(frozen=True)
class Weighing:
    """Features and weights that a user gave, completed from the table.

    Parameters
    ----------
    weights : str, optional
        Weight rule.
    table : Weights, optional
        Weight table.
    tokens : str, optional
        Kind of token.
    shingle : int, optional
        Number of tokens in a feature.
    seed : int
        Seed of the token hash.
    rules : mapping, optional
        Everything that the table records about its features.
    """

    weights: str | None
    table: Weights | None
    tokens: str | None
    shingle: int | None
    seed: int
    rules: Mapping[str, Any] | None = None


def weighing_of(
    method: str,
    weights: str | Weights | None,
    table: Weights | None,
    tokens: str | None,
    shingle: int | None,
    seed: int | None,
) -> Weighing:
    """Return the weights that a user gave, completed from the features recorded in the table.

    Raises
    ------
    InvalidParameter
        If two tables are given, or weights that use no table are given with one.
    """
    if isinstance(weights, Weights):
        if table is not None:
            raise InvalidParameter("weights", "a table is given twice, in weights and in table")
        weights, table = None, weights
    if table is None:
        return Weighing(weights, None, tokens, shingle, 0 if seed is None else seed)
    rules = table.rules
    return Weighing(
        weights=table.default_rule(method) if weights is None else weights,
        table=table,
        tokens=rules.get("tokens") if tokens is None else tokens,
        shingle=rules.get("shingle") if shingle is None else shingle,
        seed=rules.get("seed", 0) if seed is None else seed,
        rules=rules,
    )


def checked_weights_id(fields: Mapping[str, Any]) -> str | None:
    """Return the identity of a recipe's table, after checking the table against the recipe's fields.

    Raises
    ------
    InvalidParameter
        If the weights do not use a table.
    RecipeMismatch
        If the recipe refers to another table, or this table is for other features.
    """
    table: Weights | None = fields["table"]
    named: str | None = fields["weights_id"]
    if table is None:
        return named
    if fields["weights"] not in TABLE_WEIGHTS:
        raise InvalidParameter("weights", f"{fields['weights']} do not use a table")
    check_table(table, fields)
    if named not in (None, table.weights_id):
        raise RecipeMismatch(
            "the recipe was made with a different weight table (counted weights depend on the data); set weights "
            "again to use this one (--weights with --recipe, or replace(weights_id=None))",
            {"weights_id": (named, table.weights_id)},
        )
    return table.weights_id


def check_weighable(weights: str, table: Weights | None) -> None:
    """Raise InvalidParameter if this rule needs a table and none is given."""
    if weights in TABLE_WEIGHTS and table is None:
        raise InvalidParameter("weights", f"{weights} needs a weight table; {_HOW_TO_GET_A_TABLE}")
