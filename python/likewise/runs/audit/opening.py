"""Finished runs opened for an audit: inputs read as the run did, recipe with weights, evidence."""

import dataclasses
import glob
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowTable
from likewise.batch.against.references import find_references, is_finished_run
from likewise.batch.budget.room import Room
from likewise.batch.joined import JoinedRows
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.read.ingest import References
from likewise.batch.read.resume import recipe_of_run
from likewise.batch.run import bounded_run, opened_run, ordered
from likewise.batch.texts import Deduplication
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch, num_threads
from likewise.io.inputs import Inputs
from likewise.io.output.directory import EVIDENCE, SUMMARY
from likewise.io.output.evidence import COLUMNS, read_evidence, readable
from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.io.output.whole import scratch_directory
from likewise.io.source.source import InputFile, Source
from likewise.io.tables.columns import numbers_of
from likewise.job.output import Job
from likewise.job.reading import FileRun, RunContext, RunRules
from likewise.progress import Progress, no_progress
from likewise.recipe.fields import COMPANIONS
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.recipe.word_lists import WordList
from likewise.runs.viewing.view import file_run
from likewise.stages.weights import read_table

_NO_FILES = Inputs((), ())


@dataclass(frozen=True, eq=False)
class Evidence:
    """Recorded removals of a run."""

    # The columns of ``removed.parquet``
    table: Any
    # Removed documents, and the document that removed each, as rows of all documents, reference documents first
    rows: NDArray[np.int64]
    kept_rows: NDArray[np.int64]
    similarity: NDArray[np.float64]
    # Recorded distance; -1 if none
    distance: NDArray[np.int64]
    # Whether the row is marked as below the threshold (groups by components)
    below: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class OpenRun:
    """A finished run and the documents that it processed."""

    summary: dict[str, Any]
    # Resolved, with its weights
    recipe: Recipe
    # How files are read
    run: FileRun
    # Read and sketched again, reference documents first
    documents: Documents
    # Positions in order of priority
    collapsed: Collapsed
    evidence: Evidence
    # Number of threads of each call
    threads: int
    progress: Progress
    # The output directory; None for a result in memory
    path: Path | None = None
    # The files, and those of reference documents; empty for a result in memory
    inputs: Inputs = _NO_FILES
    references: Inputs = _NO_FILES
    joined: JoinedRows | None = None

    @property
    def directory(self) -> Path:
        """The output directory of a run over files."""
        assert self.path is not None
        return self.path

    @property
    def is_in_memory(self) -> bool:
        """Whether this is a result in memory, whose documents have rows but no places."""
        return self.path is None

    @property
    def num_references(self) -> int:
        """Number of reference documents, which have the first rows here and no row in the run."""
        return self.documents.num_references

    @property
    def kept(self) -> NDArray[np.bool_]:
        """Whether each document was kept; reference documents count as kept. Shape (n,)."""
        kept = np.ones(len(self.documents), bool)
        rows = self.evidence.rows
        kept[rows[(rows >= 0) & (rows < len(kept))]] = False
        return kept


@dataclass(frozen=True)
class GivenFiles:
    """Files other than inputs that a run used, which its summary identifies only by hash."""

    # Weight table or lexicon, and word lists, if any
    weights: Path | None
    stop_words: Path | None
    dictionary: Path | None

    def recipe(self, path: Path) -> Recipe:
        """Return the recipe of a run, completed with what it stored and with these files."""
        recipe = Recipe.from_file(path / SUMMARY).resolve()
        readers = {"stop_words": WordList.read_stop_words, "dictionary": WordList.read_dictionary}
        for name, read in readers.items():
            file, identity = getattr(self, name), getattr(recipe, f"{name}_id")
            if file is None and identity is not None and getattr(recipe, name) is None:
                raise InvalidParameter(name, f"the run used a word list ({identity}); give its file")
            if file is not None and identity is None:
                raise InvalidParameter(name, "the run did not use a word list; remove the option")
            if file is not None:
                recipe = recipe.replace(**{name: read(file)})
        if self.weights is not None:
            # Cut terms of a lexicon as texts are cut.
            return recipe.with_table(read_table(self.weights, recipe.fields))
        if recipe.weights == "lexicon" and recipe.table is None:
            raise InvalidParameter("weights", "the run used a lexicon; give its file")
        return recipe


