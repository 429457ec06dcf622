"""JSON Lines as they arrive: whole lines are read as soon as they are there, and none is waited for."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import BinaryIO

from likewise import _native
from likewise.io.jsonl import JsonlFile
from likewise.io.lines import piece_of
from likewise.io.source import Piece, ReadRules

_READ_BYTES = 1 << 20


@dataclass(frozen=True)
class JsonlStream:
    """Lines of a pipe or a terminal, in as many pieces as they come in.

    Parameters
    ----------
    stream : binary file
        Read once, to its end.
    name : str
        What errors call it.
    rules : ReadRules
        What is read of each row.
    """

    stream: BinaryIO
    name: str = "stdin"
    rules: ReadRules = field(default_factory=ReadRules)

    def pieces(self, work: Path) -> Iterator[Piece]:
        """Yield documents as they arrive; line numbers go on from piece to piece.

        Parameters
        ----------
        work : Path
            A directory; one piece at a time stands there, since lines are parsed from files.
        """
        place = work / "lines.jsonl"
        reader = JsonlFile(place, self.name, 0, self.rules)
        num_lines = 0
        for lines in self._whole_lines():
            place.write_bytes(lines)
            piece = piece_of(_native.read_jsonl_piece(str(place), 0, len(lines), reader.native_rules))
            bad_rows = [replace(bad, line=bad.line + num_lines) for bad in piece.bad_rows]
            yield replace(piece, lines=piece.lines + num_lines, bad_rows=bad_rows)
            num_lines += piece.num_lines

    def _whole_lines(self) -> Iterator[bytes]:
        # A pipe gives what is there; a plain file, or a stream without `read1`, as much as is asked for.
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
