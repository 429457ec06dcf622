"""Names that cannot be directories on this machine, detected before one is created."""

import errno
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from likewise.errors import InvalidInput

# Windows drives have one letter. A Path keeps only one of two slashes.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]{1,2}(.*)", re.DOTALL)
_OF_AN_INDEX = (
    "an index is a local directory or is stored on a Redis server or cluster, not in an object store; for Redis, use "
    "--url on the command line or likewise.redis.RedisIndex in Python"
)

# The disk is full, or the file has reached the maximum size.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def check_place(path: str | os.PathLike[str], *, elsewhere: str = _OF_AN_INDEX) -> None:
    """Raise InvalidInput if a path cannot be a directory: an address such as ``s3://b/x``, or a broken link."""
    check_home(path)
    name = os.fspath(path)
    address = _ADDRESS.fullmatch(name)
    # If a directory `s3:` exists, accept its name like any other.
    if address is not None and not Path(f"{address[1]}:").is_dir():
        if address[1].lower() == "file":
            raise InvalidInput("give the path without file://", name)
        raise InvalidInput(elsewhere, f"{address[1]}://{address[2]}")
    for place in (Path(name), *Path(name).parents):
        if place.is_symlink() and _leads_nowhere(place):
            raise InvalidInput(
                f"broken link to {place.readlink()}; delete the link, create its target, or choose another path",
                str(place),
            )


def check_home(path: object) -> None:
    """Raise InvalidInput if this is not a path, or begins with ``~``, which PyArrow replaces and Python does not."""
    if not isinstance(path, str | os.PathLike):
        raise InvalidInput(f"{path!r} is not a path; give a str or a pathlib.Path")
    if str(Path(path)).startswith("~"):
        raise InvalidInput("~ is not replaced here; give the path as os.path.expanduser(path)", str(path))


def _leads_nowhere(link: Path) -> bool:
    try:
        link.stat()
    except FileNotFoundError:
        return True
    except OSError as error:
        return error.errno == errno.ELOOP
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


def check_regular(path: Path) -> None:
    """Raise if a source is not a regular file, before it is opened: it might block forever, or never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput("not a regular file; save its content to a regular file", str(path))
