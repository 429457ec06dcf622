"""What the system refuses, told by the names that users gave."""

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import InvalidInput

# No room, or a file as large as it may be.
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
    """Refuse a source that is no regular file, before it is opened: one of these may wait for ever, or never end.

    Raises
    ------
    InvalidInput
        If it is a directory, a device, a socket or a named pipe.
    OSError
        If there is nothing, or the system refuses.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput("this is no regular file; write what it gives to one", str(path))


class WholeFile:
    """A file that stands complete under its name or not at all, made under another one.

    Parameters
    ----------
    path : Path
        The final name; of a link the file that it names, which need not be there.

    Raises
    ------
    InvalidInput
        If the directory is missing, or something that is no regular file has the name.
    """

    def __init__(self, path: Path) -> None:
        self._named = path
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not self._path.parent.is_dir():
            raise InvalidInput(f"there is no directory {self._path.parent}; make it, or name another file", str(path))
        if self._path.exists() and not self._path.is_file():
            raise InvalidInput("this is no regular file; name another", str(path))
        self.unfinished = self._path.with_name(f".{self._path.name}.unfinished")

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the file itself in errors of the system."""
        try:
            yield
        except OSError as error:
            if error.errno is None or error.filename not in (None, str(self.unfinished)):
                raise
            raise OSError(error.errno, os.strerror(error.errno), str(self._named)) from error

    def finish(self) -> None:
        """Give it its name."""
        self.unfinished.replace(self._path)

    def discard(self) -> None:
        """Delete what was not finished."""
        self.unfinished.unlink(missing_ok=True)
