"""Reading: weights are counted in a first pass; in a second, workers convert pieces of the input to columns.

A worker drops each text after sketching it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise._native import Rarity
from likewise.batch.budget.room import Room
from likewise.batch.read.columns import Columns, HeldDocuments, SketchedPiece, bare_piece, sketched_piece
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput, InvalidParameter, LikewiseError, counted
from likewise.io.source.source import NO_LIMIT, BadRowTally, InputFile, Piece, ReadTask, Source
from likewise.job.reading import (
    FileRun,
    RunContext,
    RunRules,
    found_inputs,
    in_order,
    jobs_of,
    names_line,
    option_of,
    other_fields,
    refusal,
    scratch_for,
)
from likewise.progress import Progress, Warned, no_progress, shows_progress, taken
from likewise.recipe.methods import Bloom, Shingles
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.rules import fields_read, keep_needs
from likewise.stages.sketch import FilterSize, sketch_texts
from likewise.stages.weights import DEFAULT_MEMORY_BYTES, Counter, Sample, Weights

if TYPE_CHECKING:
    from likewise.batch.memory import BoundedRun
    from likewise.batch.read.resume import FoundPart, Position, RunParts
    from likewise.io.source.spool import Spool

# JSON of a field without a value; "" if the field is absent.
NO_VALUE = frozenset(("", "null", "NaN"))
# Number of reference documents per file in which a field is looked for.
_MOST_LOOKED_AT = 20

# Small, since the sketches of tiny documents are several times larger than the documents.
PIECE_BYTES = 1 << 20
_STREAM_BYTES = 64 << 20
# Rows have 32 bits, and the highest two numbers are reserved.
MOST_DOCUMENTS = 2**32 - 2


class Reference(NamedTuple):
    """Files of reference documents from one path."""

    files: tuple[InputFile, ...]
    # Parts of the sketches that the run that wrote these files stored
    sketches: tuple[Path, ...] | None = None
    # Fields by which that run ranked documents, which some of them have
    ranked_by: tuple[str, ...] = ()
    # The output directory of that run
    run: Path | None = None


class References(NamedTuple):
    """All reference documents, in order of priority."""

    # One part per given path
    parts: tuple[Reference, ...] = ()

    @property
    def files(self) -> tuple[InputFile, ...]:
        """All files."""
        return tuple(file for part in self.parts for file in part.files)

    @property
    def ranked_by(self) -> frozenset[str]:
        """All fields by which the runs that wrote these files ranked documents."""
        return frozenset(field for part in self.parts for field in part.ranked_by)

    def starts(self) -> Iterator[tuple[int, Reference]]:
        """Yield each part with the number of its first file among the sources of the run; references come first."""
        first = 0
        for part in self.parts:
            yield first, part
            first += len(part.files)


# A piece, and the number of its source.
_Numbered = tuple[int, SketchedPiece]


def check_documents(documents: Documents) -> None:
    """Raise if there are too many documents, or none because no row has the text field, or the id field."""
    if num := len(documents):
        # Later steps count rows with 32 bits.
        if num > MOST_DOCUMENTS:
            raise InvalidParameter(
                "inputs",
                f"{num:,} documents given; the limit of a local run is {MOST_DOCUMENTS:,}; use --engine spark, or "
                "split the inputs",
            )
        return
    bad_rows = [
        (source, bad) for source, of_one in zip(documents.sources, documents.bad_rows, strict=True) for bad in of_one
    ]
    if not bad_rows or not all(option_of(bad) for _, bad in bad_rows):
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
        held: HeldDocuments | None,
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
            from likewise.batch.read.resume import kept_pieces

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
        if self._held is not None and (held := self._held.take(number, job_number)) is not None:
            return [(number, one) for one in held]
        done: list[_Numbered] = []
        began = time.perf_counter()
        for piece in job.read():
            if piece.bad_rows and self._rules.on_error == "fail":
                return [*done, (number, bare_piece(piece))]
            done.append((number, self._part(source, piece, time.perf_counter() - began)))
            began = time.perf_counter()
        return done

    def put_aside(self, job: ReadTask) -> list[tuple[int, int]]:
        """Only spool the texts of a job, whose documents are already sketched; return their numbers and handles."""
        spool = self._spool
        return [(len(piece.texts), spool.append(piece.texts)) for piece in job.read() if spool is not None]

    def _part(self, source: Source, piece: Piece, reading: float) -> SketchedPiece:
        began = time.perf_counter()
        batch = sketch_texts(piece.texts, self._recipe, sets=True, threads=self._threads, rarity=self._rarity)
        lengths = np.asarray(piece.texts.lengths()) if keep_needs(self._recipe.keep)[0] else None
        seconds, share, handle = time.perf_counter() - began, batch.features_share, None
        self._timing.add_thread(reading=reading, tokenizing=seconds * share, sketching=seconds * (1 - share))
        if self._spool is not None and not source.can_read_again:
            began = time.perf_counter()
            handle = self._spool.append(piece.texts)
            self._timing.add_thread(spooling=time.perf_counter() - began)
        return sketched_piece(piece, batch, lengths, handle)


@contextmanager
def open_documents(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    work: Path,
    needs_texts: bool = True,
    parts: RunParts | None = None,
    references: References | None = None,
    bounded: BoundedRun | None = None,
    held: HeldDocuments | None = None,
) -> Iterator[Documents]:
    """Read and sketch all documents; spooled data in `work` is deleted when the context exits."""
    references, work = references or References(), work if parts is None else parts.directory
    spool = rarity = None
    if needs_texts and not all(source.can_read_again for source in sources):
        from likewise.io.source.spool import SPOOL_NAME, Spool

        spool = Spool(work / SPOOL_NAME, has_tokens=recipe.takes_tokens) if parts is None else parts.open_spool()
    if isinstance(recipe.sketch, Shingles):
        # The size of a stream is not known beforehand.
        rarity = Rarity(sum(source.num_bytes or _STREAM_BYTES for source in sources))
    room = Room() if bounded is None else bounded.room
    columns = Columns(sources, recipe, spool, context.rules, rarity, room, len(references.files))
    worker = _Worker(recipe, spool, rarity, context, held, parts)
    try:
        with context.timing.wall("reading_and_sketching"):
            found = parts.take_up(context.threads) if parts is not None and parts.left else []
            tasks = worker.tasks(sources, _tasks(sources, work, found, references))
            with closing(in_order("sketching", tasks, sources, context)) as done:
                for task, items in done:
                    _collect(task, items, columns, parts)
            documents = columns.documents()
            check_documents(documents)
            for told in columns.check_bad_rows():
                context.progress(Warned(told))
        if bounded is not None:
            documents.room = bounded.settle(len(documents), recipe)
        if documents.fields:
            documents.num_without_field = num_without_field(documents, keep_needs(recipe.keep)[1], references.ranked_by)
        if context.rules.duplicate_ids == "fail":
            with context.timing.wall("ordering"):
                documents.check_ids()
        yield documents
    finally:
        if parts is not None:
            # A finished run needs no more parts.
            with suppress(OSError):
                parts.close()
        if spool is not None:
            spool.close()


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


def _collect(task: _Task, items: Sequence[Any], columns: Columns, parts: RunParts | None) -> None:
    """Add the result of a task to the columns, and to the parts for a run that continues this one."""
    if task.is_texts_alone:
        for item in items:
            columns.add_texts(task.source, *item)
        return
    for item in items:
        columns.add(*item)
    if parts is None or task.number < 0:
        return
    if task.found is None:
        parts.add(task.source, task.number, task.num_bytes, items)
    else:
        # A part that replaces a damaged one ends where the next stored part starts.
        parts.flush()


# With fewer documents, all features are equally rare.
_LEAST_DOCUMENTS = 2


def count_sources(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    is_sampled: bool = False,
) -> Weights:
    """Return the weights of features by their rarity in all documents, or if `is_sampled`, in a sample of many."""
    counter = Sample() if is_sampled else Counter(recipe, memory_bytes)
    tally = BadRowTally(context.rules.max_bad_rows)
    with context.timing.wall("weighing"):
        read_into(counter, sources, "weighing", context, tally)
        if context.rules.max_bad_rows is not NO_LIMIT and (told := tally.finish()) is not None:
            context.progress(Warned(told))
        if isinstance(counter, Sample):
            table = counter.count(recipe, memory_bytes, threads=context.threads)
        else:
            table = counter.finish(threads=context.threads)
    doubts = doubts_of(table)
    # A run on one document has nothing to compare.
    if not recipe.needs_threshold or table.num_documents >= _LEAST_DOCUMENTS:
        for doubt in doubts:
            context.progress(Warned(doubt))
    return table


def read_into(
    counter: Counter | Sample | FilterSize,
    sources: Sequence[Source],
    stage: str,
    context: RunContext,
    tally: BadRowTally | None = None,
) -> None:
    """Read all documents once and pass their texts to `counter`."""

    def count(number: int, _: int, job: ReadTask) -> None:
        source = sources[number]
        # A source with a single job may use all threads for it.
        threads = context.threads if 0 < source.num_bytes <= PIECE_BYTES else 1
        for piece in job.read():
            if piece.bad_rows and context.rules.on_error == "fail":
                # The lines of earlier jobs may be uncounted.
                raise InvalidInput(refusal(source, piece.bad_rows[0]).message, source.name)
            if tally is not None:
                tally.add(source.name, None, piece)
            counter.add(piece.texts, threads=threads)

    # Files decompressed for this pass are deleted after it.
    with scratch_for(sources) as unpacked:
        jobs = jobs_of(sources, PIECE_BYTES, unpacked, count)
        for _ in in_order(stage, jobs, sources, context):
            pass


def doubts_of(table: Weights) -> list[str]:
    """Return warnings about the reliability of a counted table, one sentence each."""
    doubts = []
    if not table.is_exact:
        doubts.append(
            "the counts do not fit in memory (48 bytes per distinct feature), so they come from a sketch and may be "
            f"too high, by up to {table.excess:,} for all but {table.excess_probability:.1%} of the features. For "
            "exact counts, run likewise weights with a larger --memory."
        )
    if table.num_documents < _LEAST_DOCUMENTS:
        doubts.append(
            f"only {counted(table.num_documents, 'document')} with distinct feature sets; in so few documents, "
            "all features look equally rare"
        )
    return doubts


def weighed_files(
    files: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    parts: Path | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Recipe:
    """Return the recipe with its weights, then its filter size, from files that can be read again.

    A directory for parts keeps the counts for a later run.
    """
    found, context = recipe, context.with_rules(RunRules(context.threads, "skip"))
    if found.needs_counting:
        table = count_sources(files, found, context, memory_bytes=memory_bytes, is_sampled=True)
        found = found.with_table(table)
    if isinstance(found.sketch, Bloom) and found.sketch.filter_bits is None:
        size = FilterSize(found, found.sketch)
        with context.timing.wall("sizing"):
            read_into(size, files, "sizing", context)
        found = found.replace(filter_bits=size.finish())
    if parts is not None and found is not recipe:
        from likewise.batch.read.resume import store_counts

        store_counts(parts, found, sum(file.num_bytes for file in files))
    return found


@shows_progress
def weigh_files(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    output: Path | None = None,
    progress: Progress | bool | None = None,
) -> Weights:
    """Return the weights of features by their rarity in files."""
    recipe = as_recipe(Recipe.minhash(weights="idf") if recipe is None else recipe)
    run = run or FileRun()
    with found_inputs(inputs, recipe, run, output, no_progress) as found:
        return count_sources(
            found.files,
            recipe,
            RunContext(run.run_rules(), progress=taken(progress)),
            memory_bytes=memory_bytes,
        )
