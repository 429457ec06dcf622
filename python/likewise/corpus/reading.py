"""Streaming of documents in order, piece by piece; worker threads process each piece and drop its texts."""

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
    """Consecutive documents of one source, and the result of processing their texts."""

    # Their source
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

    def __len__(self) -> int:
        return len(self.lines)


@dataclass
class Counts:
    """Counts of the rows read so far."""

    # Counts so far
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
    """Yield all documents of the sources in order, a few megabytes at a time."""
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
            # A source with a single job may use all threads for it.
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
