"""A run against an online index: documents with a match in the index are removed, and others may be added to it.

The index is queried first, and the other documents are decided as a batch. The kept set is the same as if the documents
had been added one by one, at the speed of a run. The evidence names the indexed document, even if a kept one is more
similar.
"""

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.decide.decision import Decision, VerdictLog, decide
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.run import ordered
from likewise.batch.write.summary import content_digest
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.output.whole import try_lock
from likewise.io.places import check_place
from likewise.job.reading import RunContext, RunRules
from likewise.recipe.fields import canonical_json
from likewise.recipe.recipe import Recipe

if TYPE_CHECKING:
    from likewise.index import Index
    from likewise.index.online import BatchRun

# Documents per query or transaction.
_AT_ONCE = 10_000
# Lock of the process that writes an index, in its directory.
_WRITER_LOCK = "writer.lock"


@dataclass(frozen=True)
class IndexUse:
    """How a run uses an index."""

    # A new index for all documents of the run, including removed ones, with the run's verdicts
    create: Path | None = None
    # An index whose kept documents precede all others: documents that match one of them are removed
    against: Path | None = None
    # Whether to add kept documents to the index `against`
    add: bool = False

    def __post_init__(self) -> None:
        if self.add and self.against is None:
            raise InvalidParameter("add", "requires --against PATH, the index to add to")
        if self.create is not None and self.against is not None:
            raise InvalidParameter(
                "index",
                "creates a new index and cannot be combined with --against; use --add, or "
                "create the index in a separate run",
            )

    @property
    def is_any(self) -> bool:
        """Whether there is an index to create or to compare with."""
        return self.create is not None or self.against is not None

    def check_recipe(self, recipe: Recipe) -> None:
        """Raise InvalidParameter if an index cannot give the verdicts of this recipe."""
        name = "index" if self.create is not None else "against"
        if recipe.group != "leaders":
            raise InvalidParameter(name, "an index supports --group leaders only; remove --group components")
        if self.create is not None and recipe.keep != "first":
            raise InvalidParameter(
                name,
                f"an index keeps the first copy to arrive and requires --keep first; the recipe has keep {recipe.keep}",
            )

    def check_ids(self, duplicate_ids: str) -> None:
        """Raise InvalidParameter if ids may be duplicates although an index needs unique ones."""
        if duplicate_ids == "allow" and (self.create is not None or self.add):
            raise InvalidParameter("duplicate_ids", "an index identifies documents by id, so ids must be unique")


class Seen(NamedTuple):
    """The documents of a run that match a kept document of an index."""

    # Rows of the documents, ascending
    rows: NDArray[np.int64]
    # Id of the matching kept document of the index
    kept_ids: list[str]
    similarity: NDArray[np.float64]
    # Hamming distance of each pair; None for signatures
    distance: NDArray[np.int32] | None

    def without(self, collapsed: Collapsed) -> Collapsed:
        """Return the search order without these documents; of those that collapse into one, all or none match."""
        if not len(self.rows):
            return collapsed
        is_seen = np.zeros(len(collapsed.first), bool)
        is_seen[self.rows] = True
        order = collapsed.order[~is_seen[collapsed.order]]
        # A class without a position, such as that of empty documents, has -1.
        place_of = np.full(len(is_seen), -1, np.int64)
        place_of[order] = np.arange(len(order))
        first = np.where(is_seen, np.arange(len(is_seen)), collapsed.first)
        return collapsed._replace(first=first, order=order, position=place_of[first])

    def join(self, decision: Decision) -> Decision:
        """Return verdicts and evidence with these documents removed; their `kept_rows` are -1."""
        kept = decision.kept.copy()
        kept[self.rows] = False
        rows = np.concatenate([decision.removed_rows, self.rows])
        by_row = np.argsort(rows, kind="stable")
        none = np.zeros(len(self.rows), np.int64)
        # An index does not return in what documents differ.
        others = {"kept_rows": none - 1, "similarity": self.similarity, "penalty": none * 0.0, "differs": none}
        others |= {} if self.distance is None else {"distance": self.distance}
        columns: dict[str, Any] = {
            name: np.concatenate([column, other.astype(column.dtype)])[by_row]
            for name, other in others.items()
            if (column := getattr(decision, name)) is not None
        }
        return decision._replace(kept=kept, removed_rows=rows[by_row], **columns)


