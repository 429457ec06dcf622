"""Files that are renamed into place only when they are complete, and directories that end with their run."""

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
from likewise.io.places import check_place

# The disk is full, or the file has reached the maximum size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Locks on Windows prevent others from reading the locked bytes, so lock a byte far after the content.
_FAR = 1 << 30

_SUFFIX = ".unfinished"
# Maximum bytes of the target's name in names of temporary files, which are limited to 255 bytes.
_MAX_STEM_BYTES = 150
_MAX_NAMES = 100
_NUMBERS = count()


def try_lock(file: int) -> bool:
    """Lock an open file until it is closed; return False if it is locked elsewhere."""
    if sys.platform == "win32":
        import msvcrt

        place = os.lseek(file, 0, os.SEEK_CUR)
        os.lseek(file, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(file, msvcrt.LK_NBLCK, 1)
        except PermissionError:
            return False
        finally:
            os.lseek(file, place, os.SEEK_SET)
        return True
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class WholeFile:
    """A file that is complete under its name or absent: `.NAME.PID-NUMBER.unfinished` is locked while written."""

    def __init__(self, path: Path) -> None:
        self._named = path
        self._path = Path(os.path.realpath(path)) if path.is_symlink() else path
        if not self._path.parent.is_dir():
            check_place(path, elsewhere="this output must be a local file; copy it to the store")
            raise InvalidInput(
                f"directory {self._path.parent} does not exist; create it, or choose another file", str(path)
            )
        if self._path.exists() and not self._path.is_file():
            raise InvalidInput("not a regular file; choose another", str(path))
        self._unfinished: Path | None = None
        self._lock: int | None = None

    @property
    def unfinished(self) -> Path:
        """The temporary file; created empty on first access."""
        if self._unfinished is not None:
            return self._unfinished
        self._delete_left()
        return self._create()

    @contextmanager
    def named_errors(self) -> Iterator[None]:
        """Name the target instead of the temporary file in errors of the system, as a context."""
        try:
            yield
        except OSError as error:
            # Temporary files that could not be created belong to this target, too.
            is_ours = str(error.filename).startswith(str(self._path.with_name(self._prefix())))
            if error.errno is None or not (error.filename is None or is_ours):
                raise
            raise OSError(error.errno, os.strerror(error.errno), str(self._named)) from error

    def finish(self) -> None:
        """Rename the file into place."""
        self.unfinished.replace(self._path)
        self._unlock()
        self._unfinished = None

    def discard(self) -> None:
        """Delete the unfinished file."""
        if self._unfinished is not None:
            self._unfinished.unlink(missing_ok=True)
            self._unfinished = None
        self._unlock()

    def _create(self) -> Path:
        """Create a new file, locked by this process."""
        for _ in range(_MAX_NAMES):
            # Processes of different machines or containers may have the same number.
            number = f"{next(_NUMBERS):x}{time.time_ns() % 10**9:08x}"
            path = self._path.with_name(f"{self._prefix()}{os.getpid()}-{number}{_SUFFIX}")
            with suppress(FileExistsError):
                made = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
                self._lock = made
                if not _is_locked(made):
                    # Windows cannot rename or delete open files.
                    self._unlock()
                # Otherwise, another writer deleted it before it was locked. Names are never used twice.
                if path.exists():
                    self._unfinished = path
                    return path
                self._unlock()
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(self._named))

    def _prefix(self) -> str:
        name = os.fsencode(self._path.name)
        if len(name) <= _MAX_STEM_BYTES:
            return f".{self._path.name}."
        stem = name[: _MAX_STEM_BYTES - 17].decode(errors="ignore")
        return f".{stem}~{hashlib.blake2b(name, digest_size=8).hexdigest()}."

    def _delete_left(self) -> None:
        """Delete temporary files of the same target whose writers have ended, as far as possible."""
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
        # Reset first: an interrupt after the close must not close another file that reuses the descriptor.
        lock, self._lock = self._lock, None
        if lock is not None:
            os.close(lock)


def write_whole(path: Path, text: str, *, is_synced: bool = False) -> None:
    """Write a text to a file that is complete under its name or absent."""
    whole = WholeFile(path)
    with whole.named_errors():
        try:
            with whole.unfinished.open("w", encoding="utf-8", newline="\n") as file:
                file.write(text)
                if is_synced:
                    file.flush()
                    os.fsync(file.fileno())
            whole.finish()
        finally:
            whole.discard()


def _is_locked(file: int) -> bool:
    """Try to lock an open file; False without lock support, and on Windows, where others could not open it."""
    if sys.platform == "win32":
        return False
    with suppress(OSError):
        return try_lock(file)
    return False


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


PREFIX = "likewise-scratch-"
_LOCK = "lock"
# A directory without a lock is being created, or its creator was killed at that moment.
_YOUNG_S = 3600


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a temporary directory, as a context; directories left by killed runs are deleted first."""
    import tempfile

    root = Path(tempfile.gettempdir())
    with (
        locked_directory(root, PREFIX) as place,
        place_named(f"{root}, the directory for temporary files (set TMPDIR to use another one)", place),
    ):
        yield place


@contextmanager
def locked_directory(root: Path, prefix: str) -> Iterator[Path]:
    """Yield a new directory in `root`, as a context; those of the same prefix left by killed runs are deleted first."""
    import tempfile

    _delete_left(root, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=root, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        # A subdirectory, since the lock is not a file of the run.
        place = Path(name) / "run"
        place.mkdir()
        yield place


@contextmanager
def _locked(directory: Path) -> Iterator[None]:
    """Hold a lock that ends with the process, however it ends."""
    if os.name != "posix":
        yield
        return
    with (directory / "new").open("xb") as file:
        try_lock(file.fileno())
        # Renamed after locking, so that it is never seen unlocked under its name while the run lives.
        (directory / "new").rename(directory / _LOCK)
        yield


def _delete_left(root: Path, prefix: str) -> None:
    """Delete directories of this user whose run has ended."""
    if os.name != "posix":
        return
    import shutil

    with suppress(OSError):
        for entry in os.scandir(root):
            with suppress(OSError):
                is_ours = entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False)
                if is_ours and entry.stat(follow_symlinks=False).st_uid == os.geteuid() and _is_dead(Path(entry.path)):
                    shutil.rmtree(entry.path, ignore_errors=True)


def _is_dead(directory: Path) -> bool:
    try:
        file = os.open(directory / _LOCK, os.O_RDONLY | os.O_NOFOLLOW)
    except FileNotFoundError:
        return time.time() - directory.stat().st_mtime > _YOUNG_S
    try:
        return try_lock(file)
    finally:
        os.close(file)
