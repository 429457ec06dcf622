"""Deduplication of files: from input names to an output directory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, Unpack

import numpy as np

from likewise.batch.against.index import BesideIndex, IndexUse
from likewise.batch.against.references import (
    about_references,
    check_references,
    find_references,
    recipe_of_files,
    tell_direction,
)
from likewise.batch.budget.room import Room
from likewise.batch.decide.decision import Decision, VerdictLog, group_warning
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import References, weighed_files
from likewise.batch.read.resume import PARTS_VERSION, known_counts
from likewise.batch.run import bounded_run, decided, opened_run
from likewise.batch.write.evidence import evidence_of_overruled, evidence_tables, write_evidence
from likewise.batch.write.groups import (
    GroupColumns,
    GroupRows,
    counts_by,
    shrinkage_by_path,
    weight_of_count,
    with_values,
)
from likewise.batch.write.kept_rows import (
    KeptStream,
    check_annotated,
    kept_places,
    kept_rows,
    stream_files,
    write_bad_rows,
    write_descriptions,
    write_files,
)
from likewise.batch.write.summary import EngineRun, about_counted, about_inputs, summarize, summary_of
from likewise.errors import InvalidInput, InvalidParameter, check_choice
from likewise.io.inputs import Inputs
from likewise.io.output.directory import (
    ANNOTATED,
    ERRORS,
    EVIDENCE,
    GROUPS,
    KEPT,
    OVERRULED,
    PAIRS,
    UNIQUE,
)
from likewise.io.output.whole import place_named
from likewise.io.places import is_remote
from likewise.io.source.added import AddedFields
from likewise.io.source.source import InputFile, Kept
from likewise.job.output import Job
from likewise.job.reading import FileRun, OnError, RunContext
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import Shingles
from likewise.recipe.recipe import GivenRecipe, Recipe
from likewise.recipe.weights import RECIPE, write_companions
from likewise.stages.text import TextField, field_names

if TYPE_CHECKING:
    from likewise.batch.decide.decision import Decisions, StayingIds
    from likewise.batch.joined import JoinedRows
    from likewise.batch.memory import BoundedRun
    from likewise.batch.spark.files.engine import SparkEngine

# Modules that few runs need are imported on use.
WRITES = ("kept", "annotated", "evidence", "groups", "unique")
# Outputs with a file for each input, and their directories.
_COPIES = {"kept": KEPT, "annotated": ANNOTATED, "unique": UNIQUE}


@dataclass
class DedupOptions:
    """The options of :func:`dedup_files` in addition to its recipe; raises InvalidParameter for wrong combinations."""

    run: FileRun = field(default_factory=FileRun)
    write: str = "kept"
    write_prefix: str = ""
    columns: GroupColumns = field(default_factory=GroupColumns)
    decisions: "Decisions | None" = None
    index: IndexUse | None = None
    against: Sequence[str | Path] = ()
    keep_sketches: bool = False
    store_pairs: float | None = None
    engine: "SparkEngine | None" = None
    # The output for each input, whether groups are written, and the documents of the decisions
    copies: str = field(init=False)
    has_groups: bool = field(init=False)
    stays: "StayingIds | None" = field(init=False, default=None)

    def __post_init__(self) -> None:
        for option, name in (("count_by", self.columns.count_by), ("date_field", self.columns.date_field)):
            if "[]" in (name or ""):
                raise InvalidParameter(option, f"{name!r} is in a list; name a field with one value")
        fields = dict.fromkeys((*self.run.fields, self.columns.date_field, self.columns.count_by))
        self.run = replace(self.run, fields=tuple(name for name in fields if name is not None))
        if self.decisions is not None:
            from likewise.batch.decide.decision import StayingIds

            self.stays = StayingIds(self.decisions)
        if self.index is not None and not self.index.is_any:
            self.index = None
        self.copies, self.has_groups = _written(self.write)
        self._check()

    @property
    def is_written_by_engine(self) -> bool:
        """Whether the engine writes the outputs too; this machine writes groups and annotated rows."""
        return self.engine is not None and self.copies in ("kept", "evidence") and not self.has_groups

    @property
    def is_against(self) -> bool:
        """Whether documents are compared with an index or reference documents."""
        return bool(self.against) or (self.index is not None and self.index.against is not None)

    def _check(self) -> None:
        if self.write_prefix:
            AddedFields(self.write_prefix)
            if self.copies != "annotated":
                raise InvalidParameter("write_prefix", "requires --write annotated")
        for option in ("date_field", "weight"):
            if getattr(self.columns, option) is not None and not self.has_groups:
                raise InvalidParameter("count_weight" if option == "weight" else option, "requires --write groups")
        if self.columns.weight is not None:
            weight_of_count(self.columns.weight)
        if self.engine is not None:
            others = {"keep_sketches": self.keep_sketches, "store_pairs": self.store_pairs is not None}
            others |= {"date_field": self.columns.date_field is not None, "count_by": self.columns.count_by is not None}
            others |= {"decisions": self.stays is not None, "document_by": self.run.document_by is not None}
            others |= {"memory": self.run.memory_bytes is not None, "against": self.is_against}
            for name, is_given in {"index": self.index is not None and self.index.create is not None, **others}.items():
                if is_given:
                    raise InvalidParameter(name, "requires the local engine")
        if self.stays is not None and self.index is not None:
            raise InvalidParameter("decisions", "cannot be combined with an index")
        if self.keep_sketches and self.copies != "kept":
            raise InvalidParameter(
                "keep_sketches",
                f"sketches are stored for kept files, which --write {self.copies} does not write; remove one of the "
                "two",
            )

    def recipe_beside(self, recipe: Recipe) -> Recipe:
        """Return the recipe adjusted to the index; raise if it does not fit the index or reference documents."""
        if self.run.document_by is not None:
            others = {
                "id_field": self.run.id_field is not None,
                "an index": self.index is not None,
                "against": bool(self.against),
                "write annotated": self.copies == "annotated",
                "keep_sketches": self.keep_sketches,
            }
            from likewise.batch.joined import check_joined

            check_joined(recipe, others)
        if self.against:
            check_references(recipe)
        if self.keep_sketches and isinstance(recipe.sketch, Shingles):
            raise InvalidParameter(
                "keep_sketches", "method shingles has no sketches; it counts the shingles of all documents in each run"
            )
        if self.against and self.index is not None:
            raise InvalidParameter("against", "reference documents cannot be combined with an index, existing or new")
        if self.index is not None:
            # Verdicts are the same as those of the index.
            recipe = recipe.for_index()
        if self.store_pairs is not None:
            from likewise.batch.pair_files import check_floor

            check_floor(self.store_pairs, recipe, is_against=self.is_against)
        return recipe

    def open_index(self, recipe: Recipe, job: Job) -> BesideIndex | None:
        """Return the index that the run uses until the job exits, or None."""
        return None if self.index is None else job.enter(BesideIndex(self.index, recipe, job.context.rules))

    def identity(self, recipe: Recipe, reading: "_Reading", job: Job) -> dict[str, Any]:
        """Return everything else that must be the same for a run to be continued."""
        return {
            "recipe_id": recipe.recipe_id,
            "recipe": recipe.to_dict(),
            "inputs": job.stamp(reading.found),
            "write": self.copies,
            **({"groups": self.columns._asdict()} if self.has_groups else {}),
            "parts": PARTS_VERSION,
            **reading.found.provenance(),
            **({"against": job.stamp(Inputs(reading.references.files, ()))} if self.against else {}),
            **({"keep_sketches": True} if self.keep_sketches else {}),
            **({} if self.store_pairs is None else {"store_pairs": self.store_pairs}),
            **({} if self.stays is None else {"decisions": self.stays.digest()}),
            **({} if self.index is None or self.index.against is None else {"against": str(self.index.against)}),
        }


def _written(write: object) -> tuple[str, bool]:
    """Return the output for each input, and whether groups are written."""
    names = [name.strip() for name in write.split(",")] if isinstance(write, str) else [write]
    for name in names:
        check_choice("write", name, WRITES)
    copies = [str(name) for name in names if name != "groups"]
    if len(copies) > 1 or len(set(names)) < len(names):
        raise InvalidParameter("write", f"{write!r} names two outputs; only groups can be combined with another one")
    return (copies[0] if copies else "groups"), "groups" in names


class _Reading:
    """The inputs and references of a run, as found at its start."""

    def __init__(self, found: Inputs, references: References) -> None:
        self.found, self.references = found, references
        # All files, references first
        self.all = found._replace(files=(*references.files, *found.files)) if references.parts else found


def _references(asked: DedupOptions, recipe: Recipe, job: Job) -> References:
    """Return the reference documents of a run, as found at its start."""
    if not asked.against:
        return References()
    return find_references(asked.against, recipe, asked.run, job.target, job.context.progress)


class _Decided(NamedTuple):
    """A run whose verdicts are decided."""

    documents: Documents
    recipe: Recipe
    context: RunContext
    decision: Decision
    kept_ids: Sequence[str]
    facts: dict[str, object]
    joined: "JoinedRows | None" = None

    def store_pairs(self, floor: float, work: Path) -> dict[str, object]:
        """Write the pairs from a similarity on; return the summary fields about them."""
        from likewise.batch.pair_files import write_near_pairs

        return write_near_pairs(self.documents, self.recipe, floor, work / PAIRS, self.context)

    def write(self, asked: DedupOptions, reading: _Reading, job: Job) -> None:
        """Write bad rows, evidence, and the requested outputs."""
        documents, recipe, decision = self.documents, self.recipe, self.decision
        if not asked.keep_sketches:
            # The output needs their disk space.
            documents.free_sketches()
        with job.writing() as work:
            write_bad_rows(documents, work / ERRORS)
            write_companions(recipe, work / RECIPE)
            tables = evidence_tables(documents, recipe, decision, self.kept_ids)
            if asked.columns.count_by is not None:
                tables = with_values(tables, documents, decision, asked.columns.count_by)
            if self.joined is not None:
                tables = self.joined.with_counts(tables, decision)
            write_evidence(tables, work / EVIDENCE)
            if asked.stays is not None:
                write_evidence([evidence_of_overruled(documents, recipe, decision)], work / OVERRULED)
            if asked.copies in _COPIES:
                self._write_copies(asked, reading, work / _COPIES[asked.copies])
            if asked.has_groups:
                from likewise.batch.against.references import earlier_groups

                columns = asked.columns
                earlier = earlier_groups(
                    reading.references, documents, columns.date_field, columns.count_by, self.context.progress
                )
                rows = GroupRows(documents, decision, self.kept_ids, columns, earlier)
                write_evidence(rows.tables(), work / GROUPS)
            if asked.keep_sketches:
                from likewise.batch.write.kept_rows import write_kept_sketches

                write_kept_sketches(documents, decision, reading.found.files, recipe, work)

    def _write_copies(self, asked: DedupOptions, reading: _Reading, target: Path) -> None:
        documents, on_error = self.documents, asked.run.on_error
        written, groups = self.decision.kept, None
        if asked.copies != "kept":
            from likewise.batch.write.annotations import DocumentGroups

            may_share_ids = asked.run.duplicate_ids == "allow"
            groups = DocumentGroups(documents, self.decision, self.kept_ids, may_share_ids=may_share_ids)
            written = groups.unique() if asked.copies == "unique" else np.broadcast_to(np.True_, len(documents))
        if self.joined is not None:
            documents, written = self.joined.rows(documents, written)
        first = self.documents.num_reference_sources

        def kept_of(number: int, _: InputFile) -> Kept:
            added = None
            if groups is not None and asked.copies == "annotated":
                added = partial(groups.added, first + number, prefix=asked.write_prefix)
            return kept_rows(documents, written, first + number, on_error, self.context.threads, added)

        write_files(reading.found, target, kept_of, self.recipe.recipe_id)

    def summary(self, asked: DedupOptions, reading: _Reading) -> dict[str, Any]:
        documents, decision = self.documents, self.decision
        summary = summarize(documents, self.recipe, decision, self.context.timing)
        summary |= about_inputs(reading.found, documents, decision, asked.run, asked.copies)
        if asked.columns.count_by is not None:
            summary |= counts_by(documents, decision, asked.columns.count_by)
        elif len(reading.found.files) > 1:
            summary |= shrinkage_by_path(documents, decision)
        if asked.stays is not None:
            summary |= asked.stays.summary(documents, decision.overruled)
        if self.joined is not None:
            summary |= self.joined.summary(decision.kept)
        if asked.against:
            summary |= about_references(asked.against, documents, decision)
        return summary | self.facts


def _written_by_engine(
    asked: DedupOptions, recipe: Recipe, reading: _Reading, job: Job, engine: "SparkEngine"
) -> dict[str, Any]:
    """Let the engine decide and write; return the summary."""
    found, work = reading.found, job.work
    recipe = known_counts(job.parts, recipe) or weighed_files(found.files, recipe, job.context, job.parts)
    done = engine.written(found.files, recipe, job.context, work=work, writes_kept=asked.copies == "kept")
    write_companions(recipe, work / RECIPE)
    if asked.copies == "kept":
        write_descriptions(found, work / KEPT, done.num_written, recipe.recipe_id)
    job.check_own()
    summary = summary_of(done.counts, recipe, job.context.timing)
    return job.finish(summary | about_counted(found, done.inputs, asked.run, asked.copies))


def _stored_by_engine(
    asked: DedupOptions,
    recipe: Recipe,
    inputs: Sequence[str | Path] | str | Path,
    url: str,
    report: Progress,
    engine: "SparkEngine",
    *,
    overwrite: bool,
) -> dict[str, Any]:
    """Let the engine decide and write below a URL; return the summary."""
    with Job(None, asked.run, report) as job:
        found = job.find(inputs, recipe)
        engine.check(recipe)
        job.stamp(found)
        weighed = weighed_files(found.files, recipe, job.context)

        def summarize(done: EngineRun) -> dict[str, Any]:
            job.check_unchanged()
            summary = summary_of(done.counts, weighed, job.context.timing)
            return summary | about_counted(found, done.inputs, asked.run, asked.copies)

        return engine.stored(
            found.files,
            weighed,
            job.context,
            url=url,
            writes_kept=asked.copies == "kept",
            overwrite=overwrite,
            summarize=summarize,
        )


@contextmanager
def _decided(
    asked: DedupOptions,
    recipe: Recipe,
    reading: _Reading,
    job: Job,
    bounded: "BoundedRun | None",
    beside: BesideIndex | None,
) -> Iterator[_Decided]:
    """Decide on this machine or by the engine; the documents exist until the context exits."""
    context, work, progress = job.context, job.work, job.context.progress
    if asked.engine is not None:
        recipe = known_counts(job.parts, recipe) or weighed_files(reading.all.files, recipe, context, job.parts)
        with asked.engine.decided(reading.found.files, recipe, context, work=work) as (documents, decision):
            group_warning(documents, decision, progress)
            yield _Decided(documents, recipe, context, decision, (), {})
        return
    joined = None
    if asked.run.document_by is not None:
        from likewise.batch.joined import JoinedRows

        room = Room() if bounded is None else bounded.room
        joined = JoinedRows(reading.all.files, recipe, context, room, work, asked.run.max_document_bytes)
    with opened_run(
        reading.all.files if joined is None else joined.sources,
        recipe,
        context,
        work=work,
        bounded=bounded,
        parts=job.parts,
        references=reading.references,
    ) as opened:
        facts, log = opened.facts, None if opened.parts is None else VerdictLog(opened.parts)
        documents = opened.documents
        if joined is not None:
            documents.bad_rows[:] = joined.bad_rows
        if asked.stays is not None:
            # The log does not contain matches of the documents to keep.
            documents, log = asked.stays.mark(documents, opened.recipe, progress), None
            # The marked documents hold them, and free them before the output is written.
            opened.documents.free_sketches()
        kept_ids: Sequence[str] = ()
        if beside is None:
            decision = decided(documents, opened.recipe, opened.context, log)
        else:
            decision, kept_ids = beside.decided(documents, opened.recipe, opened.context, log)
        group_warning(documents, decision, progress)
        if opened.parts is not None:
            facts |= opened.parts.summary(0 if log is None else log.num_found)
        yield _Decided(documents, opened.recipe, opened.context, decision, kept_ids, facts, joined)


@shows_progress
def dedup_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    text_field: TextField | None = None,
    id_field: str | None = None,
    document_by: str | None = None,
    on_error: OnError | None = None,
    memory: float | str | None = None,
    write: str = "kept",
    write_prefix: str = "",
    date_field: str | None = None,
    count_by: str | None = None,
    count_weight: str | None = None,
    decisions: "Decisions | None" = None,
    overwrite: bool = False,
    fresh: bool = False,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    keep_sketches: bool = False,
    store_pairs: float | None = None,
    engine: "SparkEngine | None" = None,
    progress: Progress | bool | None = None,
    **fields: Unpack[RecipeFields],
) -> dict[str, Any]:
    """Remove near-duplicates from files and record why each was removed.

    Parameters
    ----------
    inputs : path or sequence of paths
        Files, directories, globs, or ``-``.
    output : path
        Directory for ``kept/`` (one file per input file), ``removed.parquet`` (the evidence) and ``summary.json``.
    recipe : Recipe or str, optional
        Determines when two documents match; or the name of a preset. If None, the recipe of the index or of the first
        finished run in `against`; otherwise the preset ``default``, or ``online`` with an engine.
    run : FileRun, optional
        How files are read.
    text_field : str or sequence of str, optional
        Field that contains the text, with dots for nested fields; several fields are joined with a newline. This and
        the next four are the most used fields of `run`, and replace those in it.
    id_field : str, optional
        Field that contains the id. If None, ``id`` if a row has it, otherwise ``file:line``.
    document_by : str, optional
        Field whose value names a document: rows with the same value are joined with newlines, in input order, and kept
        or removed as a whole. Cannot be combined with an id field, an index, `against` or sketches.
    on_error : {"fail", "skip", "keep"}, optional
        What to do with rows that have no text or cannot be read.
    memory : int, float or str, optional
        Memory limit, as bytes or as ``"4GB"``.
    write : {"kept", "annotated", "evidence", "groups", "unique"}
        What to write in addition to the evidence. ``kept``: the kept documents, in ``kept/``. ``annotated``: all rows
        with the fields is_kept, group, duplicate_of, similarity and group_size, in ``annotated/``. ``unique``: kept
        documents without duplicates, in ``unique/``. ``groups``: one row for each group, in ``groups.parquet``.
        ``evidence``: nothing else. ``groups`` can be combined with another one: ``"kept,groups"``.
    write_prefix : str
        Prefix for the names of the fields that ``annotated`` adds.
    date_field : str, optional
        Field with numbers or ISO 8601 dates. With ``groups``, adds the columns first_seen and last_seen, over all runs
        in `against` that wrote groups.
    count_by : str, optional
        Field whose values are counted in the summary: documents and removed documents of each value, and the pairs of
        values of removed and kept documents. The evidence has both values as ``value`` and ``kept_value``. With
        ``groups``, adds the columns new_values (of this run) and values (of all runs).
    count_weight : {"log", "sqrt", "inverse", "cap:N"}, optional
        With ``groups``, adds the column weight, a function of the number n of copies in all runs: 1 + ln n, the square
        root, 1 / n, or n up to N.
    decisions : path or mapping of str to str, optional
        Documents to keep whatever they match: a CSV file of doc_id and decision (``keep``), such as the page of a run
        exports, or a mapping of ids. ``overruled.parquet`` then names the kept document that each of them matches best.
        Cannot be combined with an index.
    overwrite : bool
        Replace a finished run.
    fresh : bool
        Discard an unfinished run instead of resuming or rejecting it.
    index : IndexUse, optional
        An index to create or to compare with.
    against : sequence of path
        Reference documents: output directories of finished runs (only their kept documents count) or files. They are
        always kept, rank before all other documents, and are neither compared with each other nor written.
    keep_sketches : bool
        Store the sketches of kept documents in ``sketches/``, for later runs against this one.
    store_pairs : float, optional
        Write ``pairs.parquet``: all verified pairs with at least this similarity. Verdicts do not change.
    engine : SparkEngine, optional
        Engine that runs the computation elsewhere, such as ``likewise.spark.SparkEngine``. Cannot be combined with an
        index, `against`, sketches or pairs.
    progress : bool or callable, optional
        True shows bars in a terminal or a notebook. A function is called with the events of :mod:`likewise.progress`.
    **fields
        Fields of a recipe instead of one (:func:`likewise.dedup`).

    Returns
    -------
    dict
        The summary, as written.

    Raises
    ------
    InvalidInput
        If a row is bad, an id occurs twice, or the output directory cannot be used.
    RecipeMismatch
        If the output contains an unfinished run with other settings or inputs, or the index has another recipe.

    Notes
    -----
    Outputs are renamed into place only when the run succeeds. To resume a run that was killed, repeat the same call:
    finished parts are not sketched again, and the result is that of an uninterrupted run.

    Examples
    --------
    >>> summary = dedup_files("articles.jsonl", "out", Recipe.minhash(0.8))  # doctest: +SKIP
    """
    recipe = recipe_of_files(recipe, fields, index=index, against=against, engine=engine).resolve()
    given: dict[str, Any] = {
        "text_fields": None if text_field is None else field_names(text_field), "id_field": id_field,
        "document_by": document_by, "on_error": on_error, "memory_bytes": memory,
    }  # fmt: skip
    options = DedupOptions(
        replace(run or FileRun(), **{name: value for name, value in given.items() if value is not None}),
        write,
        write_prefix,
        GroupColumns(date_field, count_by, count_weight),
        decisions,
        index,
        against,
        keep_sketches,
        store_pairs,
        engine,
    )
    return deduplicate(inputs, output, recipe, options, overwrite=overwrite, fresh=fresh, report=taken(progress))


def deduplicate(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: Recipe,
    asked: DedupOptions,
    *,
    overwrite: bool = False,
    fresh: bool = False,
    report: Progress,
) -> dict[str, Any]:
    """Remove near-duplicates from files, as :func:`dedup_files` does, by a resolved recipe."""
    engine = asked.engine
    if engine is not None and is_remote(output) and asked.is_written_by_engine and not engine.is_on_this_machine:
        return _stored_by_engine(asked, recipe, inputs, str(output), report, engine, overwrite=overwrite)
    with Job(output, asked.run, report, inputs=inputs, overwrite=overwrite, fresh=fresh) as job:
        recipe = asked.recipe_beside(recipe)
        beside = asked.open_index(recipe, job)
        found = job.find(inputs, recipe, joins_rows=True)
        if asked.run.document_by is not None and (whole := [file for file in found.files if file.is_document]):
            raise InvalidInput("a text file has no fields and is one document; remove --document-by", whole[0].name)
        if asked.is_against:
            tell_direction(recipe, report)
        reading = _Reading(found, _references(asked, recipe, job))
        if asked.copies == "annotated":
            check_annotated(found.files, AddedFields(asked.write_prefix))
        identity = asked.identity(recipe, reading, job)
        # Everything that may reject the command must precede claiming the directory, which deletes unfinished files.
        bounded = None
        if engine is not None:
            engine.check(recipe)
        else:
            bounded = bounded_run(
                job,
                reading.all,
                recipe,
                writes_copies=asked.copies in _COPIES,
                keeps_sketches=asked.keep_sketches,
                beside=asked.index,
            )
        job.claim(**identity)
        if engine is not None and asked.is_written_by_engine:
            return _written_by_engine(asked, recipe, reading, job, engine)
        done = job.enter(_decided(asked, recipe, reading, job, bounded, beside))
        stored = {} if asked.store_pairs is None else done.store_pairs(asked.store_pairs, job.work)
        done.write(asked, reading, job)
        summary = done.summary(asked, reading)
        if beside is None:
            return job.finish(summary | stored)
        job.check_unchanged()
        summary |= beside.summary() | stored
        beside.prepare(done.documents, done.recipe, done.decision)
        job.write_summary(summary)
        beside.add_kept(done.documents, done.decision)
        job.publish()
        beside.finish()
    return summary


def stream_dedup(
    inputs: Sequence[str | Path] | str | Path,
    out: BinaryIO,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Deduplicate JSON Lines or CSV files and write the kept lines to a stream."""
    recipe = recipe_of_files(recipe, {}, index=index, against=against).resolve()
    asked = DedupOptions(run or FileRun(), index=index, against=against)
    recipe = asked.recipe_beside(recipe)
    with Job(None, asked.run, taken(progress)) as job:
        options, report = job.options, job.context.progress
        beside = asked.open_index(recipe, job)
        found = job.find(inputs, recipe)
        lines = stream_files(found.files)
        if asked.is_against:
            tell_direction(recipe, report)
        reading = _Reading(found, _references(asked, recipe, job))
        job.watch(reading.references.files)
        bounded = bounded_run(job, reading.all, recipe, writes_copies=False, beside=asked.index)
        done = job.enter(_decided(asked, recipe, reading, job, bounded, beside))
        documents, recipe, decision = done.documents, done.recipe, done.decision
        if beside is not None:
            beside.prepare(documents, recipe, decision)
        job.check_unchanged()
        # Written lines are read again.
        job.watch(found.files)
        with job.context.timing.wall("writing"):
            stream = KeptStream(out)
            stream.check_headers(found.files)
            with place_named("standard output"):
                for number, file in enumerate(lines, len(reading.references.files)):
                    stream.write(file, *kept_places(documents, decision.kept, number, options.on_error))
                out.flush()
        summary = summarize(documents, recipe, decision, job.context.timing)
        if beside is not None:
            beside.add_kept(documents, decision)
            beside.finish()
            summary |= beside.summary()
        summary |= done.facts
        if against:
            summary |= about_references(against, documents, decision)
        summary |= shrinkage_by_path(documents, decision)
        return summary | about_inputs(found, documents, decision, options, "kept")
