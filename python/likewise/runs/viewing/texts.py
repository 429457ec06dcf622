"""Texts of a finished run, read again from its inputs by their places in the evidence."""

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArraySpace
from likewise.batch.budget.room import Room
from likewise.batch.joined import JoinedRows
from likewise.errors import InvalidInput, LikewiseError
from likewise.io.inputs import find_inputs
from likewise.io.output.whole import scratch_directory
from likewise.io.source.source import InputFile, Source, each_piece, shown_document
from likewise.io.source.spool import Spool
from likewise.job.reading import FileRun, RunContext
from likewise.recipe.recipe import Recipe

_PIECE_BYTES = 4 << 20


class Place(NamedTuple):
    """Place of a document."""

    # Path relative to the directory of the inputs; None if the evidence has none
    file: str | None
    # Byte in the file, or row in the table
    offset: int
    # Bytes of the line; None if the evidence does not record it, as for kept documents
    length: int | None


@dataclass(frozen=True)
class Missing:
    """A text that cannot be shown, with the reason."""

    reason: str


Shown = str | bytes | Missing


class TextReader:
    """Reader of the documents of a run, as a context.

    Plain files are read by offset. Packed files and tables are unpacked to a scratch directory when a text of theirs is
    first requested; it lives as long as the reader.
    """

    def __init__(self, summary: dict[str, Any], inputs: Path | None, run: FileRun, recipe: Recipe) -> None:
        stated = summary.get("input_directory")
        self._directory = inputs if inputs is not None else None if stated is None else Path(stated)
        self._run, self._recipe = run, recipe
        self._sizes: dict[str, int] = {file["path"]: file["num_bytes"] for file in summary["inputs"]}
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._open_files: dict[str, _Again | _Table | Missing] = {}
        self._joined: JoinedRows | None = None

    def __enter__(self) -> "TextReader":
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def texts(self, places: Sequence[Place]) -> list[Shown]:
        """Return the documents at some places, each as text, bytes, or the reason why it cannot be shown."""
        if self._run.document_by is not None:
            return [self._joined_text(place) for place in places]
        found: list[Shown] = [Missing("the document is in an index, which does not record its location")] * len(places)
        by_file: dict[str, list[int]] = {}
        for i, place in enumerate(places):
            if place.file is not None:
                by_file.setdefault(place.file, []).append(i)
        for name, which in by_file.items():
            file = self._file(name)
            if isinstance(file, Missing):
                for i in which:
                    found[i] = file
                continue
            which.sort(key=lambda i: places[i].offset)
            for i, text in zip(which, file.read([places[i] for i in which]), strict=True):
                found[i] = text
        return found

    def sources(self, recipe: Recipe) -> Sequence[Source]:
        """Return the inputs, of documents of several rows if the run joined them; raise InvalidInput if one changed."""
        if self._directory is None or self.problem is not None:
            raise InvalidInput("the inputs of the run are missing or have changed")
        found = self._found([self._directory / name for name in self._sizes], recipe)
        found = [replace(file, name=name) for file, name in zip(found, self._sizes, strict=True)]
        context = RunContext(self._run.run_rules())
        if self._run.document_by is not None:
            room, most_bytes = Room(ArraySpace(self._scratch)), self._run.max_document_bytes
            self._joined = JoinedRows(found, recipe, context, room, self._scratch, most_bytes)
        return found if self._joined is None else self._joined.sources

    def _joined_text(self, place: Place) -> Shown:
        try:
            with self._lock:
                if self._joined is None:
                    self.sources(self._recipe)
        except (LikewiseError, OSError) as error:
            return Missing(str(error))
        assert self._joined is not None
        text = self._joined.text_at(list(self._sizes).index(place.file or ""), place.offset)
        return Missing("this row no longer exists") if text is None else text

    @property
    def problem(self) -> str | None:
        """Why the documents of an input cannot be shown; None if all inputs are unchanged."""
        for name in self._sizes:
            if isinstance(found := self._checked(name), Missing):
                return found.reason
        return None

    @property
    def num_bytes(self) -> int:
        """Total size of the inputs."""
        return sum(self._sizes.values())

    def _file(self, name: str) -> "_Again | _Table | Missing":
        with self._lock:
            if name not in self._open_files:
                self._open_files[name] = self._opened(name)
            return self._open_files[name]

    def _checked(self, name: str) -> Path | Missing:
        if Path(name).is_absolute():
            # A reference document of --against.
            return Path(name) if Path(name).is_file() else Missing(f"{name} is missing")
        if self._directory is None:
            return Missing("the run read standard input, which cannot be read again")
        path = self._directory / name
        if name not in self._sizes:
            return Missing(f"{name} is not an input of this run")
        if not path.is_file():
            return Missing(f"{path} is missing")
        if path.stat().st_size != self._sizes[name]:
            return Missing(f"{path} has changed since the run")
        return path

    def _opened(self, name: str) -> "_Again | _Table | Missing":
        path = self._checked(name)
        if isinstance(path, Missing):
            return path
        try:
            (file,) = self._found([path], self._recipe)
            for _ in file.unpacking(_PIECE_BYTES, self._scratch):
                pass
            if file.can_read_again:
                return _Again(file)
            return self._stack.enter_context(_Table(file, self._scratch, len(self._open_files)))
        except (LikewiseError, OSError) as error:
            return Missing(str(error))

    def _found(self, paths: list[Path], recipe: Recipe) -> Sequence[InputFile]:
        run = self._run
        rules = run.read_rules(recipe, joins_rows=True)
        return find_inputs(paths, rules, file_format=run.format_for(recipe), delimiter=run.delimiter).files

    @cached_property
    def _scratch(self) -> Path:
        return self._stack.enter_context(scratch_directory())


