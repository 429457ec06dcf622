"""Errors of the system, reported with the names that users gave."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import InvalidInput

# The disk is full, or the file has reached the maximum size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def place_named(name: str, inside: Path | None = None) -> Iterator[None]:
    """Name the place that a user chose, as a context, in errors of what is written there.

    Parameters
    ----------
    name : str
        What errors name instead of nothing.
    inside : Path, optional
        A directory, instead of whose files they name it too.

    Raises
    ------
    OSError
        Of the same number. Errors about other files pass as they are.
    """
    try:
        yield
    except OSError as error:
        number = error.errno
        file = error.filename
        is_inside = inside is not None and isinstance(file, str) and Path(file).is_relative_to(inside)
        if number is None or not (is_inside or (file is None and number in FULL)):
            raise
        raise OSError(number, os.strerror(number), name) from error


def check_regular(path: Path) -> None:
    """Refuse a source that is not a regular file, before it is opened: it may block forever, or never end.

    Raises
    ------
    InvalidInput
        If it is a directory, a device, a socket or a named pipe.
    OSError
        If there is nothing, or the system refuses.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput("not a regular file; save its content to a regular file", str(path))
