"""Files that get their names only when they are complete."""

import errno
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from likewise.errors import InvalidInput
from likewise.io.output.locks import try_lock

_SUFFIX = ".unfinished"
# Of a target's name in those of its temporaries: names have 255 bytes at most.
_MAX_STEM_BYTES = 150
_MAX_NAMES = 100
_NUMBERS = count()


class WholeFile:
    """A file that stands complete under its name or not at all, made under another one.

    That is `.NAME.PID-NUMBER.unfinished`, and locked while its writer lives: writers of one target never share a file,
    whether they are processes or threads, and what a killed one left is deleted by the next.

    Parameters
    ----------
    path : Path
        The final name; of a link the file that it names, which need not be there.

    Raises
    ------
    InvalidInput
        If the directory is missing, or something that is not a regular file has the name.
    """

    def __init__(self, path: Path) -> None:
        self._named = path
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not self._path.parent.is_dir():
            raise InvalidInput(
                f"directory {self._path.parent} does not exist; create it, or choose another file", str(path)
            )
        if self._path.exists() and not self._path.is_file():
            raise InvalidInput("not a regular file; choose another", str(path))
        self._unfinished: Path | None = None
        self._lock: int | None = None

    @property
    def unfinished(self) -> Path:
        """Where it is made: a new file, empty when this is first asked for."""
        if self._unfinished is not None:
            return self._unfinished
        self._delete_left()
        return self._create()

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the file itself in errors of the system."""
        try:
            yield
        except OSError as error:
            # A temporary that could not be made is none of anybody's.
            is_ours = str(error.filename).startswith(str(self._path.with_name(self._prefix())))
            if error.errno is None or not (error.filename is None or is_ours):
                raise
            raise OSError(error.errno, os.strerror(error.errno), str(self._named)) from error

    def finish(self) -> None:
        """Give it its name."""
        self.unfinished.replace(self._path)
        self._unlock()
        self._unfinished = None

    def discard(self) -> None:
        """Delete what was not finished."""
        if self._unfinished is not None:
            self._unfinished.unlink(missing_ok=True)
            self._unfinished = None
        self._unlock()

    def _create(self) -> Path:
        """Return a new file that this process holds the lock of."""
        for _ in range(_MAX_NAMES):
            # Processes of different machines or containers may have one number.
            number = f"{next(_NUMBERS):x}{time.time_ns() % 10**9:08x}"
            path = self._path.with_name(f"{self._prefix()}{os.getpid()}-{number}{_SUFFIX}")
            with suppress(FileExistsError):
                made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
                self._lock = made
                if not _is_locked(made):
                    # Windows renames and deletes no file that is open.
                    self._unlock()
                # Else another writer took it for left before it was locked. Nobody makes a second of that name.
                if path.exists():
                    self._unfinished = path
                    return path
                self._unlock()
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._named))

    def _prefix(self) -> str:
        """Return what the names of the temporaries begin with."""
        name = os.fsencode(self._path.name)
        if len(name) <= _MAX_STEM_BYTES:
            return f".{self._path.name}."
        stem = name[: _MAX_STEM_BYTES - 17].decode(errors="ignore")
        return f".{stem}~{hashlib.blake2b(name, digest_size=8).hexdigest()}."

    def _delete_left(self) -> None:
        """Delete temporaries of the same target whose writers are dead; what cannot be told or deleted stays."""
        is_temporary = re.compile(re.escape(self._prefix()) + r"[0-9]+-[0-9a-f]{9,}" + re.escape(_SUFFIX))
        for found in self._path.parent.iterdir():
            if not is_temporary.fullmatch(found.name) or found.is_symlink() or not found.is_file():
                continue
            with suppress(OSError):
                opened = os.open(found, os.O_RDWR)
                try:
                    if _is_locked(opened):
                        found.unlink()
                finally:
                    os.close(opened)

    def _unlock(self) -> None:
        # Forgotten first: an interrupt after the close must not lead to another, of whatever has that number by then.
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def _is_locked(file: int) -> bool:
    """Lock an open file unless someone has; tell whether it is locked now.

    It never is where there are no locks, nor on Windows, where they would bar the writer's other handles.
    """
    if sys.platform == "win32":
        return False
    with suppress(OSError):
        return try_lock(file)
    return False
