"""Views for the page and the report: a finished run, or an index."""

import json
import os
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias

from likewise.errors import InvalidInput, LikewiseError
from likewise.io.output.directory import DECISIONS, EVIDENCE, PAIRS, REVIEW, SUMMARY, VIEW
from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.io.output.whole import scratch_directory
from likewise.io.source.source import Source
from likewise.job.reading import FileRun
from likewise.progress import Progress, no_progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import RECIPE
from likewise.runs.viewing.build import build_from_evidence, build_from_index
from likewise.runs.viewing.catalog import Catalog
from likewise.runs.viewing.neighbors import FoundNear, KeptAfterAll, Marks, RunNeighbors
from likewise.runs.viewing.texts import Missing, Place, Shown, TextReader
from likewise.runs.viewing.thresholds import Thresholds

if TYPE_CHECKING:
    from likewise.index import Index

# Version of the catalog; other versions are built again.
_CATALOG_VERSION = "4"
_CATALOG = "groups.sqlite"


def is_run(path: Path) -> bool:
    """Return whether a directory is the output of a finished run."""
    return (path / SUMMARY).is_file()


class RunView:
    """The output of a finished run, as a context."""

    kind = "run"

    def __init__(self, path: Path, *, inputs: Path | None = None, progress: Progress | None = None) -> None:
        self.path = path
        self.title = path.resolve().name
        self.summary = read_summary(path)
        if is_over_parts(self.summary):
            raise InvalidInput(
                "this run removed repeated parts (likewise repeats) and has no groups; likewise report shows it",
                str(path),
            )
        self._progress = progress or no_progress
        self.stated = Recipe.from_dict(self.summary["recipe"])
        # Pages measure texts by it.
        self.recipe, self._lost = _recipe_of(path / SUMMARY)
        self._stack = ExitStack()
        self._lock = threading.RLock()
        self._run = file_run(self.summary)
        self._reader = self._stack.enter_context(TextReader(self.summary, inputs, self._run, self.recipe))
        self._catalog: Catalog | None = None
        self._near: RunNeighbors | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def note(self) -> str | None:
        """Why pages show less than all, such as moved inputs or missing weights; None if they show all."""
        problem = self._reader.problem
        if problem is not None:
            return f"{problem}; if the inputs were moved, start with --inputs DIRECTORY to show their documents"
        return None if self._lost is None else f"{self._lost}: measures on these pages count each shared feature once"

    def check_complete(self) -> None:
        """Raise InvalidInput if what decided is missing, so that no comparison can repeat it."""
        if self._lost is not None:
            raise InvalidInput(f"{self._lost}; copy it back, or repeat the run", str(self.path))
        if self._reader.problem is not None:
            problem = f"{self._reader.problem}; if the inputs were moved, add --inputs DIRECTORY"
            raise InvalidInput(problem, str(self.path))

    @property
    def catalog(self) -> Catalog:
        """The groups, sorted on first access."""
        with self._lock:
            if self._catalog is None:
                self._catalog = self._opened()
                self._stack.callback(self._catalog.close)
            return self._catalog

    @cached_property
    def marks(self) -> Marks:
        """Labels of pairs."""
        return Marks(self.path / REVIEW)

    @cached_property
    def kept_after_all(self) -> KeptAfterAll:
        """Documents that the next run must keep regardless of matches."""
        return KeptAfterAll(self.path / DECISIONS)

    @cached_property
    def thresholds(self) -> Thresholds | None:
        """The stored pairs, if any."""
        path = self.path / PAIRS
        return Thresholds(path, self.stated, self.summary["num_kept"]) if path.exists() else None

    def texts(self, documents: Sequence[tuple[int | None, Place]]) -> list[Shown]:
        """Return documents by their places."""
        return self._reader.texts([place for _, place in documents])

    def sources(self) -> Sequence[Source]:
        """Return the documents of the inputs."""
        return self._reader.sources(self.stated)

    def neighbors(self, text: str, limit: int) -> list[FoundNear]:
        """Return the documents of the run similar to a text, including removed ones."""
        with self._lock:
            _ = self.catalog
            if self._near is None:
                self._near = RunNeighbors(self._reader, self._run, self.recipe)
                self._stack.callback(self._near.close)
        return self._near.find(text, limit)

    def _opened(self) -> Catalog:
        evidence = self.path / EVIDENCE
        stat = evidence.stat() if evidence.exists() else None
        stamp = json.dumps([_CATALOG_VERSION, stat and stat.st_size, stat and stat.st_mtime_ns])
        own = self.path / VIEW / _CATALOG
        found = _current(own, stamp)
        if found is not None:
            return found
        target = own
        try:
            own.parent.mkdir(exist_ok=True)
            if not os.access(own.parent, os.W_OK):
                raise PermissionError
        except OSError:
            target = self._stack.enter_context(scratch_directory()) / _CATALOG
        threshold = self.stated.least_similarity
        build_from_evidence(evidence, target, self._reader, threshold, {"stamp": stamp}, self._progress)
        return Catalog(target)


