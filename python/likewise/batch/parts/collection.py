"""The documents whose parts are compared: all their data except their texts."""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArraySpace, GrowingTexts, double_id
from likewise.errors import InvalidInput
from likewise.io.source.bad_rows import BadRowTally
from likewise.io.source.source import BadRow, InputFile, Piece, ReadTask
from likewise.io.source.spool import Spool
from likewise.job.options import RunContext
from likewise.job.reading import in_order, jobs_of, refusal, total_bytes
from likewise.progress import Warned

PIECE_BYTES = 1 << 20
_NO_TEXTS = Texts.from_list([])
_T = TypeVar("_T")
_Of = TypeVar("_Of")


@dataclass(frozen=True, eq=False)
class Repeats:
    """Parts to remove, ordered by document and position."""

    # The document from which a part is removed, and the one in which it is kept, possibly the same
    rows: NDArray[np.int64]
    # Byte ranges of the part in the UTF-8 of both texts
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    kept_rows: NDArray[np.int64]
    kept_starts: NDArray[np.uint32]
    kept_ends: NDArray[np.uint32]
    similarity: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.rows)


class Collection:
    """Documents of files in input order, without their texts."""

    def __init__(
        self,
        files: Sequence[InputFile],
        work: Path,
        *,
        num_reference_files: int = 0,
        space: ArraySpace | None = None,
        needs_texts: bool = False,
        most_key_bytes: int | None = None,
    ) -> None:
        self._most_key_bytes = most_key_bytes
        for file in files[num_reference_files:]:
            file.check_cut()
        self.files = files
        self.num_reference_files = num_reference_files
        self.space = space or ArraySpace()
        self._work = work
        is_spooled = needs_texts and not all(file.can_read_again for file in files)
        self._spool = Spool(work / "texts-of-documents") if is_spooled else None
        # First row and handle of each spooled piece.
        self._spooled: list[tuple[int, int]] = []
        self._growing = [self.space.growing(dtype) for dtype in (np.uint64, np.uint32, np.uint32, np.uint8)]
        self._growing_ids = GrowingTexts(self.space)
        self.bad_rows: list[list[BadRow]] = [[] for _ in files]
        self.num_blank = 0
        # Rows of file i are starts[i]:starts[i + 1].
        self.starts = np.zeros(len(files) + 1, np.int64)
        self.offsets: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.lengths: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._lines: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self._has_id: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._ids = _NO_TEXTS

    def __len__(self) -> int:
        return len(self.offsets)

    @property
    def num_references(self) -> int:
        """Number of reference documents, which are the first rows."""
        return int(self.starts[self.num_reference_files])

    def read(
        self, take: Callable[[Piece], _T], context: RunContext, work: Path, stage: str
    ) -> Iterator[tuple[int, int, list[_T]]]:
        """Read all documents; yield file, job number and results of `take` for the pieces of a job, in input order."""

        def of_job(file: int, number: int, job: ReadTask) -> tuple[int, int, list[tuple[Piece, int, _T]]]:
            found = []
            for piece in job.read():
                handle = -1
                if self._spool is not None and not self.files[file].can_read_again:
                    handle = self._spool.append(piece.texts)
                made = take(piece)
                found.append((replace(piece, texts=_NO_TEXTS), handle, made))
            return file, number, found

        lines = [0] * len(self.files)
        with closing(self.each_job(stage, of_job, context, work)) as jobs:
            for file, number, found in jobs:
                for piece, handle, _ in found:
                    self._add(file, lines[file], piece, handle, context.rules.on_error)
                    lines[file] += piece.num_lines
                yield file, number, [made for _, _, made in found]
        self._finish(context)

    def each_job(
        self, stage: str, take: Callable[[int, int, ReadTask], _Of], context: RunContext, work: Path
    ) -> Generator[_Of]:
        """Yield the results of `take` (file, job number, job) for each job, in input order."""
        return in_order(stage, jobs_of(self.files, PIECE_BYTES, work, take), total_bytes(self.files), context)

    def _add(self, number: int, first_line: int, piece: Piece, handle: int, on_error: str) -> None:
        if piece.bad_rows and on_error == "fail":
            bad = piece.bad_rows[0]
            raise refusal(self.files[number], replace(bad, line=first_line + bad.line))
        if handle >= 0:
            self._spooled.append((int(self.starts[1:].sum()), handle))
        columns: tuple[NDArray[Any], ...] = (
            piece.offsets,
            piece.lengths,
            piece.lines + np.uint32(first_line),
            piece.has_id,
        )
        for growing, values in zip(self._growing, columns, strict=True):
            growing.append(values)
        self._growing_ids.append(piece.ids)
        self.bad_rows[number] += [replace(bad, line=first_line + bad.line) for bad in piece.bad_rows]
        self.num_blank += piece.num_blank if number >= self.num_reference_files else 0
        # Counts until everything is read, then starts.
        self.starts[number + 1] += len(piece.offsets)

    def _finish(self, context: RunContext) -> None:
        rules = context.rules
        self.starts = np.cumsum(self.starts)
        self.offsets, self.lengths, self._lines, self._has_id = (growing.take() for growing in self._growing)
        self._ids = self._growing_ids.take()
        if rules.duplicate_ids != "allow":
            self._check_ids()
        tallies = BadRowTally(rules.max_bad_rows), BadRowTally(rules.max_bad_rows)
        for number, file in enumerate(self.files):
            bad = self.bad_rows[number]
            num_good = int(self.starts[number + 1] - self.starts[number])
            tally = tallies[number < self.num_reference_files]
            tally.add_rows(file.name, num_good, sum(row.num_lines for row in bad), bad[0] if bad else None)
        for tally in tallies:
            if (told := tally.finish()) is not None:
                context.progress(Warned(told))

    def file_of(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the file number of each row."""
        return np.searchsorted(self.starts, rows, side="right") - 1

    def file_names(self) -> Texts:
        """Return the file names for evidence; reference files by path, so that they can be found anywhere."""
        first = self.num_reference_files
        references = [file.path.as_posix() for file in self.files[:first]]
        return Texts.from_list([*references, *(file.name for file in self.files[first:])])

    def doc_ids(self, rows: NDArray[np.int64]) -> Texts:
        """Return the ids of documents; ``file:line`` for those without."""
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
        """Read the texts of ascending rows again."""
        numbers = self.file_of(rows)
        parts: list[Texts] = []
        for number in np.unique(numbers).tolist():
            part = rows[numbers == number]
            if self._spool is not None and not self.files[number].can_read_again:
                parts += self._put_aside(part)
            else:
                parts += [texts for _, texts in self.each_text(part)]
        return Texts.concat(parts)

    def each_text(self, rows: NDArray[np.int64]) -> Iterator[tuple[slice, Texts]]:
        """Yield the texts of ascending rows again, in parts, each with its slice of the rows."""
        bounds = np.searchsorted(rows, self.starts).tolist()
        for file, (low, high) in zip(self.files, pairwise(bounds), strict=True):
            part = rows[low:high]
            for some, texts in file.texts_again(self.offsets[part], self.lengths[part], self._work):
                yield slice(low + some.start, low + some.stop), texts

    def close(self) -> None:
        """Delete the spooled texts."""
        if self._spool is not None:
            self._spool.close()

    def _put_aside(self, rows: NDArray[np.int64]) -> Iterator[Texts]:
        assert self._spool is not None
        firsts = np.array([first for first, _ in self._spooled])
        places = np.searchsorted(firsts, rows, side="right") - 1
        for place in np.unique(places).tolist():
            first, handle = self._spooled[place]
            yield self._spool.texts(handle).take(rows[places == place] - first)

    def _check_ids(self) -> None:
        own = self.num_references + np.flatnonzero(self._has_id[self.num_references :])
        double = double_id(
            lambda part: self._ids.take(own[part]), len(own), self.space, most_bytes=self._most_key_bytes
        )
        if double is not None:
            second, first = own[list(double)].tolist()
            file, other = (self.files[int(self.file_of(np.array([row]))[0])].name for row in (second, first))
            raise InvalidInput(
                f"the id {self._ids[second]!r} is already used in {other}:{int(self._lines[first]) + 1}; make ids "
                "unique, or use --duplicate-ids allow",
                file,
                int(self._lines[second]) + 1,
            )
