"""The interface of readers: pieces of documents, their texts again by position, and limits on bad rows."""

import math
import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import Texts
from likewise.errors import InvalidInput, InvalidParameter, as_index, counted
from likewise.recipe.fields import MAX_OWN_WEIGHT, OWN_WEIGHTS
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import ALL_ROLES, RoleNames, check_roles

if TYPE_CHECKING:
    from likewise.io.source.added import Added

# Returns the texts of a slice of the kept documents of an input, in order, in parts.
KeptTexts = Callable[[slice], list[Texts]]
# Reason why a row of a table in memory is not a document; same message as in the core.
NULL_TEXT = "the text is null; leave such rows out or fill them"
# Value of the id field for rows without ids.
NO_ID_FIELD = "none"

# Bytes of texts that are read again at once.
_BYTES_AGAIN = 8 << 20
# Assumed bytes of a document if the file cannot be examined.
_DOCUMENT_BYTES = 1000

# Changed rows that are processed at once.
_ROWS_AT_ONCE = 1 << 20


class TokenRules(NamedTuple):
    """How lists of tokens are read."""

    # Whether each entry is a pair of a token and its weight
    is_weighted: bool
    # Factor for real weights before rounding; if None, weights must be integers
    scale: float | None

    @classmethod
    def of(cls, recipe: Recipe) -> "TokenRules | None":
        """Return the rules of a recipe that takes tokens; None for other recipes."""
        return cls(recipe.weights == OWN_WEIGHTS, recipe.weight_scale) if recipe.takes_tokens else None


def own_weight(token: str, weight: object, scale: float | None, row: int) -> int:
    """Return the weight of a token as an integer, using the scale of the recipe."""
    if scale is None:
        number = as_index(weight)
        if number is not None and 0 <= number <= MAX_OWN_WEIGHT:
            return number
        how = "; for real weights set weight_scale" if isinstance(weight, Real) and float(weight) >= 0 else ""
        raise InvalidInput(
            f"the weight of {token!r} is {weight!r}, not an integer from 0 to {MAX_OWN_WEIGHT}{how}", row=row
        )
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 <= float(weight) < math.inf:
        raise InvalidInput(f"the weight of {token!r} is {weight!r}, not a number of at least 0", row=row)
    scaled = round(float(weight) * scale)
    if scaled > MAX_OWN_WEIGHT:
        raise InvalidInput(
            f"the weight of {token!r} is {weight!r}, {scaled} when scaled; the limit is {MAX_OWN_WEIGHT}. "
            "Use a smaller weight_scale",
            row=row,
        )
    return scaled


class CutText(str):
    """The displayed form of a document of tokens: the tokens separated by spaces."""

    # The document as a batch of one, which the recipe compares
    document: Texts

    def __new__(cls, document: Texts) -> "CutText":
        """Create it from a batch of one document."""
        made = super().__new__(cls, document[0])
        made.document = document
        return made


def shown_document(documents: Texts, row: int) -> Any:
    """Return a document of a batch in its displayed form, from which the recipe can also compare it."""
    return CutText(documents.take(np.array([row], np.int64))) if documents.kind == "tokens" else documents[row]


class ReadRules(NamedTuple):
    """What to read from a file."""

    # Dotted names; several texts are joined with a newline
    text_fields: tuple[str, ...] = ("text",)
    # Field of the id. If None, ``id`` if a row has it; if ``""``, rows have no ids.
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

    def checked(self) -> "ReadRules":
        """Return the rules that a user gave, in their canonical form."""
        if self.tokens is None:
            check_roles(self.roles, self.text_fields)
        return self._replace(id_field="") if self.id_field == NO_ID_FIELD else self

    def option_of(self, name: str) -> str:
        """Return the option that names a field that is read as text or tokens."""
        if name == self.only_within:
            return "--only-within"
        return "--text-field" if self.tokens is None else "--tokens-field"

    def too_long(self, num_bytes: int) -> str:
        """Return why a document of this size is a bad row."""
        return f"the document has {num_bytes} bytes; the --max-document limit is {self.max_document_bytes}"

    @property
    def requires_id(self) -> bool:
        """Whether a row without an id is bad."""
        return bool(self.id_field)

    def id_name(self, names: Collection[str]) -> str | None:
        """Return the id field for rows with these fields; None if they have no ids."""
        if self.id_field is None:
            return "id" if "id" in names else None
        return self.id_field or None


class BadRow(NamedTuple):
    """A row that is not a document."""

    # Line of the file, or row of a table, from 0; relative to the piece while it is read
    line: int
    # Bytes of the line in its file, without the newline; for tables the row and 1
    offset: int
    length: int
    reason: str
    # Number of lines of the row; CSV records may have several
    num_lines: int = 1


class Piece(NamedTuple):
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
    # Number of lines in the piece, including blank and bad ones
    num_lines: int
    # Further fields as JSON, ``""`` where absent
    fields: list[Texts]
    bad_rows: list[BadRow]
    num_blank: int = 0