def _current(path: Path, stamp: str) -> Catalog | None:
    """Return the existing catalog if it belongs to this evidence."""
    import sqlite3

    if not path.is_file():
        return None
    try:
        found = Catalog(path)
        if found.fact("stamp") == stamp:
            return found
        found.close()
    except sqlite3.DatabaseError:
        # Damaged: build it again.
        return None
    return None


class IndexView:
    """An index, as a context; shows the groups as of the last sort."""

    kind = "index"
    thresholds = None
    note = None
    kept_after_all = None

    def __init__(self, index: "Index", title: str, *, marks: Path | None = None) -> None:
        self.title = title
        self.index = index
        self.recipe = self.stated = index.recipe
        self.marks = Marks(marks)
        self._stack = ExitStack()
        self._lock = threading.RLock()
        self._catalog: Catalog | None = None
        self._before: Catalog | None = None
        self._num_sorted = 0
        self._work: Path | None = None
        self._sorted_at: object = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for catalog in (self._catalog, self._before):
            if catalog is not None:
                catalog.close()
        self._stack.close()

    @property
    def summary(self) -> dict[str, Any]:
        """Counts of the index."""
        return dict(self.index.stats)

    @property
    def catalog(self) -> Catalog:
        """The groups, sorted on first access."""
        with self._lock:
            if self._catalog is None:
                self.sort_again()
            assert self._catalog is not None
            return self._catalog

    @property
    def is_current(self) -> bool:
        """Whether the index is unchanged since the groups were sorted."""
        return self._catalog is None or self._sorted_at == self._state()

    def sort_again(self) -> None:
        """Sort the current groups of the index."""
        with self._lock:
            if self._work is None:
                self._work = self._stack.enter_context(scratch_directory())
            state = self._state()
            self._num_sorted += 1
            # Two catalogs are open at a time; names rotate.
            target = self._work / f"{self._num_sorted % 3}-{_CATALOG}"
            build_from_index(self.index, target, {})
            if self._before is not None:
                self._before.close()
            # Keep the last catalog open for readers that still use it, until the next sort.
            self._before, self._catalog = self._catalog, Catalog(target)
            self._sorted_at = state

    def texts(self, documents: Sequence[tuple[int | None, Place]]) -> list[Shown]:
        """Return documents by row, if the index stores texts."""
        reason = Missing("this index stores no texts; create one with --store text")
        if self.summary.get("store") != "text":
            return [reason] * len(documents)
        gone = Missing("the document was removed")
        found = [None if row is None else self.catalog.text(row) for row, _ in documents]
        return [gone if text is None else text for text in found]

    def neighbors(self, text: str, limit: int) -> list[FoundNear]:
        """Return the most similar kept documents."""
        return [
            FoundNear(near.doc_id, near.similarity, near.distance, matches=near.matches, text=None)
            for near in self.index.neighbors(text, limit, among="candidates")
        ]

    def _state(self) -> object:
        facts = self.index.stats
        return facts.get("num_documents"), facts.get("num_rows"), facts.get("num_events")


# A run or an index to look at.
View: TypeAlias = RunView | IndexView


def file_run(summary: dict[str, Any]) -> FileRun:
    """Return the reading options of a finished run's inputs."""
    options = summary.get("options", {})
    return FileRun(
        text_fields=tuple(options.get("text_field") or ("text",)),
        tokens_field=options.get("tokens_field"),
        id_field=options.get("id_field"),
        document_by=options.get("document_by"),
        on_error="skip",
        duplicate_ids="allow",
        max_document_bytes=options.get("max_document", FileRun().max_document_bytes),
        file_format=options.get("format"),
        delimiter=options.get("delimiter"),
        quote=options.get("quote"),
        max_bad_rows="100%",
    )


def _recipe_of(summary: Path) -> tuple[Recipe, str | None]:
    """Return the recipe of a run; without its weights or words, a plain recipe and what is missing."""
    # Pages compare any two texts, and show them without the values of a field.
    recipe = Recipe.from_file(summary).across_values
    fields: dict[str, Any] = recipe.to_dict()
    try:
        _ = recipe.feature_rules
        return recipe, None
    except LikewiseError:
        options = {name: fields[name] for name in ("tokens", "shingle", "seed", "markup", "fold") if name in fields}
        if options.get("tokens") == "chinese":
            options["tokens"] = "auto"
        threshold = fields.get("threshold")
        plain = Recipe.minhash(threshold, **options).resolve()
        lists = "weights" if recipe.needs_counting else "weights or word lists"
        return (
            plain,
            f"The {lists} of the run are not available, because its directory {RECIPE} is missing or incomplete",
        )
