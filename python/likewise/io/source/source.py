"""What every reader gives: pieces of documents, and their texts again by position."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.io.source.tokens import TokenRules

# Gives the texts of some of the kept documents of an input again, in order, in parts.
KeptTexts = Callable[[slice], list[Texts]]
# Why a row of a table in memory is not a document; as the core says it of a column.
NULL_TEXT = "the text is null; leave such rows out or fill them"
# As an id field: rows have no ids.
NO_ID_FIELD = "none"


@dataclass(frozen=True)
class ReadRules:
    """What is read of a file.

    Parameters
    ----------
    text_fields : tuple of str
        Dotted names; several texts are joined with a newline.
    id_field : str, optional
        Field of the id. Where None, ``id`` if a row has it; where ``""`` or ``"none"``, rows have no ids.
    fields : tuple of str
        Further fields that `keep` asks for.
    max_document_bytes : int
        A longer document is a bad row.
    max_unpacked_bytes : int
        A gzip or zstd file that unpacks to more is refused.
    max_unpack_ratio : int
        So is one that unpacks to more bytes for each byte of its own, beyond the first 64 MB.
    keeps_markup : bool
        Whether pages of web archives are taken as HTML, since the recipe reads it.
    threads : int
        Threads that unpack a file whose parts can be unpacked at once.
    quote : {"none", "double"}, optional
        Whether a quote at the beginning of a field of CSV opens a quoted one. Where None, CSV has such fields, and TSV
        if it looks so.
    passes_damage : bool
        Whether what was unpacked of a damaged gzip or zstd file is read and the damage is a bad row; else it is an
        error.
    tokens : TokenRules, optional
        How the lists of tokens are read that the only text field holds; it holds texts if None.
    only_within : str, optional
        The first of the text fields if it holds the value that a document is compared within.
    """

    text_fields: tuple[str, ...] = ("text",)
    id_field: str | None = None
    fields: tuple[str, ...] = ()
    max_document_bytes: int = 64_000_000
    max_unpacked_bytes: int = 1_000_000_000_000
    max_unpack_ratio: int = 250
    keeps_markup: bool = False
    threads: int = 1
    quote: str | None = None
    passes_damage: bool = False
    tokens: TokenRules | None = None
    only_within: str | None = None

    def __post_init__(self) -> None:
        if self.id_field == NO_ID_FIELD:
            object.__setattr__(self, "id_field", "")

    def option_of(self, name: str) -> str:
        """Return the option that names a field whose value is read as text or tokens."""
        if name == self.only_within:
            return "--only-within"
        return "--text-field" if self.tokens is None else "--tokens-field"

    @property
    def requires_id(self) -> bool:
        """Whether a row without an id is bad."""
        return bool(self.id_field)

    def id_name(self, names: Collection[str]) -> str | None:
        """Return the field of the id in rows that have these fields; None if they have no ids."""
        if self.id_field is None:
            return "id" if "id" in names else None
        return self.id_field or None


@dataclass(frozen=True)
class BadRow:
    """A row that is not a document.

    Parameters
    ----------
    line : int
        Line of the file, or row of a table, from 0; within a piece while one is read.
    offset, length : int
        Bytes of the line in its file, without the newline; for tables the row and 1.
    reason : str
        What is wrong with it.
    num_lines : int
        Lines of the file that it takes: a record of CSV may take several.
    """

    line: int
    offset: int
    length: int
    reason: str
    num_lines: int = 1


@dataclass(frozen=True)
class Piece:
    """Consecutive documents of one input.

    Parameters
    ----------
    texts : Texts
        The texts of n documents.
    ids : Texts
        Their ids, empty where `has_id` is 0.
    has_id : ndarray of shape (n,), uint8
        Whether each has an id of its own.
    offsets : ndarray of shape (n,), uint64
        Where each begins: byte of the file, or row of the table.
    lengths : ndarray of shape (n,), uint32
        Bytes of the line without its newline; 1 for tables.
    lines : ndarray of shape (n,), uint32
        Line or row within the piece, from 0.
    num_lines, num_blank : int
        Lines of the piece, blank ones and bad ones included; blank ones.
    fields : list of Texts
        Further fields as JSON, ``""`` where absent.
    bad_rows : list of BadRow
        Those that are not documents.
    """

    texts: Texts
    ids: Texts
    has_id: NDArray[np.uint8]
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    lines: NDArray[np.uint32]
    num_lines: int
    num_blank: int
    fields: list[Texts]
    bad_rows: list[BadRow]


@dataclass(frozen=True)
class Job:
    """A part of an input that one thread reads.

    Parameters
    ----------
    num_bytes : int
        Its share of the input's size, for progress.
    read : callable
        Returns the documents, in one piece or several. Called once, on any thread.
    """

    num_bytes: int
    read: Callable[[], Iterator[Piece]]


class Source(Protocol):
    """One input: a file, or texts in memory."""

    @property
    def name(self) -> str | None:
        """Path relative to the common parent, with slashes; None for texts in memory."""

    @property
    def num_bytes(self) -> int:
        """Size, for progress."""

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[Job]:
        """Cut the input into parts of about this size, in order.

        What can only be done from the first byte to the last, such as unpacking, happens while the iterator advances;
        the rest happens in the jobs. `work` is a directory for what must be put aside; it lives as long as the
        documents.
        """

    @property
    def can_read_again(self) -> bool:
        """Whether single texts are cheap to read again; if not, the run spools what it may need."""

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Read the texts of documents again. Offsets rise; safe to call from several threads at once."""

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of the row there, or the columns of all rows; none where rows have no names for them."""

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Unpack what is packed, and no more; yields the bytes of the packed file that are done at each step."""

    def keep_unpacked(self) -> None:
        """Leave what is unpacked where a run that continues this one finds it."""

    def put_aside(self, work: Path) -> "Source":
        """Return what can be read several times from the beginning: itself, but for a stream."""


class BaseSource:
    """What most sources answer: they are not packed, and a single text would cost a whole batch to read again."""

    @property
    def can_read_again(self) -> bool:
        """No: the run spools what it may need."""
        return False

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Yield nothing: it is not packed."""
        return iter(())

    def keep_unpacked(self) -> None:
        """Do nothing: nothing is unpacked."""

    def put_aside(self, work: Path) -> Source:
        """Return itself: it can be read several times."""
        return self  # type: ignore[return-value]  # each of them has a name and a size

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Refuse: a run asks its spool instead."""
        raise AssertionError(f"{type(self).__name__} cannot be read twice")

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return nothing: a stream without a column that is asked for is refused before it is read."""
        return []


class Unnamed(BaseSource):
    """A source that is not a file."""

    @property
    def name(self) -> None:
        """It has no path."""
        return


def as_array(data: Any, dtype: Any) -> NDArray[Any]:  # noqa: ANN401 - anything with the buffer protocol
    """Return native data as an array of this type, without a copy where it is one."""
    return np.asarray(data).astype(dtype, copy=False)
