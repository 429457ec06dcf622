"""The order of priority: which documents `keep` prefers; ties are broken by row."""

import functools
import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices, stable_order
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput
from likewise.recipe.rules import keep_criteria

# Documents processed at once.
_AT_ONCE = 1 << 18
# Digits of a second after the sixth, which Python's dates drop.
_FINE_FRACTION = re.compile(r"[.,]\d{6}(\d+)")


def priority_order(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows, best first."""
    space = documents.room.space
    keys: list[NDArray[np.int64]] = []
    for rule, field in keep_criteria(keep):
        if rule == "first":
            break
        if rule in ("longest", "shortest"):
            assert documents.text_lengths is not None
            sign = -1 if rule == "longest" else 1
            lengths = space.growing(np.int64)
            for part in slices(len(documents), _AT_ONCE):
                lengths.append(sign * documents.text_lengths[part].astype(np.int64))
            keys.append(lengths.take())
        else:
            keys.append(field_ranks(documents, field, "keep", largest_first=rule == "max"))
    if not keys:
        rows = space.growing(np.int64)
        for part in slices(len(documents), _AT_ONCE):
            rows.append(np.arange(part.start, part.stop))
        return rows.take()
    # Sort by the last criterion first; each further sort is stable.
    order = stable_order(keys.pop(), space)
    for ranks in reversed(keys):
        ordered = space.growing(np.int64)
        for part in slices(len(order), _AT_ONCE):
            ordered.append(ranks[order[part]])
        places, before = stable_order(ordered.take(), space), order
        gathered = space.growing(np.int64)
        for part in slices(len(order), _AT_ONCE):
            gathered.append(before[places[part]])
        order = gathered.take()
    return order


def with_references_first(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows: reference documents in their order, then all others, best first."""
    ranked, first = priority_order(documents, keep), documents.num_references
    if not first:
        return ranked
    rows = documents.room.space.growing(np.int64)
    rows.append(np.arange(first))
    for part in slices(len(ranked), _AT_ONCE):
        some = ranked[part]
        rows.append(some[some >= first])
    return rows.take()


@dataclass(frozen=True, order=True)
class Date:
    """A point in time, and the part of its fraction of a second beyond microseconds."""

    moment: datetime
    rest: Decimal


#: A value that ranks: a number exactly as written, or a date.
Value = Decimal | Date


def field_ranks(documents: Documents, field: str, option: str, *, largest_first: bool = False) -> NDArray[np.int64]:
    """Return the rank of each document by a field of numbers or dates, best first; those without a value last."""
    values = [_value(documents, row, field, text, option) for row, text in enumerate(documents.field(field))]
    kinds = {isinstance(value, Date) for value in values if value is not None}
    if len(kinds) > 1:
        row = next(i for i, v in enumerate(values) if v is not None and isinstance(v, Date) != _first_kind(values))
        file, line = documents.place(row)
        raise InvalidInput(
            f"field {field!r} has numbers in some rows and dates in others; {option} requires one type", file, line
        )
    present: list[Any] = sorted({value for value in values if value is not None}, reverse=largest_first)
    ranks = {value: rank for rank, value in enumerate(present)}
    return np.array([len(ranks) if value is None else ranks[value] for value in values], np.int64)


def _first_kind(values: list[Decimal | Date | None]) -> bool:
    return isinstance(next(value for value in values if value is not None), Date)


def _value(documents: Documents, row: int, field: str, text: str, option: str) -> Decimal | Date | None:
    try:
        return field_value(field, text, option)
    except InvalidInput as error:
        raise InvalidInput(error.message, *documents.place(row)) from None


# Dates and small numbers repeat often.
@functools.lru_cache(maxsize=1 << 15)
def field_value(field: str, text: str, option: str = "keep") -> Decimal | Date | None:
    """Return the value of a field's JSON: a number exactly as written, a date, or None for null, NaN and absent."""
    try:
        # Numbers of any length compare without rounding.
        value = json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=Decimal) if text else None
    except InvalidOperation:
        raise InvalidInput(f"field {field!r} holds {text[:60]}; the exponent is too large") from None
    if value is None or (isinstance(value, Decimal) and value.is_nan()):
        return None
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str) and (date := _date(value)) is not None:
        return date
    raise InvalidInput(f"field {field!r} holds {text[:60]}; {option} requires numbers or ISO 8601 dates")


def _date(text: str) -> Date | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    fraction = _FINE_FRACTION.search(text)
    rest = Decimal(f"0.{fraction[1]}") if fraction else Decimal(0)
    return Date(moment if moment.tzinfo else moment.replace(tzinfo=UTC), rest)
