"""Reading and sketching: workers convert pieces of the input to columns and drop each text after sketching it."""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise._native import Rarity
from likewise.batch.budget.room import Room
from likewise.batch.read.columns import Columns, HeldDocuments, SketchedPiece, bare_piece, sketched_piece
from likewise.batch.read.documents import Documents, References
from likewise.batch.read.resume import SPOOL_NAME, FoundPart, Position, RunParts
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.source.source import Piece, ReadTask, Source
from likewise.io.source.spool import Spool
from likewise.job.options import RunContext
from likewise.job.reading import in_order, names_line, option_of, other_fields, total_bytes
from likewise.progress import Warned
from likewise.recipe.methods import Shingles
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import fields_read, keep_needs
from likewise.stages.sketch import sketch_texts

# JSON of a field without a value; "" if the field is absent.
NO_VALUE = frozenset(("", "null", "NaN"))
# Number of reference documents per file in which a field is looked for.
_MOST_LOOKED_AT = 20

# Small, since the sketches of tiny documents are several times larger than the documents.
PIECE_BYTES = 1 << 20
_STREAM_BYTES = 64 << 20

# A piece, and the number of its source.
_Numbered = tuple[int, SketchedPiece]


def check_documents(documents: Documents) -> None:
    """Raise InvalidInput if there are no documents because no row has the text field, or the id field."""
    bad_rows = [
        (source, bad) for source, of_one in zip(documents.sources, documents.bad_rows, strict=True) for bad in of_one
    ]
    if len(documents) or not bad_rows or not all(option_of(bad) for _, bad in bad_rows):
        return
    source, bad = bad_rows[0]
    none = "the only row is not a document" if len(bad_rows) == 1 else f"none of {len(bad_rows):,} rows is a document"
    raise InvalidInput(f"{none}: {bad.reason}{other_fields(source, bad)}", source.name)


def num_without_field(
    documents: Documents, of_keep: Collection[str], ranked_by: Collection[str] = ()
) -> dict[str, int]:
    """Return the number of documents without a value for each field of `keep`; the other fields are only checked."""
    counts = {}
    for name, parts in documents.fields.items():
        row = num_without = num_absent = 0
        is_known = name in ranked_by
        for part in parts:
            values = part.to_list()
            own = max(0, documents.num_references - row)
            is_known = is_known or any(values[:own])
            values = values[own:]
            row += len(part)
            num_without += sum(value in NO_VALUE for value in values)
            num_absent += values.count("")
        if not is_known and num_absent == len(documents) - documents.num_references:
            check_has_field(documents, name, "--keep" if name in of_keep else "--date-field or --count-by")
        if name in of_keep:
            counts[name] = num_without
    return counts


def check_has_field(documents: Documents, name: str, option: str = "--keep") -> None:
    """Raise InvalidInput if a field that an option names is in no document, reference, or empty column."""
    firsts, ends = documents.starts[:-1], documents.starts[1:]
    listed = None
    for number, (source, row, end) in enumerate(zip(documents.sources, firsts, ends, strict=True)):
        # For references with stored sketches, nothing else was read.
        is_reference = number < documents.num_reference_sources
        for one in range(int(row), min(int(end), int(row) + (_MOST_LOOKED_AT if is_reference else 1))):
            names = source.field_names(int(documents.offsets[one]), int(documents.lengths[one]))
            if name in names:
                return
            if not is_reference:
                listed = listed or (source.name, names_line(names))
    if listed is not None:
        has = f" (found in the first: {listed[1]})" if listed[1] else ""
        whose = ", nor do documents of --against" if documents.num_references else ""
        raise InvalidInput(
            f"no document has the field {name!r} used by {option.replace('--', '')}{has}{whose}; choose another field "
            f"with {option}",
            listed[0],
        )


