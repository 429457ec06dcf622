"""Kept documents: their rows in each input, the files written from them, and their sketches; and bad rows."""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.columns import SketchedPiece
from likewise.batch.read.documents import Documents
from likewise.batch.read.resume import LISTING, PARTS_VERSION, stamp, write_pieces
from likewise.errors import InvalidInput
from likewise.io.formats import LINE_FORMATS
from likewise.io.inputs import Inputs
from likewise.io.lines.lines import LineFile
from likewise.io.output.directory import KEPT, SKETCHES
from likewise.io.output.parts import find_parts
from likewise.io.source.added import Added, AddedFields, check_takes_fields
from likewise.io.source.source import BadRow, InputFile, Kept, KeptTexts, Piece
from likewise.recipe.recipe import Recipe

_AT_ONCE = 1 << 18


def kept_places(
    documents: Documents, kept: NDArray[np.bool_], number: int, on_error: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return offsets and lengths of the kept rows of one source, including bad rows if they are kept."""
    offsets, lengths = documents.room.space.growing(np.uint64), documents.room.space.growing(np.uint32)
    for _, places, sizes, order in merged_places(documents, kept, number, _AT_ONCE, keeps_bad=on_error == "keep"):
        offsets.append(places[order])
        lengths.append(sizes[order])
    return offsets.take(), lengths.take()


def merged_places(
    documents: Documents, kept: NDArray[np.bool_], number: int, at_once: int, *, keeps_bad: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield the kept rows of a source in parts, offsets and lengths of these and of bad rows, and the order of both."""
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    # The damage of a file may have no bytes to keep. Bad rows are in file order, like documents.
    bad = [row for row in documents.bad_rows[number] if row.length] if keeps_bad else []
    bad_offsets = np.array([row.offset for row in bad], np.uint64)
    bad_lengths = np.array([row.length for row in bad], np.uint32)
    num_merged = 0
    for part in slices(end - first, at_once) if end > first else [slice(0, 0)]:
        rows = first + part.start + np.flatnonzero(kept[first + part.start : first + part.stop])
        behind = first + part.stop
        until = len(bad) if behind == end else int(np.searchsorted(bad_offsets, documents.offsets[behind]))
        offsets = np.concatenate([documents.offsets[rows], bad_offsets[num_merged:until]])
        lengths = np.concatenate([documents.lengths[rows], bad_lengths[num_merged:until]])
        num_merged = until
        yield rows, offsets, lengths, np.argsort(offsets, kind="stable")


def kept_rows(
    documents: Documents,
    kept: NDArray[np.bool_],
    number: int,
    on_error: str,
    threads: int,
    added_to: Callable[[NDArray[np.uint64]], Added] | None = None,
) -> Kept:
    """Return the rows of one source to write; `added_to` (offsets) returns the fields to add to them."""
    offsets, lengths = kept_places(documents, kept, number, on_error)
    texts: KeptTexts | None = None
    has_others = on_error == "keep" and bool(documents.bad_rows[number])
    if documents.spool is not None and not documents.sources[number].can_read_again and not has_others:
        first, end = int(documents.starts[number]), int(documents.starts[number + 1])
        rows = first + np.flatnonzero(kept[first:end])
        texts = lambda part: [read() for _, read in documents.texts(rows[part], 1)]  # noqa: E731
    return Kept(offsets, lengths, threads, texts, None if added_to is None else added_to(offsets))


def write_bad_rows(documents: Documents, path: Path) -> None:
    """Write file, row and reason of each bad row as JSON Lines; no file if there are none."""
    first = documents.num_reference_sources
    files = zip(documents.sources[first:], documents.bad_rows[first:], strict=True)
    write_errors([(source.name, bad) for source, bad_rows in files for bad in bad_rows], path)


def write_errors(bad_rows: Iterable[tuple[str | None, BadRow]], path: Path) -> None:
    """Write bad rows with the names of their files, one JSON object per line; no file if there are none."""
    lines = (json.dumps({"file": name, "row": bad.line + 1, "reason": bad.reason}) + "\n" for name, bad in bad_rows)
    first = next(lines, None)
    if first is not None:
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.write(first)
            file.writelines(lines)


def write_kept(file: InputFile, target: Path, kept: Kept) -> None:
    """Write the kept documents of one input to a new file; create its directory."""
    if file.is_document and not len(kept.offsets):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    file.write_kept(target, kept)


def check_annotated(files: Sequence[InputFile], fields: AddedFields) -> None:
    """Raise InvalidParameter if fields cannot be added to the rows of files, as far as their first records show."""
    for file in files:
        check_takes_fields(file.name, takes_fields=file.takes_fields)
        if not isinstance(file, LineFile) or (file.is_plain and file.num_bytes):
            fields.check(file.field_names(0, file.record_bytes(0)), file.name)


def write_descriptions(
    inputs: Inputs, kept: Path, num_kept: Sequence[int], answer: str, added: Added | None = None
) -> None:
    """Write the companion files of dataset directories, after their kept files."""
    counts = {file.path: (file.name, count) for file, count in zip(inputs.files, num_kept, strict=True)}
    for name, dataset in inputs.datasets:
        files = [counts[path] for path in dataset.data_files]
        target = kept / name
        target.mkdir(parents=True, exist_ok=True)
        num_bytes = sum((kept / own).stat().st_size for own, _ in files)
        num_rows = sum(count for _, count in files)
        from likewise.io.tables.datasets import write_companions

        write_companions(dataset, target, num_kept=num_rows, num_bytes=num_bytes, answer=answer, added=added)
    for name, path in inputs.companions:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, kept / name)


