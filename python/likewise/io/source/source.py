"""The interface of readers: pieces of documents, and their texts again by position."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ColumnData
from likewise.io.source.tokens import TokenRules
from likewise.recipe.text import ALL_ROLES, RoleNames, check_roles

# Returns the texts of a slice of the kept documents of an input, in order, in parts.
KeptTexts = Callable[[slice], list[Texts]]
# Reason why a row of a table in memory is not a document; same message as in the core.
NULL_TEXT = "the text is null; leave such rows out or fill them"
# Value of the id field for rows without ids.
NO_ID_FIELD = "none"


@dataclass(frozen=True)
class ReadRules:
    """What to read from a file."""

    # Dotted names; several texts are joined with a newline
    text_fields: tuple[str, ...] = ("text",)
    # Field of the id. If None, ``id`` if a row has it; if ``""`` or ``"none"``, rows have no ids.
    id_field: str | None = None
    # Further fields that `keep` needs
    fields: tuple[str, ...] = ()
    # Longer documents are bad rows
    max_document_bytes: int = 64_000_000
    # Gzip and zstd files that decompress to more bytes are rejected
    max_unpacked_bytes: int = 1_000_000_000_000
    # Files that decompress to more bytes per compressed byte are rejected, beyond the first 64 MB
    max_unpack_ratio: int = 250
    # Whether pages of web archives are read as HTML, since the recipe processes it
    keeps_markup: bool = False
    # Number of threads for decompressing a file whose parts are independent
    threads: int = 1
    # Whether a quote at the start of a CSV field opens a quoted field; detected in TSV if None.
    quote: str | None = None
    # Whether damage of a gzip or zstd file is a bad row after what can be read; otherwise an error.
    passes_damage: bool = False
    # How to read the lists of tokens in the only text field; None if it contains texts
    tokens: TokenRules | None = None
    # Name of the first text field if it contains the value within which documents are compared
    only_within: str | None = None
    # With `tokens`, fields of the text that stands for a document whose list of tokens is empty, if a row has them
    text_without_tokens: tuple[str, ...] = ("text",)
    # Which items count of lists that hold texts
    roles: RoleNames = ALL_ROLES

    def __post_init__(self) -> None:
        if self.id_field == NO_ID_FIELD:
            object.__setattr__(self, "id_field", "")
        if self.tokens is None:
            check_roles(self.roles, self.text_fields)

    def option_of(self, name: str) -> str:
        """Return the option that names a field that is read as text or tokens."""
        if name == self.only_within:
            return "--only-within"
        return "--text-field" if self.tokens is None else "--tokens-field"

    @property
    def requires_id(self) -> bool:
        """Whether a row without an id is bad."""
        return bool(self.id_field)

    def id_name(self, names: Collection[str]) -> str | None:
        """Return the id field for rows with these fields; None if they have no ids."""
        if self.id_field is None:
            return "id" if "id" in names else None
        return self.id_field or None


@dataclass(frozen=True)
class BadRow:
    """A row that is not a document."""

    # Line of the file, or row of a table, from 0; relative to the piece while it is read
    line: int
    # Bytes of the line in its file, without the newline; for tables the row and 1
    offset: int
    length: int
    reason: str
    # Number of lines of the row; CSV records may have several
    num_lines: int = 1


@dataclass(frozen=True)
class Piece:
    """Consecutive documents of one input."""

    texts: Texts
    # Ids of the documents; empty if `has_id` is 0
    ids: Texts
    # Whether each document has an id
    has_id: NDArray[np.uint8]
    # Start of each document: byte of the file, or row of the table
    offsets: NDArray[np.uint64]
    # Bytes of the line without its newline; 1 for tables
    lengths: NDArray[np.uint32]
    # Line or row within the piece, from 0
    lines: NDArray[np.uint32]
    # Number of lines in the piece, including blank and bad ones; number of blank lines
    num_lines: int
    num_blank: int
    # Further fields as JSON, ``""`` where absent
    fields: list[Texts]
    bad_rows: list[BadRow]


@dataclass(frozen=True)
class ReadTask:
    """A part of an input that one thread reads."""

    # Share of the input's size, for progress
    num_bytes: int
    # Returns the documents in one or more pieces. Called once, on any thread.
    read: Callable[[], Iterator[Piece]]


class Source(Protocol):
    """One input: a file, or texts in memory."""

    @property
    def name(self) -> str | None:
        """Path relative to the common parent, with slashes; None for texts in memory."""

    @property
    def num_bytes(self) -> int:
        """Size, for progress."""

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the input into parts of about this size, in order.

        Sequential work, such as decompression, happens while the iterator advances; the rest happens in the jobs.
        `work` is a directory for temporary files that exists as long as the documents are used.
        """

    @property
    def can_read_again(self) -> bool:
        """Whether single texts are cheap to read again; if not, the run spools texts that it may need."""

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Read the texts of documents again. Offsets must be ascending. Thread-safe."""

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of the row at this position, or the columns of a table; empty if fields have no names."""

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Only decompress the input, if it is compressed; yield the compressed bytes processed at each step."""

    def keep_unpacked(self) -> None:
        """Leave decompressed copies where a run that continues this one finds them."""

    def put_aside(self, work: Path) -> "Source":
        """Return a source that can be read several times: itself, except for streams."""


class BaseSource:
    """Defaults for most sources: not compressed, and single texts are expensive to read again."""

    @property
    def can_read_again(self) -> bool:
        """False: the run spools texts that it may need."""
        return False

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Yield nothing: the source is not compressed."""
        return iter(())

    def keep_unpacked(self) -> None:
        """Do nothing: nothing is decompressed."""

    def put_aside(self, work: Path) -> Source:
        """Return itself: the source can be read several times."""
        return self  # type: ignore[return-value]  # each of them has a name and a size

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Raise AssertionError: the run must use its spool instead."""
        raise AssertionError(f"{type(self).__name__} cannot be read twice")

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return an empty list: missing columns of a stream are reported before it is read."""
        return []


def each_piece(source: Source, piece_bytes: int, work: Path) -> Iterator[tuple[int, Piece]]:
    """Yield the pieces of a source in order, each with the number of its first line, from 0."""
    first_line = 0
    for job in source.jobs(piece_bytes, work):
        for piece in job.read():
            yield first_line, piece
            first_line += piece.num_lines


class Unnamed(BaseSource):
    """A source that is not a file."""

    @property
    def name(self) -> None:
        """None: the source has no path."""
        return


def as_array(data: ColumnData, dtype: Any) -> NDArray[Any]:
    """Return native data as an array of this type, without a copy if possible."""
    return np.asarray(data).astype(dtype, copy=False)
