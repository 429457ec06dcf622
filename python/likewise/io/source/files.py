"""The common interface of input files: their location, reading rules, and other data that a run needs."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput
from likewise.io.source.added import Added
from likewise.io.source.cut import Cut
from likewise.io.source.source import BaseSource, KeptTexts, ReadRules, ReadTask, each_piece

# Bytes of texts that are read again at once.
_BYTES_AGAIN = 8 << 20
# Assumed bytes of a document if the file cannot be examined.
_DOCUMENT_BYTES = 1000


@dataclass(frozen=True, eq=False)
class Kept:
    """The part of an input that is written back."""

    # The kept lines (bytes, without newline), records or rows, in ascending order
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    threads: int
    # Returns the texts of a slice of them if the run spooled them, to avoid decoding them again
    texts: KeptTexts | None = None
    # Fields to append to each row
    added: Added | None = None
    # Parts of texts to remove, by position among the written rows
    cut: Cut | None = None


@dataclass(eq=False)
class InputFile(BaseSource, ABC):
    """A file that a run reads, and whose kept documents it writes back in the same format."""

    # Whether the file is one document, which is not written if it is removed.
    is_document: ClassVar[bool] = False
    # Whether documents are lines or records that end in newlines.
    has_lines: ClassVar[bool] = False
    # Whether fields can be added to the rows.
    takes_fields: ClassVar[bool] = False
    # Whether a field may contain a list of tokens.
    takes_tokens: ClassVar[bool] = False

    path: Path
    # Path relative to the common parent of the inputs, with slashes; the id of a text file's document
    name: str
    num_bytes: int
    rules: ReadRules = field(default_factory=ReadRules)

    @abstractmethod
    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the file into parts of about this size, in order."""

    @abstractmethod
    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept documents to a new file of the same format and compression."""

    @property
    def place(self) -> Path:
        """What a user gives to read the file."""
        return self.path

    @property
    def keeps_emptied(self) -> bool:
        """Whether a row stays if only whitespace is left of its text: its lists hold more than what counts."""
        return not self.is_document and "[]" in self.rules.text_fields[0]

    def check_cut(self) -> None:
        """Raise InvalidInput if parts of texts in this file cannot be removed."""

    def texts_again(
        self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], work: Path
    ) -> Iterator[tuple[slice, Texts]]:
        """Yield the texts of documents again, in parts; if single texts are expensive, the whole file is read again."""
        if self.can_read_again:
            batch = np.cumsum(lengths, dtype=np.int64) // _BYTES_AGAIN
            bounds = [0, *(1 + np.flatnonzero(np.diff(batch))).tolist(), len(offsets)]
            for low, high in pairwise(bounds if len(offsets) else []):
                yield slice(low, high), self.read_texts(offsets[low:high], lengths[low:high])
            return
        done = 0
        for _, piece in each_piece(self, _BYTES_AGAIN, work) if len(offsets) else ():
            high = int(np.searchsorted(offsets, piece.offsets[-1:], side="right").max(initial=done))
            if high > done:
                rows = np.searchsorted(piece.offsets, offsets[done:high])
                if not np.array_equal(piece.offsets[rows], offsets[done:high]):
                    raise InvalidInput("the file changed during the run", self.name)
                yield slice(done, high), piece.texts.take(rows)
                done = high
        if done < len(offsets):
            raise InvalidInput("the file changed during the run", self.name)

    def text_bytes(self) -> float:
        """Return the approximate bytes of text in the file."""
        return float(self.num_bytes)

    def estimated_documents(self) -> float:
        """Return the approximate number of documents, estimated without reading the whole file."""
        return self.text_bytes() / _DOCUMENT_BYTES

    def work_bytes(self) -> int:
        """Return the additional memory in bytes that a thread needs for the format."""
        return 0

    def unpacked_bytes(self) -> float:
        """Return the approximate bytes that are decompressed to disk while the file is read."""
        return 0.0

    def record_bytes(self, offset: int) -> int:
        """Return the length of the record that starts at this offset, without its newline."""
        return self.num_bytes

    def head_bytes(self) -> int:
        """Return the length of the header, which is part of every output."""
        return 0

    def head_lines(self) -> int:
        """Return the number of lines before the first record."""
        return 0

    def provenance(self) -> dict[str, object] | None:
        """Return what determines the texts besides the recipe; None if nothing does."""
        return None

    def facts(self) -> dict[str, object]:
        """Return further fields for the entry of the file in the summary of a run."""
        return {}