def write_files(inputs: Inputs, target: Path, kept_of: Callable[[int, InputFile], Kept], answer: str) -> list[int]:
    """Write what `kept_of` (number of the file, file) returns for each file to a new directory; return the counts."""
    num_written: list[int] = []
    added = None
    # Removed text files are not copied, so the directory may stay empty.
    target.mkdir()
    for number, file in enumerate(inputs.files):
        kept = kept_of(number, file)
        write_kept(file, target / file.name, kept)
        num_written.append(len(kept.offsets))
        added = kept.added
    write_descriptions(inputs, target, num_written, answer, added)
    return num_written


def stream_files(files: Sequence[InputFile]) -> list[LineFile]:
    """Return the files if their kept documents can be concatenated on one stream."""
    found = []
    for file in files:
        if not isinstance(file, LineFile) or not file.takes_fields:
            raise InvalidInput(
                f"only {', '.join(LINE_FORMATS)} can be written to standard output; give a directory with -o", file.name
            )
        if type(file) is not type(files[0]):
            raise InvalidInput(
                "JSON Lines and CSV cannot be mixed on standard output; give a directory with -o", file.name
            )
        found.append(file)
    return found


class KeptStream:
    """Kept lines of several inputs on one stream; the header of CSV is written once."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._header: tuple[str, tuple[str, ...]] | None = None

    def check_headers(self, files: Sequence[InputFile]) -> None:
        """Raise InvalidInput if the columns of two inputs differ."""
        from likewise.io.lines.csv import CsvFile

        for file in files:
            if isinstance(file, CsvFile) and (names := file.header()):
                self._header = self._header or (file.delimiter, names)
                if self._header != (file.delimiter, names):
                    raise InvalidInput(
                        "the header differs from that of the first file; give a directory with -o", file.name, 1
                    )
        self._header = None

    def write(self, file: LineFile, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> None:
        """Write the kept lines of one input."""
        from likewise.io.lines.csv import CsvFile

        with_head = self._header is None
        if isinstance(file, CsvFile) and (names := file.header()):
            self._header = (file.delimiter, names)
        file.stream_kept(self._out, offsets, lengths, with_head=with_head)


# Maximum documents of a part.
_PART_ROWS = 1 << 16


def write_kept_sketches(
    documents: Documents, decision: Decision, files: Sequence[InputFile], recipe: Recipe, work: Path
) -> None:
    """Write the sketches of kept documents, after the kept files are written to the directory `work`."""
    directory = work / SKETCHES
    directory.mkdir()
    listed, number_of_file = [], 0
    for number, file in enumerate(files, documents.num_reference_sources):
        target = work / KEPT / file.name
        if not target.is_file():
            continue
        for part, (rows, offsets, lines) in enumerate(_placed(documents, decision, number, file)):
            piece = _piece(documents, rows, offsets, lines)
            write_pieces(directory, f"{number_of_file:08}-{part:08}", [(number_of_file, piece)])
        listed.append({"path": file.name, **stamp(target)})
        number_of_file += 1
    listing = {
        "version": PARTS_VERSION,
        "sketch_id": recipe.sketch_id,
        "recipe": recipe.to_dict(),
        "files": listed,
        "parts": [label for label, _ in find_parts(directory)],
    }
    (directory / LISTING).write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8", newline="\n")


def _placed(
    documents: Documents, decision: Decision, number: int, file: InputFile
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield the kept rows of a source in parts, with their locations in its kept file: offsets, lines from 0."""
    position, line = file.head_bytes(), file.head_lines()
    parts = merged_places(documents, decision.kept, number, _PART_ROWS, keeps_bad=documents.keeps_bad_rows)
    for rows, offsets, lengths, by_offset in parts if documents.starts[number] < documents.starts[number + 1] else ():
        place = np.empty(len(offsets), np.int64)
        place[by_offset] = np.arange(len(offsets))
        # A line has one more byte for its newline; rows of tables are counted.
        sizes = (
            lengths[by_offset].astype(np.uint64) + np.uint64(1) if file.has_lines else np.ones(len(offsets), np.uint64)
        )
        ends = position + np.cumsum(sizes, dtype=np.uint64)
        starts = ends - sizes
        yield rows, starts[place[: len(rows)]], (line + place[: len(rows)]).astype(np.uint32)
        position, line = int(ends[-1]) if len(ends) else position, line + len(offsets)


def _piece(
    documents: Documents,
    rows: NDArray[np.int64],
    offsets: NDArray[np.uint64],
    lines: NDArray[np.uint32],
) -> SketchedPiece:
    width = 0 if not len(documents) else len(documents.sketches) // len(documents)
    piece = Piece(
        texts=Texts.from_list([]),
        ids=Texts.from_arrow(documents.doc_ids(rows)),
        has_id=np.ones(len(rows), np.uint8),
        offsets=offsets,
        lengths=documents.lengths[rows],
        lines=lines,
        num_lines=len(rows),
        fields=[],
        bad_rows=[],
    )
    return SketchedPiece(
        piece=piece,
        sketches=documents.sketches.reshape(-1, width)[rows].reshape(-1) if width else documents.sketches[:0],
        shapes=documents.shapes[rows],
        num_features=documents.num_features[rows],
        digests=documents.digests.reshape(-1, 2)[rows].reshape(-1),
    )
