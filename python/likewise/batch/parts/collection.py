"""Documents as distinct parts, and what is written of documents from which parts were removed."""

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArraySpace, GrowingTexts, double_id, slices
from likewise.errors import InvalidInput
from likewise.io.inputs import Inputs
from likewise.io.kept import write_files
from likewise.io.source.bad_rows import BadRowTally
from likewise.io.source.source import BadRow, Cut, InputFile, Kept, Piece, ReadTask
from likewise.io.source.spool import Spool
from likewise.io.tables.columns import constant_column, number_column, text_column
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


# Rows of evidence that are built at once.
_ROWS_WRITTEN = 1 << 18
_SHOWN_BYTES = 160


def evidence_of(
    collection: Collection, repeats: Repeats, *, unit: str, method: str, measure: str, recipe_id: str
) -> Iterator[Any]:
    """Yield the evidence as Arrow tables with a limited number of rows, one row for each removed part."""
    import pyarrow as pa

    for part in slices(len(repeats), _ROWS_WRITTEN) if len(repeats) else [slice(0, 0)]:
        columns = places_of(collection, "", repeats.rows[part], repeats.starts[part], repeats.ends[part])
        columns |= places_of(
            collection, "kept_", repeats.kept_rows[part], repeats.kept_starts[part], repeats.kept_ends[part]
        )
        del columns["kept_length"]
        num_rows = len(columns["row"])
        yield pa.table(
            {
                **columns,
                "unit": constant_column(unit, num_rows),
                "measure": constant_column(measure, num_rows),
                "similarity": number_column(repeats.similarity[part]),
                "method": constant_column(method, num_rows),
                "recipe_id": constant_column(recipe_id, num_rows),
            }
        )


def places_of(
    collection: Collection, prefix: str, rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any]
) -> dict[str, Any]:
    """Return the positions of parts as columns of the evidence, whose names start with `prefix`."""
    names, own = collection.file_names(), rows - collection.num_references
    return {
        f"{prefix}row": number_column(own, own < 0),
        "kept_id" if prefix else "doc_id": text_column(collection.doc_ids(rows)),
        f"{prefix}file": text_column(names.take(collection.file_of(rows))),
        f"{prefix}offset": number_column(collection.offsets[rows].astype(np.int64)),
        f"{prefix}length": number_column(collection.lengths[rows].astype(np.int64)),
        f"{prefix}span_start": number_column(starts.astype(np.int64)),
        f"{prefix}span_end": number_column(ends.astype(np.int64)),
    }


def emptied(collection: Collection, cut: Cut, may_be: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the documents to drop, in which only whitespace is left, ascending; changed ones are read again."""
    stays = np.array([file.keeps_emptied for file in collection.files])[collection.file_of(cut.rows)]
    cut = cut.where(~stays if may_be is None else may_be & ~stays)
    rows = [np.zeros(0, np.int64)]
    for part, texts in collection.each_text(cut.rows):
        of_part = cut.take(part)
        rows.append(of_part.rows[of_part.apply(texts)[1]])
    return np.concatenate(rows)


def write_documents(
    collection: Collection,
    found: Inputs,
    cut: Cut,
    dropped: NDArray[np.int64],
    kept: Path,
    *,
    keeps_bad: bool,
    threads: int,
    answer: str,
) -> None:
    """Write each file without the removed parts."""

    def kept_of(number: int, _: InputFile) -> Kept:
        number += collection.num_reference_files
        low, high = collection.starts[number : number + 2].tolist()
        gone = dropped[np.searchsorted(dropped, low) : np.searchsorted(dropped, high)] - low
        own = cut.within(low, high).without(gone)
        offsets: NDArray[np.uint64] = np.delete(collection.offsets[low:high], gone)
        lengths: NDArray[np.uint32] = np.delete(collection.lengths[low:high], gone)
        if keeps_bad and (bad := [row for row in collection.bad_rows[number] if row.length]):
            places = np.searchsorted(offsets, np.array([row.offset for row in bad], np.uint64))
            # A row moves by the number of bad rows before it.
            own = replace(own, rows=own.rows + np.searchsorted(places, own.rows, side="right"))
            offsets = np.insert(offsets, places, [row.offset for row in bad])
            lengths = np.insert(lengths, places, [row.length for row in bad])
        return Kept(offsets, lengths, threads, cut=own)

    write_files(found, kept, kept_of, answer)


def num_kept(collection: Collection, dropped: NDArray[np.int64]) -> list[int]:
    """Return the number of kept documents of each file, without reference documents."""
    starts = collection.starts[collection.num_reference_files :]
    gone = np.diff(np.searchsorted(dropped, starts))
    return [int(size) for size in np.diff(starts) - gone]


def beginnings(collection: Collection, rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any]) -> list[str]:
    """Return the first characters of parts of documents, for display."""
    needed = np.unique(rows)
    texts = dict(zip(needed.tolist(), collection.texts(needed).to_list(), strict=True))
    places = zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [
        texts[row].encode()[start : min(end, start + _SHOWN_BYTES)].decode(errors="ignore")
        for row, start, end in places
    ]


def write_emptied(collection: Collection, rows: NDArray[np.int64], path: Path) -> None:
    """Write the emptied documents, one JSON object per line; no file if there are none."""
    if not len(rows):
        return
    places = zip(rows.tolist(), collection.doc_ids(rows).to_list(), collection.file_of(rows).tolist(), strict=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row, doc_id, number in places:
            entry = {"row": row - collection.num_references, "doc_id": doc_id, "file": collection.files[number].name}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def bad_rows_of(collection: Collection) -> Iterator[tuple[str, BadRow]]:
    """Yield the bad rows of the documents, with the names of their files."""
    first = collection.num_reference_files
    for source, bad_rows in zip(collection.files[first:], collection.bad_rows[first:], strict=True):
        for bad in bad_rows:
            yield source.name, bad
