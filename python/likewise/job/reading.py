"""One run: its reading options, the context of its steps, and its inputs, read in order on several threads."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Generic, Literal, NamedTuple, Self, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import (
    InvalidInput,
    InvalidParameter,
    LikewiseError,
    check_choice,
    check_integer,
    num_threads,
    take_bytes,
)
from likewise.io.output.whole import scratch_directory
from likewise.io.places import Watch
from likewise.io.source.source import (
    DEFAULT_MAX_BAD_ROWS,
    NO_LIMIT,
    BadRow,
    BadRowLimit,
    BadRowTally,
    Piece,
    ReadRules,
    ReadTask,
    Source,
    TokenRules,
    bad_row_limit,
    each_piece,
)
from likewise.io.tables.columns import text_column
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, Warned, no_progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import ALL_ROLES, BYTE_TOKENS, USER_TOKENS, fields_read, role_names, role_paths

if TYPE_CHECKING:
    from likewise.io.inputs import Inputs
    from likewise.io.lines.jsonl import JsonlStream

DuplicateIds = Literal["fail", "allow"]
DUPLICATE_IDS: tuple[DuplicateIds, ...] = get_args(DuplicateIds)
OnError = Literal["fail", "skip", "keep"]
ON_ERROR: tuple[OnError, ...] = get_args(OnError)
MIN_MEMORY_BYTES = 256_000_000
# Memory limit per thread that decompresses: it holds a compressed frame and up to 8 MB of decompressed bytes.
_MEMORY_AN_UNPACKER = 128_000_000
Quote = Literal["none", "double"]
QUOTES: tuple[Quote, ...] = get_args(Quote)

WALL_STAGES = (
    *("starting_spark", "reading_items", "scanning", "weighing", "sizing", "reading_and_sketching"),
    *("choosing_the_threshold", "ordering", "candidates"),
    *("verification", "deciding", "writing"),
)
THREAD_STAGES = ("reading", "tokenizing", "sketching", "spooling", "reading_again", "making_sets")


class RunRules(NamedTuple):
    """The rules of a run in addition to its recipe."""

    threads: int
    on_error: str = "fail"
    duplicate_ids: str = "fail"
    # Maximum number of bad rows among the documents, and among the reference documents
    max_bad_rows: BadRowLimit = NO_LIMIT
    # Fields to read from each row, in addition to those of `keep`
    fields: tuple[str, ...] = ()


@dataclass(frozen=True)
class FileRun:
    """Reading options of files."""

    # Names of the text fields, with dots for nested fields; several are joined with a newline
    text_fields: tuple[str, ...] = ("text",)
    # Field with a list of tokens or [token, weight] pairs, for tokens ``user``; text counts where it is empty.
    tokens_field: str | None = None
    # The id field; rows without it are bad. None: ``id`` if there, else ``file:line``; ``"none"``: always that.
    id_field: str | None = None
    # Field whose value names a document; rows with the same value are joined. Only for `dedup`.
    document_by: str | None = None
    on_error: OnError = "fail"
    duplicate_ids: DuplicateIds = "fail"
    # Longer documents are bad rows
    max_document_bytes: int = 64_000_000
    # Number of threads; all processors if None
    threads: int | None = None
    # The stream for ``-`` among the inputs
    stdin: BinaryIO | None = None
    # Format of the inputs whatever their names; binary for tokens ``bytes`` or ``chunks`` if None.
    file_format: str | None = None
    # Field separator of CSV
    delimiter: str | None = None
    # Whether a quote at the start of a CSV field opens a quoted field. If None: yes in CSV; in TSV only if all names
    # of its header are quoted, or its first megabyte has fields with doubled quotes and every quote that opens a
    # field is closed.
    quote: Quote | None = None
    # Maximum of bad rows with ``skip`` or ``keep``: a count (``"100"``) or a share of all (0 to 1, ``"1%"``).
    max_bad_rows: float | str = DEFAULT_MAX_BAD_ROWS
    # Gzip and zstd files that decompress to more bytes, or to more bytes per compressed byte, are rejected
    max_unpacked_bytes: int = 1_000_000_000_000
    max_unpack_ratio: int = 250
    # Fields to read from each row for the outputs of a run, in addition to those of `keep`
    fields: tuple[str, ...] = ()
    # Limit of anonymous memory (at least 256 MB) of runs that decide documents and of pairs; others go to disk.
    memory_bytes: float | str | None = None

    def read_rules(self, recipe: Recipe, *, joins_rows: bool = False) -> ReadRules:
        """Return the rules for reading each file; `joins_rows` if the caller can join rows into documents."""
        if self.document_by is not None and not joins_rows:
            raise InvalidParameter("document_by", "applies only to likewise dedup with an output directory (-o OUT)")
        self._check_tokens(recipe)
        if not isinstance(self.id_field, str | None):
            raise InvalidParameter("id_field", f"{self.id_field!r} is not the name of a field")
        if self.quote is not None:
            check_choice("quote", self.quote, QUOTES)
        check_integer("max_document", self.max_document_bytes, 1, 2**32 - 1)
        check_integer("max_unpacked", self.max_unpacked_bytes, 1, 2**63 - 1)
        check_integer("max_unpack_ratio", self.max_unpack_ratio, 1, 2**31 - 1)
        text_fields = self.text_fields if self.tokens_field is None else (self.tokens_field,)
        # Those that decompress one file: their memory is a small part of the limit.
        bound, threads = self.memory_bound(), num_threads(self.threads)
        fields, roles = fields_read(recipe.keep, self.fields), role_names(recipe.roles)
        return ReadRules(
            text_fields if recipe.only_within is None else (recipe.only_within, *text_fields),
            self.document_by or self.id_field,
            fields,
            self.max_document_bytes,
            self.max_unpacked_bytes,
            self.max_unpack_ratio,
            recipe.markup is not None,
            threads=threads if bound is None else min(threads, bound // _MEMORY_AN_UNPACKER),
            quote=self.quote,
            passes_damage=self.on_error != "fail",
            tokens=TokenRules.of(recipe),
            only_within=recipe.only_within,
            text_without_tokens=self.text_fields,
            roles=roles,
        ).checked()

    def _check_tokens(self, recipe: Recipe) -> None:
        if recipe.takes_tokens and self.tokens_field is None:
            raise InvalidParameter(
                "tokens_field",
                f"required for tokens {USER_TOKENS} and weights own; give the name of the field with the tokens",
            )
        if self.tokens_field is not None and not recipe.takes_tokens:
            raise InvalidParameter(
                "tokens_field", f"requires tokens {USER_TOKENS}; the recipe uses tokens {recipe.tokens}"
            )

    def format_for(self, recipe: Recipe) -> str | None:
        """Return the format of the inputs, given these options and the tokens of the recipe."""
        if recipe.tokens in BYTE_TOKENS:
            return self.file_format or "binary"
        if self.file_format == "binary":
            raise InvalidParameter("format", "binary files require --tokens bytes or --tokens chunks")
        return self.file_format

    def memory_bound(self) -> int | None:
        """Return the memory limit in bytes, or None."""
        return None if self.memory_bytes is None else take_bytes("memory", self.memory_bytes, MIN_MEMORY_BYTES)

    def run_rules(self) -> RunRules:
        """Return the other rules of the run."""
        check_choice("on_error", self.on_error, ON_ERROR)
        check_choice("duplicate_ids", self.duplicate_ids, DUPLICATE_IDS)
        threads, limit = num_threads(self.threads), bad_row_limit(self.max_bad_rows)
        return RunRules(threads, self.on_error, self.duplicate_ids, limit, self.fields)

    def identity(self) -> dict[str, object]:
        """Return the options that determine what is read, as JSON values."""
        return {
            "text_field": list(self.text_fields),
            **({} if self.tokens_field is None else {"tokens_field": self.tokens_field}),
            "id_field": self.id_field,
            **({} if self.document_by is None else {"document_by": self.document_by}),
            "on_error": self.on_error,
            "duplicate_ids": self.duplicate_ids,
            "max_document": self.max_document_bytes,
            "format": self.file_format,
            "delimiter": self.delimiter,
            "quote": self.quote,
            **({"fields": list(self.fields)} if self.fields else {}),
        }


class Timing:
    """Sums of seconds by stage. Thread-safe."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._lock = threading.Lock()
        self._wall: dict[str, float] = {}
        self._thread: dict[str, float] = {}

    def add_thread(self, **seconds: float) -> None:
        """Add seconds of one thread by stage."""
        with self._lock:
            for stage, some in seconds.items():
                self._thread[stage] = self._thread.get(stage, 0.0) + some

    @contextmanager
    def wall(self, stage: str) -> Iterator[None]:
        """Measure the body as wall clock time of a stage that does not overlap others."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._lock:
                self._wall[stage] = self._wall.get(stage, 0.0) + time.perf_counter() - began

    def to_dict(self) -> dict[str, object]:
        """Return ``total_s``, ``wall_s`` by stage (summing to about the total), ``thread_s`` (sums over threads)."""
        return {
            "total_s": round(time.perf_counter() - self._began, 4),
            "wall_s": {stage: round(self._wall[stage], 4) for stage in WALL_STAGES if stage in self._wall},
            "thread_s": {stage: round(self._thread[stage], 4) for stage in THREAD_STAGES if stage in self._thread},
        }


class RunContext:
    """The shared context of all steps of a run: rules in addition to the recipe; timing and progress receive events."""

    def __init__(self, rules: RunRules, timing: Timing | None = None, progress: Progress = no_progress) -> None:
        self.rules, self.timing, self.progress = rules, timing or Timing(), progress
        self.threads = rules.threads

    def with_rules(self, rules: RunRules) -> Self:
        """Return the same context with other rules."""
        return type(self)(rules, self.timing, self.progress)

    @contextmanager
    def stage(self, name: str, wall: str, unit: str) -> Iterator[None]:
        """Report and measure the body as a stage of unknown size, as a context."""
        began = time.perf_counter()
        self.progress(StageStarted(name, 0, unit))
        with self.timing.wall(wall):
            yield
        self.progress(StageFinished(name, time.perf_counter() - began))


# Start of the reason why a row without a named field is bad -> the option that names the field.
_MISSING = {"no field ": "--text-field", "no tokens field ": "--tokens-field", "no id field ": "--id-field"}
_MOST_FIELDS = 12
_Made = TypeVar("_Made")
_PIECE_BYTES = 4 << 20
# Jobs that wait per thread; their data, such as a batch of a stream, is in memory.
_JOBS_A_THREAD = 3
NO_TEXTS = Texts.from_list([])
# A place where nothing can be created.
_NOWHERE = Path(os.devnull)


@contextmanager
def found_inputs(
    inputs: Sequence[str | Path] | str | Path,
    recipe: Recipe,
    run: FileRun,
    output: Path | None,
    progress: Progress,
    watch: Watch | None = None,
    *,
    joins_rows: bool = False,
) -> Iterator[Inputs]:
    """Find and watch the inputs of a run, as a context: the copy of standard input exists until it exits."""
    from likewise.io.inputs import find_inputs

    with scratch_directory() as work:
        found = find_inputs(
            listed(inputs),
            run.read_rules(recipe, joins_rows=joins_rows),
            file_format=run.format_for(recipe),
            delimiter=run.delimiter,
            output=output,
            stdin=run.stdin,
            spool_directory=work,
            progress=progress,
        )
        watch = watch or Watch()
        watch.add(found.files)
        yield found
        watch.check()


def scratch_for(sources: Iterable[Source]) -> AbstractContextManager[Path]:
    """Return :func:`scratch_directory`, or a path without a directory if reading the sources needs none."""
    are_plain = all(source.is_plain for source in sources)
    return nullcontext(_NOWHERE) if are_plain else scratch_directory()


def listed(paths: Sequence[str | Path] | str | Path) -> list[str | Path]:
    """Return one or several paths as a list."""
    given = [paths] if isinstance(paths, str | Path) else list(paths) if np.iterable(paths) else [paths]
    for path in given:
        if not isinstance(path, str | os.PathLike):
            raise InvalidParameter("inputs", f"{path!r} is not a path; give a path or a list of paths")
    return given


def in_order(
    stage: str,
    tasks: Iterable[tuple[int, Callable[[], _Made]]],
    sources: Sequence[Source],
    context: RunContext,
) -> Generator[_Made]:
    """Run tasks on parts of sources on the threads of a run, and yield results, or raise errors, in order."""
    began, done = time.perf_counter(), 0
    context.progress(StageStarted(stage, sum(source.num_bytes for source in sources), "bytes"))
    waiting: deque[tuple[int, Future[_Made]]] = deque()
    pool = ThreadPoolExecutor(context.threads, thread_name_prefix="likewise-read")
    failure: Exception | None = None
    coming = iter(tasks)
    try:
        while True:
            task = None
            try:
                task = next(coming, None)
            except (LikewiseError, OSError) as error:
                failure = error
            if task is not None:
                waiting.append((task[0], pool.submit(task[1])))
            most_waiting = 0 if task is None else _JOBS_A_THREAD * context.threads
            while waiting and (len(waiting) > most_waiting or waiting[0][1].done()):
                size, future = waiting.popleft()
                yield future.result()
                done += size
                context.progress(StageAdvanced(stage, done))
            if failure is not None:
                raise failure
            if task is None:
                break
    finally:
        pool.shutdown(cancel_futures=True)
    context.progress(StageFinished(stage, time.perf_counter() - began))


def jobs_of(
    sources: Sequence[Source], piece_bytes: int, work: Path, take: Callable[[int, int, ReadTask], _Made]
) -> Iterator[tuple[int, Callable[[], _Made]]]:
    """Yield tasks for :func:`in_order`: `take` (number of the source, number of the job in it, job) for each job."""
    for number, source in enumerate(sources):
        for job_number, job in enumerate(source.jobs(piece_bytes, work)):
            yield job.num_bytes, partial(take, number, job_number, job)


class Part(NamedTuple, Generic[_Made]):
    """Consecutive documents of one source, and the result of processing their texts."""

    source: Source
    # Row of the first one among all documents
    first_row: int
    # Their ids; ``file:line`` for documents without an id, or the row in sources without a name
    doc_ids: Any
    # Line or row of each in its source, from 0
    lines: NDArray[np.int64]
    # Bytes of the line in its file; for tables, the row and 1
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    # Rows among them that are not documents; lines count from the start of the source
    bad_rows: list[BadRow]
    # Result for their texts
    made: _Made


@dataclass(eq=False)
class Counts:
    """Counts of the rows read so far."""

    num_documents: int = 0
    num_bad_rows: int = 0
    num_blank_lines: int = 0


def each_part(
    sources: Sequence[Source],
    make: Callable[[Texts, int], _Made],
    counts: Counts,
    context: RunContext,
    *,
    stage: str,
    work: Path,
    tally: BadRowTally | None = None,
) -> Iterator[Part[_Made]]:
    """Yield all documents of the sources in order, a few megabytes at a time.

    At the end, bad rows are checked and reported, unless a tally is given, which the caller finishes.
    """

    def take(number: int, _: int, job: ReadTask) -> tuple[int, list[tuple[Piece, _Made]]]:
        # A source with a single job may use all threads for it.
        inner_threads = context.threads if sources[number].num_bytes <= _PIECE_BYTES else 1
        pieces = [(piece._replace(texts=NO_TEXTS), make(piece.texts, inner_threads)) for piece in job.read()]
        return number, pieces

    bad_rows = BadRowTally(context.rules.max_bad_rows) if tally is None else tally
    first_lines = [0] * len(sources)
    jobs = jobs_of(sources, _PIECE_BYTES, work, take)
    with closing(in_order(stage, jobs, sources, context)) as done:
        for number, pieces in done:
            source = sources[number]
            for piece, made in pieces:
                first_line = first_lines[number]
                first_lines[number] += piece.num_lines
                if piece.bad_rows and context.rules.on_error == "fail":
                    bad = piece.bad_rows[0]
                    raise refusal(source, bad._replace(line=bad.line + first_line))
                bad_rows.add(source.name, first_line, piece)
                yield _part(source, counts.num_documents, first_line, piece, made)
                counts.num_documents += len(piece.offsets)
                counts.num_bad_rows += len(piece.bad_rows)
                counts.num_blank_lines += piece.num_blank
    if tally is None and (note := bad_rows.finish()) is not None:
        context.progress(Warned(note))


def _part(source: Source, first_row: int, first_line: int, piece: Piece, made: _Made) -> Part[_Made]:
    lines = piece.lines.astype(np.int64) + first_line
    has_id = piece.has_id.astype(bool)
    if has_id.all():
        doc_ids = text_column(piece.ids)
    else:
        ids = piece.ids.to_list()
        for i in np.flatnonzero(~has_id).tolist():
            ids[i] = str(first_row + i) if source.name is None else f"{source.name}:{lines[i] + 1}"
        doc_ids = text_column(ids)
    offsets, lengths = piece.offsets.astype(np.int64), piece.lengths.astype(np.int64)
    bad_rows = [bad._replace(line=bad.line + first_line) for bad in piece.bad_rows]
    return Part(source, first_row, doc_ids, lines, offsets, lengths, bad_rows, made)


def refusal(source: Source | JsonlStream, bad: BadRow, renamed: Mapping[str, str] | None = None) -> InvalidInput:
    """Return the error for a bad row that is not skipped."""
    if source.name is None:
        return InvalidInput(bad.reason, None, bad.line)
    other = other_fields(source, bad)
    rest = f"{other}, or skip such rows with" if other else "; fix the row, or use"
    message = f"{bad.reason}{rest} --on-error skip"
    for option, name in (renamed or {}).items():
        message = message.replace(option, name)
    return InvalidInput(message, source.name, bad.line + 1)


def option_of(bad: BadRow) -> str | None:
    """Return the option that names the field whose absence made a row bad; None for other reasons."""
    return next((option for beginning, option in _MISSING.items() if bad.reason.startswith(beginning)), None)


def other_fields(source: Source | JsonlStream, bad: BadRow) -> str:
    """Return the fields of a row that lacks a named one, and the option to use; "" for other bad rows."""
    option = option_of(bad)
    if option is None:
        roles = _roles_of(source, bad)
        return f" (roles found: {names_line(roles)}); choose roles with --roles" if roles else ""
    names = names_line(source.field_names(bad.offset, bad.length))
    rules = getattr(source, "rules", None)
    if rules is not None and bad.reason == f'no field "{rules.only_within}"':
        option = rules.option_of(rules.only_within)
    there_are = f" (found: {names})" if names else ""
    return f"{there_are}; choose a field with {option}"


def _roles_of(source: Source | JsonlStream, bad: BadRow) -> list[str]:
    """Return the roles at the beginning of a file in which a row has no text of those that count; else nothing."""
    from likewise.io.lines.jsonl import JsonlStream

    rules = getattr(source, "rules", None)
    if (
        rules is None
        or isinstance(source, JsonlStream)
        or not rules.roles.are_counted
        or not bad.reason.startswith("no text in ")
    ):
        return []
    found: dict[str, None] = {}
    for path in role_paths(rules.text_fields):
        other = copy(source)
        object.__setattr__(other, "rules", rules._replace(text_fields=(path,), roles=ALL_ROLES))
        with suppress(LikewiseError, OSError), scratch_directory() as work:
            _, piece = next(each_piece(other, _PIECE_BYTES, work))
            found |= dict.fromkeys(role for text in piece.texts.to_list() for role in text.split("\n"))
    return list(found)


def names_line(names: list[str]) -> str:
    """Return the first names of fields, as a list in one line."""
    return ", ".join(names[:_MOST_FIELDS]) + (", ..." if len(names) > _MOST_FIELDS else "")
