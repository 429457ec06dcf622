"""Resuming: sketches are saved in parts, and a killed run reads them instead of sketching again.

A finished run may store those of its kept documents in the same form, for later runs against it.

A part contains consecutive jobs of the input. Jobs are numbered in the order in which their source yields them, which
depends only on the input, so numbers mean the same in the run that continues. A part is used only if its checksum, and
those of its texts in the spool, are correct; so only the small part files are synced.

A power loss may lose unsynced files (spooled texts, decompressed inputs): a part contains their checksums, and lost
data is created again. The division of an input into jobs depends only on the input, so threads and memory may change
between runs.
Verdicts are logged too (`likewise.batch.decide.decision`). Kept files are not: copying ranges is as fast as checking
that they were copied.
"""

import contextlib
import json
import re
import time
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts, range_checksum
from likewise.batch.read.columns import SketchedPiece
from likewise.errors import InvalidInput, InvalidParameter, LikewiseError, RecipeMismatch, counted, differing
from likewise.io.output.directory import KEPT, SKETCHES, SUMMARY
from likewise.io.output.parts import Part, find_parts, is_whole, read_facts, read_part, write_part
from likewise.io.source.source import BadRow, InputFile, Piece, Source
from likewise.io.source.spool import SPOOL_NAME, Spool
from likewise.progress import Progress, Warned
from likewise.recipe.methods import Bloom, Shingles, SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights

# A part is written when it has this many bytes of input, or of columns, since documents may be tiny.
PART_BYTES = 64 << 20
COLUMN_BYTES = 8 << 20
# Nothing is saved in the first seconds, since sketching again is as cheap.
SAVED_AFTER_S = 5.0
_COUNTED, _TABLE = "counted.json", "weights.lww"
# Version of the format of parts, and of the division of sources into jobs.
PARTS_VERSION = 1

# Maximum number of parts that wait for the disk while sketching continues: 8 MB each.
_MOST_WAITING = 3
_KNOWN = re.compile(
    r"part-.*\.arrow|texts\.spool|unpacked-[0-9a-f]{16}(\.json)?|counted\.json|weights\.lww|threshold\.json"
)

# Columns of a part, and the columns of its pieces in them.
_OF_PIECE = {"offset": "offsets", "length": "lengths", "line": "lines", "has_id": "has_id"}

# Number of a source, number of a job in it.
Position = tuple[int, int]


class FoundPart(NamedTuple):
    """A part of an earlier run."""

    path: Path
    # First job in it, and first job after it, possibly of a later source
    start: Position
    end: Position
    # Bytes of input that it covers
    num_bytes: int


