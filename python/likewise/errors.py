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

Errors of the operating system are raised as `FileNotFoundError`, `PermissionError` or `OSError`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
    """A document or an input file cannot be used.

    Parameters
    ----------
    message : str
        What was found and how to fix it.
    file : str, optional
        The file with the error.
    row : int, optional
        The row, from 0, in columns and lists; the line, from 1, in text files.

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
    """Two objects were made with incompatible recipes.

    Parameters
    ----------
    message : str
        What was combined, and how to fix it.
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
        Ids to add again.
    removed_ids : sequence of str
        Ids to remove again.
    since_s : int, optional
        Time of this client's last write that the server still has, in seconds since 1970.
    is_complete : bool
        Whether the ids are complete. A client remembers its last 50,000 ids.

    Attributes
    ----------
    place, doc_ids, removed_ids, since_s, is_complete
        As given; ids in the order in which they were acknowledged. Adding an existing document changes nothing.
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
                f"{least}{_counted(self.doc_ids, 'acknowledged document')} (add again): {_listed(self.doc_ids)}"
            )
        if self.removed_ids:
            lost.append(f"{least}{_counted(self.removed_ids, 'removal')} (remove again): {_listed(self.removed_ids)}")
        at = f" at {self.place}" if self.place else ""
        return f"the server{at} restarted from older data and lost {'; '.join(lost) or 'writes'}"


def _counted(ids: Sequence[str], word: str) -> str:
    return f"{len(ids):,} {word}{'' if len(ids) == 1 else 's'}"


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
        return f'{self.purpose} requires an extra: pip install "likewise[{self.extra}]"'
