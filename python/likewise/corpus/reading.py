"""Documents of a collection, piece by piece in order, each worked on by one of several threads and then dropped."""

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.batch.read.fields import refusal
from likewise.io.source.bad_rows import BadRowTally
from likewise.io.source.source import BadRow, Job, Piece, Source
from likewise.io.tables.columns import text_column
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted

_Made = TypeVar("_Made")
_PIECE_BYTES = 4 << 20
_JOBS_A_THREAD = 3


@dataclass(frozen=True)
class Part(Generic[_Made]):
    """Consecutive documents of one source, and what was made of their texts.

    Parameters
    ----------
    source : Source
        Where they are from.
    first_row : int
        Position of the first of them among all documents.
    doc_ids : pyarrow.Array of string
        Their ids: their own, else ``file:line``, else the position.
    lines : ndarray of shape (n,), int64
        Line or row of each in its source, from 0.
    offsets, lengths : ndarray of shape (n,), int64
        Bytes of the line in its file; for tables the row, and 1.
    bad_rows : list of BadRow
        Rows among them that are no documents; lines count from the beginning of the source.
    made : object
        What was made of the texts.
    """

    source: Source
    first_row: int
    doc_ids: Any
    lines: NDArray[np.int64]
    offsets: NDArray[np.int64]
    lengths: NDArray[np.int64]
    bad_rows: list[BadRow]
    made: _Made

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Counts:
    """What was read.

    Parameters
    ----------
    num_documents, num_bad_rows, num_blank_lines : int
        So far.
    """

    num_documents: int = 0
    num_bad_rows: int = 0
    num_blank_lines: int = 0


def each_part(
    sources: Sequence[Source],
    make: Callable[[Texts, int], _Made],
    counts: Counts,
    *,
    stage: str,
    threads: int,
    on_error: str,
    tally: BadRowTally,
    work: Path,
    progress: Progress,
) -> Iterator[Part[_Made]]:
    """Yield all documents of the sources in order, some megabytes at a time.

    Parameters
    ----------
    sources : sequence of Source
        In the order in which their documents count.
    make : callable
        Called with some texts and a number of threads, on any thread. The texts are dropped afterwards.
    counts : Counts
        Takes the counts.
    stage : str
        What the progress calls it.
    threads : int
        Threads at work at once.
    on_error : {"fail", "skip"}
        What to do about bad rows.
    tally : BadRowTally
        Counts them. The caller finishes it, behind the last call for one answer.
    work : Path
        A directory for what must be put aside.
    progress : callable
        Takes events.

    Raises
    ------
    InvalidInput
        At the first bad row, if `on_error` is ``fail``; if more are bad than the limit allows.
    """
    began = time.perf_counter()
    progress(StageStarted(stage, sum(source.num_bytes for source in sources), "bytes"))
    waiting: deque[tuple[Source, Job, Future[list[tuple[Piece, _Made]]]]] = deque()
    first_lines: dict[int, int] = {}
    done = 0

    def finished(most_waiting: int) -> Iterator[Part[_Made]]:
        nonlocal done
        while len(waiting) > most_waiting:
            source, job, future = waiting.popleft()
            for piece, made in future.result():
                first_line = first_lines.get(id(source), 0)
                first_lines[id(source)] = first_line + piece.num_lines
                if piece.bad_rows and on_error == "fail":
                    bad = piece.bad_rows[0]
                    raise refusal(source, replace(bad, line=bad.line + first_line))
                tally.add(source.name, first_line, piece)
                yield _part(source, counts.num_documents, first_line, piece, made)
                counts.num_documents += len(piece.offsets)
                counts.num_bad_rows += len(piece.bad_rows)
                counts.num_blank_lines += piece.num_blank
            done += job.num_bytes
            progress(StageAdvanced(stage, done))

    pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-read")
    try:
        for source in sources:
            # Threads that no job of its own keeps busy help inside the only one.
            inner_threads = threads if source.num_bytes <= _PIECE_BYTES else 1
            for job in source.jobs(_PIECE_BYTES, work):
                waiting.append((source, job, pool.submit(_worked, job, make, inner_threads)))
                yield from finished(_JOBS_A_THREAD * threads)
        yield from finished(0)
    finally:
        pool.shutdown(cancel_futures=True)
    progress(StageFinished(stage, time.perf_counter() - began))


def _worked(job: Job, make: Callable[[Texts, int], _Made], threads: int) -> list[tuple[Piece, _Made]]:
    return [(replace(piece, texts=_NO_TEXTS), make(piece.texts, threads)) for piece in job.read()]


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
    bad_rows = [replace(bad, line=bad.line + first_line) for bad in piece.bad_rows]
    return Part(source, first_row, doc_ids, lines, offsets, lengths, bad_rows, made)


_NO_TEXTS = Texts.from_list([])