@dataclass(eq=False)
class Cut:
    """Parts to remove from the texts of some rows."""

    # The changed rows, ascending, counted from the first row that the cut covers
    rows: NDArray[np.int64]
    # Number of parts of each changed row
    counts: NDArray[np.uint32]
    # Byte ranges of all parts in the UTF-8 of their texts, ordered by row and start. They may overlap.
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    # Whether to write a space where two words would be joined
    keeps_words_apart: bool

    @staticmethod
    def of_parts(
        rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any], *, keeps_words_apart: bool
    ) -> "Cut":
        """Return the cut that removes these parts, ordered by row and position."""
        firsts = np.flatnonzero(np.append(True, rows[1:] != rows[:-1])[: len(rows)])
        counts = np.diff(np.append(firsts, len(rows))).astype(np.uint32)
        starts, ends = (column.astype(np.uint32, copy=False) for column in (starts, ends))
        return Cut(rows[firsts], counts, starts, ends, keeps_words_apart)

    @cached_property
    def _bounds(self) -> NDArray[np.int64]:
        return np.concatenate([[0], np.cumsum(self.counts, dtype=np.int64)])

    def take(self, part: slice) -> "Cut":
        """Return the cut of a slice of the changed rows."""
        low, high, _ = part.indices(len(self.rows))
        parts = slice(int(self._bounds[low]), int(self._bounds[max(low, high)]))
        return Cut(self.rows[part], self.counts[part], self.starts[parts], self.ends[parts], self.keeps_words_apart)

    def within(self, first: int, end: int) -> "Cut":
        """Return the cut of rows `first` to `end`, exclusive, renumbered from `first`."""
        part = self.take(slice(*np.searchsorted(self.rows, [first, end]).tolist()))
        return Cut(part.rows - first, part.counts, part.starts, part.ends, part.keeps_words_apart)

    def without(self, dropped: NDArray[np.int64]) -> "Cut":
        """Return the cut without some dropped rows; the remaining rows are renumbered."""
        others = self.where(~np.isin(self.rows, dropped)) if len(dropped) else self
        return replace(others, rows=others.rows - np.searchsorted(dropped, others.rows))

    def where(self, stays: NDArray[np.bool_]) -> "Cut":
        """Return the cut of the changed rows selected by a mask."""
        of_parts = np.repeat(stays, self.counts)
        return Cut(
            self.rows[stays], self.counts[stays], self.starts[of_parts], self.ends[of_parts], self.keeps_words_apart
        )

    def num_bytes(self) -> int:
        """Return the bytes of text that are removed; overlapping parts count once."""
        num_bytes, behind = 0, np.uint64(0)
        for low in range(0, len(self.rows), _ROWS_AT_ONCE):
            part = self.take(slice(low, low + _ROWS_AT_ONCE))
            # Row numbers in the high bits make the ranges of all rows comparable.
            base = np.repeat(part.rows.astype(np.uint64) << np.uint64(32), part.counts)
            starts, ends = base + part.starts, base + part.ends
            before = np.maximum.accumulate(np.append(behind, ends))[:-1]
            num_bytes += int((ends - np.minimum(np.maximum(starts, before), ends)).sum())
            behind = ends.max(initial=behind)
        return num_bytes

    def apply(self, texts: _native.Texts) -> tuple[_native.Texts, NDArray[np.bool_]]:
        """Return the texts of the changed rows without their parts, and whether only whitespace is left."""
        left, is_blank, _ = _native.cut_texts(texts, self)
        return left, np.asarray(is_blank, bool)


class ReadTask(NamedTuple):
    """A part of an input that one thread reads."""

    # Share of the input's size, for progress
    num_bytes: int
    # Returns the documents in one or more pieces. Called once, on any thread.
    read: Callable[[], Iterator[Piece]]


