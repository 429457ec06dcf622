"""Deduplication of files: from names of inputs to an output directory."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from likewise._native import __version__
from likewise.dedup.bloom_search import with_bands_where_many
from likewise.dedup.decision import Decision
from likewise.dedup.documents import Documents
from likewise.dedup.file_run import FileRun
from likewise.dedup.file_weights import weighed_files
from likewise.dedup.indexed import BesideIndex, IndexUse
from likewise.dedup.kept_rows import kept_places, kept_texts, write_bad_rows
from likewise.dedup.kept_sketches import write_kept_sketches
from likewise.dedup.near_pairs import check_floor, write_near_pairs
from likewise.dedup.pairing import verified_pairs
from likewise.dedup.references import about_references, check_alone, check_references, find_references
from likewise.dedup.remote_run import run_to_store
from likewise.dedup.resume import PARTS_VERSION, open_parts
from likewise.dedup.run import evidence, open_documents, ordered
from likewise.dedup.stamps import check_unchanged, stamps
from likewise.dedup.summary import summarize
from likewise.dedup.timing import Timing
from likewise.dedup.web import provenance, record_counts
from likewise.errors import InvalidParameter
from likewise.io.evidence import write_evidence
from likewise.io.inputs import Inputs, find_inputs
from likewise.io.kept import KeptStream, check_stream, write_descriptions, write_kept
from likewise.io.lines import LineFile
from likewise.io.output import ERRORS, EVIDENCE, KEPT, PAIRS, SUMMARY, OutputDirectory, check_free
from likewise.io.pair_files import PairWriter
from likewise.io.refusals import place_named
from likewise.io.remote import file_for, is_remote, local_path
from likewise.io.scratch import scratch_directory
from likewise.progress import Progress, StageFinished, StageStarted, Warned, no_progress
from likewise.recipe import Recipe
from likewise.recipe_check import check_choice
from likewise.sketch import Sketches, check_has_sketch, shaped

OUTPUTS = ("kept", "evidence")


def dedup_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    run: FileRun | None = None,
    write: str = "kept",
    overwrite: bool = False,
    fresh: bool = False,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    keep_sketches: bool = False,
    store_pairs: float | None = None,
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
        What a near-duplicate is; ``Recipe.minhash()`` where None.
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
    recipe, run, report = (recipe or Recipe.minhash()).resolve(), run or FileRun(), progress or no_progress
    check_choice("output", write, OUTPUTS)
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
                progress=progress,
            ),
            overwrite=overwrite,
        )
    target = Path(local_path(output))
    rules, timing = run.run_rules(), Timing()
    check_free(target, overwrite=overwrite)
    check_references(against, recipe, keep_sketches=keep_sketches)
    check_alone(against, index)
    is_against = bool(against) or (index is not None and index.against is not None)
    check_floor(store_pairs, recipe, is_against=is_against)
    with BesideIndex(index, recipe, rules) as beside, _found(inputs, recipe, run, target, report) as found:
        references = find_references(against, recipe, run, target, report)
        sources = [*references.files, *found.files]
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
        with _told_if_left(OutputDirectory(target, identity, overwrite=overwrite, fresh=fresh), report) as directory:
            work = directory.work
            recipe = weighed_files(sources, recipe, rules, timing, report)
            parts = open_parts(directory.parts, recipe, sources, report)
            with open_documents(
                sources,
                recipe,
                rules,
                work=work,
                timing=timing,
                progress=report,
                parts=parts,
                references=references,
            ) as documents:
                recipe = with_bands_where_many(recipe, documents, report)
                decision, kept_ids = beside.decided(documents, recipe, timing, report)
                stored = {}
                if store_pairs is not None:
                    stored = write_near_pairs(documents, recipe, store_pairs, work / PAIRS, rules, timing, report)
                report(StageStarted("writing", 0, "bytes"))
                began = Timing.now()
                with timing.wall("writing"):
                    write_bad_rows(documents, work / ERRORS)
                    write_evidence(evidence(documents, recipe, decision, kept_ids), work / EVIDENCE)
                    if write == "kept":
                        num_kept: list[int] = []
                        # Every document may be removed from text files, which then leave nothing.
                        (work / KEPT).mkdir()
                        for number, file in enumerate(found.files, len(references.files)):
                            offsets, lengths = kept_places(documents, decision, number, run.on_error)
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
                summary |= _about_inputs(found, documents, decision, run, write) | beside.summary() | stored
                summary |= about_references(against, documents, decision)
                if parts is not None:
                    summary |= parts.summary()
                beside.prepare(documents, recipe, decision)
                (work / SUMMARY).write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
                directory.finish()
                beside.finish(documents, decision)
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
    recipe, run, report = (recipe or Recipe.minhash()).resolve(), run or FileRun(), progress or no_progress
    rules, timing = run.run_rules(), Timing()
    check_references(against, recipe, keep_sketches=False)
    check_alone(against, index)
    with (
        BesideIndex(index, recipe, rules) as beside,
        _found(inputs, recipe, run, None, report) as found,
        scratch_directory() as work,
    ):
        check_stream(found.files)
        references = find_references(against, recipe, run, None, report)
        sources = [*references.files, *found.files]
        recipe = weighed_files(sources, recipe, rules, timing, report)
        with open_documents(
            sources, recipe, rules, work=work, timing=timing, progress=report, references=references
        ) as documents:
            recipe = with_bands_where_many(recipe, documents, report)
            decision, _ = beside.decided(documents, recipe, timing, report)
            beside.prepare(documents, recipe, decision)
            with timing.wall("writing"):
                stream = KeptStream(out)
                stream.check_headers(found.files)
                with place_named("standard output"):
                    for number, file in enumerate(found.files, len(references.files)):
                        assert isinstance(file, LineFile)
                        stream.write(file, *kept_places(documents, decision, number, run.on_error))
                    out.flush()
            beside.finish(documents, decision)
            summary = summarize(documents, recipe, decision, timing) | beside.summary()
            summary |= about_references(against, documents, decision)
            return summary | _about_inputs(found, documents, decision, run, "kept")


def pair_files(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    recipe: Recipe | None = None,
    *,
    run: FileRun | None = None,
    progress: Progress | None = None,
    stdout: BinaryIO | None = None,
) -> dict[str, Any]:
    """Write every verified pair of the documents in files.

    Parameters
    ----------
    inputs, recipe, run, progress
        As for :func:`dedup_files`.
    output : path
        A ``.tsv``, ``.jsonl`` or ``.parquet`` file, or ``-`` for lines of TSV to `stdout`.
    stdout : binary file, optional
        What ``-`` means.

    Returns
    -------
    dict
        Counts, recipe and seconds.

    Raises
    ------
    InvalidInput
        As for :func:`dedup_files`, and if the name ends otherwise.
    """
    recipe, run, report = (recipe or Recipe.minhash()).resolve(), run or FileRun(), progress or no_progress
    rules, timing = run.run_rules(), Timing()
    num_pairs = 0
    with ExitStack() as stack:
        is_stream = output == "-" and stdout is not None
        local = None if is_stream else stack.enter_context(file_for(output))
        writer = stack.enter_context(PairWriter(str(local or output), stdout))
        found = stack.enter_context(_found(inputs, recipe, run, local, report))
        recipe = weighed_files(found.files, recipe, rules, timing, report)
        work = stack.enter_context(scratch_directory())
        documents = stack.enter_context(
            open_documents(found.files, recipe, rules, work=work, timing=timing, progress=report)
        )
        recipe = with_bands_where_many(recipe, documents, report)
        collapsed = ordered(documents, recipe, timing)
        for batch in verified_pairs(
            documents, collapsed, recipe, threads=rules.threads, timing=timing, progress=report
        ):
            num_pairs += len(batch.row_a)
            with timing.wall("writing"):
                ids = documents.doc_ids(batch.row_a), documents.doc_ids(batch.row_b)
                writer.write(*ids, batch.similarity, batch.distance)
        writer.finish()
        return {
            "num_documents": len(documents),
            "num_pairs": num_pairs,
            "num_bad_rows": sum(map(len, documents.bad_rows)),
            "num_blank_lines": documents.num_blank,
            "recall": recipe.stated_recall,
            "recipe": recipe.to_dict(),
            "recipe_id": recipe.recipe_id,
            "timings": timing.to_dict(),
        }


def sketch_files(
    inputs: Sequence[str | Path] | str | Path,
    recipe: Recipe | None = None,
    *,
    run: FileRun | None = None,
    output: Path | None = None,
    progress: Progress | None = None,
) -> Sketches:
    """Return the sketches of the documents in files, with their ids.

    Parameters
    ----------
    inputs, recipe, run, progress
        As for :func:`dedup_files`.
    output : Path, optional
        The file that the sketches will be written to, which is no input.

    Returns
    -------
    Sketches
        In input order.
    """
    recipe, run, report = recipe or Recipe.minhash(), run or FileRun(), progress or no_progress
    check_has_sketch(recipe)
    rules, timing = run.run_rules(), Timing()
    with ExitStack() as stack:
        found = stack.enter_context(_found(inputs, recipe, run, output, report))
        recipe = weighed_files(found.files, recipe, rules, timing, report)
        work = stack.enter_context(scratch_directory())
        documents = stack.enter_context(
            open_documents(found.files, recipe, rules, work=work, timing=timing, progress=report, needs_texts=False)
        )
        return Sketches(
            shaped(documents.sketches, recipe),
            recipe,
            documents.is_empty,
            documents.num_features,
            tuple(documents.doc_ids(np.arange(len(documents))).to_pylist()),
        )


@contextmanager
def _told_if_left(directory: OutputDirectory, progress: Progress) -> Iterator[OutputDirectory]:
    """Enter a directory, and say so if what is done is left there for another run."""
    try:
        with directory:
            yield directory
    except BaseException:
        if directory.is_left:
            progress(Warned(f"what was done so far stays in {directory.path}; the same command continues it"))
        raise


@contextmanager
def _found(
    inputs: Sequence[str | Path] | str | Path, recipe: Recipe, run: FileRun, output: Path | None, progress: Progress
) -> Iterator[Inputs]:
    names = [inputs] if isinstance(inputs, str | Path) else list(inputs)
    with scratch_directory() as work:
        yield find_inputs(
            names,
            run.read_rules(recipe),
            file_format=run.format_for(recipe),
            delimiter=run.delimiter,
            output=output,
            stdin=run.stdin,
            spool_directory=work,
            progress=progress,
        )


def _about_inputs(
    found: Inputs, documents: Documents, decision: Decision, run: FileRun, write: str
) -> dict[str, object]:
    inputs = []
    for number, file in enumerate(found.files, documents.num_reference_sources):
        rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
        inputs.append(
            {
                "path": file.name,
                "num_bytes": file.num_bytes,
                "num_documents": rows.stop - rows.start,
                "num_kept": int(decision.kept[rows].sum()),
                "num_bad_rows": len(documents.bad_rows[number]),
                **record_counts(file),
            }
        )
    return {"inputs": inputs, "skipped_files": list(found.skipped), "options": {**run.identity(), "output": write}} | (
        provenance(found)
    )
    directory = None if found.parent is None else str(found.parent)
    return {
        "input_directory": directory,
        "inputs": inputs,
        "skipped_files": list(found.skipped),
        "options": {**run.identity(), "output": write},
    }
