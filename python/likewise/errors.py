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
    |  `- ForkedError
    `- MissingExtra     (also an ImportError)

What the system refuses stays `FileNotFoundError`, `PermissionError`, `OSError`.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "EngineFailed",
    "ForkedError",
    "IndexLocked",
    "IndexPoisoned",
    "InvalidInput",
    "InvalidParameter",
    "LikewiseError",
    "MissingExtra",
    "RecipeMismatch",
    "StoreError",
]


class LikewiseError(Exception):
    """Base of every error of this package."""


class InvalidParameter(LikewiseError, ValueError):
    """A parameter is outside its range or of the wrong kind.

    Parameters
    ----------
    name : str
        The parameter as users write it.
    message : str
        Value found and range allowed.

    Attributes
    ----------
    name, message : str
        As given.
    """

    def __init__(self, name: str, message: str) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message

    def __str__(self) -> str:
        return f"{self.name}: {self.message}"


class InvalidInput(LikewiseError, ValueError):
    """A document or a file of documents cannot be used.

    Parameters
    ----------
    message : str
        What was found and how to go on.
    file : str, optional
        The file it stands in.
    row : int, optional
        The row: from 0 in columns and lists. Readers of text files give the line, from 1.

    Attributes
    ----------
    message : str
    file : str or None
    row : int or None
        As given.
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
    """Two things were made by recipes that do not fit together.

    Parameters
    ----------
    message : str
        What was put together, and the remedy.
    differences : mapping of str to (object, object)
        The fields that differ, with both values.

    Attributes
    ----------
    message : str
    differences : dict of str to (object, object)
        As given.
    """

    def __init__(self, message: str, differences: Mapping[str, tuple[object, object]]) -> None:
        super().__init__(message, dict(differences))
        self.message = message
        self.differences = dict(differences)

    def __str__(self) -> str:
        fields = ", ".join(f"{name} is {a!r} here and {b!r} there" for name, (a, b) in self.differences.items())
        return f"{self.message}: {fields}" if fields else self.message


class EngineFailed(LikewiseError):
    """What does the work in place of this process gave up, Spark for instance: the same call goes on where it stood."""


class StoreError(LikewiseError):
    """What Likewise keeps on disk cannot be used."""


class IndexLocked(StoreError):
    """Another writer has the index. Any number may read it: open it with ``read_only=True``, or close the other."""


class IndexPoisoned(StoreError):
    """Nothing more is written through this handle; opening the index again recovers.

    A write failed, for instance on a full disk: reads go on. Or the files of the index were deleted, moved or replaced
    while it was open: then reads fail too.
    """


class ForkedError(StoreError):
    """The index was opened before this process was forked, or another was open then.

    Close every index before a fork, or start processes by ``spawn`` or ``forkserver``; one on a server is opened again.
    """


class MissingExtra(LikewiseError, ImportError):
    """A package is missing that only some functions need.

    Parameters
    ----------
    extra : str
        Name of the extra that brings it.
    purpose : str
        What needs it.

    Attributes
    ----------
    extra, purpose : str
        As given.
    """

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(extra, purpose)
        self.extra = extra
        self.purpose = purpose

    def __str__(self) -> str:
        return f'{self.purpose} needs an extra: pip install "likewise[{self.extra}]"'
