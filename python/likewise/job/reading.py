"""Reading of inputs: the files of a run, their documents in order on several threads, and errors for bad rows."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput, InvalidParameter, LikewiseError
from likewise.io.output.whole import scratch_directory
from likewise.io.places import Watch
from likewise.io.source.source import BadRow, BadRowTally, Piece, ReadTask, Source, each_piece
from likewise.io.tables.columns import text_column
from likewise.job.options import FileRun, RunContext
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted, Warned
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import ALL_ROLES, role_paths

if TYPE_CHECKING:
    from likewise.io.inputs import Inputs
    from likewise.io.lines.jsonl import JsonlStream

# Start of the reason why a row without a named field is bad -> the option that names the field.
_MISSING = {"no field ": "--text-field", "no tokens field ": "--tokens-field", "no id field ": "--id-field"}
_MOST_FIELDS = 12
_Made = TypeVar("_Made")
_PIECE_BYTES = 4 << 20
# Jobs that wait per thread; their data, such as a batch of a stream, is in memory.
_JOBS_A_THREAD = 3
_NO_TEXTS = Texts.from_list([])


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
        pieces = [(piece._replace(texts=_NO_TEXTS), make(piece.texts, inner_threads)) for piece in job.read()]
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
