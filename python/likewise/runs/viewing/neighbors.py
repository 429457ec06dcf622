"""Documents of a run that are similar to a text, and labels and decisions that users make, in files next to the run.

`likewise tune` reads labels of pairs; `likewise dedup --decisions` reads the list of documents to keep after all.
"""

import csv
import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise.batch.decide.decision import DECISIONS_HEADER, KEEP, read_decisions
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import open_documents
from likewise.errors import InvalidInput
from likewise.hamming.pairs import hamming_distance
from likewise.io.label_rows import id_of_cell, label_rows
from likewise.io.output.whole import scratch_directory, write_whole
from likewise.job.reading import FileRun, RunContext
from likewise.measures import measure
from likewise.measures.comparison import matches
from likewise.recipe.methods import Exact, MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.runs.viewing.texts import TextReader
from likewise.stages.sketch import shaped, sketch

# Larger inputs are not sketched for a page: this takes seconds on two cores, and 300 MB for a million documents.
MOST_BYTES = 2_000_000_000
# Number of documents with the nearest sketches that are measured exactly.
_MEASURED = 50


@dataclass(frozen=True)
class FoundNear:
    """A document similar to a text."""

    doc_id: str
    # Exact, by the recipe's measure
    similarity: float
    # Distance of the fingerprints, if the recipe has any
    distance: int | None
    # Whether it matches according to the recipe
    matches: bool
    text: str | None


