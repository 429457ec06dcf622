"""Sizes in bytes, as numbers and as people write them."""

import math
import re

from likewise.errors import InvalidParameter

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_LARGEST = 2**63 - 1


def parse_size(name: str, text: str) -> int:
    """Return the bytes of a size such as ``64MB`` (decimal units).

    Raises
    ------
    InvalidParameter
        If it is no size.
    """
    found = re.fullmatch(r"\s*(\d{1,30}(?:\.\d{1,30})?)\s*([KMGT]?B?)\s*", text.upper(), re.ASCII)
    unit = "" if found is None else found[2] if found[2].endswith("B") or not found[2] else found[2] + "B"
    if found is None or unit not in _UNITS:
        raise InvalidParameter(name, f"{text!r} given; it must be a size such as 500kB, 64MB or 1GB")
    return int(float(found[1]) * _UNITS[unit])


def take_bytes(name: str, given: object, low: int, high: int = _LARGEST) -> int:
    """Return a number of bytes given as a number or as text such as ``4GB``.

    Parameters
    ----------
    name : str
        The parameter, for errors.
    given : int, float or str
        What was given; a fraction of a byte is dropped.
    low, high : int
        Range.

    Raises
    ------
    InvalidParameter
        If it is no size, or out of range.
    """
    number: float | int | None = None
    if isinstance(given, str):
        number = parse_size(name, given)
    elif hasattr(given, "__index__") and not isinstance(given, bool):
        number = int(given.__index__())
    elif isinstance(given, float) and math.isfinite(given):
        number = int(given)
    if number is None or not low <= number <= high:
        raise InvalidParameter(
            name, f"{given!r} given; it must be a number of bytes from {low}, or a size such as 64MB or 4GB"
        )
    return int(number)
