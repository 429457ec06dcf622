"""The order of priority: whom `keep` prefers, ties by row."""

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.dedup.documents import Documents
from likewise.errors import InvalidInput
from likewise.recipe_check import keep_criteria

# Digits of a second behind the sixth, which Python's dates drop.
_FINE_FRACTION = re.compile(r"[.,]\d{6}(\d+)")


def keep_needs(keep: str) -> tuple[bool, tuple[str, ...]]:
    """Return whether `keep` asks for text lengths, and which further fields it asks for."""
    criteria = keep_criteria(keep)
    fields = tuple(dict.fromkeys(field for _, field in criteria if field))
    return any(rule in ("longest", "shortest") for rule, _ in criteria), fields


def priority_order(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows, best first.

    Parameters
    ----------
    documents : Documents
        With the lengths and fields that `keep` asks for.
    keep : str
        Criteria as in a recipe.

    Returns
    -------
    ndarray of shape (n,), int64
        A permutation of the rows.

    Raises
    ------
    InvalidInput
        If a field holds neither numbers nor dates, or both.
    """
    keys: list[NDArray[np.int64]] = []
    for rule, field in keep_criteria(keep):
        if rule == "first":
            break
        if rule in ("longest", "shortest"):
            assert documents.text_lengths is not None
            lengths = documents.text_lengths.astype(np.int64)
            keys.append(-lengths if rule == "longest" else lengths)
        else:
            keys.append(_field_ranks(documents, field, largest_first=rule == "max"))
    rows = np.arange(len(documents), dtype=np.int64)
    return np.lexsort((rows, *reversed(keys))) if keys else rows


def with_references_first(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows, reference documents in their order before all others, which come best first."""
    ranked, first = priority_order(documents, keep), documents.num_references
    return ranked if not first else np.concatenate([np.arange(first), ranked[ranked >= first]])


@dataclass(frozen=True, order=True)
class _Date:
    """A moment, and what its fraction of a second has beyond microseconds."""

    moment: datetime
    rest: Decimal


def _field_ranks(documents: Documents, field: str, *, largest_first: bool) -> NDArray[np.int64]:
    values = [_value(documents, row, field, text) for row, text in enumerate(documents.field(field))]
    kinds = {isinstance(value, _Date) for value in values if value is not None}
    if len(kinds) > 1:
        row = next(i for i, v in enumerate(values) if v is not None and isinstance(v, _Date) != _first_kind(values))
        file, line = documents.place(row)
        raise InvalidInput(
            f"field {field!r} holds numbers in some rows and dates in others; keep needs one kind", file, line
        )
    present: list[Any] = sorted({value for value in values if value is not None}, reverse=largest_first)
    ranks = {value: rank for rank, value in enumerate(present)}
    return np.array([len(ranks) if value is None else ranks[value] for value in values], np.int64)


def _first_kind(values: list[Decimal | _Date | None]) -> bool:
    return isinstance(next(value for value in values if value is not None), _Date)


def _value(documents: Documents, row: int, field: str, text: str) -> Decimal | _Date | None:
    """Return a number exactly as it is written, a date, or None for null, NaN and absent."""
    try:
        # Numbers of any length compare without rounding.
        value = json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=Decimal) if text else None
    except InvalidOperation:
        file, line = documents.place(row)
        raise InvalidInput(f"field {field!r} holds {text[:60]}; its exponent is too large", file, line) from None
    if value is None or (isinstance(value, Decimal) and value.is_nan()):
        return None
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str) and (date := _date(value)) is not None:
        return date
    file, line = documents.place(row)
    raise InvalidInput(f"field {field!r} holds {text[:60]}; keep needs numbers or ISO 8601 dates", file, line)


def _date(text: str) -> _Date | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    fraction = _FINE_FRACTION.search(text)
    rest = Decimal(f"0.{fraction[1]}") if fraction else Decimal(0)
    return _Date(moment if moment.tzinfo else moment.replace(tzinfo=UTC), rest)
