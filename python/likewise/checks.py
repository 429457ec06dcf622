"""Validation of arguments: choices, numbers, sizes in bytes, threads. Formatting of counts."""

import math
import os
import re
from collections.abc import Callable
from numbers import Real

from likewise.errors import InvalidParameter


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return the value if it is one of the allowed words; otherwise raise InvalidParameter, which lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidParameter(name, f"{value!r} is not one of {', '.join(allowed)}")
    return value


def check_seconds(name: str, value: object) -> float:
    """Return a time in seconds; raise InvalidParameter if it is not a finite number above 0."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < math.inf:
        raise InvalidParameter(name, f"{value!r} is not a number above 0")
    return float(value)


def check_integer(name: str, value: object, low: int, high: int, step: int = 1) -> int:
    """Return an integer; raise InvalidParameter, which states the range, if it is out of range."""
    number = as_index(value)
    if number is None or not low <= number <= high or number % step:
        multiple = f" that is a multiple of {step}" if step > 1 else ""
        raise InvalidParameter(name, f"{value!r} is not an integer from {low} to {high}{multiple}")
    return number


def as_index(value: object) -> int | None:
    """Return an integer value as int; None for other values and for bool."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except TypeError:
        # Arrays have the method but raise TypeError.
        return None


def fraction_check(*, zero: bool, one: bool) -> Callable[[str, object], float]:
    """Return a check for numbers from 0 to 1; `zero` and `one` include these values."""

    def check(name: str, value: object) -> float:
        try:
            number = None if isinstance(value, bool | str) or not hasattr(value, "__float__") else float(value)
        except (TypeError, OverflowError):
            number = None
        if number is None or not (0 < number < 1 or (zero and number == 0) or (one and number == 1)):
            edges = f"{'of at least' if zero else 'above'} 0 {'and at most' if one else 'and below'} 1"
            raise InvalidParameter(name, f"{value!r} is not a number {edges}")
        return number

    return check


def check_fraction(name: str, value: object) -> float:
    """Return a number between 0 and 1, both excluded; otherwise raise InvalidParameter."""
    return float(fraction_check(zero=False, one=False)(name, value))


_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LARGEST = 2**63 - 1


def parse_size(name: str, text: str) -> int:
    """Return the number of bytes of a size such as ``64MB`` (decimal units)."""
    found = re.fullmatch(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([KMGT]?B?)\s*", text.upper(), re.ASCII)
    unit = "" if found is None else found[2] if found[2].endswith("B") or not found[2] else found[2] + "B"
    if found is None or unit not in _UNITS:
        raise InvalidParameter(name, f"{text!r} is not a size such as 500kB, 64MB or 1GB")
    return int(float(found[1]) * _UNITS[unit])


def take_bytes(name: str, given: object, low: int, high: int = _LARGEST) -> int:
    """Return a number of bytes, given as a number or as text such as ``4GB``."""
    number: float | int | None = None
    if isinstance(given, str):
        number = parse_size(name, given)
    elif hasattr(given, "__index__") and not isinstance(given, bool):
        number = int(given.__index__())
    elif isinstance(given, float) and math.isfinite(given):
        number = int(given)
    if number is None or not low <= number <= high:
        raise InvalidParameter(
            name, f"{given!r} is not a number of bytes of at least {low}, or a size such as 512MB or 4GB"
        )
    return int(number)


def num_threads(threads: int | None) -> int:
    """Return the number of threads of a call; the default is one for each processor available to the process."""
    if threads is not None:
        return check_integer("threads", threads, 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def counted(count: int, name: str, names: str | None = None) -> str:
    """Return a count with its noun: ``1 pair``, ``2,000 pairs``."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name + 's' if names is None else names}"
