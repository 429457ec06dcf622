"""Byte strings that sort like the values of a field of `keep`, so that Spark can sort them."""

from datetime import UTC, datetime
from decimal import Decimal

from likewise.batch.read.priority import Date

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_BIAS = 1 << 63
_NUMBER, _DATE = b"n", b"d"
_INFINITE = (1 << 63) - 1


def sort_key(value: Decimal | Date | None, *, largest_first: bool) -> bytes | None:
    """Return bytes whose ascending order is the order of the values; None for None."""
    if value is None:
        return None
    kind, key = (_NUMBER, _of_number(value)) if isinstance(value, Decimal) else (_DATE, _of_date(value))
    return kind + (_inverted(key) if largest_first else key)


def _of_number(value: Decimal) -> bytes:
    if not value:
        return b"\x01"
    sign, digits, _ = value.as_tuple()
    exponent = _INFINITE if value.is_infinite() else value.adjusted()
    written = bytes(digit + 1 for digit in digits).rstrip(b"\x01")
    # Digits are 1 to 10, so that the 0 after them sorts a shorter number first.
    size = (exponent + _BIAS).to_bytes(8, "big") + written + b"\x00"
    return b"\x00" + _inverted(size) if sign else b"\x02" + size


def _of_date(date: Date) -> bytes:
    passed = date.moment - _EPOCH
    microseconds = (passed.days * 86400 + passed.seconds) * 1_000_000 + passed.microseconds
    rest = format(date.rest, "f").partition(".")[2].rstrip("0")
    return (microseconds + _BIAS).to_bytes(8, "big") + rest.encode() + b"\x00"


def _inverted(key: bytes) -> bytes:
    return bytes(255 - byte for byte in key)
