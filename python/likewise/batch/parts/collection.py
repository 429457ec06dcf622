"""The documents whose parts are compared: everything about them except their texts."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput
from likewise.io.lines.jsonl import JsonlFile
from likewise.io.source.bad_rows import BadRowLimit, BadRowTally
from likewise.io.source.source import BadRow, Job, Piece
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted

PIECE_BYTES = 1 << 20
_JOBS_A_THREAD = 3
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Repeats:
    """What is to be taken out, by document and then by place.

    Parameters
    ----------
    rows, kept_rows : ndarray of shape (m,), int64
        The document that a part is taken out of, and the one that it stays in, perhaps the same.
    starts, ends, kept_starts, kept_ends : ndarray of shape (m,), int64
        Where the part stands in both: bytes of the UTF-8 of their texts.
    similarity : ndarray of shape (m,), float64
        As measured on the two.
    """

    rows: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    kept_rows: NDArray[np.int64]
    kept_starts: NDArray[np.int64]
    kept_ends: NDArray[np.int64]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


class Collection:
    """Documents of files in input order; filled piece by piece, in any order of pieces within a file.

    Parameters
    ----------
    files : sequence of JsonlFile
        Where they come from.
    """

    def __init__(self, files: Sequence[JsonlFile]) -> None:
        self.files = files
        self._lock = threading.Lock()
        self._pieces: list[dict[int, Piece]] = [{} for _ in files]
        self.bad_rows: list[list[BadRow]] = [[] for _ in files]
        self.num_blank = 0
        # Rows of file i are starts[i]:starts[i + 1].
        self.starts = np.zeros(len(files) + 1, np.int64)
        self.offsets = np.zeros(0, np.uint64)
        self.lengths = np.zeros(0, np.uint32)
        self._lines = np.zeros(0, np.uint32)
        self._ids = Texts.from_list([])
        self._has_id = np.zeros(0, np.uint8)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, file: int, job: int, piece: Piece) -> None:
        """Note a piece without its texts. Safe from several threads."""
        with self._lock:
            self._pieces[file][job] = replace(piece, texts=_NO_TEXTS)

    def finish(self, *, allow_doubles: bool, max_bad_rows: BadRowLimit) -> str | None:
        """Put the pieces together; return what a user should know of the bad rows.

        Raises
        ------
        InvalidInput
            If an id comes twice, and that is not allowed; if more rows are bad than allowed.
        """
        ordered = [[of_one[job] for job in sorted(of_one)] for of_one in self._pieces]
        lines = []
        for number, pieces in enumerate(ordered):
            first = 0
            for piece in pieces:
                lines.append(piece.lines + np.uint32(first))
                self.bad_rows[number] += [replace(bad, line=first + bad.line) for bad in piece.bad_rows]
                first += piece.num_lines
                self.num_blank += piece.num_blank
        self.starts[1:] = np.cumsum([sum(len(piece.offsets) for piece in pieces) for pieces in ordered])
        every = [piece for pieces in ordered for piece in pieces]
        self.offsets = _joined([piece.offsets for piece in every], np.uint64)
        self.lengths = _joined([piece.lengths for piece in every], np.uint32)
        self._lines = _joined(lines, np.uint32)
        self._has_id = _joined([piece.has_id for piece in every], np.uint8)
        self._ids = Texts.concat([piece.ids for piece in every])
        self._pieces = []
        if not allow_doubles:
            self._check_ids()
        tally = BadRowTally(max_bad_rows)
        for number, file in enumerate(self.files):
            bad = self.bad_rows[number]
            num_good = int(self.starts[number + 1] - self.starts[number])
            tally.add_rows(file.name, num_good, sum(row.num_lines for row in bad), bad[0] if bad else None)
        return tally.finish()

    def file_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of each row's file."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def doc_ids(self, rows: NDArray[np.int64]) -> Texts:
        """Return ids: their own, else ``file:line``."""
        own, flags = self._ids.take(rows), self._has_id[rows]
        if flags.all():
            return own
        files, lines = self.file_of(rows).tolist(), self._lines[rows].tolist()
        return Texts.from_list(
            [
                doc_id if flag else f"{self.files[file].name}:{line + 1}"
                for doc_id, flag, file, line in zip(own.to_list(), flags.tolist(), files, lines, strict=True)
            ]
        )

    def texts(self, rows: NDArray[np.int64]) -> Texts:
        """Read the texts of rows again; rising."""
        numbers = self.file_of(rows)
        parts = []
        for number in np.unique(numbers).tolist():
            part = rows[numbers == number]
            parts.append(self.files[number].read_texts(self.offsets[part], self.lengths[part]))
        return Texts.concat(parts)

    def _check_ids(self) -> None:
        own = np.flatnonzero(self._has_id)
        hashes = np.asarray(self._ids.hashes())[own]
        order = np.argsort(hashes, kind="stable")
        same = np.flatnonzero(hashes[order[1:]] == hashes[order[:-1]])
        doubles = [(own[order[i + 1]], own[order[i]]) for i in same.tolist()]
        doubles = [(b, a) for b, a in doubles if self._ids[int(a)] == self._ids[int(b)]]
        if doubles:
            second, first = map(int, min(doubles))
            file, other = (self.files[int(self.file_of(np.array([row]))[0])].name for row in (second, first))
            raise InvalidInput(
                f"the id {self._ids[second]!r} is already used in {other}:{int(self._lines[first]) + 1}; make ids "
                "unique, or use --duplicate-ids allow",
                file,
                int(self._lines[second]) + 1,
            )


_NO_TEXTS = Texts.from_list([])


def check_piece(file: JsonlFile, first_line: int, piece: Piece, on_error: str) -> None:
    """Raise InvalidInput at the first bad row, where these stop a run."""
    if piece.bad_rows and on_error == "fail":
        bad = piece.bad_rows[0]
        line = first_line + bad.line + 1
        raise InvalidInput(f"{bad.reason}; fix the row, or use --on-error skip", file.name, line)


def read_in_order(
    files: Sequence[Any],
    work: Path,
    stage: str,
    take: Callable[[int, int, Job], _T],
    *,
    threads: int,
    progress: Progress,
) -> Iterator[_T]:
    """Yield what `take` makes of each job (file, number of the job, job), in the order of the input.

    Parameters
    ----------
    files : sequence of Source
        What is read.
    work : Path
        A directory for what must be put aside.
    stage : str
        How progress calls it.
    take : callable
        Called on any thread.
    threads : int
        Jobs at once.
    progress : Progress
        Told of bytes done.
    """
    import time

    began, done = time.perf_counter(), 0
    progress(StageStarted(stage, sum(file.num_bytes for file in files), "bytes"))
    waiting: deque[tuple[int, Future[_T]]] = deque()
    pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-parts")
    try:
        for number, file in enumerate(files):
            for job_number, job in enumerate(file.jobs(PIECE_BYTES, work)):
                waiting.append((job.num_bytes, pool.submit(take, number, job_number, job)))
                while len(waiting) > _JOBS_A_THREAD * threads or (waiting and waiting[0][1].done()):
                    num_bytes, future = waiting.popleft()
                    yield future.result()
                    done += num_bytes
                    progress(StageAdvanced(stage, done))
        while waiting:
            yield waiting.popleft()[1].result()
    except BaseException:
        pool.shutdown(cancel_futures=True)
        raise
    pool.shutdown()
    progress(StageFinished(stage, time.perf_counter() - began))


def _joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:  # noqa: ANN401 - what NumPy takes
    return np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)