class Source(ABC):
    """One input: a file, or texts in memory. By default not compressed, and expensive to read single texts again."""

    # Whether single texts are cheap to read again; if not, the run spools texts that it may need.
    can_read_again: bool = False

    if TYPE_CHECKING:

        @property
        def name(self) -> str | None:
            """Path relative to the common parent, with slashes; None for texts in memory."""

        @property
        def num_bytes(self) -> int:
            """Size, for progress."""

    @abstractmethod
    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the input into parts of about this size, in order.

        Sequential work, such as decompression, happens while the iterator advances; the rest happens in the jobs.
        `work` is a directory for temporary files that exists as long as the documents are used.
        """

    @property
    def is_plain(self) -> bool:
        """Whether it is read without temporary files."""
        return False

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Read the texts of documents again. Offsets must be ascending. Thread-safe."""
        raise AssertionError(f"{type(self).__name__} cannot be read twice")

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the fields of the row at this position, or the columns of a table; empty if fields have no names."""
        return []

    def unpacking(self, piece_bytes: int, work: Path) -> Iterator[int]:
        """Only decompress the input, if it is compressed; yield the compressed bytes processed at each step."""
        return iter(())

    def keep_unpacked(self) -> None:
        """Leave decompressed copies, if any, where a run that continues this one finds them."""
        return

    def put_aside(self, work: Path) -> "Source":
        """Return a source that can be read several times: itself, except for streams."""
        return self


def each_piece(source: Source, piece_bytes: int, work: Path) -> Iterator[tuple[int, Piece]]:
    """Yield the pieces of a source in order, each with the number of its first line, from 0."""
    first_line = 0
    for job in source.jobs(piece_bytes, work):
        for piece in job.read():
            yield first_line, piece
            first_line += piece.num_lines


def id_type_of(sources: Iterable[object]) -> Any:
    """Return the Arrow type of ids in results: an integer type if all sources in memory have integers, else None."""
    import pyarrow as pa

    types: set[str | None] = {getattr(source, "id_type", None) for source in sources}
    if None in types or not types:
        return None
    if len(types) == 1:
        return pa.type_for_alias(types.pop())
    if all(kind.startswith("u") for kind in types if kind is not None):
        return pa.uint64()
    return None if "uint64" in types else pa.int64()


class Unnamed(Source):
    """A source that is not a file, so that it has no path."""

    name = None


class Kept(NamedTuple):
    """The part of an input that is written back."""

    # The kept lines (bytes, without newline), records or rows, in ascending order
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    threads: int
    # Returns the texts of a slice of them if the run spooled them, to avoid decoding them again
    texts: KeptTexts | None = None
    # Fields to append to each row
    added: "Added | None" = None
    # Parts of texts to remove, by position among the written rows
    cut: Cut | None = None


@dataclass(eq=False)
class InputFile(Source):
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


DEFAULT_MAX_BAD_ROWS = "50%"
# A larger share causes a warning.
_QUIET_SHARE = 0.01
_MOST_DIGITS = 18


class BadRowLimit(NamedTuple):
    """The maximum number of bad rows of an input."""

    share: float | None = None
    num_rows: int | None = None

    def __str__(self) -> str:
        """Return the limit in the form that users write."""
        return f"{self.num_rows:,}" if self.share is None else f"{100 * self.share:g}%"


NO_LIMIT = BadRowLimit(share=1.0)


def bad_row_limit(given: float | str) -> BadRowLimit:
    """Return the limit that a user gave."""
    if isinstance(given, str):
        if found := re.fullmatch(rf"\s*(\d{{1,3}}(?:\.\d{{1,{_MOST_DIGITS}}})?)\s*%\s*", given, re.ASCII):
            given = float(found[1]) / 100
        elif re.fullmatch(rf"\s*\d{{1,{_MOST_DIGITS}}}\s*", given, re.ASCII):
            given = int(given)
    if isinstance(given, float) and 0 <= given <= 1:
        return BadRowLimit(share=given)
    if isinstance(given, int) and not isinstance(given, bool) and given >= 0:
        return BadRowLimit(num_rows=given)
    raise InvalidParameter("max_bad_rows", f"{given!r} is not a share such as 1% or a count such as 100")


class BadRowTally:
    """Counts the rows of inputs while they are read, and compares the bad ones with a limit.

    A bad record of several lines counts as that many rows, since its lines may have been records.
    """

    def __init__(self, limit: BadRowLimit) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._num_rows = self._num_bad = 0
        self._first: tuple[str | None, BadRow] | None = None

    def add(self, name: str | None, first_line: int | None, piece: Piece) -> None:
        """Count a piece of an input; `first_line` is the number of its first line, if known. Thread-safe."""
        first, num_bad = None, 0
        if piece.bad_rows:
            first, num_bad = piece.bad_rows[0], sum(bad.num_lines for bad in piece.bad_rows)
            first = first._replace(line=-1 if first_line is None else first.line + first_line)
        self.add_rows(name, len(piece.offsets), num_bad, first)

    def add_rows(self, name: str | None, num_good: int, num_bad: int, first: BadRow | None) -> None:
        """Count rows, and check the limit if it is a count."""
        with self._lock:
            self._num_rows += num_good + num_bad
            self._num_bad += num_bad
            if first is not None and self._first is None:
                self._first = name, first
        if self._limit.num_rows is not None and self._num_bad > self._limit.num_rows:
            raise self._error()

    def finish(self) -> str | None:
        """Return a message about the bad rows if there are many, otherwise None."""
        if not self._num_bad:
            return None
        if self._limit.share is not None and self._num_bad > self._limit.share * self._num_rows:
            raise self._error()
        return self._told() if self._num_bad > _QUIET_SHARE * self._num_rows else None

    def _told(self) -> str:
        assert self._first is not None
        name, first = self._first
        which = "the first"
        if name is not None:
            which = f"one of {name}" if first.line < 0 else f"the first at {name}:{first.line + 1}"
        share = f"{100 * self._num_bad / self._num_rows:.3g}%"
        return (
            f"{self._num_bad:,} of {counted(self._num_rows, 'row')} ({share}) "
            f"{'is' if self._num_bad == 1 else 'are'} bad; {which}: {first.reason}"
        )

    def _error(self) -> InvalidInput:
        return InvalidInput(
            f"{self._told()}. The --max-bad-rows limit is {self._limit}; fix the input, or raise the limit"
        )
