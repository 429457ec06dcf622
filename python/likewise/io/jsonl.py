"""JSON Lines: read in pieces, read again by offset, written back byte for byte."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.io.source import BadRow, Piece, ReadRules, as_array


@dataclass(frozen=True)
class JsonlFile:
    """A file of one JSON object a line.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        Path relative to the common parent of the inputs, with slashes.
    num_bytes : int
        Its size.
    rules : ReadRules
        What is read of it.
    is_copy : bool
        Whether it is a copy of standard input, whose times mean nothing.
    """

    path: Path
    name: str
    num_bytes: int
    rules: ReadRules = field(default_factory=ReadRules)
    is_copy: bool = False

    @cached_property
    def _native_rules(self) -> _native.JsonlRules:
        rules = self.rules
        return _native.JsonlRules(
            list(rules.text_fields),
            "id" if rules.id_field is None else rules.id_field,
            rules.id_field is not None,
            list(rules.fields),
            rules.max_document_bytes,
        )

    def pieces(self, piece_bytes: int) -> list[tuple[int, int]]:
        """Cut the file at line ends into (offset, length)."""
        return _native.jsonl_pieces(str(self.path), piece_bytes)

    @property
    def can_read_again(self) -> bool:
        """Single texts are cheap to read again."""
        return True

    def read(self, start: int, length: int) -> Iterator[Piece]:
        """Read the lines of one piece."""
        piece = _native.read_jsonl_piece(str(self.path), start, length, self._native_rules)
        yield Piece(
            texts=piece.texts,
            ids=piece.ids,
            has_id=as_array(piece.has_id, np.uint8),
            offsets=as_array(piece.offsets, np.uint64),
            lengths=as_array(piece.lengths, np.uint32),
            lines=as_array(piece.line_numbers, np.uint32),
            num_lines=piece.num_lines,
            num_blank=piece.num_blank,
            fields=piece.fields,
            bad_rows=[BadRow(*error) for error in piece.errors],
        )

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> _native.Texts:
        """Read the texts of these lines again."""
        return _native.read_jsonl_texts(str(self.path), offsets, lengths, self._native_rules)
