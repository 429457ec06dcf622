"""Temporary directories, deleted when a run ends, and by the next run if it was killed."""

import contextlib
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from likewise.io.output.whole import try_lock
from likewise.io.places import place_named
from likewise.io.source.source import Source

PREFIX = "likewise-scratch-"
_LOCK = "lock"
# A place where nothing can be created.
_NOWHERE = Path(os.devnull)
# A directory without a lock is being created, or its creator was killed at that moment.
_YOUNG_S = 3600


@contextlib.contextmanager
def scratch_directory() -> Iterator[Path]:
    """Yield a temporary directory, as a context; directories left by killed runs are deleted first."""
    import tempfile

    root = Path(tempfile.gettempdir())
    with (
        locked_directory(root, PREFIX) as place,
        place_named(f"{root}, the directory for temporary files (set TMPDIR to use another one)", place),
    ):
        yield place


def scratch_for(sources: Iterable[Source]) -> contextlib.AbstractContextManager[Path]:
    """Return :func:`scratch_directory`, or a path without a directory if reading the sources needs none."""
    are_plain = all(source.is_plain for source in sources)
    return contextlib.nullcontext(_NOWHERE) if are_plain else scratch_directory()


@contextlib.contextmanager
def locked_directory(root: Path, prefix: str) -> Iterator[Path]:
    """Yield a new directory in `root`, as a context; those of the same prefix left by killed runs are deleted first."""
    import tempfile

    _delete_left(root, prefix)
    with tempfile.TemporaryDirectory(prefix=prefix, dir=root, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        # A subdirectory, since the lock is not a file of the run.
        place = Path(name) / "run"
        place.mkdir()
        yield place


@contextlib.contextmanager
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

    with contextlib.suppress(OSError):
        for entry in os.scandir(root):
            with contextlib.suppress(OSError):
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
