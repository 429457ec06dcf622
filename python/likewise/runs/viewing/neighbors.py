"""Documents of a run that are similar to a text, found by sketching the inputs again."""

import threading
from contextlib import ExitStack
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.batch.read.documents import Documents
from likewise.batch.run import open_documents
from likewise.errors import InvalidInput
from likewise.hamming.pairs import hamming_distance
from likewise.io.output.scratch import scratch_directory
from likewise.job.options import FileRun, RunContext
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
