"""Sketches of kept documents beside a finished run: a later one compares with them without reading them again."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts, range_checksum
from likewise.dedup.decision import Decision
from likewise.dedup.documents import Documents
from likewise.dedup.resume import PARTS_VERSION, sketched_pieces, write_pieces
from likewise.dedup.sketched import SketchedPiece
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.csv import CsvFile
from likewise.io.inputs import InputFile
from likewise.io.lines import LineFile
from likewise.io.output import KEPT, SKETCHES, SUMMARY
from likewise.io.parts import find_parts, is_whole, read_part
from likewise.io.source import Piece
from likewise.recipe import Recipe
from likewise.sorting import slices
from likewise.weight_table import Weights

_LISTING = "sketches.json"
_TABLE = "weights.lww"
# Documents of a part.
_PART_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class KeptSketches:
    """What a finished run kept of sketching its kept documents.

    Parameters
    ----------
    parts : tuple of Path
        Part files in the order of the documents.
    """

    parts: tuple[Path, ...]

    def pieces(self, path: Path, first_source: int, recipe: Recipe, *, num_fields: int) -> list[tuple[int, Any]]:
        """Return the sketched pieces of one part, each with the number of its source.

        Parameters
        ----------
        path : Path
            One of `parts`.
        first_source : int
            Number of the run's first kept file.
        recipe : Recipe
            Of the sketches.
        num_fields : int
            Further fields of the run, which are not known of these documents and need not be.
        """
        if not is_whole(path):
            raise InvalidInput(
                "the kept sketches are damaged; delete their directory to have texts read again", str(path)
            )
        return [
            (first_source + number, _with_empty_fields(piece, num_fields))
            for number, piece in sketched_pieces(read_part(path), recipe)
        ]


def write_kept_sketches(
    documents: Documents, decision: Decision, files: Sequence[InputFile], recipe: Recipe, work: Path
) -> None:
    """Write the sketches of what stays, once the kept files stand in the directory `work`.

    Parameters
    ----------
    documents, decision
        Of the run.
    files : sequence of InputFile
        Its inputs.
    recipe : Recipe
        With its weights.
    work : Path
        The unfinished output.
    """
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
        listed.append({"path": file.name, **_stamp(target)})
        number_of_file += 1
    if recipe.table is not None:
        recipe.table.write(directory / _TABLE)
    listing = {
        "version": PARTS_VERSION,
        "sketch_id": recipe.sketch_id,
        "recipe": recipe.to_dict(),
        "files": listed,
        "parts": [label for label, _ in find_parts(directory)],
    }
    (directory / _LISTING).write_text(json.dumps(listing, indent=1) + "\n", encoding="utf-8", newline="\n")


def open_kept_sketches(run: Path, files: Sequence[InputFile], recipe: Recipe) -> KeptSketches | None:
    """Return the sketches that a finished run kept; None if it kept none.

    Raises
    ------
    RecipeMismatch
        If another recipe made them, naming the fields.
    InvalidInput
        If a kept file is not the one that the run wrote, or a part is missing.
    """
    directory = run / SKETCHES
    if not (directory / _LISTING).is_file():
        return None
    try:
        listing = json.loads((directory / _LISTING).read_text(encoding="utf-8"))
        names = ("version", "sketch_id", "recipe", "files", "parts")
        version, sketch_id, fields, listed, labels = (listing[name] for name in names)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidInput("the list of kept sketches cannot be read", str(directory / _LISTING)) from error
    if version != PARTS_VERSION:
        raise InvalidInput(
            f"the sketches are of format {version}, this version reads {PARTS_VERSION}; delete the directory to have "
            "texts read again",
            str(directory),
        )
    if sketch_id != recipe.sketch_id:
        raise RecipeMismatch(f"{run} kept sketches by another recipe", _differing(fields, recipe.to_dict()))
    by_path = {str(file.path): (place, file) for place, file in enumerate(files)}
    for place, entry in enumerate(listed):
        path = run / KEPT / entry["path"]
        here = by_path.get(str(path.absolute()))
        if here is None or here[0] != place:
            raise InvalidInput("a kept file of this run is gone; repeat the run", str(path))
        _check_stamp(path, entry)
    if len(listed) != len(files):
        raise InvalidInput(f"{KEPT}/ holds {len(files)} files where the run wrote {len(listed)}", str(run))
    parts = list(find_parts(directory))
    if [label for label, _ in parts] != labels:
        raise InvalidInput(
            "parts of the kept sketches are missing; delete the directory to have texts read again", str(directory)
        )
    return KeptSketches(tuple(path for _, path in parts))


def recipe_of_run(run: Path, option: str = "against") -> Recipe:
    """Return the recipe of a finished run, with the weights that it kept; `option` is what named the run.

    Raises
    ------
    InvalidParameter
        If it went by weights that it did not keep.
    """
    try:
        recipe = Recipe.from_file(run / SUMMARY)
    except InvalidParameter as error:
        raise InvalidInput(f"the recipe of this run cannot be used: {error.message}", str(run / SUMMARY)) from error
    if recipe.needs_counting:
        if not (run / SKETCHES / _TABLE).is_file():
            raise InvalidParameter(
                option,
                f"{run} counted its own weights and did not keep them. Run it with --keep-sketches, or give the recipe "
                "and a table of weights",
            )
        recipe = recipe.with_table(Weights.read(run / SKETCHES / _TABLE))
    return recipe


def _differing(theirs: dict[str, Any], ours: dict[str, Any]) -> dict[str, tuple[object, object]]:
    names = sorted({*theirs, *ours})
    return {name: (ours.get(name), theirs.get(name)) for name in names if ours.get(name) != theirs.get(name)}


def _stamp(path: Path) -> dict[str, object]:
    stat = path.stat()
    told = range_checksum(path, 0, stat.st_size)
    return {"num_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "checksum": f"{told:016x}"}


def _check_stamp(path: Path, entry: dict[str, Any]) -> None:
    """Raise InvalidInput if a file is not what it was; one that was only copied is read once to know."""
    stat = path.stat()
    if stat.st_size == entry["num_bytes"] and stat.st_mtime_ns == entry["mtime_ns"]:
        return
    if stat.st_size != entry["num_bytes"] or _stamp(path)["checksum"] != entry["checksum"]:
        raise InvalidInput("the file is not the one that the run wrote; repeat the run", str(path))


def _placed(
    documents: Documents, decision: Decision, number: int, file: InputFile
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield the kept rows of a source, some at a time, and where they stand in its kept file: offsets, lines from 0."""
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    # Bad rows stand between them where those are kept.
    bad = [row for row in documents.bad_rows[number] if row.length] if documents.keeps_bad_rows else []
    bad_offsets = np.array([row.offset for row in bad], np.uint64)
    bad_lengths = np.array([row.length for row in bad], np.uint64)
    is_lines = isinstance(file, LineFile)
    position = file.head_bytes() if isinstance(file, LineFile) else 0
    line, num_passed = int(isinstance(file, CsvFile)), 0
    for part in slices(end - first, _PART_ROWS):
        rows = first + part.start + np.flatnonzero(decision.kept[first + part.start : first + part.stop])
        behind = first + part.stop
        num_before = len(bad) if behind == end else int(np.searchsorted(bad_offsets, documents.offsets[behind]))
        between = slice(num_passed, num_before)
        num_passed = num_before
        offsets = np.concatenate([documents.offsets[rows], bad_offsets[between]])
        lengths = np.concatenate([documents.lengths[rows].astype(np.uint64), bad_lengths[between]])
        by_offset = np.argsort(offsets, kind="stable")
        place = np.empty(len(offsets), np.int64)
        place[by_offset] = np.arange(len(offsets))
        # A line ends with one more byte; rows of tables are counted.
        sizes = lengths[by_offset] + np.uint64(1) if is_lines else np.ones(len(offsets), np.uint64)
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


def _with_empty_fields(piece: SketchedPiece, num_fields: int) -> SketchedPiece:
    num_rows = len(piece.shapes)
    empty = [Texts.from_list([""] * num_rows) for _ in range(num_fields)]
    return replace(piece, piece=replace(piece.piece, fields=empty), text_lengths=np.zeros(num_rows, np.uint32))