class _Again:
    """File whose documents are read in place."""

    def __init__(self, file: InputFile) -> None:
        self._file = file

    def read(self, places: Sequence[Place]) -> list[Shown]:
        offsets = np.array([place.offset for place in places], np.uint64)
        try:
            lengths = np.array([self._length(place) for place in places], np.uint32)
            # Read equal offsets once: readers require ascending offsets.
            distinct, back = np.unique(offsets, return_inverse=True)
            texts = self._file.read_texts(distinct, lengths[np.searchsorted(offsets, distinct)])
            found = texts.take(back.astype(np.int64))
            return [shown_document(found, i) for i in range(len(places))]
        except (LikewiseError, OSError, ValueError) as error:
            if len(places) == 1:
                return [Missing(f"{self._file.name} has changed since the run: {error}")]
            return [document for place in places for document in self.read([place])]

    def _length(self, place: Place) -> int:
        return self._file.record_bytes(place.offset) if place.length is None else place.length


class _Table:
    """Table whose texts are spooled once and found by row."""

    def __init__(self, file: InputFile, work: Path, number: int) -> None:
        self._spool = Spool(work / f"texts-{number}", has_tokens=file.rules.tokens is not None)
        self._firsts: list[int] = []
        self._rows: list[NDArray[np.uint64]] = []
        self._handles: list[int] = []
        for _, piece in each_piece(file, _PIECE_BYTES, work):
            if len(piece.offsets):
                self._firsts.append(int(piece.offsets[0]))
                self._rows.append(piece.offsets)
                self._handles.append(self._spool.append(piece.texts))

    def __enter__(self) -> "_Table":
        return self

    def __exit__(self, *_: object) -> None:
        self._spool.close()

    def read(self, places: Sequence[Place]) -> list[Shown]:
        found: list[Shown] = []
        for place in places:
            number = int(np.searchsorted(self._firsts, place.offset, side="right")) - 1
            rows = self._rows[number] if number >= 0 else np.zeros(0, np.uint64)
            i = int(np.searchsorted(rows, place.offset))
            if i < len(rows) and int(rows[i]) == place.offset:
                found.append(shown_document(self._spool.texts(self._handles[number]), i))
            else:
                found.append(Missing("this row no longer exists"))
        return found
