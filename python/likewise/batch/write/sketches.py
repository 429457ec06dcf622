"""Sketches of kept documents, stored with a finished run."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.batch.decide.decision import Decision
from likewise.batch.read.columns import SketchedPiece
from likewise.batch.read.documents import Documents
from likewise.batch.read.kept_sketches import LISTING, stamp
from likewise.batch.read.resume import PARTS_VERSION, write_pieces
from likewise.batch.write.kept_rows import merged_places
from likewise.io.output.directory import KEPT, SKETCHES
from likewise.io.output.parts import find_parts
from likewise.io.source.source import InputFile, Piece
from likewise.recipe.recipe import Recipe

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
        num_blank=0,
        fields=[],
        bad_rows=[],
    )
    return SketchedPiece(
        piece=piece,
        sketches=documents.sketches.reshape(-1, width)[rows].reshape(-1) if width else documents.sketches[:0],
        shapes=documents.shapes[rows],
        num_features=documents.num_features[rows],
        digests=documents.digests.reshape(-1, 2)[rows].reshape(-1),
        text_lengths=None,
        handle=None,
    )