class RunNeighbors:
    """Neighbor search that sketches the inputs of a run on first use and keeps the sketches until it is closed."""

    def __init__(self, reader: TextReader, run: FileRun, recipe: Recipe) -> None:
        self._reader, self._run = reader, run
        self._recipe = recipe
        self._sketching = recipe if isinstance(recipe.sketch, MinHash | SimHash) else _signatures(recipe)
        self._lock = threading.Lock()
        self._stack = ExitStack()
        self._documents: Documents | None = None

    def close(self) -> None:
        """Release the sketches."""
        self._stack.close()

    def find(self, text: str, limit: int) -> list[FoundNear]:
        """Return the documents most similar to a text, nearest first."""
        with self._lock:
            if self._documents is None:
                self._documents = self._sketched()
        documents = self._documents
        if not len(documents):
            return []
        rows = self._nearest(documents, text)
        found = []
        for part, read in documents.texts(np.sort(rows), 1):
            texts, some = read(), np.sort(rows)[part]
            ids = documents.doc_ids(some).to_pylist()
            for i, doc_id in enumerate(ids):
                found.append(self._measured(doc_id, str(texts[i]), text))
        found.sort(key=lambda near: (-near.similarity, near.doc_id))
        return [near for near in found if near.similarity > 0.0][:limit]

    def _measured(self, doc_id: str, theirs: str, text: str) -> FoundNear:
        measured = measure(text, theirs, self._recipe)
        values = {"containment": measured.containment_a_in_b, "equality": measured.jaccard}
        recipe = self._recipe
        similarity = values.get(recipe.measure)
        if similarity is None:
            similarity = float(getattr(measured, recipe.measure))
        distance = measured.distance if isinstance(recipe.sketch, SimHash) else None
        if isinstance(recipe.sketch, Exact):
            is_match = recipe.feature_rules.normalize(text) == recipe.feature_rules.normalize(theirs)
        else:
            is_match = matches(measured, recipe)
        return FoundNear(doc_id, similarity, distance, is_match, theirs)

    def _nearest(self, documents: Documents, text: str) -> NDArray[np.int64]:
        recipe = self._sketching
        ours, theirs = sketch([text], recipe, threads=1).array, shaped(documents.sketches, recipe)
        if isinstance(recipe.sketch, SimHash):
            # Distances are measured row by row, so repeat the one sketch.
            far = hamming_distance(np.repeat(ours, len(theirs), axis=0), theirs).astype(np.int64)
        else:
            far = np.concatenate(
                [(part != ours[0]).sum(axis=1) for part in np.array_split(theirs, max(1, len(theirs) // 65536))]
            )
        count = min(_MEASURED, len(far))
        return np.argpartition(far, count - 1)[:count].astype(np.int64)

    def _sketched(self) -> Documents:
        if self._reader.num_bytes > MOST_BYTES:
            raise InvalidInput(
                f"the inputs have {self._reader.num_bytes:,} bytes; this page reads up to {MOST_BYTES:,}. Create an "
                "index of the run (likewise dedup --index) and open it"
            )
        work = self._stack.enter_context(scratch_directory())
        recipe = self._sketching.replace(keep="first")
        opened = open_documents(self._reader.sources(recipe), recipe, RunContext(self._run.run_rules()), work=work)
        return self._stack.enter_context(opened)


def _signatures(recipe: Recipe) -> Recipe:
    """Return a recipe of signatures over the same features, for methods without sketches."""
    if isinstance(recipe.sketch, Exact):
        return Recipe.minhash(markup=recipe.markup, fold=recipe.fold).resolve()
    return Recipe.from_options("minhash", **recipe.feature_options()).resolve()


_HEADER = ("doc_id_a", "doc_id_b", "label")
# The whole file is written with each label.
MOST_MARKS = 100_000
_MOST_ID_CHARACTERS = 10_000

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class _Said(ABC, Generic[Key, Value]):
    """Values by key; each change writes the whole file."""

    def __init__(self, path: Path | None, said: dict[Key, Value]) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._said = said

    def __len__(self) -> int:
        return len(self._said)

    @abstractmethod
    def to_csv(self) -> str:
        """Return all entries as CSV."""

    def _latest(self) -> list[tuple[Key, Value]]:
        with self._lock:
            return list(reversed(self._said.items()))

    def _say(self, key: Key, value: Value | None) -> None:
        """Set a value, or delete it if None; the file is written before this returns."""
        with self._lock:
            before = dict(self._said)
            self._said.pop(key, None)
            if value is not None:
                if len(self._said) >= MOST_MARKS:
                    self._said = before
                    raise InvalidInput(
                        f"there are {MOST_MARKS:,} entries, the maximum; export them and start a new file"
                    )
                self._said[key] = value
            try:
                if self.path is not None:
                    write_whole(self.path, self.to_csv(), is_synced=True)
            except OSError:
                self._said = before
                raise


class Marks(_Said[tuple[str, str], bool]):
    """Labels of pairs, regardless of the order in a pair."""

    def __init__(self, path: Path | None) -> None:
        super().__init__(path, _read(path) if path is not None and path.exists() else {})

    def label(self, a: str, b: str) -> bool | None:
        """Return whether a pair was labeled as duplicates; None if it has no label."""
        return self._said.get(_pair(a, b))

    def items(self) -> list[tuple[str, str, bool]]:
        """Return all labels, latest first."""
        return [(a, b, label) for (a, b), label in self._latest()]

    def mark(self, a: str, b: str, label: bool | None) -> None:  # noqa: FBT001 - the label itself
        """Label a pair as duplicates or not, or remove its label; the file is written before this returns."""
        if a == b or not a or not b or max(len(a), len(b)) > _MOST_ID_CHARACTERS:
            raise InvalidInput("a label requires the ids of two different documents")
        self._say(_pair(a, b), label)

    def to_csv(self) -> str:
        """Return the labels as CSV: doc_id_a, doc_id_b, label (1 for duplicates, 0 for others)."""
        return label_rows(_HEADER, ((a, b, int(label)) for (a, b), label in self._said.items()))


class KeptAfterAll(_Said[str, str]):
    """Documents that the next run must keep regardless of matches."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, dict.fromkeys(read_decisions(path), KEEP) if path.exists() else {})

    def __contains__(self, doc_id: str) -> bool:
        return doc_id in self._said

    def items(self) -> list[str]:
        """Return the ids, latest first."""
        return [doc_id for doc_id, _ in self._latest()]

    def mark(self, doc_id: str, *, stays: bool) -> None:
        """Add a document to the list or remove it; the file is written before this returns."""
        if not doc_id or len(doc_id) > _MOST_ID_CHARACTERS:
            raise InvalidInput("a decision requires the id of a document")
        self._say(doc_id, KEEP if stays else None)

    def to_csv(self) -> str:
        """Return the list as CSV: doc_id, decision."""
        return label_rows(DECISIONS_HEADER, self._said.items())


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _read(path: Path) -> dict[tuple[str, str], bool]:
    labels = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != _HEADER:
            raise InvalidInput(f"not a file of labels; the first line must be {','.join(_HEADER)}", str(path), 1)
        for number, row in enumerate(rows, 2):
            if len(row) != len(_HEADER) or row[2] not in ("0", "1"):
                raise InvalidInput("a row must contain doc_id_a, doc_id_b, and 1 or 0", str(path), number)
            labels[_pair(id_of_cell(row[0]), id_of_cell(row[1]))] = row[2] == "1"
    return labels
