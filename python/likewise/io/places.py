"""Names of places, here or in a store, and checks that inputs have not changed."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise._native import range_checksum
from likewise.errors import InvalidInput

if TYPE_CHECKING:
    from likewise.io.inputs import Inputs
    from likewise.io.source.source import InputFile

URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")
_FILE = re.compile("file://(localhost)?(?=/)", re.IGNORECASE)
# Windows drives have one letter. A Path keeps only one of two slashes.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):[/\\]{1,2}(.*)", re.DOTALL)
_OF_AN_INDEX = (
    "an index is a local directory or is stored on a Redis server or cluster, not in an object store; for Redis, use "
    "--url on the command line or likewise.redis.RedisIndex in Python"
)


def is_remote(name: str | Path) -> bool:
    """Return whether a name is a URL of a store, such as ``s3://bucket/name``, except ``file://``."""
    scheme = URL.match(name) if isinstance(name, str) else None
    return scheme is not None and scheme[1].lower() != "file"


def local_path(name: str | Path) -> str | Path:
    """Return the path of a ``file://`` URL; other names unchanged. Raise InvalidInput for too few slashes."""
    if isinstance(name, str) and (scheme := _FILE.match(name)):
        from urllib.request import url2pathname

        return url2pathname(name[scheme.end() :])
    # It would be a local path, which few users mean, or a path on a host of that name.
    if not is_remote(name) and (address := _ADDRESS.fullmatch(str(name))):
        slashes = ":///" if address[1].lower() == "file" else "://"
        raise InvalidInput(f"write the address as {address[1]}{slashes}{address[2]} (in Python, a str)", str(name))
    return name


def check_place(path: str | os.PathLike[str], *, elsewhere: str = _OF_AN_INDEX) -> None:
    """Raise InvalidInput if a path cannot be a local one: an address such as ``s3://b/x``, or a broken link."""
    check_home(path)
    name = os.fspath(path)
    if address := _ADDRESS.fullmatch(name):
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


def check_regular(path: Path) -> None:
    """Raise if a source is not a regular file, before it is opened: it might block forever, or never end."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise InvalidInput("not a regular file; save its content to a regular file", str(path))


# Bytes at the beginning and at the end of a file.
_END_BYTES = 65536
_DIGEST_BYTES = 16


def stamps(found: Inputs) -> list[dict[str, object]]:
    """Return path, size, modification time (if it has one) and a digest of the first and last bytes of each input."""
    found_stamps, copies = [], set(found.copies)
    for file in found.files:
        stat = file.path.stat()
        is_copy = file.path in copies
        found_stamps.append(
            {
                "path": file.name,
                "num_bytes": stat.st_size,
                "mtime_ns": None if is_copy else stat.st_mtime_ns,
                "ends": f"{range_checksum(file.path, 0, stat.st_size):016x}"
                if is_copy
                else digest_of_ends(file.path, stat.st_size),
            }
        )
    return found_stamps


def digest_of_ends(path: Path, num_bytes: int) -> str:
    """Return a digest of the first and the last 64 kB of a file of this size."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    with path.open("rb") as file:
        digest.update(file.read(_END_BYTES))
        file.seek(max(_END_BYTES, num_bytes - _END_BYTES))
        digest.update(file.read(_END_BYTES))
    return digest.hexdigest()


class Watch:
    """Detects that files change while they are read, by their sizes and modification times."""

    def __init__(self, files: Sequence[InputFile] = ()) -> None:
        self._then: list[tuple[InputFile, tuple[int, int] | None]] = []
        self.add(files)

    def add(self, files: Sequence[InputFile]) -> None:
        """Add files."""
        self._then += [(file, _size_and_time(file.path)) for file in files]

    def check(self) -> None:
        """Raise InvalidInput if a file has changed, before results are published; later changes are no error."""
        watched, self._then = self._then, []
        for file, then in watched:
            # Copies of files in stores are deleted once they are read.
            if _size_and_time(file.path) not in (then, None):
                raise _changed(file)


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_size, stat.st_mtime_ns


def _changed(file: InputFile) -> InvalidInput:
    return InvalidInput("the file changed during reading; run again once it no longer changes", file.name)


def check_unchanged(found: Inputs, then: Sequence[dict[str, object]]) -> None:
    """Raise InvalidInput if an input has changed since these stamps were taken."""
    for file, now, before in zip(found.files, stamps(found), then, strict=True):
        if now != before:
            raise _changed(file)
