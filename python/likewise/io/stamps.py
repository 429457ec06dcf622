"""Checks that inputs have not changed."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from likewise._native import range_checksum
from likewise.errors import InvalidInput

if TYPE_CHECKING:
    from likewise.io.inputs import Inputs
    from likewise.io.source.source import InputFile

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
