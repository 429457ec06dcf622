"""Deduplication of files: from input names to an output directory."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Unpack

import numpy as np

from likewise._native import __version__
from likewise.batch.about_inputs import about_counted, about_inputs, told_if_left
from likewise.batch.against.index import BesideIndex, IndexUse, recipe_beside
from likewise.batch.against.references import (
    about_references,
    check_alone,
    check_references,
    find_references,
    tell_direction,
)
from likewise.batch.budget.timing import Timing
from likewise.batch.decide.decision import Decision
from likewise.batch.decide.group_warning import group_warning
from likewise.batch.decide.verdict_log import VerdictLog
from likewise.batch.engine import Engine, EngineRun, check_engine
from likewise.batch.memory import BoundedRun
from likewise.batch.opening import bounded_run, found_inputs, opened_run, recipe_of_files
from likewise.batch.options import FileRun
from likewise.batch.read.documents import Documents
from likewise.batch.read.references import References
from likewise.batch.read.resume import PARTS_VERSION
from likewise.batch.read.weighing import weighed_files
from likewise.batch.run import RunContext, evidence_of_overruled, evidence_tables
from likewise.batch.write.groups import GroupColumns, weight_of_count, write_groups
from likewise.batch.write.kept_rows import kept_places, kept_texts, write_bad_rows
from likewise.batch.write.summary import store_recipe, summarize, summary_of, write_summary
from likewise.checks import check_choice
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs
from likewise.io.kept import KeptStream, check_annotated, stream_files, write_descriptions, write_kept
from likewise.io.output.directory import (
    ANNOTATED,
    ERRORS,
    EVIDENCE,
    GROUPS,
    KEPT,
    OVERRULED,
    PAIRS,
    UNIQUE,
    OutputDirectory,
    check_free,
)
from likewise.io.output.evidence import write_evidence
from likewise.io.output.scratch import scratch_directory
from likewise.io.refusals import place_named
from likewise.io.remote import is_remote, local_path
from likewise.io.source.added import AddedFields
from likewise.io.source.files import Kept
from likewise.io.stamps import Watch, check_unchanged, stamps
from likewise.progress import Progress, StageFinished, StageStarted, Warned, shows_progress, taken
from likewise.recipe.given import GivenRecipe, RecipeFields
from likewise.recipe.recipe import Recipe

if TYPE_CHECKING:
    from likewise.batch.decide.stays import Decisions, StayingIds

# Modules that few runs need are imported on use.
WRITES = ("kept", "annotated", "evidence", "groups", "unique")
# Outputs with a file for each input, and their directories.
_COPIES = {"kept": KEPT, "annotated": ANNOTATED, "unique": UNIQUE}


@dataclass(frozen=True)
class _Asked:
    """The options of a run in addition to its recipe, as for :func:`dedup_files`."""

    run: FileRun
    write: str
    has_groups: bool
    write_prefix: str
    columns: GroupColumns
    keep_sketches: bool
    store_pairs: float | None
    index: IndexUse | None
    against: tuple[str | Path, ...]
    engine: Engine | None
    stays: "StayingIds | None"

    @property
    def count_by(self) -> str | None:
        """Field whose values are counted."""
        return self.columns.count_by

    @property
    def is_written_by_engine(self) -> bool:
        """Whether the engine writes the outputs too; this machine writes groups and annotated rows."""
        return self.engine is not None and self.write in ("kept", "evidence") and not self.has_groups

    @property
    def is_against(self) -> bool:
        """Whether documents are compared with an index or reference documents."""
        return bool(self.against) or (self.index is not None and self.index.against is not None)

    def check(self) -> None:
        """Raise InvalidParameter if options cannot be combined."""
        AddedFields(self.write_prefix)
        if self.write_prefix and self.write != "annotated":
            raise InvalidParameter("write_prefix", "requires --write annotated")
        for option in ("date_field", "weight"):
            if getattr(self.columns, option) is not None and not self.has_groups:
                raise InvalidParameter("count_weight" if option == "weight" else option, "requires --write groups")
        weight_of_count(self.columns.weight)
        if self.engine is not None:
            others = {"keep_sketches": self.keep_sketches, "store_pairs": self.store_pairs is not None}
            others |= {"date_field": self.columns.date_field is not None, "count_by": self.count_by is not None}
            others |= {"decisions": self.stays is not None}
            check_engine(self.index, self.against, others | {"memory": self.run.memory_bytes is not None})
        if self.stays is not None and self.index not in (None, IndexUse()):
            raise InvalidParameter("decisions", "cannot be combined with an index")
        if self.keep_sketches and self.write != "kept":
            raise InvalidParameter(
                "keep_sketches",
                f"sketches are stored for kept files, which --write {self.write} does not write; remove one of the two",
            )

    def recipe_beside(self, recipe: Recipe) -> Recipe:
        """Return the recipe adjusted to the index; raise if it does not fit the index or reference documents."""
        check_references(self.against, recipe, keep_sketches=self.keep_sketches)
        check_alone(self.against, self.index)
        recipe = recipe_beside(recipe, self.index)
        if self.store_pairs is not None:
            from likewise.batch.stored_pairs import check_floor

            check_floor(self.store_pairs, recipe, is_against=self.is_against)
        return recipe

    def identity(self, recipe: Recipe, reading: "_Reading") -> dict[str, Any]:
        """Return everything that must be the same for a run to be continued."""
        return {
            "recipe_id": recipe.recipe_id,
            "recipe": recipe.to_dict(),
            "inputs": reading.stamps,
            "write": self.write,
            **({"groups": asdict(self.columns)} if self.has_groups else {}),
            "version": __version__,
            "parts": PARTS_VERSION,
            **self.run.identity(),
            **reading.found.provenance(),
            **({"against": reading.reference_stamps} if self.against else {}),
            **({"keep_sketches": True} if self.keep_sketches else {}),
            **({} if self.store_pairs is None else {"store_pairs": self.store_pairs}),
            **({} if self.stays is None else {"decisions": self.stays.digest()}),
        }

    def bounded(self, recipe: Recipe, reading: "_Reading", context: RunContext, work: Path) -> BoundedRun | None:
        """Return the memory limits of the run, None with an engine; raise if the run is not possible."""
        if self.engine is not None:
            self.engine.check(recipe)
            return None
        return bounded_run(
            reading.all,
            recipe,
            self.run,
            context.rules,
            work,
            context.progress,
            writes_copies=self.write in _COPIES,
            keeps_sketches=self.keep_sketches,
            beside=self.index,
        )


def check_outputs(recipe: Recipe, run: FileRun, write: str, **options: Any) -> None:
    """Raise the errors of :func:`dedup_files` about options that cannot be combined."""
    _asked(run, write, **options).recipe_beside(recipe)


def _asked(
    run: FileRun,
    write: str,
    *,
    write_prefix: str,
    columns: GroupColumns,
    decisions: "Decisions | None",
    index: IndexUse | None,
    against: Sequence[str | Path],
    keep_sketches: bool,
    store_pairs: float | None,
    engine: Engine | None,
) -> _Asked:
    """Return the checked options of a run."""
    fields = dict.fromkeys((*run.fields, columns.date_field, columns.count_by))
    run = replace(run, fields=tuple(name for name in fields if name is not None))
    stays = None
    if decisions is not None:
        from likewise.batch.decide.stays import StayingIds

        stays = StayingIds(decisions)
    copies, has_groups = _written(write)
    asked = _Asked(
        run,
        copies,
        has_groups,
        write_prefix,
        columns,
        keep_sketches,
        store_pairs,
        index,
        tuple(against),
        engine,
        stays,
    )
    asked.check()
    return asked


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
        self.found = found
        self.references = references
        self.all = replace(found, files=(*references.files, *found.files))
        self.stamps = stamps(found)
        self.reference_stamps = stamps(Inputs(references.files, ()))

    def check_unchanged(self) -> None:
        """Raise InvalidInput if a file has changed since it was read."""
        check_unchanged(self.found, self.stamps)
        check_unchanged(Inputs(self.references.files, ()), self.reference_stamps)


@dataclass(frozen=True, eq=False)
class _Decided:
    """A run whose verdicts are decided."""

    documents: Documents
    recipe: Recipe
    context: RunContext
    decision: Decision
    kept_ids: Sequence[str]
    facts: dict[str, object]

    def store_pairs(self, floor: float | None, work: Path) -> dict[str, object]:
        """Write the requested pairs; return the summary fields about them."""
        if floor is None:
            return {}
        from likewise.batch.stored_pairs import write_near_pairs

        rules, timing, progress = self.context.rules, self.context.timing, self.context.progress
        return write_near_pairs(self.documents, self.recipe, floor, work / PAIRS, rules, timing, progress)

    def write(self, asked: _Asked, reading: _Reading, work: Path) -> None:
        """Write bad rows, evidence, and the requested outputs."""
        documents, recipe, decision = self.documents, self.recipe, self.decision
        if not asked.keep_sketches:
            # The output needs their disk space.
            documents.free_sketches()
        self.context.progress(StageStarted("writing", 0, "bytes"))
        began = Timing.now()
        with self.context.timing.wall("writing"):
            write_bad_rows(documents, work / ERRORS)
            store_recipe(recipe, reading.found, work, whole=asked.keep_sketches)
            tables = evidence_tables(documents, recipe, decision, self.kept_ids)
            if asked.count_by is not None:
                from likewise.batch.write.counts import with_values

                tables = with_values(tables, documents, decision, asked.count_by)
            write_evidence(tables, work / EVIDENCE)
            if asked.stays is not None:
                write_evidence([evidence_of_overruled(documents, recipe, decision)], work / OVERRULED)
            if asked.write in _COPIES:
                self._write_copies(asked, reading, work / _COPIES[asked.write])
            if asked.has_groups:
                from likewise.batch.against.earlier import earlier_groups

                columns = asked.columns
                earlier = earlier_groups(
                    reading.references, documents, columns.date_field, columns.count_by, self.context.progress
                )
                write_groups(documents, decision, self.kept_ids, columns, earlier, work / GROUPS)
            if asked.keep_sketches:
                from likewise.batch.write.sketches import write_kept_sketches

                write_kept_sketches(documents, decision, reading.found.files, recipe, work)
        self.context.progress(StageFinished("writing", Timing.now() - began))

    def _write_copies(self, asked: _Asked, reading: _Reading, target: Path) -> None:
        documents, found, on_error = self.documents, reading.found, asked.run.on_error
        written, added = self.decision.kept, None
        groups = None
        if asked.write != "kept":
            from likewise.batch.write.annotations import DocumentGroups

            may_share_ids = asked.run.duplicate_ids == "allow"
            groups = DocumentGroups(documents, self.decision, self.kept_ids, may_share_ids=may_share_ids)
            written = groups.unique() if asked.write == "unique" else np.broadcast_to(np.True_, len(documents))
        num_written: list[int] = []
        # Removed text files are not copied, so the directory may stay empty.
        target.mkdir()
        for number, file in enumerate(found.files, len(reading.references.files)):
            offsets, lengths = kept_places(documents, written, number, on_error)
            texts = kept_texts(documents, written, number, on_error)
            if groups is not None and asked.write == "annotated":
                added = groups.added(number, offsets, asked.write_prefix)
            write_kept(file, target / file.name, Kept(offsets, lengths, self.context.threads, texts, added))
            num_written.append(len(offsets))
        write_descriptions(found, target, num_written, self.recipe.recipe_id, added)

    def summary(self, asked: _Asked, reading: _Reading) -> dict[str, Any]:
        """Return the summary of the run."""
        documents, decision = self.documents, self.decision
        summary = summarize(documents, self.recipe, decision, self.context.timing)
        summary |= about_inputs(reading.found, documents, decision, asked.run, asked.write)
        if asked.count_by is not None:
            from likewise.batch.write.counts import counts_by

            summary["counts_by"] = counts_by(documents, decision, asked.count_by)
        if asked.stays is not None:
            summary |= asked.stays.summary(documents, decision.overruled)
        return summary | about_references(asked.against, documents, decision) | self.facts


def _written_by_engine(
    asked: _Asked,
    recipe: Recipe,
    reading: _Reading,
    context: RunContext,
    directory: OutputDirectory,
) -> dict[str, Any]:
    """Let the engine decide and write; return the summary."""
    assert asked.engine is not None
    found, work = reading.found, directory.work
    recipe = weighed_files(found.files, recipe, context.threads, context.timing, context.progress, directory.parts)
    done = asked.engine.written(found.files, recipe, context, work=work, writes_kept=asked.write == "kept")
    store_recipe(recipe, found, work)
    if asked.write == "kept":
        write_descriptions(found, work / KEPT, done.num_written, recipe.recipe_id)
    summary = summary_of(done.counts, recipe, context.timing)
    return summary | about_counted(found, done.inputs, asked.run, asked.write)


def _stored_by_engine(
    asked: _Asked,
    recipe: Recipe,
    inputs: Sequence[str | Path] | str | Path,
    url: str,
    report: Progress,
    *,
    overwrite: bool,
) -> dict[str, Any]:
    """Let the engine decide and write below a URL; return the summary."""
    engine = asked.engine
    assert engine is not None
    context = RunContext(asked.run.run_rules(), Timing(), report)
    with found_inputs(inputs, recipe, asked.run, None, report) as found, scratch_directory() as work:
        engine.check(recipe)
        before = stamps(found)
        weighed = weighed_files(found.files, recipe, context.threads, context.timing, report, work)

        def summarize(done: EngineRun) -> dict[str, Any]:
            check_unchanged(found, before)
            summary = summary_of(done.counts, weighed, context.timing)
            return summary | about_counted(found, done.inputs, asked.run, asked.write)

        return engine.stored(
            found.files,
            weighed,
            context,
            url=url,
            writes_kept=asked.write == "kept",
            overwrite=overwrite,
            summarize=summarize,
        )


@contextmanager
def _decided(
    asked: _Asked,
    recipe: Recipe,
    reading: _Reading,
    context: RunContext,
    directory: OutputDirectory,
    bounded: BoundedRun | None,
    beside: BesideIndex,
) -> Iterator[_Decided]:
    """Decide on this machine or by the engine; the documents exist until the context exits."""
    work, timing, progress = directory.work, context.timing, context.progress
    if asked.engine is not None:
        recipe = weighed_files(reading.all.files, recipe, context.threads, timing, progress, directory.parts)
        decided = asked.engine.decided(reading.found.files, recipe, context, work=work)
        with decided as (documents, decision):
            _tell_of_group(documents, decision, progress)
            yield _Decided(documents, recipe, context, decision, (), {})
        return
    with opened_run(
        reading.all.files,
        recipe,
        context,
        work=work,
        bounded=bounded,
        parts=directory.parts,
        references=reading.references,
    ) as opened:
        facts, log = opened.facts, None if opened.parts is None else VerdictLog(opened.parts.directory)
        documents = opened.documents
        if asked.stays is not None:
            # The log does not contain matches of the documents to keep.
            documents, log = asked.stays.mark(documents, opened.recipe, progress), None
            # The marked documents hold them, and free them before the output is written.
            opened.documents.free_sketches()
        decision, kept_ids = beside.decided(documents, opened.recipe, timing, progress, log)
        _tell_of_group(documents, decision, progress)
        if opened.parts is not None:
            facts |= opened.parts.summary(0 if log is None else log.num_found)
        yield _Decided(documents, opened.recipe, opened.context, decision, kept_ids, facts)


def _tell_of_group(documents: Documents, decision: Decision, progress: Progress) -> None:
    if (warning := group_warning(documents, decision)) is not None:
        progress(Warned(warning))


@shows_progress
def dedup_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
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
    engine: Engine | None = None,
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
    engine : Engine, optional
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
    run, report = run or FileRun(), taken(progress)
    asked = _asked(
        run,
        write,
        write_prefix=write_prefix,
        columns=GroupColumns(date_field, count_by, count_weight),
        decisions=decisions,
        index=index,
        against=against,
        keep_sketches=keep_sketches,
        store_pairs=store_pairs,
        engine=engine,
    )
    run, copies = asked.run, asked.write
    if is_remote(output) and asked.is_written_by_engine and engine is not None and not engine.is_on_this_machine:
        return _stored_by_engine(asked, recipe, inputs, str(output), report, overwrite=overwrite)
    if is_remote(output):
        from likewise.batch.write.remote import run_to_store

        return run_to_store(
            str(output),
            inputs,
            lambda local: dedup_files(
                inputs,
                local,
                recipe,
                run=run,
                write=write,
                write_prefix=write_prefix,
                date_field=date_field,
                count_by=count_by,
                count_weight=count_weight,
                decisions=decisions,
                index=index,
                against=against,
                keep_sketches=keep_sketches,
                store_pairs=store_pairs,
                engine=engine,
                progress=progress,
            ),
            overwrite=overwrite,
        )
    target = Path(local_path(output))
    context = RunContext(run.run_rules(), Timing(), report)
    check_free(target, overwrite=overwrite)
    recipe = asked.recipe_beside(recipe)
    with (
        BesideIndex(index, recipe, context.rules) as beside,
        found_inputs(inputs, recipe, run, target, report) as found,
    ):
        if asked.is_against:
            tell_direction(recipe, report)
        references = find_references(against, recipe, run, target, report)
        reading = _Reading(found, references)
        if copies == "annotated":
            check_annotated(found.files, AddedFields(write_prefix))
        identity = asked.identity(recipe, reading) | beside.identity()
        unfinished = OutputDirectory(target, identity, overwrite=overwrite, fresh=fresh)
        # Everything that may reject the command must precede entering the directory, which deletes unfinished files.
        bounded = asked.bounded(recipe, reading, context, unfinished.work)
        if asked.is_written_by_engine:
            with told_if_left(unfinished, report) as directory:
                summary = _written_by_engine(asked, recipe, reading, context, directory)
                directory.check_own()
                reading.check_unchanged()
                write_summary(directory.work, summary)
                directory.finish()
            return summary
        with (
            told_if_left(unfinished, report) as directory,
            _decided(asked, recipe, reading, context, directory, bounded, beside) as decided,
        ):
            stored = decided.store_pairs(store_pairs, directory.work)
            directory.check_own()
            decided.write(asked, reading, directory.work)
            reading.check_unchanged()
            summary = decided.summary(asked, reading) | beside.summary() | stored
            beside.prepare(decided.documents, decided.recipe, decided.decision)
            write_summary(directory.work, summary)
            beside.add_kept(decided.documents, decided.decision)
            directory.finish()
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
    run, report = run or FileRun(), taken(progress)
    rules, timing = run.run_rules(), Timing()
    check_references(against, recipe, keep_sketches=False)
    check_alone(against, index)
    recipe = recipe_beside(recipe, index)
    with (
        BesideIndex(index, recipe, rules) as beside,
        found_inputs(inputs, recipe, run, None, report) as found,
        scratch_directory() as work,
    ):
        lines = stream_files(found.files)
        if against or (index is not None and index.against is not None):
            tell_direction(recipe, report)
        references = find_references(against, recipe, run, None, report)
        reading = replace(found, files=(*references.files, *found.files))
        watch = Watch(reading.files)
        bounded = bounded_run(reading, recipe, run, rules, work, report, writes_copies=False, beside=index)
        context = RunContext(rules, timing, report)
        with opened_run(reading.files, recipe, context, work=work, bounded=bounded, references=references) as opened:
            documents, recipe = opened.documents, opened.recipe
            decision, _ = beside.decided(documents, recipe, timing, report)
            _tell_of_group(documents, decision, report)
            beside.prepare(documents, recipe, decision)
            watch.check()
            with timing.wall("writing"):
                stream = KeptStream(out)
                stream.check_headers(found.files)
                with place_named("standard output"):
                    for number, file in enumerate(lines, len(references.files)):
                        stream.write(file, *kept_places(documents, decision.kept, number, run.on_error))
                    out.flush()
            beside.add_kept(documents, decision)
            beside.finish()
            summary = summarize(documents, recipe, decision, timing) | beside.summary() | opened.facts
            summary |= about_references(against, documents, decision)
            return summary | about_inputs(found, documents, decision, run, "kept")
