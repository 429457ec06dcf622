"""Plain text: each file is one document, and its path is the id."""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput
from likewise.io.source.source import BadRow, InputFile, Kept, Piece, ReadTask

_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
_COPY_BYTES = 4 << 20


@dataclass(eq=False)
class TextFile(InputFile):
    """A file that is one document, with its name as the id. The only rule that applies is `max_document_bytes`."""

    is_document: ClassVar[bool] = True
    can_read_again = True

    def estimated_documents(self) -> float:
        """Return 1."""
        return 1.0

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Read the file as a whole."""
        yield ReadTask(self.num_bytes, self._read)

    def _read(self) -> Iterator[Piece]:
        is_read = self.num_bytes <= self.rules.max_document_bytes
        document, reason = self._document() if is_read else (self._nothing(), self.rules.too_long(self.num_bytes))
        count = 1 if reason is None else 0
        yield Piece(
            texts=document.take(np.arange(count)),
            ids=Texts.from_list([self.name][:count]),
            has_id=np.ones(count, np.uint8),
            offsets=np.zeros(count, np.uint64),
            lengths=np.full(count, self.num_bytes, np.uint32),
            lines=np.zeros(count, np.uint32),
            num_lines=1,
            fields=[Texts.from_list([""][:count]) for _ in self.rules.fields],
            bad_rows=[] if reason is None else [BadRow(0, 0, self.num_bytes, reason)],
        )

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Read the text again."""
        document, reason = self._document()
        if reason is not None:
            raise InvalidInput(f"the file changed during the run: {reason}", self.name)
        return document.take(np.zeros(len(offsets), np.int64))

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Copy the file if it is kept, with parts of its text removed if any; a removed file is not copied."""
        if not len(kept.offsets):
            return
        if kept.cut is not None and len(kept.cut.rows):
            left, _ = kept.cut.apply(self.read_texts(kept.offsets, kept.lengths))
            with self.path.open("rb") as source, target.open("xb") as copy:
                mark = source.read(len(codecs.BOM_UTF8))
                copy.write((mark if mark == codecs.BOM_UTF8 else b"") + left.to_list()[0].encode())
            return
        with self.path.open("rb") as source, target.open("xb") as copy:
            while data := source.read(_COPY_BYTES):
                copy.write(data)

    def _nothing(self) -> Texts:
        return Texts.from_list([""])

    def _document(self) -> tuple[Texts, str | None]:
        """Return the document as a batch of one, and the reason if it is invalid."""
        data = self.path.read_bytes()
        reason = None
        if data.startswith(_UTF16_MARKS):
            reason = "the file is UTF-16; convert it to UTF-8"
        elif b"\0" in data:
            reason = (
                f"byte {data.index(0) + 1} is NUL, so this is a binary file; compare raw bytes with likewise dedup "
                "--tokens bytes or chunks"
            )
        else:
            try:
                return Texts.from_list([data.decode("utf-8-sig")]), None
            except UnicodeDecodeError as error:
                reason = f"byte {error.start + 1} is not UTF-8; convert the file"
        return self._nothing(), reason


@dataclass(eq=False)
class BinaryFile(TextFile):
    """A file that is one document of bytes, for tokens ``bytes`` and ``chunks``."""

    def check_cut(self) -> None:
        """Raise InvalidInput: binary files contain no text."""
        raise InvalidInput("parts of text cannot be removed from binary files", self.name)

    def _nothing(self) -> Texts:
        return Texts.from_bytes([b""])

    def _document(self) -> tuple[Texts, str | None]:
        return Texts.from_bytes([self.path.read_bytes()]), None