class RunParts:
    """The parts of a run: those found and those that it writes."""

    def __init__(
        self, directory: Path, recipe: Recipe, left: Sequence[tuple[str, Path]], *, has_counts: bool = False
    ) -> None:
        # Label and path of each part of an earlier run
        self.left = left
        directory.mkdir(exist_ok=True)
        # A run that continues does not use unfinished or randomly named files.
        for path in list(directory.iterdir()):
            if path.is_file() and not _KNOWN.fullmatch(path.name):
                path.unlink()
        self.directory = directory
        self._recipe = recipe
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="likewise-parts")
        self._writing: deque[Future[Path]] = deque()
        self._handles: dict[Path, list[int | None]] = {}
        self._spool: Spool | None = None
        self._held: list[tuple[int, SketchedPiece]] = []
        self._start: Position = (0, 0)
        self._end: Position = (0, 0)
        self._num_bytes = 0
        self._column_bytes = 0
        self._began_s = time.monotonic()
        self._has_counts, self.has_threshold = has_counts, False
        self.num_found = 0
        self.num_found_bytes = 0

    def open_spool(self) -> Spool:
        """Return the spool of the run, with its existing content."""
        self._spool = Spool(self.directory / SPOOL_NAME, is_kept=True, has_tokens=self._recipe.takes_tokens)
        return self._spool

    def take_up(self, threads: int) -> list[FoundPart]:
        """Return the parts of an earlier run in input order; damaged ones are deleted."""
        paths = [path for label, path in self.left if _is_of_jobs(label)]
        with ThreadPoolExecutor(threads, thread_name_prefix="likewise-check") as pool:
            checked = list(pool.map(self._checked, paths))
        found: list[FoundPart] = []
        for path, part in zip(paths, checked, strict=True):
            # Parts of runs that were interrupted at different positions may overlap.
            if part is None or (found and part.start < found[-1].end):
                path.unlink()
            else:
                found.append(part)
                self._handles[path] = self._restored(path)
        self.num_found, self.num_found_bytes = len(found), sum(part.num_bytes for part in found)
        return found

    def load(self, found: FoundPart) -> list[tuple[int, SketchedPiece]]:
        """Return the sketched pieces of a part, each with the number of its source. Thread-safe."""
        return list(sketched_pieces(read_part(found.path), self._recipe, self._handles[found.path]))

    def add(self, number: int, job: int, num_bytes: int, pieces: Sequence[tuple[int, SketchedPiece]]) -> None:
        """Add the pieces of a job of source `number`; jobs must be added in order."""
        if not self._held:
            self._start = (number, job)
        self._end = (number, job + 1)
        self._held += pieces
        self._num_bytes += num_bytes
        self._column_bytes += sum(piece.num_bytes for _, piece in pieces)
        if self._num_bytes < PART_BYTES and self._column_bytes < COLUMN_BYTES:
            return
        if time.monotonic() - self._began_s >= SAVED_AFTER_S:
            self.flush()
        else:
            self._forget()

    def flush(self) -> None:
        """Start to write the added pieces as a part; wait if too many parts are still being written."""
        if self._held:
            self._wait(_MOST_WAITING - 1)
            facts = {"start": self._start, "end": self._end, "num_bytes": self._num_bytes}
            self._writing.append(self._pool.submit(self._write, self._held, facts))
        self._forget()

    def _forget(self) -> None:
        self._held, self._num_bytes, self._column_bytes = [], 0, 0

    def summary(self, num_decided: int) -> dict[str, object]:
        """Return the summary fields about what was reused: counts, the threshold, parts and verdicts."""
        reused = {
            "has_counts": self._has_counts,
            "has_threshold": self.has_threshold,
            "num_parts": self.num_found,
            "num_bytes": self.num_found_bytes,
            "num_decided": num_decided,
        }
        return {"continued": reused} if any(reused.values()) else {}

    def close(self) -> None:
        """Wait for parts that are being written; drop the other pieces, which are too few for a part."""
        self._held = []
        try:
            self._wait(0)
        finally:
            self._pool.shutdown()

    def _wait(self, most: int) -> None:
        while len(self._writing) > most:
            self._writing.popleft().result()

    def _write(self, held: list[tuple[int, SketchedPiece]], facts: dict[str, Any]) -> Path:
        places = [
            None if piece.handle is None or self._spool is None else self._spool.place(piece.handle)
            for _, piece in held
        ]
        number, job = facts["start"]
        return write_part(self.directory, f"{number:08}-{job:08}", _part(held, facts, places))

    def _checked(self, path: Path) -> FoundPart | None:
        if not is_whole(path):
            return None
        facts = read_facts(path)
        if any(piece["spool"] is not None for piece in facts["pieces"]):
            spool = self.directory / SPOOL_NAME
            sizes = _text_sizes(read_part(path))
            for piece, of_texts in zip(facts["pieces"], sizes, strict=True):
                if piece["spool"] is not None:
                    start, expected = piece["spool"]
                    if not Spool.holds(spool, start, int(of_texts.sum(dtype=np.int64)), expected):
                        return None
        return FoundPart(path, tuple(facts["start"]), tuple(facts["end"]), facts["num_bytes"])

    def _restored(self, path: Path) -> list[int | None]:
        facts = read_facts(path)
        if self._spool is None:
            return [None] * len(facts["pieces"])
        sizes = _text_sizes(read_part(path))
        return [
            None if piece["spool"] is None else self._spool.restore(piece["spool"][0], piece["spool"][1], of_texts)
            for piece, of_texts in zip(facts["pieces"], sizes, strict=True)
        ]


def known_counts(parts: Path | None, recipe: Recipe) -> Recipe | None:
    """Return the recipe with the counts of an earlier run, if it needs some, and they are stored and undamaged."""
    if parts is None or not (recipe.needs_counting or recipe.needs_filter_bits):
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError, LikewiseError):
        facts = json.loads((parts / _COUNTED).read_text(encoding="utf-8"))
        if facts["has_table"]:
            recipe = recipe.with_table(Weights.read(parts / _TABLE))
        return recipe.replace(filter_bits=facts["filter_bits"]) if recipe.needs_filter_bits else recipe
    return None


def store_counts(parts: Path, recipe: Recipe, num_bytes: int) -> None:
    """Store the counts of an input of this size for a run that continues this one, unless it is small."""
    if num_bytes < PART_BYTES:
        return
    parts.mkdir(exist_ok=True)
    if recipe.table is not None:
        recipe.table.write(parts / _TABLE)
    facts = json.dumps({"filter_bits": recipe.fields["filter_bits"], "has_table": recipe.table is not None})
    unfinished = parts / "counted.unfinished"
    unfinished.write_text(facts, encoding="utf-8", newline="\n")
    unfinished.replace(parts / _COUNTED)


def open_parts(
    directory: Path, recipe: Recipe, files: Sequence[Source], progress: Progress, *, has_counts: bool = False
) -> RunParts | None:
    """Return the parts of a run in a directory; None if the run cannot be continued."""
    if isinstance(recipe.sketch, Shingles):
        return None
    for file in files:
        file.keep_unpacked()
    left = list(find_parts(directory)) if directory.is_dir() else []
    if num_parts := sum(_is_of_jobs(label) for label, _ in left):
        parts = counted(num_parts, "part of the input is", "parts of the input are")
        progress(Warned(f"continuing an unfinished run: {parts} already sketched"))
    return RunParts(directory, recipe, left, has_counts=has_counts)