def adding_identity(documents: Documents, recipe: Recipe) -> bytes:
    """Return the identity of a run that adds its documents to an index: these and the recipe, wherever they are."""
    sources = range(documents.num_reference_sources, len(documents.sources))
    made_of = {
        "recipe": recipe.to_dict(),
        "inputs": [[documents.sources[number].name, content_digest(documents, number)] for number in sources],
    }
    return hashlib.blake2b(canonical_json(made_of).encode(), digest_size=16).digest()


def ask_index(index: "Index | BatchRun", documents: Documents) -> Seen:
    """Check every document of a run against an index."""
    rows, kept_ids = [np.zeros(0, np.int64)], []
    similarities, distances = [np.zeros(0)], [np.zeros(0, np.int32)]
    for some, texts in _batches(documents, np.arange(len(documents))):
        verdicts = index.check_batch(texts)
        seen = np.flatnonzero(~np.asarray(verdicts.is_new))
        rows.append(some[seen])
        kept_ids += [verdicts.kept_ids[i] or "" for i in seen.tolist()]
        similarities.append(np.asarray(verdicts.similarity)[seen])
        if verdicts.distance is not None:
            distances.append(np.asarray(verdicts.distance)[seen].astype(np.int32))
    distance = np.concatenate(distances)
    number = sum(map(len, rows))
    return Seen(
        np.concatenate(rows), kept_ids, np.concatenate(similarities), distance if len(distance) == number else None
    )


def check_ids(run: "BatchRun", path: Path, documents: Documents, rows: NDArray[np.int64]) -> None:
    """Raise InvalidInput if the index at `path` has the id of one of these documents with a different text."""
    parts = [rows[part] for part in slices(len(rows), _AT_ONCE)]
    known = [some[run.known(documents.doc_ids(some))] for some in parts]
    for some, texts in _batches(documents, np.concatenate([np.zeros(0, np.int64), *known])):
        ids = documents.doc_ids(some)
        place = run.first_of_other_text(ids, texts)
        if place is not None:
            file, line = documents.place(int(some[place]))
            raise InvalidInput(
                f"the id {ids[place].as_py()!r} is already in the index {path} with a different text; remove it from "
                "the index, or give this document another id",
                file,
                line,
            )


def add_documents(index: "Index | BatchRun", documents: Documents, rows: NDArray[np.int64]) -> None:
    """Add documents in order."""
    for some, texts in _batches(documents, rows):
        index.add_batch(documents.doc_ids(some), texts)


