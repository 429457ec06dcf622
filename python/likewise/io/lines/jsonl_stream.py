"""JSON Lines from a stream: whole lines are read as soon as they arrive."""

import contextlib
import io
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from likewise import _native
from likewise.io.lines.jsonl import JsonlFile
from likewise.io.lines.lines import piece_of
from likewise.io.source.source import Piece, ReadRules

_READ_BYTES = 1 << 20


def widen_pipe(stream: BinaryIO) -> None:
    """Enlarge the buffer of a pipe to one read, so that lines of a fast writer arrive in large blocks (Linux only)."""
    with contextlib.suppress(ImportError, AttributeError, OSError, ValueError):
        import fcntl

        fcntl.fcntl(stream.fileno(), fcntl.F_SETPIPE_SZ, _READ_BYTES)


def write_all(file: io.RawIOBase | io.FileIO, content: bytes) -> None:
    """Write all bytes, in several calls if needed."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]


@dataclass(frozen=True)
class JsonlStream:
    """Lines of a pipe or a terminal, in pieces as they arrive."""

    # The stream, read once to its end
    stream: BinaryIO
    name: str = "stdin"
    rules: ReadRules = field(default_factory=ReadRules)

    def pieces(self, work: Path) -> Iterator[Piece]:
        """Yield documents as they arrive; line numbers continue from piece to piece."""
        place = work / "lines.jsonl"
        reader = JsonlFile(place, self.name, 0, self.rules)
        num_lines = 0
        widen_pipe(self.stream)
        # Overwritten, never truncated: some file systems flush truncated files, which takes longer than all else.
        with place.open("wb", buffering=0) as file:
            for lines in self._whole_lines():
                file.seek(0)
                write_all(file, lines)
                piece = piece_of(_native.read_jsonl_piece(str(place), 0, len(lines), reader.native_rules))
                bad_rows = [replace(bad, line=bad.line + num_lines) for bad in piece.bad_rows]
                yield replace(piece, lines=piece.lines + num_lines, bad_rows=bad_rows)
                num_lines += piece.num_lines

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return an empty list: earlier lines cannot be read again."""
        return []

    def _whole_lines(self) -> Iterator[bytes]:
        # A pipe returns what is available; a plain file, or a stream without `read1`, as much as is requested.
        read = getattr(self.stream, "read1", self.stream.read)
        parts: list[bytes] = []
        while data := read(_READ_BYTES):
            end = data.rfind(b"\n") + 1
            if end:
                yield b"".join([*parts, data[:end]])
                parts = []
            parts.append(data[end:])
        if rest := b"".join(parts):
            yield rest
