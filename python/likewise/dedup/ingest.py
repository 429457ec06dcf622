"""Reading and sketching: workers turn pieces of the input into columns; texts live only while they are sketched."""

import dataclasses
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.dedup.documents import Documents, SpooledPiece
from likewise.dedup.timing import Timing
from likewise.errors import InvalidInput
from likewise.io.source import BadRow, Piece, Source
from likewise.io.spool import Spool
from likewise.progress import Progress, StageAdvanced, StageFinished, StageStarted
from likewise.recipe import Recipe
from likewise.sketch import sketch_texts

PIECE_BYTES = 4 << 20
ON_ERROR = ("fail", "skip", "keep")


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

    def __init__(self, recipe: Recipe, rules: IngestRules, spool: Spool | None, timing: Timing, threads: int) -> None:
        self._recipe = recipe
        self._rules = rules
        self._spool = spool
        self._timing = timing
        self._threads = threads

    def work(self, source: Source, start: int, length: int) -> list[_Part]:
        parts: list[_Part] = []
        pieces = source.read(start, length)
        while True:
            began = time.perf_counter()
            piece = next(pieces, None)
            self._timing.add_thread("reading", time.perf_counter() - began)
            if piece is None or (piece.bad_rows and self._rules.on_error == "fail"):
                return parts if piece is None else [*parts, self._refused(piece)]
            parts.append(self._part(source, piece))

    def _part(self, source: Source, piece: Piece) -> _Part:
        began = time.perf_counter()
        batch = sketch_texts(piece.texts, self._recipe, sets=True, threads=self._threads)
        num_features = np.asarray(batch.num_features)
        lengths = np.asarray(piece.texts.lengths()) if self._rules.needs_lengths else None
        self._timing.add_thread("sketching", time.perf_counter() - began)
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
    spool_path: Path | None = None,
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
    spool_path : Path, optional
        Where texts are put aside that cannot be read again cheaply.

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
    tasks = [(number, *piece) for number, source in enumerate(sources) for piece in source.pieces(PIECE_BYTES)]
    spooling = rules.needs_texts and any(not source.can_read_again for source in sources)
    spool = Spool(spool_path) if spooling and spool_path is not None else None
    worker = _Worker(recipe, rules, spool, timing, max(1, threads // max(1, len(tasks))))
    columns = _Columns(sources, spool, rules)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="likewise-read")
    try:
        futures = [pool.submit(worker.work, sources[number], start, length) for number, start, length in tasks]
        done = 0
        units = [sum(t[2] for t in tasks if t[0] == number) for number in range(len(sources))]
        for (number, _, length), future in zip(tasks, futures, strict=True):
            for part in future.result():
                columns.add(number, part)
            done += sources[number].num_bytes * length // max(1, units[number])
            progress(StageAdvanced(stage, done))
        documents = columns.documents(recipe)
    except BaseException:
        pool.shutdown(cancel_futures=True)
        if spool is not None:
            spool.close()
        raise
    pool.shutdown()
    timing.add_wall("reading_and_sketching", time.perf_counter() - began)
    progress(StageFinished(stage, time.perf_counter() - began))
    return documents


class _Columns:
    """Parts in input order, gathered into columns."""

    def __init__(self, sources: Sequence[Source], spool: Spool | None, rules: IngestRules) -> None:
        self._sources = sources
        self._spool = spool
        self._rules = rules
        self._parts: list[_Part] = []
        self._lines: list[NDArray[np.uint32]] = []
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
                f"{bad.reason}; mend the row, or go on with --on-error skip or keep",
                self._sources[number].name,
                bad.line + 1,
            )
        if part.handle is not None:
            self._spooled.append(SpooledPiece(sum(self._num_documents), part.handle))
        elif self._spool is not None:
            # Keeps the search by first row right where sources that can be read again stand between.
            self._spooled.append(SpooledPiece(sum(self._num_documents), -1))
        self._parts.append(part)
        self._lines.append(piece.lines + np.uint32(first_line))
        self._num_lines[number] += piece.num_lines
        self._num_documents[number] += len(part.shapes)
        self._num_blank += piece.num_blank

    def documents(self, recipe: Recipe) -> Documents:
        parts = self._parts
        sketch_type: Any = np.uint64 if recipe.method == "simhash" else np.uint8
        lengths = [part.text_lengths for part in parts if part.text_lengths is not None]
        return Documents(
            sources=self._sources,
            starts=np.concatenate([[0], np.cumsum(self._num_documents, dtype=np.int64)]).astype(np.int64),
            sketches=_joined([part.sketches for part in parts], sketch_type),
            shapes=_joined([part.shapes for part in parts], np.uint8),
            num_features=_joined([part.num_features for part in parts], np.uint32),
            digests=_joined([part.digests for part in parts], np.uint64),
            offsets=_joined([part.piece.offsets for part in parts], np.uint64),
            lengths=_joined([part.piece.lengths for part in parts], np.uint32),
            lines=_joined(self._lines, np.uint32),
            ids=Texts.concat([part.piece.ids for part in parts]),
            has_id=_joined([part.piece.has_id for part in parts], np.uint8).astype(bool),
            text_lengths=_joined(lengths, np.uint32) if self._rules.needs_lengths else None,
            fields={name: [part.piece.fields[i] for part in parts] for i, name in enumerate(self._rules.fields)},
            bad_rows=self._bad,
            num_blank=self._num_blank,
            spool=self._spool,
            spooled=self._spooled,
        )


def _joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:  # noqa: ANN401
    joined = np.concatenate([np.zeros(0, dtype), *arrays]).astype(dtype, copy=False)
    # The core shares a read-only buffer, and copies one that somebody might write to.
    joined.flags.writeable = False
    return joined
