"""What every input file is: where it lies, what is read of it, and what a run asks of it beside its documents."""

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
from likewise.io.source.source import BaseSource, Job, KeptTexts, ReadRules

# Texts that are read again at once.
_BYTES_AGAIN = 8 << 20
# Bytes of a document where none can be seen.
_DOCUMENT_BYTES = 1000


@dataclass(frozen=True, eq=False)
class Kept:
    """What of an input is written back.

    Parameters
    ----------
    offsets, lengths : ndarray of shape (n,)
        The kept lines (bytes, without newline), records or rows, rising.
    threads : int
        Threads that write.
    texts : callable, optional
        Gives the texts of a slice of them again, where the run put them aside: it may spare decoding them.
    added : Added, optional
        Fields to write behind those of each row.
    cut : Cut, optional
        Parts of texts to leave out, by place of a row among those that are written. None of these becomes blank.
    """

    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    threads: int
    texts: KeptTexts | None = None
    added: Added | None = None
    cut: Cut | None = None


@dataclass(eq=False)
class InputFile(BaseSource, ABC):
    """A file that a run reads, and whose kept documents it writes back in the same format.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        Path relative to the common parent of the inputs, with slashes; the id of a text file's document.
    num_bytes : int
        Its size.
    rules : ReadRules
        What is read of it.
    """

    # Whether it is one document, of which nothing is written where it is removed.
    is_document: ClassVar[bool] = False
    # Whether documents are lines or records, with a line end behind each.
    has_lines: ClassVar[bool] = False
    # Whether fields can be added to its rows.
    takes_fields: ClassVar[bool] = False
    # Whether a field of it may hold a list of tokens.
    takes_tokens: ClassVar[bool] = False

    path: Path
    name: str
    num_bytes: int
    rules: ReadRules = field(default_factory=ReadRules)

    @abstractmethod
    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Cut the file into parts of about this size, in order."""

    @abstractmethod
    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept documents to a new file of the same kind, packed as this one.

        Parameters
        ----------
        target : Path
            The new file.
        kept : Kept
            What of it stays.
        """

    def check_cut(self) -> None:
        """Raise InvalidInput if parts of its texts cannot be left out where they are written back."""

    def texts_again(
        self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], work: Path
    ) -> Iterator[tuple[slice, Texts]]:
        """Yield the texts of documents again, some at a time; where single ones are dear, the file is read again.

        Parameters
        ----------
        offsets, lengths : ndarray of shape (n,)
            The documents, rising.
        work : Path
            A directory for what must be put aside.

        Yields
        ------
        part : slice
            Which of them.
        texts : Texts
            Theirs.
        """
        if self.can_read_again:
            batch = np.cumsum(lengths, dtype=np.int64) // _BYTES_AGAIN
            bounds = [0, *(1 + np.flatnonzero(np.diff(batch))).tolist(), len(offsets)]
            for low, high in pairwise(bounds if len(offsets) else []):
                yield slice(low, high), self.read_texts(offsets[low:high], lengths[low:high])
            return
        done = 0
        for job in self.jobs(_BYTES_AGAIN, work) if len(offsets) else ():
            for piece in job.read():
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
        """Return about how many bytes of text it holds."""
        return float(self.num_bytes)

    def estimated_documents(self) -> float:
        """Return about how many documents it holds, by a look at its beginning."""
        return self.text_bytes() / _DOCUMENT_BYTES

    def work_bytes(self) -> int:
        """Return what a thread takes more for its format."""
        return 0

    def unpacked_bytes(self) -> float:
        """Return about how many bytes are put aside unpacked while it is read."""
        return 0.0

    def record_bytes(self, offset: int) -> int:
        """Return the bytes of the record that begins there, without its line end."""
        return self.num_bytes

    def head_bytes(self) -> int:
        """Return the bytes before the first record that belong to every output."""
        return 0

    def head_lines(self) -> int:
        """Return how many lines stand before the first record."""
        return 0

    def provenance(self) -> dict[str, object] | None:
        """Return what decides on its texts beside the recipe; None where nothing else does."""
        return None

    def facts(self) -> dict[str, object]:
        """Return what its entry in the summary of a run says beside its size and its documents."""
        return {}
