"""Reading and sketching: workers turn pieces of the input into columns; texts live only while they are sketched."""

import dataclasses
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Rarity, Texts
from likewise.dedup.documents import Documents, SpooledPiece
from likewise.dedup.timing import Timing
from likewise.errors import InvalidInput, LikewiseError
from likewise.growing import GrowingArray
from likewise.io.jsonl import JsonlFile
from likewise.io.source import BadRow, Job, Piece, Source
from likewise.io.spool import Spool
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted
from likewise.recipe import Recipe
from likewise.sketch import sketch_texts

# Small, since the sketches of tiny documents are several times their bytes.
PIECE_BYTES = 1 << 20
# Jobs that wait for a thread: what they hold, such as a batch of a stream, stays in memory.
JOBS_A_THREAD = 3
_STREAM_BYTES = 64 << 20
ON_ERROR = ("fail", "skip", "keep")
# How the reason begins why a row without the field of the text is bad.
_NO_FIELD = "no field "
_MOST_FIELDS = 12


@dataclass(frozen=True)
class IngestRules:
    """What of the input is needed.

    Parameters
    ----------
    needs_lengths : bool
        Whether `keep` asks for text lengths.
    fields : tuple of str
        Further fields that `keep` asks for.
    on_error : {"fail", "skip", "keep"}
        What to do about bad rows.
    needs_texts : bool
        Whether texts will be read again, so that a spool is filled where the source cannot.
    """

    needs_lengths: bool = False
    fields: tuple[str, ...] = ()
    on_error: str = "fail"
    needs_texts: bool = True


@dataclass(frozen=True, eq=False)
class _Part:
    """One sketched piece, its texts gone."""

    piece: Piece
    sketches: NDArray[Any]
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
    digests: NDArray[np.uint64]
    text_lengths: NDArray[np.uint32] | None
    handle: int | None


class _Worker:
    """Reads and sketches one piece at a time; called from several threads at once."""

    def __init__(
        self,
        recipe: Recipe,
        rules: IngestRules,
        spool: Spool | None,
        rarity: Rarity | None,
        timing: Timing,
        threads: int,
    ) -> None:
        self._recipe = recipe
        self._rarity = rarity
        self._rules = rules
        self._spool = spool
        self._timing = timing
        self._threads = threads

    def work(self, source: Source, job: Job) -> list[_Part]:
        parts: list[_Part] = []
        pieces = job.read()
        while True:
            began = time.perf_counter()
            piece = next(pieces, None)
            self._timing.add_thread("reading", time.perf_counter() - began)
            if piece is None or (piece.bad_rows and self._rules.on_error == "fail"):
                return parts if piece is None else [*parts, self._refused(piece)]
            parts.append(self._part(source, piece))

    def _part(self, source: Source, piece: Piece) -> _Part:
        began = time.perf_counter()
        batch = sketch_texts(piece.texts, self._recipe, sets=True, threads=self._threads, rarity=self._rarity)
        num_features = np.asarray(batch.num_features)
        lengths = np.asarray(piece.texts.lengths()) if self._rules.needs_lengths else None
        seconds = time.perf_counter() - began
        self._timing.add_thread("tokenising", seconds * batch.features_share)
        self._timing.add_thread("sketching", seconds * (1 - batch.features_share))
        handle = None
        if self._spool is not None and self._rules.needs_texts and not source.can_read_again:
            began = time.perf_counter()
            handle = self._spool.append(piece.texts)
            self._timing.add_thread("spooling", time.perf_counter() - began)
        return _Part(
            piece=dataclasses.replace(piece, texts=_NO_TEXTS),
            sketches=np.asarray(batch.sketches),
            shapes=np.asarray(batch.shapes),
            num_features=num_features,
            digests=np.asarray(batch.digests),
            text_lengths=lengths,
            handle=handle,
        )

    @staticmethod
    def _refused(piece: Piece) -> _Part:
        nothing = np.zeros(0, np.uint8)
        return _Part(piece, nothing, nothing, nothing.astype(np.uint32), nothing.astype(np.uint64), None, None)


