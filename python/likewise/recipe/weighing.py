"""How a recipe comes by its weights: by a rule's name, by a table, or by both."""

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
    """What a user named of the features and their weights, completed from the table.

    Parameters
    ----------
    weights : str, optional
        The rule.
    table : Weights, optional
        What it reads.
    tokens : str, optional
        Kind of token.
    shingle : int, optional
        Tokens in a feature.
    seed : int
        Seed of the token hash.
    rules : mapping, optional
        All that the table knows of its features.
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
    """Return the weights that a user named; what a table knows of its features counts where the user names nothing.

    Raises
    ------
    InvalidParameter
        If two tables are given, or a table for weights that read none.
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
    """Return the identity of the table of a recipe, given as its fields, once the table is checked against them.

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
    """Raise InvalidParameter if features cannot be weighed by this rule, without its table."""
    if weights in TABLE_WEIGHTS and table is None:
        raise InvalidParameter("weights", f"{weights} needs a weight table; {_HOW_TO_GET_A_TABLE}")
