"""Deduplication of files: from names of inputs to an output directory."""

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

from likewise._native import __version__
from likewise.batch.about_inputs import about_inputs, told_if_left
from likewise.batch.against.index import BesideIndex, IndexUse, recipe_beside
from likewise.batch.against.references import (
    about_references,
    check_alone,
    check_references,
    find_references,
    tell_direction,
)
from likewise.batch.budget.timing import Timing
from likewise.batch.decide.verdict_log import VerdictLog
from likewise.batch.engine import Engine, check_engine
from likewise.batch.opened import opened_run
from likewise.batch.opening import bounded_run, found_inputs, recipe_of_files
from likewise.batch.options import FileRun
from likewise.batch.read.resume import PARTS_VERSION
from likewise.batch.run import RunContext, evidence_tables
from likewise.batch.stored_pairs import check_floor, write_near_pairs
from likewise.batch.weights import weighed_files
from likewise.batch.write.kept_rows import kept_places, kept_texts, write_bad_rows
from likewise.batch.write.remote import run_to_store
from likewise.batch.write.sketches import write_kept_sketches
from likewise.batch.write.summary import summarize
from likewise.batch.write.web import provenance
from likewise.checks import check_choice
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs
from likewise.io.kept import KeptStream, check_stream, write_descriptions, write_kept
from likewise.io.lines.lines import LineFile
from likewise.io.output.directory import ERRORS, EVIDENCE, KEPT, PAIRS, SUMMARY, OutputDirectory, check_free
from likewise.io.output.evidence import write_evidence
from likewise.io.output.scratch import scratch_directory
from likewise.io.refusals import place_named
from likewise.io.remote import is_remote, local_path
from likewise.io.stamps import check_unchanged, stamps
from likewise.progress import Progress, StageFinished, StageStarted, no_progress
from likewise.recipe.recipe import Recipe

OUTPUTS = ("kept", "evidence")


