"""The errors that Likewise raises.

::

    LikewiseError
    |- InvalidParameter (also a ValueError)
    |- InvalidInput     (also a ValueError)
    |- RecipeMismatch
    |- EngineFailed
    |- StoreError
    |  |- IndexLocked
    |  |- IndexPoisoned
    |  |- LostWrites
    |  `- ForkedError
    `- MissingExtra     (also an ImportError)

The parameters of an error are its attributes. Errors of the operating system are raised as `FileNotFoundError`,
`PermissionError` or `OSError`.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Real

__all__ = [
    "EngineFailed",
    "ForkedError",
    "IndexLocked",
    "IndexPoisoned",
    "InvalidInput",
    "InvalidParameter",
    "LikewiseError",
    "LostWrites",
    "MissingExtra",
    "RecipeMismatch",
    "StoreError",
]


class LikewiseError(Exception):
    """Base class of all Likewise errors."""


class InvalidParameter(LikewiseError, ValueError):
    """A parameter has the wrong type or is out of range.

    Parameters
    ----------
    name : str
        The parameter as users write it.
    message : str
        The value found and the range allowed.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class InvalidInput(LikewiseError, ValueError):
    """A document or an input file cannot be used.

    Parameters
    ----------
    message : str
        What was found and how to fix it.
    file : str, optional
        The file with the error.
    row : int, optional
        The row, from 0, in columns and lists; the line, from 1, in text files.
    """

    def __init__(self, message: str, file: str | None = None, row: int | None = None) -> None:
        super().__init__(message, file, row)
        self.message = message
        self.file = file
        self.row = row

    def __str__(self) -> str:
        if self.file is not None and self.row is not None:
            return f"{self.file}:{self.row}: {self.message}"
        if self.file is not None:
            return f"{self.file}: {self.message}"
        if self.row is not None:
            return f"row {self.row}: {self.message}"
        return self.message


class RecipeMismatch(LikewiseError):
    """Two objects were made with incompatible recipes.

    Parameters
    ----------
    message : str
        What was combined, and how to fix it.
    differences : mapping of str to (object, object)
        The fields that differ, with both values.
    """

    def __init__(self, message: str, differences: Mapping[str, tuple[object, object]]) -> None:
        super().__init__(message, dict(differences))
        self.message = message
        self.differences = dict(differences)

    def __str__(self) -> str:
        fields = ", ".join(f"{name} is {a!r} here and {b!r} there" for name, (a, b) in self.differences.items())
        return f"{self.message}: {fields}" if fields else self.message


class EngineFailed(LikewiseError):
    """An external engine such as Spark failed. Repeat the same call to resume."""


class StoreError(LikewiseError):
    """Data that Likewise stores on disk or on a server cannot be used."""


class IndexLocked(StoreError):
    """Another writer has the index open. Open it with ``read_only=True``, or close the other writer."""


class IndexPoisoned(StoreError):
    """The handle no longer accepts writes. Open the index again to recover.

    A write failed, for example on a full disk; reads still work. Or the index files were deleted, moved or replaced
    while the index was open; in that case, reads also fail.
    """


class LostWrites(StoreError):
    """A Redis or Valkey server lost writes that it had acknowledged to this client. The call changed nothing.

    The server was restarted from an older file, or a replica that lagged took over. The next call
    continues with what the server has now.

    Parameters
    ----------
    place : str
        The server; empty if an HTTP service reports it.
    doc_ids : sequence of str
        Ids to add again, in the order in which they were acknowledged. Adding an existing document changes nothing.
    removed_ids : sequence of str
        Ids to remove again, in the same order.
    since_s : int, optional
        Time of this client's last write that the server still has, in seconds since 1970.
    is_complete : bool
        Whether the ids are complete. A client remembers its last 50,000 ids.
    """

    def __init__(
        self,
        place: str,
        doc_ids: Sequence[str],
        removed_ids: Sequence[str] = (),
        since_s: int | None = None,
        is_complete: bool = True,  # noqa: FBT001, FBT002 - an exception is pickled by its positional arguments
    ) -> None:
        super().__init__(place, doc_ids, removed_ids, since_s, is_complete)
        self.place = place
        self.doc_ids = list(doc_ids)
        self.removed_ids = list(removed_ids)
        self.since_s = since_s
        self.is_complete = is_complete

    def __str__(self) -> str:
        least = "" if self.is_complete else "at least "
        lost = []
        if self.doc_ids:
            lost.append(
                f"{least}{counted(len(self.doc_ids), 'acknowledged document')} (add again): {_listed(self.doc_ids)}"
            )
        if self.removed_ids:
            num = counted(len(self.removed_ids), "removal")
            lost.append(f"{least}{num} (remove again): {_listed(self.removed_ids)}")
        at = f" at {self.place}" if self.place else ""
        return f"the server{at} restarted from older data and lost {'; '.join(lost) or 'writes'}"


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(map(repr, ids[:3])) + (", ..." if len(ids) > 3 else "")


class ForkedError(StoreError):
    """The index, or another one, was open when this process was forked.

    Close all indexes before a fork, or start processes by ``spawn`` or ``forkserver``. Open an index on a server again.
    """


class MissingExtra(LikewiseError, ImportError):
    """An optional package is not installed.

    Parameters
    ----------
    extra : str
        Name of the extra that installs it.
    purpose : str
        The feature that needs it.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(extra, purpose)
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        return f'{self.purpose} requires an extra: pip install "likewise[{self.extra}]"'


@contextmanager
def needs(extra: str, purpose: str) -> Iterator[None]:
    """Raise MissingExtra if an import fails in this context."""
    try:
        yield
    except ImportError as error:
        raise MissingExtra(extra, purpose) from error


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return the value if it is one of the allowed words; otherwise raise InvalidParameter, which lists them."""
    if not isinstance(value, str) or value not in allowed:
        raise InvalidParameter(name, f"{value!r} is not one of {', '.join(allowed)}")
    return value


def check_positive(name: str, value: object) -> float:
    """Return a finite number above 0, such as a time in seconds; otherwise raise InvalidParameter."""
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
            edges = "from 0 to 1" if zero and one else edges
            raise InvalidParameter(name, f"{value!r} is not a number {edges}")
        return number

    return check


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
    number = parse_size(name, given) if isinstance(given, str) else as_index(given)
    if isinstance(given, float) and math.isfinite(given):
        number = int(given)
    if number is None or not low <= number <= high:
        raise InvalidParameter(
            name, f"{given!r} is not a number of bytes of at least {low}, or a size such as 512MB or 4GB"
        )
    return number


def num_threads(threads: int | None) -> int:
    """Return the number of threads of a call; the default is one for each processor available to the process."""
    if threads is not None:
        return check_integer("threads", threads, 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def reason_of(error: BaseException) -> str:
    """Return the first line of an error of another library, or its type if it has no message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def differing(ours: Mapping[str, object], theirs: Mapping[str, object]) -> dict[str, tuple[object, object]]:
    """Return the names of which two mappings have different values, sorted, each with both values."""
    names = sorted({*ours, *theirs})
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


def counted(count: int, name: str, names: str | None = None) -> str:
    """Return a count with its noun: ``1 pair``, ``2,000 pairs``."""
    return f"{count:,} {name}" if count == 1 else f"{count:,} {name + 's' if names is None else names}"