class _Worker:
    """Reads and sketches one piece at a time. Thread-safe."""

    def __init__(
        self,
        recipe: Recipe,
        spool: Spool | None,
        rarity: Rarity | None,
        context: RunContext,
        held: HeldDocuments,
        parts: RunParts | None,
    ) -> None:
        self._held = held
        self._recipe = recipe
        self._rarity = rarity
        self._rules = context.rules
        self._spool = spool
        self._parts = parts
        self._timing = context.timing
        self._all_threads = self._threads = context.threads

    def tasks(
        self, sources: Sequence[Source], tasks: Iterator[_Task]
    ) -> Iterator[tuple[int, Callable[[], tuple[_Task, Sequence[Any]]]]]:
        """Yield the size and the work of each task; its result is the task and its pieces."""
        first: list[_Task] = []
        failure: Exception | None = None
        try:
            first.extend(islice(tasks, self._all_threads))
        except (LikewiseError, OSError) as error:
            failure = error
        # If there are fewer jobs than threads, jobs use several threads each.
        self._threads = max(1, self._all_threads // max(1, len(first)))
        for task in chain(first, tasks):
            yield task.num_bytes, partial(self._done, sources, task)
        if failure is not None:
            raise failure

    def _done(self, sources: Sequence[Source], task: _Task) -> tuple[_Task, Sequence[Any]]:
        if task.kept is not None:
            from likewise.batch.read.kept_sketches import kept_pieces

            num_fields = len(fields_read(self._recipe.keep, self._rules.fields))
            return task, kept_pieces(task.kept, task.source, self._recipe, num_fields=num_fields)
        if task.found is not None:
            assert self._parts is not None
            return task, self._parts.load(task.found)
        assert task.job is not None
        if task.is_texts_alone:
            return task, self.put_aside(task.job)
        return task, self.work(sources[task.source], task.source, task.number, task.job)

    def work(self, source: Source, number: int, job_number: int, job: ReadTask) -> list[_Numbered]:
        held = self._held.take(number, job_number)
        if held is not None:
            return [(number, one) for one in held]
        done: list[_Numbered] = []
        pieces = job.read()
        while True:
            began = time.perf_counter()
            piece = next(pieces, None)
            self._timing.add_thread("reading", time.perf_counter() - began)
            if piece is None:
                return done
            if piece.bad_rows and self._rules.on_error == "fail":
                return [*done, (number, bare_piece(piece))]
            done.append((number, self._part(source, piece)))

    def put_aside(self, job: ReadTask) -> list[tuple[int, int]]:
        """Only spool the texts of a job, whose documents are already sketched; return their numbers and handles."""
        spool = self._spool
        return [(len(piece.texts), spool.append(piece.texts)) for piece in job.read() if spool is not None]

    def _part(self, source: Source, piece: Piece) -> SketchedPiece:
        began = time.perf_counter()
        batch = sketch_texts(piece.texts, self._recipe, sets=True, threads=self._threads, rarity=self._rarity)
        lengths = np.asarray(piece.texts.lengths()) if keep_needs(self._recipe.keep)[0] else None
        seconds = time.perf_counter() - began
        self._timing.add_thread("tokenizing", seconds * batch.features_share)
        self._timing.add_thread("sketching", seconds * (1 - batch.features_share))
        handle = None
        if self._spool is not None and not source.can_read_again:
            began = time.perf_counter()
            handle = self._spool.append(piece.texts)
            self._timing.add_thread("spooling", time.perf_counter() - began)
        return sketched_piece(piece, batch, lengths, handle)


def ingest(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    work: Path,
    needs_texts: bool = True,
    parts: RunParts | None = None,
    references: References | None = None,
    room: Room | None = None,
    held: HeldDocuments | None = None,
) -> Documents:
    """Read and sketch all documents."""
    spool = None
    if needs_texts and not all(source.can_read_again for source in sources):
        spool = Spool(work / SPOOL_NAME, has_tokens=recipe.takes_tokens) if parts is None else parts.open_spool()
    # The size of a stream is not known beforehand.
    num_bytes = sum(source.num_bytes or _STREAM_BYTES for source in sources)
    rarity = Rarity(num_bytes) if isinstance(recipe.sketch, Shingles) else None
    references = references or References()
    columns = Columns(sources, recipe, spool, context.rules, rarity, room or Room(), len(references.files))
    worker = _Worker(recipe, spool, rarity, context, held or HeldDocuments(), parts)
    try:
        found = [] if parts is None else parts.take_up(context.threads)
        tasks = worker.tasks(sources, _tasks(sources, work, found, references))
        with closing(in_order("sketching", tasks, total_bytes(sources), context)) as done:
            for task, items in done:
                pieces: list[_Numbered] = []
                for item in items:
                    if task.is_texts_alone:
                        columns.add_texts(task.source, *item)
                    else:
                        columns.add(*item)
                        pieces.append(item)
                if parts is not None:
                    _put_aside(parts, task, pieces)
        documents = columns.documents()
        check_documents(documents)
        for told in columns.check_bad_rows():
            context.progress(Warned(told))
    except BaseException:
        if parts is not None:
            with contextlib.suppress(OSError):
                parts.close()
        if spool is not None:
            spool.close()
        raise
    return documents


class _Task(NamedTuple):
    """A job of a source, or a stored part that replaces several jobs."""

    source: int
    number: int
    num_bytes: int
    job: ReadTask | None = None
    found: FoundPart | None = None
    kept: Path | None = None
    is_texts_alone: bool = False


def _tasks(
    sources: Sequence[Source], work: Path, found: Sequence[FoundPart], references: References
) -> Iterator[_Task]:
    """Yield the jobs of all sources, with stored parts in place of the jobs that they contain."""
    coming = deque(found)
    end: Position = (0, 0)
    sketched: set[int] = set()
    starts = deque(references.starts())
    for source, of_source in enumerate(sources):
        if starts and starts[0][0] == source:
            first, reference = starts.popleft()
            if reference.sketches is not None:
                sketched |= set(range(first, first + len(reference.files)))
                for path in reference.sketches:
                    yield _Task(first, -1, 0, kept=path)
        if source in sketched:
            yield from _texts_alone(source, of_source, work)
            continue
        for number, job in enumerate(of_source.jobs(PIECE_BYTES, work)):
            while coming and coming[0].start <= (source, number):
                part = coming.popleft()
                end = part.end
                yield _Task(source, number, part.num_bytes, found=part)
            if (source, number) >= end:
                yield _Task(source, number, job.num_bytes, job)


def _texts_alone(number: int, source: Source, work: Path) -> Iterator[_Task]:
    """Yield tasks that only spool the texts of a source with sketched documents, if they cannot be read by offset."""
    for num_packed in source.unpacking(PIECE_BYTES, work):
        yield _Task(number, -1, num_packed, ReadTask(num_packed, lambda: iter(())), is_texts_alone=True)
    if not source.can_read_again:
        for job in source.jobs(PIECE_BYTES, work):
            yield _Task(number, -1, job.num_bytes, job, is_texts_alone=True)


def _put_aside(parts: RunParts, task: _Task, pieces: list[_Numbered]) -> None:
    if task.number < 0:
        return
    if task.found is None:
        parts.add(task.source, task.number, task.num_bytes, pieces)
    else:
        # A part that replaces a damaged one ends where the next stored part starts.
        parts.flush()