def _batches(documents: Documents, rows: NDArray[np.int64]) -> Iterator[tuple[NDArray[np.int64], Any]]:
    """Yield ascending rows in parts, with their texts."""
    for part, read in documents.texts(rows, -(-len(rows) // _AT_ONCE)):
        texts, some = read(), rows[part]
        for start in range(0, len(some), _AT_ONCE):
            places = np.arange(start, min(start + _AT_ONCE, len(some)))
            yield some[places], texts.take(places)


class BesideIndex:
    """The index that a run uses, as a context."""

    def __init__(self, use: IndexUse, recipe: Recipe, rules: RunRules) -> None:
        self._use, self._rules = use, rules
        self._use.check_recipe(recipe)
        self._use.check_ids(rules.duplicate_ids)
        self._index: Index | None = None
        self._run: BatchRun | None = None
        self._unfinished: Path | None = None
        self._lock = ExitStack()
        self._num_seen = 0
        if self._use.create is not None:
            from likewise.index.opening import check_recipe

            _check_absent(self._use.create)
            # When the index is created, counted weights are a table, and the threshold is a number.
            if not recipe.needs_counting:
                check_recipe(recipe.replace(threshold=1.0) if recipe.needs_threshold else recipe)
        if self._use.against is not None:
            self._index = _open_against(self._use.against, recipe, add=self._use.add, threads=rules.threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._index is not None:
            self._index.close()
        self._lock.close()
        if self._unfinished is not None:
            shutil.rmtree(self._unfinished, ignore_errors=True)

    def decided(
        self,
        documents: Documents,
        recipe: Recipe,
        context: RunContext,
        log: VerdictLog | None = None,
    ) -> tuple[Decision, list[str]]:
        """Return the verdicts on documents, and the ids in the index for the kept rows that are -1."""
        collapsed = ordered(documents, recipe, context)
        seen = None
        if self._index is not None:
            if self._use.add:
                from likewise.index.online import BatchRun

                self._run = BatchRun(self._index, adding_identity(documents, recipe))
            with context.timing.wall("asking_the_index"):
                seen = ask_index(self._run or self._index, documents)
            collapsed = seen.without(collapsed)
            # The index may have grown since verdicts were logged.
            log = None
        decision = decide(collapsed, recipe, context, log)
        if seen is None:
            return decision, []
        self._num_seen = len(seen.rows)
        return seen.join(decision), seen.kept_ids

    def prepare(self, documents: Documents, recipe: Recipe, decision: Decision) -> None:
        """Do everything that may fail before results are renamed into place."""
        if self._run is not None and self._use.against is not None:
            check_ids(self._run, self._use.against, documents, np.flatnonzero(decision.kept))
        if self._use.create is not None:
            from likewise.index import Index

            target = self._use.create
            self._unfinished = target.with_name(f"{_unfinished_stem(target)}{os.getpid()}")
            shutil.rmtree(self._unfinished, ignore_errors=True)
            _delete_left(target)
            with Index(self._unfinished, recipe, threads=self._rules.threads) as index:
                add_documents(index, documents, np.arange(len(documents)))
            # It waits to be renamed while results are written, and must still be locked by this run.
            assert self._unfinished is not None
            with suppress(OSError):
                try_lock(self._lock.enter_context((self._unfinished / _WRITER_LOCK).open("r+b")).fileno())

    def add_kept(self, documents: Documents, decision: Decision) -> None:
        """Add kept documents to the index `against`.

        Outputs are renamed into place after this: a run interrupted in between is repeated with the same results, but a
        run with finished outputs would not be repeated.
        """
        if self._run is not None:
            add_documents(self._run, documents, np.flatnonzero(decision.kept))

    def finish(self) -> None:
        """Rename a new index into place."""
        if self._use.create is not None and self._unfinished is not None:
            _check_absent(self._use.create)
            # Windows cannot rename a directory that contains an open file.
            self._lock.close()
            self._unfinished.rename(self._use.create)
            self._unfinished = None

    def summary(self) -> dict[str, object]:
        """Return the summary fields about the index."""
        if self._use.against is not None:
            return {"against": {"path": str(self._use.against), "num_removed": self._num_seen, "adds": self._use.add}}
        return {"index": str(self._use.create)}


def _open_against(path: Path, recipe: Recipe, *, add: bool, threads: int) -> "Index":
    if not path.is_dir():
        raise InvalidInput("no index here", str(path))
    from likewise.index import Index

    # The run decides which documents to keep; the index itself keeps the first to arrive.
    return Index(path, recipe.replace(keep="first"), read_only=not add, threads=threads)


def _unfinished_stem(target: Path) -> str:
    """Return the prefix of the name of an unfinished index, which the process number follows."""
    return f".{target.name}.unfinished-"


def _delete_left(target: Path) -> None:
    """Delete unfinished indexes of killed runs, as far as possible."""
    stem = _unfinished_stem(target)
    for path in list(target.parent.iterdir()):
        if not path.name.startswith(stem) or not path.name[len(stem) :].isdecimal() or path.is_symlink():
            continue
        # The creator of an index holds its lock, which ends with the process.
        with suppress(OSError), (path / _WRITER_LOCK).open("r+b") as lock:
            if try_lock(lock.fileno()):
                shutil.rmtree(path, ignore_errors=True)


def _check_absent(path: Path) -> None:
    check_place(path)
    if path.exists():
        raise InvalidInput("already exists; choose a new directory, or use the index with --against", str(path))
