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
from likewise.arrays import double_id, slices
from likewise.batch.budget.room import Room
from likewise.batch.read.columns import Columns, SketchedPiece, bare_piece
from likewise.batch.read.documents import Documents, id_used_twice
from likewise.batch.write.kept_rows import write_files
from likewise.io.inputs import Inputs
from likewise.io.source.source import NO_LIMIT, BadRow, BadRowTally, Cut, InputFile, Kept, Piece, ReadTask
from likewise.io.source.spool import Spool
from likewise.io.tables.columns import constant_column, number_column, text_column
from likewise.job.reading import RunContext, in_order, jobs_of
from likewise.progress import Warned
from likewise.recipe.recipe import Recipe

PIECE_BYTES = 1 << 20
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
        room: Room | None = None,
        needs_texts: bool = False,
    ) -> None:
        for file in files[num_reference_files:]:
            file.check_cut()
        self.files = files
        self.num_reference_files = num_reference_files
        self.room = room or Room()
        self._work = work
        is_spooled = needs_texts and not all(file.can_read_again for file in files)
        self._spool = Spool(work / "texts-of-documents") if is_spooled else None
        # Rows of file i are starts[i]:starts[i + 1].
        self.starts = np.zeros(len(files) + 1, np.int64)
        self.offsets: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.lengths: NDArray[np.uint32] = np.zeros(0, np.uint32)
        self.bad_rows: list[list[BadRow]] = [[] for _ in files]
        # Set once all documents are read.
        self.documents: Documents

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

        def of_job(file: int, number: int, job: ReadTask) -> tuple[int, int, list[tuple[SketchedPiece, _T]]]:
            found = []
            for piece in job.read():
                handle = None
                if self._spool is not None and not self.files[file].can_read_again:
                    handle = self._spool.append(piece.texts)
                found.append((bare_piece(piece, handle), take(piece)))
            return file, number, found

        # Their limit is checked at the end.
        rules = context.rules._replace(fields=(), max_bad_rows=NO_LIMIT)
        columns = Columns(self.files, Recipe.exact(), self._spool, rules, None, self.room, self.num_reference_files)
        with closing(self.each_job(stage, of_job, context, work)) as jobs:
            for file, number, found in jobs:
                for piece, _ in found:
                    columns.add(file, piece)
                yield file, number, [made for _, made in found]
        self.documents = documents = columns.documents()
        self.starts, self.bad_rows = documents.starts, documents.bad_rows
        self.offsets, self.lengths = documents.offsets, documents.lengths
        if context.rules.duplicate_ids != "allow":
            self._check_ids()
        self._check_bad_rows(context)

    def each_job(
        self, stage: str, take: Callable[[int, int, ReadTask], _Of], context: RunContext, work: Path
    ) -> Generator[_Of]:
        """Yield the results of `take` (file, job number, job) for each job, in input order."""
        return in_order(stage, jobs_of(self.files, PIECE_BYTES, work, take), self.files, context)

    def _check_bad_rows(self, context: RunContext) -> None:
        limit = context.rules.max_bad_rows
        tallies = BadRowTally(limit), BadRowTally(limit)
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
        return Texts.from_arrow(self.documents.doc_ids(rows))

    def texts(self, rows: NDArray[np.int64]) -> Texts:
        """Read the texts of ascending rows again."""
        if self._spool is not None:
            return Texts.concat([read() for _, read in self.documents.texts(rows, 1)])
        return Texts.concat([texts for _, texts in self.each_text(rows)])

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

    def _check_ids(self) -> None:
        documents, room = self.documents, self.room
        own = self.num_references + np.flatnonzero(documents.has_id[self.num_references :])
        double = double_id(
            lambda part: documents.ids.take(own[part]), len(own), room.space, most_bytes=room.buckets_bytes
        )
        if double is not None:
            second, first = own[list(double)].tolist()
            raise id_used_twice(documents.ids[second], documents.place(first), documents.place(second))


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
        "kept_id" if prefix else "doc_id": collection.documents.doc_ids(rows),
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
    context: RunContext,
    answer: str,
) -> None:
    """Write each file without the removed parts."""
    keeps_bad = context.rules.on_error == "keep"

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
        return Kept(offsets, lengths, context.threads, cut=own)

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
