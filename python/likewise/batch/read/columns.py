"""The columns of a run, collected from sketched pieces in input order."""

import functools
import json
import re
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import Rarity, Texts
from likewise.arrays import ArraySpace, GrowingTexts, slices, stable_order
from likewise.batch.budget.room import MOST_HELD_BYTES, Room
from likewise.batch.read.documents import Documents, SpooledPiece
from likewise.errors import InvalidInput
from likewise.io.source.source import BadRow, BadRowTally, Piece, Source
from likewise.job.reading import NO_TEXTS, RunRules, refusal
from likewise.recipe.methods import Bloom, SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import fields_read, keep_criteria, keep_needs

if TYPE_CHECKING:
    from decimal import Decimal

    from likewise.io.source.spool import Spool

# Documents processed at once.
_AT_ONCE = 1 << 18
# Digits of a second after the sixth, which Python's dates drop.
_FINE_FRACTION = r"[.,]\d{6}(\d+)"


def filled(
    space: ArraySpace, length: int, of_part: Callable[[slice], NDArray[Any]], last: Sequence[int] = ()
) -> NDArray[np.int64]:
    """Return a column that a function makes part by part."""
    growing = space.growing(np.int64)
    for part in slices(length, _AT_ONCE):
        growing.append(of_part(part))
    growing.append(np.array(last, np.int64))
    return growing.take()