@contextmanager
def open_run(
    path: Path,
    given: GivenFiles,
    *,
    inputs: Path | None,
    threads: int | None,
    memory: float | str | None,
    progress: Progress,
) -> Iterator[OpenRun]:
    """Open a finished run and read its inputs again, as a context."""
    summary = read_summary(path)
    check_kind(path, summary)
    recipe = given.recipe(path)
    run = replace(file_run(summary), threads=threads, memory_bytes=memory)
    with Job(None, run, progress) as job:
        context = job.context
        found = job.find(paths_of_inputs(path, summary, inputs), recipe, joins_rows=True)
        found = named_inputs(found, [file["path"] for file in summary["inputs"]])
        against = summary.get("against", {}).get("paths", [])
        references = _references(against, recipe, run, progress)
        recipe = _with_counted_before(recipe, against)
        every = found._replace(files=(*references.files, *found.files))
        bounded = bounded_run(job, every, recipe, writes_copies=False)
        joined = None
        if run.document_by is not None:
            room = Room() if bounded is None else bounded.room
            joined = JoinedRows(every.files, recipe, context, room, job.work, run.max_document_bytes)
        sources = every.files if joined is None else joined.sources

        try:
            opened = job.enter(
                opened_run(sources, recipe, context, work=job.work, bounded=bounded, references=references)
            )
        except RecipeMismatch as error:
            raise RecipeMismatch(
                "the run used weights that were not counted from its inputs; give their file with --weights",
                error.differences,
            ) from error
        documents, recipe = opened.documents, opened.recipe
        if joined is not None:
            documents.bad_rows[:] = joined.bad_rows
        collapsed = ordered(documents, recipe, context)
        evidence = _with_references(evidence_in(path), documents)
        if len(evidence.rows) and len(documents) == documents.num_references:
            raise InvalidInput(
                "the inputs are now empty; restore the files that this run read",
                str(found.files[0].path),
            )
        about = (documents, collapsed, evidence, opened.context.threads, progress)
        yield OpenRun(summary, recipe, run, *about, path, found, Inputs(references.files, ()), joined)


@contextmanager
def open_result(
    result: Deduplication, source: Source, recipe: GivenRecipe | None, *, threads: int | None, progress: Progress
) -> Iterator[OpenRun]:
    """Open a result in memory with its documents, as a context; raises the errors of :func:`open_run`."""
    stated = Recipe.from_dict(result.summary["recipe"]).resolve()
    known = stated
    if recipe is not None:
        known = as_recipe(recipe)
        fields = {name: value for name in COMPANIONS if (value := getattr(known, name)) is not None}
        known = stated.replace(**fields)
    rules = RunRules(num_threads(threads), "skip", "allow")
    context = RunContext(rules, progress=progress)
    with scratch_directory() as work, opened_run([source], known, context, work=work) as opened:
        documents = opened.documents
        collapsed = ordered(documents, opened.recipe, context)
        evidence = evidence_of(result.removed)
        # Convert input rows to document numbers: null rows are not documents.
        rows = [_places(documents.lines, side) for side in (evidence.rows, evidence.kept_rows)]
        evidence = dataclasses.replace(evidence, rows=rows[0], kept_rows=rows[1])
        about = (documents, collapsed, evidence, rules.threads, progress)
        yield OpenRun(result.summary, opened.recipe, FileRun(), *about)


