"""Errors of the operating system, reported with the names that users gave."""

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
    """Name the place that a user chose in errors about files written there, as a context."""
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
    """Raise if a source is not a regular file, before it is opened: it might block forever, or never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput("not a regular file; save its content to a regular file", str(path))