def dedup_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    preset: str | None = None,
    run: FileRun | None = None,
    write: str = "kept",
    overwrite: bool = False,
    fresh: bool = False,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    keep_sketches: bool = False,
    store_pairs: float | None = None,
    engine: Engine | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Deduplicate files into an output directory.

    Parameters
    ----------
    inputs : path or sequence of paths
        Files, directories, globs, or ``-``.
    output : path
        Directory for ``kept/`` (a file for each input), ``removed.parquet`` (the evidence) and ``summary.json``.
    recipe : Recipe, optional
        What a near-duplicate is. Where None: that of the index or of the first finished run `against`; else the preset
        ``default``, with an engine ``online``.
    preset : str, optional
        Name of a preset instead of a recipe (:meth:`Recipe.preset`).
    run : FileRun, optional
        How files are read.
    write : {"kept", "evidence"}
        ``evidence`` writes no copies of documents.
    overwrite : bool
        Replace a finished run.
    fresh : bool
        Begin anew where an unfinished run would be continued or refused.
    index : IndexUse, optional
        An index that the run makes, or is held against.
    against : sequence of path
        Reference documents: output directories of finished runs, whose kept documents are meant, or files. They all
        stay, stand before all others, are not compared with each other and not written.
    keep_sketches : bool
        Keep the sketches of what stays in ``sketches/``, for later runs against this one.
    store_pairs : float, optional
        Write ``pairs.parquet``: all verified pairs from this similarity on, which changes no verdict.
    engine : Engine, optional
        Decides in place of this machine, such as ``likewise.spark.SparkEngine``; no index, `against`,
        sketches or pairs go with it.
    progress : callable, optional
        Called with the events of :mod:`likewise.progress`.

    Returns
    -------
    dict
        The summary, as written.

    Raises
    ------
    InvalidInput
        If a row is bad, an id comes twice, or the output directory is not free.
    RecipeMismatch
        If the output holds an unfinished run of other settings or inputs, or the index is of another recipe.

    Notes
    -----
    Nothing has a final name before all is complete. A run that was killed is continued by the same call: what it had
    sketched is read from the parts that it left, and the answer is that of a run that was never disturbed.

    Examples
    --------
    >>> summary = dedup_files("articles.jsonl", "out", Recipe.minhash(0.8))  # doctest: +SKIP
    """
    recipe = recipe_of_files(recipe, preset, index=index, against=against, engine=engine).resolve()
    run, report = run or FileRun(), progress or no_progress
    check_choice("output", write, OUTPUTS)
    if engine is not None:
        others = {"keep_sketches": keep_sketches, "store_pairs": store_pairs is not None}
        check_engine(index, against, others | {"memory": run.memory_bytes is not None})
    if keep_sketches and write != "kept":
        raise InvalidParameter(
            "keep_sketches", "there are no kept files to keep sketches of; leave out --output evidence"
        )
    if is_remote(output):
        return run_to_store(
            str(output),
            inputs,
            lambda local: dedup_files(
                inputs,
                local,
                recipe,
                run=run,
                write=write,
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
    rules, timing = run.run_rules(), Timing()
    check_free(target, overwrite=overwrite)
    check_references(against, recipe, keep_sketches=keep_sketches)
    check_alone(against, index)
    recipe = recipe_beside(recipe, index)
    is_against = bool(against) or (index is not None and index.against is not None)
    check_floor(store_pairs, recipe, is_against=is_against)
    with BesideIndex(index, recipe, rules) as beside, found_inputs(inputs, recipe, run, target, report) as found:
        if is_against:
            tell_direction(recipe, report)
        references = find_references(against, recipe, run, target, report)
        reading = replace(found, files=(*references.files, *found.files))
        read = stamps(found)
        against_read = stamps(Inputs(references.files, ()))
        identity = {
            "recipe_id": recipe.recipe_id,
            "recipe": recipe.to_dict(),
            "inputs": read,
            "output": write,
            "version": __version__,
            "parts": PARTS_VERSION,
            **run.identity(),
            **provenance(found),
            **beside.identity(),
            **({"against": against_read} if against else {}),
            **({"keep_sketches": True} if keep_sketches else {}),
            **({} if store_pairs is None else {"store_pairs": store_pairs}),
        }
        unfinished = OutputDirectory(target, identity, overwrite=overwrite, fresh=fresh)
        work = unfinished.work
        # Whatever may refuse the command comes before the directory is entered, which deletes what is in its way.
        if engine is not None:
            engine.check(recipe)
        else:
            bounded = bounded_run(
                reading, recipe, run, rules, work, report, writes_copies=write == "kept", beside=index
            )
        with told_if_left(unfinished, report) as directory:
            kept_ids: Sequence[str] = ()
            stored: dict[str, object] = {}
            about_run: dict[str, object] = {}
            with ExitStack() as stack:
                if engine is not None:
                    recipe = weighed_files(reading.files, recipe, rules, timing, report, directory.parts)
                    documents, decision = stack.enter_context(
                        engine.decided(found.files, recipe, rules, work=work, timing=timing, progress=report)
                    )
                else:
                    opened = stack.enter_context(
                        opened_run(
                            reading.files,
                            recipe,
                            RunContext(rules, timing, report),
                            work=work,
                            bounded=bounded,
                            parts=directory.parts,
                            references=references,
                        )
                    )
                    documents, recipe, rules = opened.documents, opened.recipe, opened.context.rules
                    log = None if opened.parts is None else VerdictLog(opened.parts.directory)
                    decision, kept_ids = beside.decided(documents, recipe, timing, report, log)
                    about_run = opened.facts
                    if opened.parts is not None and log is not None:
                        about_run |= opened.parts.summary(log.num_found)
                if store_pairs is not None:
                    stored = write_near_pairs(documents, recipe, store_pairs, work / PAIRS, rules, timing, report)
                report(StageStarted("writing", 0, "bytes"))
                began = Timing.now()
                directory.check_own()
                with timing.wall("writing"):
                    write_bad_rows(documents, work / ERRORS)
                    write_evidence(evidence_tables(documents, recipe, decision, kept_ids), work / EVIDENCE)
                    if write == "kept":
                        num_kept: list[int] = []
                        # Every document may be removed from text files, which then leave nothing.
                        (work / KEPT).mkdir()
                        for number, file in enumerate(found.files, len(references.files)):
                            offsets, lengths = kept_places(documents, decision.kept, number, run.on_error)
                            texts = kept_texts(documents, decision, number, run.on_error)
                            write_kept(
                                file, work / KEPT / file.name, offsets, lengths, threads=rules.threads, texts=texts
                            )
                            num_kept.append(len(offsets))
                        write_descriptions(found, work / KEPT, num_kept, recipe.recipe_id)
                    if keep_sketches:
                        write_kept_sketches(documents, decision, found.files, recipe, work)
                report(StageFinished("writing", Timing.now() - began))
                check_unchanged(found, read)
                check_unchanged(Inputs(references.files, ()), against_read)
                summary = summarize(documents, recipe, decision, timing)
                summary |= about_inputs(found, documents, decision, run, write) | beside.summary() | stored
                summary |= about_references(against, documents, decision) | about_run
                beside.prepare(documents, recipe, decision)
                (work / SUMMARY).write_text(
                    json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8", newline="\n"
                )
                beside.add_kept(documents, decision)
                directory.finish()
                beside.finish()
    return summary


def stream_dedup(
    inputs: Sequence[str | Path] | str | Path,
    out: BinaryIO,
    recipe: Recipe | None = None,
    *,
    run: FileRun | None = None,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Deduplicate JSON Lines or CSV files and write the kept lines to a stream.

    Parameters
    ----------
    inputs, recipe, run, index, against, progress
        As for :func:`dedup_files`.
    out : binary file
        Takes the kept lines in input order.

    Returns
    -------
    dict
        The summary.

    Raises
    ------
    InvalidInput
        As for :func:`dedup_files`, and if an input is of another format.
    """
    recipe = recipe_of_files(recipe, index=index, against=against).resolve()
    run, report = run or FileRun(), progress or no_progress
    rules, timing = run.run_rules(), Timing()
    check_references(against, recipe, keep_sketches=False)
    check_alone(against, index)
    recipe = recipe_beside(recipe, index)
    with (
        BesideIndex(index, recipe, rules) as beside,
        found_inputs(inputs, recipe, run, None, report) as found,
        scratch_directory() as work,
    ):
        check_stream(found.files)
        if against or (index is not None and index.against is not None):
            tell_direction(recipe, report)
        references = find_references(against, recipe, run, None, report)
        reading = replace(found, files=(*references.files, *found.files))
        bounded = bounded_run(reading, recipe, run, rules, work, report, writes_copies=False, beside=index)
        context = RunContext(rules, timing, report)
        with opened_run(reading.files, recipe, context, work=work, bounded=bounded, references=references) as opened:
            documents, recipe = opened.documents, opened.recipe
            decision, _ = beside.decided(documents, recipe, timing, report)
            beside.prepare(documents, recipe, decision)
            with timing.wall("writing"):
                stream = KeptStream(out)
                stream.check_headers(found.files)
                with place_named("standard output"):
                    for number, file in enumerate(found.files, len(references.files)):
                        assert isinstance(file, LineFile)
                        stream.write(file, *kept_places(documents, decision.kept, number, run.on_error))
                    out.flush()
            beside.add_kept(documents, decision)
            beside.finish()
            summary = summarize(documents, recipe, decision, timing) | beside.summary() | opened.facts
            summary |= about_references(against, documents, decision)
            return summary | about_inputs(found, documents, decision, run, "kept")