def _places(lines: NDArray[np.uint32], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the index of each row in `lines`; -1 if it is not among them."""
    found = np.searchsorted(lines, rows)
    here = np.minimum(found, max(0, len(lines) - 1))
    is_there = (len(lines) > 0) & (rows >= 0)
    return np.where(is_there & (lines[here] == rows if len(lines) else False), here, -1)


def check_kind(path: Path, summary: dict[str, Any]) -> None:
    """Raise InvalidInput if a run of this kind cannot be audited."""
    if is_over_parts(summary):
        raise InvalidInput(
            "this run removed repeated parts (likewise repeats); use the command likewise audit, or "
            "likewise.runs.audit.audit_parts",
            str(path),
        )
    if "path" in summary.get("against", {}):
        raise InvalidInput(
            "this run was compared with an index, which has no texts to measure again; audit applies to runs against "
            "files or other runs",
            str(path),
        )


def check_references_exist(against: Sequence[str]) -> None:
    """Raise InvalidInput if reference documents of a run are missing."""
    for path in against:
        if not Path(path).exists() and not glob.has_magic(path):
            raise InvalidInput(
                "the reference documents of the run (--against) are missing; run the audit in the directory where "
                "the run was started, or restore them",
                path,
            )


def _references(against: Sequence[str], recipe: Recipe, run: FileRun, progress: Progress) -> References:
    """Return the reference documents of a run without their stored sketches, so that they are sketched again."""
    check_references_exist(against)
    found = find_references(against, recipe, run, None, no_progress)
    return References(tuple(part._replace(sketches=None) for part in found.parts))


def _with_counted_before(recipe: Recipe, against: Sequence[str]) -> Recipe:
    """Return the recipe with the weights that an earlier run counted, if the recipe names these weights."""
    for path in against:
        if recipe.table is None and recipe.weights_id is not None and is_finished_run(Path(path)):
            table = recipe_of_run(Path(path)).table
            if table is not None and recipe.replace(weights_id=None).with_table(table).recipe_id == recipe.recipe_id:
                return recipe.replace(weights_id=None).with_table(table)
    return recipe


def _with_references(evidence: Evidence, documents: Documents) -> Evidence:
    """Return evidence with rows that include reference documents, which the table identifies by place."""
    first = documents.num_references
    if not first:
        return evidence
    rows, kept_rows = (np.where(side >= 0, side + first, -1) for side in (evidence.rows, evidence.kept_rows))
    numbers: dict[str, int] = {}
    for number, source in enumerate(documents.sources[: documents.num_reference_sources]):
        numbers.setdefault(cast("InputFile", source).path.as_posix(), number)
    files, offsets = (evidence.table.column(name).to_pylist() for name in ("kept_file", "kept_offset"))
    for at in np.flatnonzero(kept_rows < 0).tolist():
        if files[at] not in numbers or offsets[at] is None:
            continue
        number = numbers[files[at]]
        low, high = int(documents.starts[number]), int(documents.starts[number + 1])
        row = low + int(np.searchsorted(documents.offsets[low:high], np.uint64(offsets[at])))
        if row < high and int(documents.offsets[row]) == offsets[at]:
            kept_rows[at] = row
    return dataclasses.replace(evidence, rows=rows, kept_rows=kept_rows)


def paths_of_inputs(path: Path, summary: dict[str, Any], inputs: Path | None) -> list[Path]:
    """Return the inputs of a run, at their recorded places or in `inputs`; raise InvalidInput if one is missing."""
    stated = summary.get("input_directory")
    directory = inputs if inputs is not None else None if stated is None else Path(stated)
    if directory is None:
        raise InvalidInput("the run read standard input or object storage, which audit cannot read again", str(path))
    if not summary["inputs"]:
        raise InvalidInput("the summary lists no inputs", str(path))
    paths = []
    for file in summary["inputs"]:
        paths.append(directory / file["path"])
        if not paths[-1].exists():
            raise InvalidInput("an input of the run is missing; give its directory with --inputs", str(paths[-1]))
    return paths


def named_inputs(found: Inputs, names: list[str]) -> Inputs:
    """Return the inputs with the names that the run gave them; a single input may be in a subdirectory."""
    files: list[InputFile] = [
        dataclasses.replace(file, name=name) for file, name in zip(found.files, names, strict=True)
    ]
    return found._replace(files=tuple(files))


def evidence_in(path: Path) -> Evidence:
    """Return the evidence of a run as arrays."""
    with readable(path / EVIDENCE):
        return evidence_of(read_evidence(path / EVIDENCE))


def evidence_of(table: ArrowTable) -> Evidence:
    """Return evidence as arrays; raise KeyError or ArrowException if it is damaged."""
    if missing := {*COLUMNS} - {*table.column_names}:
        raise KeyError(min(missing))

    below = "below_threshold" in table.column_names
    return Evidence(
        table,
        numbers_of(table.column("row"), np.int64, -1),
        numbers_of(table.column("kept_row"), np.int64, -1),
        numbers_of(table.column("similarity"), np.float64, np.nan),
        numbers_of(table.column("distance"), np.int64, -1),
        numbers_of(table.column("below_threshold"), np.uint8, 0) > 0 if below else np.zeros(table.num_rows, bool),
    )