def _part(
    held: list[tuple[int, SketchedPiece]],
    facts: dict[str, Any],
    places: list[tuple[int, int, NDArray[np.int64]] | None],
) -> Part:
    pieces = [piece for _, piece in held]
    num_rows = sum(len(piece.shapes) for piece in pieces)

    def joined(arrays: list[NDArray[Any]]) -> NDArray[Any]:
        return np.concatenate(arrays)

    sketches = joined([piece.sketches for piece in pieces if len(piece.shapes)] or [np.zeros(0, np.uint8)])
    columns = {
        "shape": joined([piece.shapes for piece in pieces]),
        "num_features": joined([piece.num_features for piece in pieces]),
        "digest": joined([piece.digests for piece in pieces]).view(np.uint8).reshape(-1, 16),
        **{name: joined([getattr(piece.piece, of) for piece in pieces]) for name, of in _OF_PIECE.items()},
    }
    if sketches.nbytes:
        columns["sketch"] = sketches.view(np.uint8).reshape(num_rows, -1)
    if pieces[0].text_lengths is not None:
        columns["text_length"] = joined([piece.text_lengths for piece in pieces if piece.text_lengths is not None])
    if any(place is not None for place in places):
        columns["text_bytes"] = joined(
            [
                np.zeros(len(piece.shapes), np.uint32) if place is None else np.diff(place[2]).astype(np.uint32)
                for piece, place in zip(pieces, places, strict=True)
            ]
        )
    texts = {"id": Texts.concat([piece.piece.ids for piece in pieces])}
    for number in range(len(pieces[0].piece.fields)):
        texts[f"field-{number}"] = Texts.concat([piece.piece.fields[number] for piece in pieces])
    about = [
        {
            "source": number,
            "num_documents": len(piece.shapes),
            "num_lines": piece.piece.num_lines,
            "num_blank": piece.piece.num_blank,
            "bad_rows": [list(bad._asdict().values()) for bad in piece.piece.bad_rows],
            "spool": None if place is None else list(place[:2]),
        }
        for (number, piece), place in zip(held, places, strict=True)
    ]
    return Part(columns, texts, {**facts, "pieces": about})


def _is_of_jobs(label: str) -> bool:
    """Return whether a part contains sketched jobs rather than verdicts."""
    return label[0].isdigit()


def write_pieces(directory: Path, label: str, pieces: list[tuple[int, SketchedPiece]]) -> Path:
    """Write sketched pieces, each with the number of its source, as a part; return its path."""
    return write_part(directory, label, _part(pieces, {}, [None] * len(pieces)))


def sketched_pieces(
    part: Part, recipe: Recipe, handles: list[int | None] | None = None
) -> Iterator[tuple[int, SketchedPiece]]:
    """Yield the sketched pieces of a part, each with the number of its source."""
    is_words = isinstance(recipe.sketch, SimHash | Bloom)
    handles = handles or [None] * len(part.facts["pieces"])
    columns, texts = part.columns, part.texts
    fields = [texts[f"field-{number}"] for number in range(sum(name.startswith("field-") for name in texts))]
    start = 0
    for about, handle in zip(part.facts["pieces"], handles, strict=True):
        rows = slice(start, start + about["num_documents"])
        numbers = np.arange(rows.start, rows.stop)
        start = rows.stop
        sketches = columns["sketch"][rows].reshape(-1) if "sketch" in columns else np.zeros(0, np.uint8)
        piece = Piece(
            texts=Texts.from_list([]),
            ids=texts["id"].take(numbers),
            **{of: columns[name][rows] for name, of in _OF_PIECE.items()},
            num_lines=about["num_lines"],
            num_blank=about["num_blank"],
            fields=[field.take(numbers) for field in fields],
            bad_rows=[BadRow(*bad) for bad in about["bad_rows"]],
        )
        yield (
            about["source"],
            SketchedPiece(
                piece=piece,
                sketches=sketches.view(np.uint64) if is_words else sketches,
                shapes=columns["shape"][rows],
                num_features=columns["num_features"][rows],
                digests=columns["digest"][rows].reshape(-1).view(np.uint64),
                text_lengths=columns["text_length"][rows] if "text_length" in columns else None,
                handle=handle,
            ),
        )


def _text_sizes(part: Part) -> list[NDArray[np.uint32]]:
    """Return the bytes of each spooled text, by piece."""
    counts = np.cumsum([about["num_documents"] for about in part.facts["pieces"]])
    return (
        np.split(part.columns["text_bytes"], counts[:-1])
        if "text_bytes" in part.columns
        else [np.zeros(0, np.uint32) for _ in counts]
    )


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
        raise RecipeMismatch(f"{run} has sketches made with another recipe", differing(recipe.to_dict(), fields))
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
