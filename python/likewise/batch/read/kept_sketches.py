"""Sketches stored with a finished run, so that a later run need not read its kept documents again."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise._native import Texts, range_checksum
from likewise.batch.read.columns import SketchedPiece
from likewise.batch.read.resume import PARTS_VERSION, sketched_pieces
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.output.directory import KEPT, SKETCHES, SUMMARY
from likewise.io.output.parts import find_parts, is_whole, read_part
from likewise.io.source.source import InputFile
from likewise.recipe.recipe import Recipe

LISTING = "sketches.json"


def kept_pieces(path: Path, first_source: int, recipe: Recipe, *, num_fields: int) -> list[tuple[int, Any]]:
    """Return the sketched pieces of one part, each with the number of its source."""
    if not is_whole(path):
        raise InvalidInput("the stored sketches are damaged; delete their directory to read the texts again", str(path))
    return [
        (first_source + number, _with_empty_fields(piece, num_fields))
        for number, piece in sketched_pieces(read_part(path), recipe)
    ]


def open_kept_sketches(run: Path, files: Sequence[InputFile], recipe: Recipe) -> tuple[Path, ...] | None:
    """Return the parts of the stored sketches of a run, in the order of its documents; None if there are none."""
    directory = run / SKETCHES
    if not (directory / LISTING).is_file():
        return None
    try:
        listing = json.loads((directory / LISTING).read_text(encoding="utf-8"))
        names = ("version", "sketch_id", "recipe", "files", "parts")
        version, sketch_id, fields, listed, labels = (listing[name] for name in names)
    except (ValueError, RecursionError, KeyError, TypeError) as error:
        raise InvalidInput("the list of stored sketches cannot be read", str(directory / LISTING)) from error
    if version != PARTS_VERSION:
        raise InvalidInput(
            f"the sketches have format {version}, but this version reads {PARTS_VERSION}; delete the directory to read "
            "the texts again",
            str(directory),
        )
    if sketch_id != recipe.sketch_id:
        ours = recipe.to_dict()
        both = {name: (ours.get(name), fields.get(name)) for name in sorted({*fields, *ours})}
        differing = {name: values for name, values in both.items() if values[0] != values[1]}
        raise RecipeMismatch(f"{run} has sketches made with another recipe", differing)
    by_path = {str(file.path): (place, file) for place, file in enumerate(files)}
    for place, entry in enumerate(listed):
        path = run / KEPT / entry["path"]
        here = by_path.get(str(path.absolute()))
        if here is None or here[0] != place:
            raise InvalidInput("a kept file of this run is missing; repeat the run", str(path))
        _check_stamp(path, entry)
    if len(listed) != len(files):
        raise InvalidInput(
            f"{KEPT}/ contains {len(files)} files, but the run wrote {len(listed)}; repeat the run", str(run)
        )
    parts = list(find_parts(directory))
    if [label for label, _ in parts] != labels:
        raise InvalidInput(
            "parts of the stored sketches are missing; delete the directory to read the texts again", str(directory)
        )
    return tuple(path for _, path in parts)


def recipe_of_run(run: Path) -> Recipe:
    """Return the recipe of a finished run, with its stored weights and word lists; others must be counted again."""
    try:
        recipe = Recipe.from_file(run / SUMMARY)
    except InvalidParameter as error:
        raise InvalidInput(f"the recipe of this run is not valid: {error.message}", str(run / SUMMARY)) from error
    return recipe.replace(weights_id=None) if recipe.needs_counting else recipe


def stamp(path: Path) -> dict[str, object]:
    """Return the size, modification time and checksum that identify a kept file."""
    stat = path.stat()
    told = range_checksum(path, 0, stat.st_size)
    return {"num_bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "checksum": f"{told:016x}"}


def _check_stamp(path: Path, entry: dict[str, Any]) -> None:
    """Raise InvalidInput if a file has changed; reads it once if only its modification time differs."""
    stat = path.stat()
    if stat.st_size == entry["num_bytes"] and stat.st_mtime_ns == entry["mtime_ns"]:
        return
    if stat.st_size != entry["num_bytes"] or stamp(path)["checksum"] != entry["checksum"]:
        raise InvalidInput("the file has changed since the run wrote it; repeat the run", str(path))


def _with_empty_fields(piece: SketchedPiece, num_fields: int) -> SketchedPiece:
    num_rows = len(piece.shapes)
    empty = [Texts.from_list([""] * num_rows) for _ in range(num_fields)]
    return piece._replace(piece=piece.piece._replace(fields=empty), text_lengths=np.zeros(num_rows, np.uint32))