def priority_order(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows, best first."""
    space = documents.room.space
    keys: list[NDArray[np.int64]] = []
    for rule, field in keep_criteria(keep):
        if rule == "first":
            break
        if rule in ("longest", "shortest"):
            assert documents.text_lengths is not None
            sign = -1 if rule == "longest" else 1
            lengths = space.growing(np.int64)
            for part in slices(len(documents), _AT_ONCE):
                lengths.append(sign * documents.text_lengths[part].astype(np.int64))
            keys.append(lengths.take())
        else:
            keys.append(field_ranks(documents, field, "keep", largest_first=rule == "max"))
    if not keys:
        return space.numbers(len(documents.shapes))

    def taken(values: NDArray[np.int64], places: NDArray[np.int64]) -> NDArray[np.int64]:
        return filled(space, len(places), lambda part: values[places[part]])

    # Sort by the last criterion first; each further sort is stable.
    order = stable_order(keys.pop(), space)
    for ranks in reversed(keys):
        order = taken(order, stable_order(taken(ranks, order), space))
    return order


def with_references_first(documents: Documents, keep: str) -> NDArray[np.int64]:
    """Return all rows: reference documents in their order, then all others, best first."""
    ranked, first = priority_order(documents, keep), documents.num_references
    if not first:
        return ranked
    rows = documents.room.space.growing(np.int64)
    rows.append(np.arange(first))
    for part in slices(len(ranked), _AT_ONCE):
        some = ranked[part]
        rows.append(some[some >= first])
    return rows.take()


class Date(NamedTuple):
    """A point in time, and the part of its fraction of a second beyond microseconds."""

    moment: datetime
    rest: "Decimal"


#: A value that ranks: a number exactly as written, or a date.
Value: TypeAlias = "Decimal | Date"


def field_ranks(documents: Documents, field: str, option: str, *, largest_first: bool = False) -> NDArray[np.int64]:
    """Return the rank of each document by a field of numbers or dates, best first; those without a value last."""
    values = [_value(documents, row, field, text, option) for row, text in enumerate(documents.field(field))]
    kinds = {isinstance(value, Date) for value in values if value is not None}
    if len(kinds) > 1:
        first = isinstance(next(value for value in values if value is not None), Date)
        row = next(i for i, v in enumerate(values) if v is not None and isinstance(v, Date) != first)
        file, line = documents.place(row)
        raise InvalidInput(
            f"field {field!r} has numbers in some rows and dates in others; {option} requires one type", file, line
        )
    present: list[Any] = sorted({value for value in values if value is not None}, reverse=largest_first)
    ranks = {value: rank for rank, value in enumerate(present)}
    return np.array([len(ranks) if value is None else ranks[value] for value in values], np.int64)


def _value(documents: Documents, row: int, field: str, text: str, option: str) -> "Value | None":
    try:
        return field_value(field, text, option)
    except InvalidInput as error:
        raise InvalidInput(error.message, *documents.place(row)) from None


# Dates and small numbers repeat often.
@functools.lru_cache(maxsize=1 << 15)
def field_value(field: str, text: str, option: str = "keep") -> "Value | None":
    """Return the value of a field's JSON: a number exactly as written, a date, or None for null, NaN and absent."""
    from decimal import Decimal, InvalidOperation

    try:
        # Numbers of any length compare without rounding.
        value = json.loads(text, parse_int=Decimal, parse_float=Decimal, parse_constant=Decimal) if text else None
    except InvalidOperation:
        raise InvalidInput(f"field {field!r} holds {text[:60]}; the exponent is too large") from None
    if value is None or (isinstance(value, Decimal) and value.is_nan()):
        return None
    if isinstance(value, Decimal):
        return value
    if isinstance(value, str) and (date := _date(value)) is not None:
        return date
    raise InvalidInput(f"field {field!r} holds {text[:60]}; {option} requires numbers or ISO 8601 dates")


def _date(text: str) -> Date | None:
    from decimal import Decimal

    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    fraction = re.search(_FINE_FRACTION, text)
    rest = Decimal(f"0.{fraction[1]}") if fraction else Decimal(0)
    return Date(moment if moment.tzinfo else moment.replace(tzinfo=UTC), rest)


class SketchedPiece(NamedTuple):
    """Consecutive documents of one input as columns, without texts."""

    # Locations, ids and bad rows; its texts are empty
    piece: Piece
    sketches: NDArray[Any]
    # Full, short or empty; number of distinct features
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
    digests: NDArray[np.uint64]
    # Lengths in Unicode scalars, if `keep` needs them
    text_lengths: NDArray[np.uint32] | None = None
    # Handle of the texts in the spool
    handle: int | None = None

    @property
    def num_bytes(self) -> int:
        """Approximate memory of the columns in bytes."""
        arrays = (self.sketches, self.shapes, self.num_features, self.digests, self.piece.offsets)
        # 32 bytes for lines, lengths and ids.
        return sum(array.nbytes for array in arrays) + 32 * len(self.shapes)


def sketched_piece(
    piece: Piece, batch: _native.SketchBatch, lengths: NDArray[np.uint32] | None = None, handle: int | None = None
) -> SketchedPiece:
    """Return a piece with its sketches, without its texts."""
    return SketchedPiece(
        piece._replace(texts=NO_TEXTS),
        np.asarray(batch.sketches),
        np.asarray(batch.shapes),
        np.asarray(batch.num_features),
        np.asarray(batch.digests),
        lengths,
        handle,
    )


def bare_piece(piece: Piece, handle: int | None = None) -> SketchedPiece:
    """Return a piece without texts, fields and sketches."""
    none, num = np.zeros(len(piece.offsets), np.uint8), np.zeros(0, np.uint32)
    bare = piece._replace(texts=NO_TEXTS, fields=[])
    return SketchedPiece(bare, none[:0], none, num, num.astype(np.uint64), handle=handle)


class HeldDocuments:
    """Sketches of whole jobs of a first pass, up to a memory limit. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._lock = threading.Lock()
        self._jobs: dict[tuple[int, int], Sequence[SketchedPiece]] = {}

    def has_room(self) -> bool:
        """Return whether more may be held."""
        return self._num_bytes < self._most_bytes

    def add(self, source: int, job: int, pieces: Sequence[SketchedPiece]) -> None:
        """Hold all pieces of a job, identified by source number and job number, unless memory is short."""
        num_bytes = sum(one.num_bytes for one in pieces)
        with self._lock:
            if self._num_bytes + num_bytes <= self._most_bytes:
                self._num_bytes += num_bytes
                self._jobs[source, job] = pieces

    def take(self, source: int, job: int) -> Sequence[SketchedPiece] | None:
        """Release the pieces of a job and return them; None if they were not held."""
        return self._jobs.pop((source, job), None)


# Columns of a sketched piece, and of the piece in it.
_OF_SKETCHES = {"shapes": np.uint8, "num_features": np.uint32, "digests": np.uint64}
_OF_PIECE = {"offsets": np.uint64, "lengths": np.uint32, "has_id": np.bool_}


class Columns:
    """Sketched pieces in input order, collected into columns."""

    def __init__(
        self,
        sources: Sequence[Source],
        recipe: Recipe,
        spool: "Spool | None",
        rules: RunRules,
        rarity: Rarity | None,
        room: Room,
        num_reference_sources: int = 0,
    ) -> None:
        self._room, space = room, room.space
        self._rarity = rarity
        self._num_reference_sources = num_reference_sources
        self._sources = sources
        self._spool = spool
        self._rules = rules
        kinds = _OF_SKETCHES | _OF_PIECE | {"lines": np.uint32}
        if keep_needs(recipe.keep)[0]:
            kinds["text_lengths"] = np.uint32
        kinds["sketches"] = np.uint64 if isinstance(recipe.sketch, SimHash | Bloom) else np.uint8
        self._columns = {name: space.growing(kind) for name, kind in kinds.items()}
        self._ids = GrowingTexts(space)
        self._fields: dict[str, list[Texts]] = {name: [] for name in fields_read(recipe.keep, rules.fields)}
        self._spooled: list[SpooledPiece] = []
        self._bad: list[list[BadRow]] = [[] for _ in sources]
        self._num_documents = [0] * len(sources)
        self._num_texts = [0] * len(sources)
        self._num_lines = [0] * len(sources)
        self._num_blank = 0
        # For documents, and for reference documents.
        self._tallies = BadRowTally(rules.max_bad_rows), BadRowTally(rules.max_bad_rows)

    def add(self, number: int, part: SketchedPiece) -> None:
        """Add the next piece of source `number`; raise InvalidInput for bad rows that are not skipped."""
        piece, columns = part.piece, self._columns
        first_line = self._num_lines[number]
        for bad in piece.bad_rows:
            self._bad[number].append(bad._replace(line=first_line + bad.line))
        if piece.bad_rows and self._rules.on_error == "fail":
            raise refusal(self._sources[number], self._bad[number][0])
        self._tallies[number < self._num_reference_sources].add(self._sources[number].name, first_line, piece)
        if part.handle is not None:
            self._spooled.append(SpooledPiece(sum(self._num_documents), part.handle))
        for name in ("sketches", *_OF_SKETCHES):
            columns[name].append(getattr(part, name))
        for name in _OF_PIECE:
            columns[name].append(getattr(piece, name))
        columns["lines"].append(piece.lines + np.uint32(first_line))
        if part.text_lengths is not None and "text_lengths" in columns:
            columns["text_lengths"].append(part.text_lengths)
        self._ids.append(piece.ids)
        for of_one, values in zip(self._fields.values(), piece.fields, strict=True):
            of_one.append(values)
        self._num_lines[number] += piece.num_lines
        self._num_documents[number] += len(part.shapes)
        self._num_blank += piece.num_blank if number >= self._num_reference_sources else 0

    def add_texts(self, number: int, num_documents: int, handle: int) -> None:
        """Record the spool location of the next texts of source `number`, whose documents were added without texts."""
        self._spooled.append(SpooledPiece(sum(self._num_documents[:number]) + self._num_texts[number], handle))
        self._num_texts[number] += num_documents
        if self._num_texts[number] > self._num_documents[number]:
            raise InvalidInput("the file does not contain the documents that the run kept", self._sources[number].name)

    def check_bad_rows(self) -> list[str]:
        """Return messages about bad rows; raise InvalidInput if there are too many."""
        return [told for tally in self._tallies if (told := tally.finish()) is not None]

    def documents(self) -> Documents:
        """Return all documents; the columns are moved into them."""
        columns: dict[str, Any] = {name: column.take() for name, column in self._columns.items()}
        return Documents(
            sources=self._sources,
            starts=np.concatenate([[0], np.cumsum(self._num_documents, dtype=np.int64)]).astype(np.int64),
            ids=self._ids.take(),
            fields=self._fields,
            bad_rows=self._bad,
            num_blank=self._num_blank,
            spool=self._spool,
            spooled=sorted(self._spooled, key=lambda piece: piece.first_row),
            rarity=self._rarity,
            num_reference_sources=self._num_reference_sources,
            keeps_bad_rows=self._rules.on_error == "keep",
            room=self._room,
            **columns,
        )
