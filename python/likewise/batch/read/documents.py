"""The documents of a run: all their data except their texts."""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import Rarity, Texts
from likewise.arrays import ArrowColumn, GrowingTexts, distinct, double_id, repeated_keys, slices
from likewise.batch.budget.room import Room
from likewise.errors import InvalidInput
from likewise.io.output.evidence import Places
from likewise.io.source.source import BadRow, Source, id_type_of
from likewise.io.tables.columns import number_column, text_column
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY, SHORT

if TYPE_CHECKING:
    from likewise.io.source.spool import Spool

# Rows processed at once.
_AT_ONCE = 1 << 16

Result = TypeVar("Result")

# Approximate bytes of documents read again at once, per thread.
_BYTES_A_THREAD = 8 << 20


# Documents processed at once.
_COLLAPSED_AT_ONCE = 1 << 18


class SpooledPiece(NamedTuple):
    """The location of a piece's texts in the spool."""

    first_row: int
    handle: int


@dataclass(eq=False)
class Documents:
    """All documents of a run in input order, as columns."""

    sources: Sequence[Source]
    # Rows of source i are ``starts[i]:starts[i + 1]``
    starts: NDArray[np.int64]
    # Concatenated native sketches
    sketches: NDArray[Any]
    # Full, short or empty; number of distinct features
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
    digests: NDArray[np.uint64]
    # Locations in the source; lines from 0
    offsets: NDArray[np.uint64]
    lengths: NDArray[np.uint32]
    lines: NDArray[np.uint32]
    ids: Texts
    has_id: NDArray[np.bool_]
    bad_rows: list[list[BadRow]]
    # Lengths in Unicode scalars, if `keep` needs them
    text_lengths: NDArray[np.uint32] | None = None
    # Further fields as JSON, piece by piece
    fields: dict[str, list[Texts]] = field(default_factory=dict)
    num_blank: int = 0
    spool: "Spool | None" = None
    spooled: list[SpooledPiece] = field(default_factory=list)
    # Number of documents with each feature, for method shingles
    rarity: Rarity | None = None
    # Number of sources with reference documents, which come first and are always kept
    num_reference_sources: int = 0
    # Whether bad rows are written to the kept files
    keeps_bad_rows: bool = False
    room: Room = field(default_factory=Room)
    # Number of documents, without references, that lack a value, for each field that `keep` needs
    num_without_field: dict[str, int] = field(default_factory=dict)
    # Documents that a user decided to keep whatever they match
    stays: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.shapes)

    @cached_property
    def num_references(self) -> int:
        """Number of reference documents, which are the first rows here and have no row in the run."""
        return int(self.starts[self.num_reference_sources])

    @property
    def num_without_id(self) -> int:
        """Number of documents without an id, such as null or NaN, in sources where others have one."""
        num = 0
        for first, end in itertools.pairwise(self.starts[self.num_reference_sources :].tolist()):
            num_own = int(np.count_nonzero(self.has_id[first:end]))
            num += end - first - num_own if num_own else 0
        return num

    def only_places(self) -> "Documents":
        """Return the data that :meth:`places` and :meth:`doc_ids` need, so that texts and sketches can be freed."""
        names = ("name", "path", "id_type")
        named = [SimpleNamespace(**{name: getattr(source, name, None) for name in names}) for source in self.sources]
        return replace(
            self,
            sources=cast("Sequence[Source]", named),
            sketches=self.sketches[:0].copy(),
            digests=self.digests[:0].copy(),
            fields={},
            spool=None,
            spooled=[],
            rarity=None,
        )

    def free_sketches(self) -> None:
        """Free the sketches and the disk space of their file, once nothing is compared anymore."""
        self.sketches = self.sketches[:0].copy()

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether each normalized text is empty."""
        return np.equal(self.shapes, EMPTY)

    @property
    def num_empty(self) -> int:
        """Number of documents whose normalized text is empty."""
        return self._num_of_shapes[EMPTY]

    @property
    def num_short(self) -> int:
        """Number of documents with fewer tokens than one shingle, without empty ones."""
        return self._num_of_shapes[SHORT]

    @cached_property
    def _num_of_shapes(self) -> list[int]:
        """Number of documents of each shape, without references."""
        own, counts = self.shapes[self.num_references :], np.zeros(3, np.int64)
        for part in slices(len(own), _AT_ONCE):
            counts += np.bincount(own[part], minlength=3)
        found: list[int] = counts.tolist()
        return found

    def sources_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the source number of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def texts(self, rows: NDArray[np.int64], parts: int) -> Iterator[tuple[slice, Any]]:
        """Yield (slice of `rows`, function that reads the texts of these rows again)."""
        numbers = self.sources_of(rows)
        bounds = np.searchsorted(numbers, np.arange(len(self.sources) + 1))
        for number, source in enumerate(self.sources):
            low, high = int(bounds[number]), int(bounds[number + 1])
            if low == high:
                continue
            if not source.can_read_again:
                yield from self._spooled_texts(rows, low, high)
                continue
            step = max(64, -(-(high - low) // parts))
            for start in range(low, high, step):
                part = slice(start, min(start + step, high))
                yield part, partial(source.read_texts, self.offsets[rows[part]], self.lengths[rows[part]])

    def _spooled_texts(self, rows: NDArray[np.int64], low: int, high: int) -> Iterator[tuple[slice, Any]]:
        firsts = np.array([piece.first_row for piece in self.spooled])
        numbers = np.searchsorted(firsts, rows[low:high], side="right") - 1
        for number in distinct(numbers).tolist():
            piece = self.spooled[number]
            start, stop = (low + int(np.searchsorted(numbers, number, side)) for side in ("left", "right"))
            local = rows[start:stop] - piece.first_row
            yield slice(start, stop), self._spool_reader(piece.handle, local)

    def _spool_reader(self, handle: int, local: NDArray[np.int64]) -> Any:
        assert self.spool is not None
        spool = self.spool
        return lambda: spool.texts(handle).take(local)

    def field(self, name: str) -> list[str]:
        """Return a further field of every document as JSON, ``""`` if absent."""
        return [value for part in self.fields[name] for value in part.to_list()]

    def place(self, row: int) -> tuple[str | None, int]:
        """Return the file of a row, and its line from 1 (in memory: the row from 0)."""
        source = self.sources[int(self.sources_of(np.array([row]))[0])]
        return source.name, int(self.lines[row]) + (source.name is not None)

    def doc_ids(self, rows: NDArray[np.int64]) -> ArrowColumn:
        """Return ids as an Arrow array of string; ``file:line`` or the row number for documents without one."""
        if self.has_id[rows].all():
            return text_column(self.ids.take(rows))
        ids = self.ids.take(rows).to_list()
        without = np.flatnonzero(~self.has_id[rows])
        for i, made in zip(without.tolist(), self._made_ids(rows[without]), strict=True):
            ids[i] = made
        return text_column(ids)

    def id_type(self, sources: slice = slice(None)) -> Any:
        """Return the Arrow type of the ids of these sources in results in memory, if it is an integer type."""
        import pyarrow as pa

        kind = id_type_of(self.sources[sources])
        if kind is None or self.has_id.all():
            return kind
        # Row numbers take the place of missing ids.
        return kind if len(self) <= np.iinfo(kind.to_pandas_dtype()).max else pa.int64()

    def ids_as_given(self, rows: NDArray[np.int64], sources: slice = slice(None)) -> ArrowColumn:
        """Return ids as in :meth:`doc_ids`, in the type of the ids of these sources, which contain the rows."""
        kind = self.id_type(sources)
        if kind is None:
            return self.doc_ids(rows)
        if not self.has_id[rows].any():
            return number_column(self.lines[rows].astype(np.int64)).cast(kind)
        return self.doc_ids(rows).cast(kind)

    def place_ids(self, rows: NDArray[np.int64]) -> ArrowColumn:
        """Return ``file:line`` of each row, or the row number in memory, as an Arrow array of string."""
        return text_column(self._made_ids(rows))

    def share_ids(self, kept: NDArray[np.bool_]) -> bool:
        """Return whether two of these documents have the same id."""
        if not self.has_id.any():
            return False
        ids, rows = self._all_ids(), np.flatnonzero(kept)
        return double_id(lambda part: ids.take(rows[part]), len(rows), self.room.space) is not None

    def _made_ids(self, rows: NDArray[np.int64]) -> list[str]:
        """Return ``file:line`` of each row, or the row number for texts in memory."""
        names = [source.name for source in self.sources]
        places = zip(self.sources_of(rows).tolist(), self.lines[rows].tolist(), strict=True)
        return [str(line) if names[number] is None else f"{names[number]}:{line + 1}" for number, line in places]

    def places(self, rows: NDArray[np.int64]) -> Places:
        """Return the locations of documents for the evidence."""
        import pyarrow as pa

        is_in_memory = any(source.name is None for source in self.sources)
        names = Texts.from_list([self._place_name(number) for number in range(len(self.sources))])
        is_reference, numbers = rows < self.num_references, self.sources_of(rows)
        # In memory, rows are those of the input, including null texts.
        own = self.lines[rows].astype(np.int64) if is_in_memory else rows - self.num_references
        return Places(
            rows=np.where(is_reference, -1, own),
            doc_ids=self.ids_as_given(rows) if is_in_memory else self.doc_ids(rows),
            files=pa.nulls(len(rows), pa.string()) if is_in_memory else text_column(names.take(numbers)),
            offsets=self.offsets[rows].astype(np.int64),
            lengths=self.lengths[rows].astype(np.int64),
            is_reference=is_reference if self.num_references else None,
        )

    def _place_name(self, number: int) -> str:
        """Return the path of a source for the evidence; that of reference files can be found from any directory."""
        source = self.sources[number]
        path = getattr(source, "path", None) if number < self.num_reference_sources else None
        return (source.name or "") if path is None else path.as_posix()

    def check_ids(self, splits_of: Callable[[NDArray[np.int64]], NDArray[np.int64]] | None = None) -> None:
        """Raise InvalidInput if two documents of the run (of one split, with `splits_of`) have the same id."""
        start = self.num_references
        if not self.has_id[start:].any():
            return
        ids = self.ids if self.has_id[start:].all() else self._all_ids()

        def rows_of(part: slice) -> NDArray[np.int64]:
            return np.arange(start + part.start, start + part.stop)

        double = double_id(
            lambda part: ids.take(rows_of(part)),
            len(self) - start,
            self.room.space,
            None if splits_of is None else lambda part: splits_of(rows_of(part)),
            self.room.buckets_bytes,
        )
        if double is None:
            return
        second, first = (start + row for row in double)
        made = next((self.place(row) for row in (second, first) if not self.has_id[row]), None)
        raise id_used_twice(ids[second], self.place(first), self.place(second), made)

    def _all_ids(self) -> Texts:
        """Return the id of every row, including generated ones."""
        ids = GrowingTexts(self.room.space)
        for part in slices(len(self), _AT_ONCE):
            ids.append(Texts.from_arrow(self.doc_ids(np.arange(part.start, part.stop))))
        return ids.take()


Location: TypeAlias = tuple[str | None, int]


def id_used_twice(
    doc_id: str | bytes, first: Location, second: Location, without: Location | None = None
) -> InvalidInput:
    """Return the error for two documents with the same id, from file and line of each (in memory: None and row).

    One of them may be without an id, so that its place is its id.
    """
    (file, line), where = second, _shown(first)
    option = "--duplicate-ids allow" if file else 'duplicate_ids="allow"'
    note = " (lone surrogates are read as U+FFFD)" if isinstance(doc_id, str) and "\ufffd" in doc_id else ""
    if without is not None:
        note = f" (of {_shown(without)}, which has no id)"
    return InvalidInput(
        f"the id {doc_id!r}{note} is already used in {where}; make ids unique, or use {option}", file, line
    )


def _shown(place: Location) -> str:
    file, line = place
    return f"{file}:{line}" if file else f"row {line}"


def each_part(
    pool: ThreadPoolExecutor,
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[slice, _native.Texts], Result],
) -> Iterator[Result]:
    """Call `work` with slices of `rows`, which must be ascending, and their texts, on several threads."""

    def read_and_work(some: slice, read: Callable[[], _native.Texts]) -> Result:
        return work(some, read())

    for chunk in _chunks(documents, rows, threads):
        first = chunk.start
        parts = documents.texts(rows[chunk], threads)
        for job in [
            pool.submit(read_and_work, slice(first + part.start, first + part.stop), read) for part, read in parts
        ]:
            yield job.result()


def on_each_part(
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[slice, _native.Texts], object],
) -> None:
    """Call `work` as `each_part` does, ignoring its results."""
    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-prefix") as pool:
        for _ in each_part(pool, documents, rows, threads, work):
            pass


def _chunks(documents: Documents, rows: NDArray[np.int64], threads: int) -> Iterator[slice]:
    """Split rows into chunks of documents that are read at once."""
    ends = np.cumsum(documents.lengths[rows].astype(np.int64))
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BYTES_A_THREAD * threads, "right"))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop


class Collapsed(NamedTuple):
    """Documents in order of priority, with indistinguishable ones merged."""

    documents: Documents
    # For each row, the row of highest priority among those equal to it
    first: NDArray[np.int64]
    # These first rows in order of priority, without empty documents: position -> row
    order: NDArray[np.uint32]
    # The position of each row's `first`; -1 for empty documents
    position: NDArray[np.int64]
    # Row kept by decision (:attr:`Documents.stays`) that would have collapsed -> row into which it would have
    equal: Mapping[int, int] = MappingProxyType({})


def collapse(documents: Documents, recipe: Recipe, ranked: NDArray[np.int64]) -> Collapsed:
    """Collapse equal feature sets; in a Hamming-only run, equal fingerprints, for short texts with equal sets too."""
    num_rows, space = len(ranked), documents.room.space
    columns = documents.sketches, documents.num_features, documents.digests, documents.shapes
    num_words = num_key_words(recipe)
    first_rank = space.numbers(num_rows)
    for later, earlier in repeated_keys(
        lambda part: class_keys(recipe, _as_slice(ranked[part]), *columns),
        num_rows,
        num_words,
        documents.room.buckets_bytes,
    ):
        first_rank[later] = earlier
    first = space.zeros(num_rows, np.int64)
    position = space.zeros(num_rows, np.int64)
    order = space.growing(np.uint32)
    equal: dict[int, int] = {}
    for part in slices(num_rows, _COLLAPSED_AT_ONCE):
        rows = ranked[part]
        firsts = ranked[first_rank[part]]
        if documents.stays is not None:
            alone = (firsts != rows) & documents.stays[rows]
            equal |= dict(zip(rows[alone].tolist(), firsts[alone].tolist(), strict=True))
            firsts = np.where(alone, rows, firsts)
        first[rows] = firsts
        # The best document of a group gets a position, unless it is empty.
        is_placed = (firsts == rows) & (documents.shapes[rows] != EMPTY)
        placed = rows[is_placed]
        position[rows] = -1
        position[placed] = np.arange(len(order), len(order) + len(placed))
        order.append(placed.astype(np.uint32))
    for part in slices(num_rows, _COLLAPSED_AT_ONCE):
        # A first row already has its position, and is its own first.
        position[part] = position[first[part]]
    return Collapsed(documents, first, order.take(), position, equal)


def num_key_words(recipe: Recipe) -> int:
    """Return the number of words of the keys that :func:`class_keys` returns."""
    return 3 + (recipe.sketch.num_words if isinstance(recipe.sketch, SimHashDistance) else 0)


def _as_slice(rows: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return consecutive rows as a slice, whose data need not be gathered; other rows unchanged."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


def class_keys(
    recipe: Recipe,
    rows: NDArray[np.int64] | slice,
    sketches: NDArray[Any],
    num_features: NDArray[np.uint32],
    digests: NDArray[np.uint64],
    shapes: NDArray[np.uint8],
) -> NDArray[np.uint64]:
    """Return keys of shape (rows, words) that are equal exactly for documents that collapse into one."""
    digests = digests.reshape(-1, 2)[rows]
    is_empty = shapes[rows] == EMPTY
    keys = np.empty((len(digests), num_key_words(recipe)), np.uint64)
    near = recipe.sketch
    if not isinstance(near, SimHashDistance):
        keys[:, :2], keys[:, 2] = digests, is_empty
        return keys
    # Documents with more features cannot pass the short check with any short one (definitions, Decision).
    is_short = near.may_meet_short(num_features[rows])
    keys[:, :-3] = sketches.reshape(-1, near.num_words)[rows]
    keys[:, -3:-1] = np.where(is_short[:, None], digests, np.uint64(0))
    keys[:, -1] = is_empty.astype(np.uint64) * np.uint64(2) + is_short
    return keys
