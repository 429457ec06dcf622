"""Check that the kept files contain exactly the kept documents, unchanged."""

import filecmp
from collections.abc import Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from likewise.batch.write.kept_rows import kept_places
from likewise.errors import LikewiseError
from likewise.io.inputs import find_inputs
from likewise.io.kept import table_batches
from likewise.io.lines.lines import LineFile
from likewise.io.lines.text_file import TextFile
from likewise.io.output.directory import KEPT
from likewise.io.output.whole import scratch_directory
from likewise.io.source.source import InputFile, each_piece
from likewise.io.tables.arrow import ArrowFile
from likewise.io.tables.columns import taken_rows
from likewise.io.tables.datasets import COMPANIONS
from likewise.io.tables.parquet import ParquetFile
from likewise.io.tables.stored import StoredTable
from likewise.runs.audit.opening import OpenRun

_PIECE_BYTES = 4 << 20
_ROWS_AT_ONCE = 4096


class _AnotherError(Exception):
    """A kept file differs; the argument describes how."""


def differing_copies(run: OpenRun) -> Iterator[str]:
    """Yield a description of each kept file that differs from its input's kept documents or has no input.

    Lines and records (JSON Lines, CSV) and text files are compared byte for byte, tables column by column, and
    documents of web archives by id and text. Cost: the inputs and the kept files are read once; packed files are
    unpacked.
    """
    with scratch_directory() as work:
        for number, file in enumerate(run.inputs.files, run.documents.num_reference_sources):
            reason = _differing(run, number, file, work)
            if reason is not None:
                yield f"{file.name}: {reason}"
    yield from (f"{name}: no input file has this name" for name in _strangers(run))


def _strangers(run: OpenRun) -> Iterator[str]:
    """Yield files among the kept ones that could be mistaken for them; hidden files are ignored."""
    names, kept = {file.name for file in run.inputs.files}, run.directory / KEPT
    first = run.inputs.files[0]
    root = first.place.parents[len(PurePosixPath(first.name).parts) - 1]
    for path in sorted(kept.rglob("*")):
        inside = path.relative_to(kept)
        is_hidden = any(part.startswith(".") for part in inside.parts)
        # Files that describe a dataset are stored next to its rows.
        is_companion = path.name in COMPANIONS and (root / inside).is_file()
        is_named = any(part.as_posix() in names for part in (inside, *inside.parents))
        if not is_named and not is_hidden and not is_companion and not path.is_dir():
            yield inside.as_posix()


def _differing(run: OpenRun, number: int, file: InputFile, work: Path) -> str | None:
    """Return how a kept file differs from the kept documents of its input; None if it does not."""
    path = run.directory / KEPT / file.name
    # Inputs are read again with bad rows skipped, regardless of the run's option.
    on_error = str(run.summary.get("options", {}).get("on_error"))
    documents, kept = (run.documents, run.kept) if run.joined is None else run.joined.rows(run.documents, run.kept)
    offsets, lengths = kept_places(documents, kept, number, on_error)
    if not path.exists():
        # Text files without kept documents leave no file.
        return None if file.is_document and not len(offsets) else "the kept file is missing"
    try:
        match file:
            case LineFile() if file.takes_fields:
                _compare_lines(file, _opened(run, path), offsets, lengths, work)
            case TextFile():
                _compare(filecmp.cmp(file.path, path, shallow=False) and bool(len(offsets)), "its content differs")
            case StoredTable():
                _compare_texts(run, number, file, path, work)
            case ParquetFile() | ArrowFile():
                _compare_tables(file, path, offsets)
            case _:
                _compare_texts(run, number, file, path, work)
    except _AnotherError as error:
        return str(error)
    except (LikewiseError, OSError) as error:
        return str(error)
    return None


def _compare(is_same: bool, reason: str) -> None:  # noqa: FBT001 - a condition
    if not is_same:
        raise _AnotherError(reason)


def _opened(run: OpenRun, path: Path) -> InputFile:
    rules = run.run.read_rules(run.recipe, joins_rows=True)
    found = find_inputs([path], rules, file_format=run.run.format_for(run.recipe), delimiter=run.run.delimiter)
    return found.files[0]


class _Beside:
    """Writable file that compares all bytes with those of another file."""

    def __init__(self, other: BinaryIO, *, may_lack_newline: bool) -> None:
        self._other = other
        self._may_lack_newline = may_lack_newline
        self.num_bytes = 0

    def write(self, data: bytes) -> int:
        other = self._other.read(len(data))
        if not other and data == b"\n" and self._may_lack_newline:
            # Any further write also finds the end of the file and fails.
            return len(data)
        if other != data:
            short = min(len(data), len(other))
            mine, theirs = (np.frombuffer(side, np.uint8, short) for side in (data, other))
            differing = np.flatnonzero(mine != theirs)
            self.num_bytes += int(differing[0]) if len(differing) else short
            raise _AnotherError
        self.num_bytes += len(data)
        return len(data)