_NO_TEXTS = Texts.from_list([])


def ingest(
    sources: Sequence[Source],
    recipe: Recipe,
    rules: IngestRules,
    *,
    threads: int,
    progress: Progress,
    timing: Timing,
    work: Path,
) -> Documents:
    """Read and sketch all documents.

    Parameters
    ----------
    sources : sequence of Source
        In the order in which their documents count.
    recipe : Recipe
        How to sketch.
    rules : IngestRules
        What else is needed.
    threads : int
        Pieces worked on at once.
    progress : Progress
        Told of bytes done.
    timing : Timing
        Takes the seconds.
    work : Path
        A directory for what must be put aside: texts that cannot be read again cheaply, unpacked files.

    Returns
    -------
    Documents
        Independent of threads and pieces.

    Raises
    ------
    InvalidInput
        At the first bad row, if `on_error` is ``fail``.
    """
    began = time.perf_counter()
    stage = "sketching"
    progress(StageStarted(stage, sum(source.num_bytes for source in sources), "bytes"))
    spooling = rules.needs_texts and any(not source.can_read_again for source in sources)
    spool = Spool(work / "texts.spool") if spooling else None
    # What a stream holds is not known beforehand.
    num_bytes = sum(source.num_bytes or _STREAM_BYTES for source in sources)
    rarity = Rarity(num_bytes) if recipe.method == "shingles" else None
    columns = _Columns(sources, recipe, spool, rules, rarity)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-read")
    try:
        jobs = ((number, job) for number, source in enumerate(sources) for job in source.jobs(PIECE_BYTES, work))
        failure, first = _taken(jobs, threads)
        # Threads that no job of its own keeps busy help inside the others.
        worker = _Worker(recipe, rules, spool, rarity, timing, max(1, threads // max(1, len(first))))
        waiting: deque[tuple[int, int, Future[list[_Part]]]] = deque()
        done = 0

        def gather(most_waiting: int) -> None:
            nonlocal done
            while waiting and (len(waiting) > most_waiting or waiting[0][2].done()):
                number, num_bytes, future = waiting.popleft()
                for part in future.result():
                    columns.add(number, part)
                done += num_bytes
                progress(StageAdvanced(stage, done))

        coming = iter(first)
        while True:
            for number, job in coming:
                waiting.append((number, job.num_bytes, pool.submit(worker.work, sources[number], job)))
                gather(JOBS_A_THREAD * threads)
            if failure is not None:
                # What stands before the place that cannot be read is reported first, for any number of threads.
                gather(0)
                raise failure
            failure, first = _taken(jobs, 1)
            coming = iter(first)
            if not first and failure is None:
                break
        gather(0)
        documents = columns.documents()
    except BaseException:
        pool.shutdown(cancel_futures=True)
        if spool is not None:
            spool.close()
        raise
    pool.shutdown()
    timing.add_wall("reading_and_sketching", time.perf_counter() - began)
    progress(StageFinished(stage, time.perf_counter() - began))
    return documents


def _taken(jobs: Iterator[tuple[int, Job]], count: int) -> tuple[Exception | None, list[tuple[int, Job]]]:
    """Return the next jobs, and what kept the iterator from giving more."""
    taken: list[tuple[int, Job]] = []
    try:
        taken.extend(islice(jobs, count))
    except (LikewiseError, OSError) as error:
        return error, taken
    return None, taken


class _Columns:
    """Parts in input order, gathered into columns."""

    def __init__(
        self, sources: Sequence[Source], recipe: Recipe, spool: Spool | None, rules: IngestRules, rarity: Rarity | None
    ) -> None:
        self._rarity = rarity
        self._sources = sources
        self._spool = spool
        self._rules = rules
        self._sketches = GrowingArray(np.uint64 if recipe.method in ("simhash", "bloom") else np.uint8)
        self._shapes = GrowingArray(np.uint8)
        self._num_features = GrowingArray(np.uint32)
        self._digests = GrowingArray(np.uint64)
        self._offsets = GrowingArray(np.uint64)
        self._lengths = GrowingArray(np.uint32)
        self._lines = GrowingArray(np.uint32)
        self._has_id = GrowingArray(np.bool_)
        self._text_lengths = GrowingArray(np.uint32)
        self._ids: list[Texts] = []
        self._fields: list[list[Texts]] = [[] for _ in rules.fields]
        self._spooled: list[SpooledPiece] = []
        self._bad: list[list[BadRow]] = [[] for _ in sources]
        self._num_documents = [0] * len(sources)
        self._num_lines = [0] * len(sources)
        self._num_blank = 0

    def add(self, number: int, part: _Part) -> None:
        piece = part.piece
        first_line = self._num_lines[number]
        for bad in piece.bad_rows:
            self._bad[number].append(dataclasses.replace(bad, line=first_line + bad.line))
        if piece.bad_rows and self._rules.on_error == "fail":
            bad = self._bad[number][0]
            raise InvalidInput(
                f"{bad.reason}{_other_fields(self._sources[number], bad)}; mend the row, or go on with --on-error skip",
                self._sources[number].name,
                bad.line + (self._sources[number].name is not None),
            )
        if part.handle is not None:
            self._spooled.append(SpooledPiece(sum(self._num_documents), part.handle))
        elif self._spool is not None:
            # Keeps the search by first row right where sources that can be read again stand between.
            self._spooled.append(SpooledPiece(sum(self._num_documents), -1))
        self._sketches.append(part.sketches)
        self._shapes.append(part.shapes)
        self._num_features.append(part.num_features)
        self._digests.append(part.digests)
        self._offsets.append(piece.offsets)
        self._lengths.append(piece.lengths)
        self._lines.append(piece.lines + np.uint32(first_line))
        self._has_id.append(piece.has_id)
        if part.text_lengths is not None:
            self._text_lengths.append(part.text_lengths)
        self._ids.append(piece.ids)
        for of_one, values in zip(self._fields, piece.fields, strict=True):
            of_one.append(values)
        self._num_lines[number] += piece.num_lines
        self._num_documents[number] += len(part.shapes)
        self._num_blank += piece.num_blank

    def documents(self) -> Documents:
        ids, self._ids = Texts.concat(self._ids), []
        return Documents(
            sources=self._sources,
            starts=np.concatenate([[0], np.cumsum(self._num_documents, dtype=np.int64)]).astype(np.int64),
            sketches=self._sketches.take(),
            shapes=self._shapes.take(),
            num_features=self._num_features.take(),
            digests=self._digests.take(),
            offsets=self._offsets.take(),
            lengths=self._lengths.take(),
            lines=self._lines.take(),
            ids=ids,
            has_id=self._has_id.take(),
            text_lengths=self._text_lengths.take() if self._rules.needs_lengths else None,
            fields=dict(zip(self._rules.fields, self._fields, strict=True)),
            bad_rows=self._bad,
            num_blank=self._num_blank,
            spool=self._spool,
            spooled=self._spooled,
            rarity=self._rarity,
        )


def check_fields(documents: Documents) -> None:
    """Raise InvalidInput if there is no document at all since no row has the field of the text."""
    bad_rows = [
        (source, bad) for source, of_one in zip(documents.sources, documents.bad_rows, strict=True) for bad in of_one
    ]
    if len(documents) or not bad_rows or not all(bad.reason.startswith(_NO_FIELD) for _, bad in bad_rows):
        return
    source, bad = bad_rows[0]
    raise InvalidInput(
        f"none of {len(bad_rows)} rows is a document: {bad.reason}{_other_fields(source, bad)}", source.name
    )


def _other_fields(source: Source, bad: BadRow) -> str:
    """Return which fields a row has that lacks the one of the text."""
    if not bad.reason.startswith(_NO_FIELD) or not isinstance(source, JsonlFile):
        return ""
    names = source.field_names(bad.offset, bad.length)
    more = ", ..." if len(names) > _MOST_FIELDS else ""
    there_are = f" (it has {', '.join(names[:_MOST_FIELDS])}{more})" if names else ""
    return f"{there_are}; name the right one with --text-field"