def _compare_lines(
    file: LineFile, copy: InputFile, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], work: Path
) -> None:
    _compare(isinstance(copy, LineFile), "it has a different format")
    assert isinstance(copy, LineFile)
    # Unpacks packed files.
    for _ in copy.plain_pieces(_PIECE_BYTES, work):
        pass
    with copy.plain_path.open("rb") as kept:
        # A stream gets a final newline; a file keeps its ending as read.
        beside = _Beside(kept, may_lack_newline=not _ends_with_newline(file.plain_path))
        try:
            file.stream_kept(cast("BinaryIO", beside), offsets, lengths, with_head=True)
        except _AnotherError:
            ends = np.cumsum(lengths.astype(np.int64) + 1) + file.head_bytes()
            place = int(np.searchsorted(ends, beside.num_bytes, "right"))
            is_early = not kept.read(1) and beside.num_bytes == copy.plain_path.stat().st_size
            told = "it ends before" if is_early else "it differs at"
            raise _AnotherError(f"{told} kept line {place + 1}") from None
        _compare(not kept.read(1), "it has extra content")
    if copy.plain_path != copy.path:
        copy.plain_path.unlink()


def _ends_with_newline(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 1))
        return file.read(1) == b"\n"


def _compare_tables(file: ParquetFile | ArrowFile, path: Path, offsets: NDArray[np.uint64]) -> None:
    import pyarrow as pa

    try:
        copies = _Rows(table_batches(path, is_parquet=file.is_parquet, num_rows=_ROWS_AT_ONCE))
        first = 0
        for batch in table_batches(file.path, is_parquet=file.is_parquet, num_rows=_ROWS_AT_ONCE):
            low, high = np.searchsorted(offsets, [first, first + batch.num_rows])
            mine = taken_rows(batch, offsets[low:high].astype(np.int64) - first)
            first += batch.num_rows
            _compare_rows(mine, copies.take(mine.num_rows), int(low))
        _compare(not copies.take(1), "it has extra content")
    except pa.ArrowException as error:
        raise _AnotherError(str(error)) from error


def _compare_rows(mine: Any, theirs: list[Any], first: int) -> None:
    for part in theirs:
        some, mine = mine.slice(0, part.num_rows), mine.slice(part.num_rows)
        _compare(some.schema.names == part.schema.names, "its columns differ")
        # NaNs and dictionaries in another order differ in Arrow.
        if not some.equals(part):
            pairs = zip(some.to_pylist(), part.to_pylist(), strict=True)
            differing = next((i for i, (a, b) in enumerate(pairs) if repr(a) != repr(b)), None)
            _compare(differing is None, f"it differs at kept row {first + (differing or 0) + 1}")
        first += part.num_rows
    _compare(not mine.num_rows, "it ends too early")


class _Rows:
    """Record batches, read by number of rows."""

    def __init__(self, batches: Iterator[Any]) -> None:
        self._batches = batches

    def take(self, num: int) -> list[Any]:
        """Return batches with the next `num` rows, fewer at the end."""
        taken = []
        while num and (batch := next(self._batches, None)) is not None:
            if batch.num_rows > num:
                self._batches = chain([batch.slice(num)], self._batches)
                batch = batch.slice(0, num)
            if batch.num_rows:
                taken.append(batch)
            num -= batch.num_rows
        return taken


def _compare_texts(run: OpenRun, number: int, file: InputFile, path: Path, work: Path) -> None:
    """Compare ids and texts of documents as read, without the ids derived from places, which differ."""
    kept = run.kept[int(run.documents.starts[number]) : int(run.documents.starts[number + 1])]
    copies = _Hashes(_hashes(_opened(run, path), work))
    row = 0
    # Open the input again: this iteration must not disturb the files that documents are read from.
    for hashes in _hashes(_opened(run, file.place), work):
        mine = hashes[kept[row : row + len(hashes)]]
        theirs = copies.take(len(mine))
        _compare(len(theirs) == len(mine), "it ends too early")
        differing = np.flatnonzero((mine != theirs).any(axis=1))
        if len(differing):
            at = row + int(np.flatnonzero(kept[row : row + len(hashes)])[differing[0]])
            raise _AnotherError(f"document {at} of the input differs")
        row += len(hashes)
    _compare(not len(copies.take(1)), "it has extra content")


def _hashes(file: InputFile, work: Path) -> Iterator[NDArray[np.uint64]]:
    """Yield hashes of the texts and ids of a file, piece by piece: shape (n, 2)."""
    for _, piece in each_piece(file, _PIECE_BYTES, work):
        yield np.stack([np.asarray(texts.hashes()) for texts in (piece.texts, piece.ids)], axis=1)


class _Hashes:
    """Hashes, read by number of rows."""

    def __init__(self, pieces: Iterator[NDArray[np.uint64]]) -> None:
        self._pieces = pieces
        self._left = np.zeros((0, 2), np.uint64)

    def take(self, num: int) -> NDArray[np.uint64]:
        """Return the next `num` hashes, fewer at the end."""
        while len(self._left) < num and (piece := next(self._pieces, None)) is not None:
            self._left = np.concatenate([self._left, piece])
        taken, self._left = self._left[:num], self._left[num:]
        return taken
