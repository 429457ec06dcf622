"""Deduplication of files: from names of inputs to an output directory."""

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise.dedup.bloom_search import with_bands_where_many
from likewise.dedup.decision import Decision
from likewise.dedup.documents import Documents
from likewise.dedup.engine import Engine
from likewise.dedup.file_run import FileRun
from likewise.dedup.file_weights import weighed_files
from likewise.dedup.indexed import BesideIndex, IndexUse
from likewise.dedup.pairing import verified_pairs
from likewise.dedup.run import evidence, open_documents, ordered
from likewise.dedup.summary import summarize
from likewise.dedup.timing import Timing
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.evidence import write_evidence
from likewise.io.inputs import Inputs, find_inputs
from likewise.io.kept import KeptStream, check_stream, write_descriptions, write_kept
from likewise.io.lines import LineFile
from likewise.io.output import ERRORS, EVIDENCE, KEPT, SUMMARY, OutputDirectory, check_free
from likewise.io.pair_files import PairWriter
from likewise.io.parquet_kept import KeptTexts
from likewise.io.refusals import place_named
from likewise.io.scratch import scratch_directory
from likewise.progress import Progress, StageFinished, StageStarted, no_progress
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
    index: IndexUse | None = None,
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
        What a near-duplicate is; ``Recipe.minhash()`` where None.
    run : FileRun, optional
        How files are read.
    write : {"kept", "evidence"}
        ``evidence`` writes no copies of documents.
    overwrite : bool
        Replace a finished run.
    index : IndexUse, optional
        An index that the run makes, or is held against.
    engine : Engine, optional
        Decides in place of this machine, such as ``likewise.spark.SparkEngine``; none goes with `index`.
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
        If the output holds an unfinished run of other settings, or the index is of another recipe.

    Notes
    -----
    Nothing has a final name before all is complete.

    Examples
    --------
    >>> summary = dedup_files("articles.jsonl", "out", Recipe.minhash(0.8))  # doctest: +SKIP
    """
    recipe, run, report = (recipe or Recipe.minhash()).resolve(), run or FileRun(), progress or no_progress
    check_choice("output", write, OUTPUTS)
    if engine is not None and index is not None and (index.create, index.against) != (None, None):
        raise InvalidParameter("engine", "an index is asked and made by the local engine alone")
    target = Path(output)
    rules, timing = run.run_rules(), Timing()
    check_free(target, overwrite=overwrite)
    with BesideIndex(index, recipe, rules) as beside, _found(inputs, recipe, run, target) as found:
        identity = {
            "recipe_id": recipe.recipe_id,
            "recipe": recipe.to_dict(),
            "inputs": _stamps(found),
            "output": write,
            **run.identity(),
            **beside.identity(),
        }
        with OutputDirectory(target, identity, overwrite=overwrite) as directory:
            work = directory.work
            recipe = weighed_files(found, recipe, rules, timing, report)
            with ExitStack() as stack:
                kept_ids: Sequence[str] = ()
                if engine is not None:
                    documents, decision = stack.enter_context(
                        engine.decided(found.files, recipe, rules, work=work, timing=timing, progress=report)
                    )
                else:
                    documents = stack.enter_context(
                        open_documents(found.files, recipe, rules, work=work, timing=timing, progress=report)
                    )
                    recipe = with_bands_where_many(recipe, documents, report)
                    decision, kept_ids = beside.decided(documents, recipe, timing, report)
                report(StageStarted("writing", 0, "bytes"))
                began = Timing.now()
                with timing.wall("writing"):
                    _write_bad_rows(documents, work / ERRORS)
                    write_evidence(evidence(documents, recipe, decision, kept_ids), work / EVIDENCE)
                    if write == "kept":
                        num_kept: list[int] = []
                        # Every document may be removed from text files, which then leave nothing.
                        (work / KEPT).mkdir()
                        for number, file in enumerate(found.files):
                            offsets, lengths = _kept_places(documents, decision, number, run.on_error)
                            texts = _kept_texts(documents, decision, number, run.on_error)
                            write_kept(
                                file, work / KEPT / file.name, offsets, lengths, threads=rules.threads, texts=texts
                            )
                            num_kept.append(len(offsets))
                        write_descriptions(found, work / KEPT, num_kept, recipe.recipe_id)
                report(StageFinished("writing", Timing.now() - began))
                _check_unchanged(found, identity["inputs"])
                summary = summarize(documents, recipe, decision, timing)
                summary |= _about_inputs(found, documents, decision, run, write) | beside.summary()
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
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Deduplicate JSON Lines or CSV files and write the kept lines to a stream.

    Parameters
    ----------
    inputs, recipe, run, index, progress
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
    with (
        BesideIndex(index, recipe, rules) as beside,
        _found(inputs, recipe, run, None) as found,
        scratch_directory() as work,
    ):
        check_stream(found.files)
        recipe = weighed_files(found, recipe, rules, timing, report)
        with open_documents(found.files, recipe, rules, work=work, timing=timing, progress=report) as documents:
            recipe = with_bands_where_many(recipe, documents, report)
            decision, _ = beside.decided(documents, recipe, timing, report)
            beside.prepare(documents, recipe, decision)
            with timing.wall("writing"):
                stream = KeptStream(out)
                stream.check_headers(found.files)
                with place_named("standard output"):
                    for number, file in enumerate(found.files):
                        assert isinstance(file, LineFile)
                        stream.write(file, *_kept_places(documents, decision, number, run.on_error))
                    out.flush()
            beside.finish(documents, decision)
            summary = summarize(documents, recipe, decision, timing) | beside.summary()
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
        writer = stack.enter_context(PairWriter(str(output), stdout))
        target = None if output == "-" and stdout is not None else Path(output)
        found = stack.enter_context(_found(inputs, recipe, run, target))
        recipe = weighed_files(found, recipe, rules, timing, report)
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
        found = stack.enter_context(_found(inputs, recipe, run, output))
        recipe = weighed_files(found, recipe, rules, timing, report)
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
def _found(
    inputs: Sequence[str | Path] | str | Path, recipe: Recipe, run: FileRun, output: Path | None
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
        )


def _stamps(found: Inputs) -> list[dict[str, object]]:
    """Return what tells whether a file is still the same; a copy of standard input has no time of its own."""
    stamps = []
    for file in found.files:
        stat = file.path.stat()
        is_copy = file.path == found.copy
        stamps.append({"path": file.name, "num_bytes": stat.st_size, "mtime_ns": None if is_copy else stat.st_mtime_ns})
    return stamps


def _check_unchanged(found: Inputs, stamps: object) -> None:
    for file, (now, then) in zip(found.files, zip(_stamps(found), stamps, strict=True), strict=True):  # type: ignore[call-overload]
        if now != then:
            raise InvalidInput("the file changed while it was read; run again when it rests", file.name)


def _kept_places(
    documents: Documents, decision: Decision, number: int, on_error: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return offsets and lengths of what stays of one source, with its bad rows where they are kept."""
    rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
    kept = decision.kept[rows]
    offsets, lengths = documents.offsets[rows][kept], documents.lengths[rows][kept]
    bad = documents.bad_rows[number] if on_error == "keep" else []
    if bad:
        offsets = np.concatenate([offsets, np.array([row.offset for row in bad], np.uint64)])
        lengths = np.concatenate([lengths.astype(np.uint64), np.array([row.length for row in bad], np.uint64)])
        by_offset = np.argsort(offsets, kind="stable")
        offsets, lengths = offsets[by_offset], lengths[by_offset]
    return offsets, lengths


def _kept_texts(documents: Documents, decision: Decision, number: int, on_error: str) -> KeptTexts | None:
    """Return what gives the texts of what stays of one source, if the run put them all aside."""
    has_others = on_error == "keep" and bool(documents.bad_rows[number])
    if documents.spool is None or documents.sources[number].can_read_again or has_others:
        return None
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    rows = first + np.flatnonzero(decision.kept[first:end])
    return lambda part: [read() for _, read in documents.texts(rows[part], 1)]


def _write_bad_rows(documents: Documents, path: Path) -> None:
    if not any(documents.bad_rows):
        return
    with path.open("w", encoding="utf-8") as file:
        for source, bad_rows in zip(documents.sources, documents.bad_rows, strict=True):
            for bad in bad_rows:
                file.write(json.dumps({"file": source.name, "row": bad.line + 1, "reason": bad.reason}) + "\n")


def _about_inputs(
    found: Inputs, documents: Documents, decision: Decision, run: FileRun, write: str
) -> dict[str, object]:
    inputs = []
    for number, file in enumerate(found.files):
        rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
        inputs.append(
            {
                "path": file.name,
                "num_bytes": file.num_bytes,
                "num_documents": rows.stop - rows.start,
                "num_kept": int(decision.kept[rows].sum()),
                "num_bad_rows": len(documents.bad_rows[number]),
            }
        )
    return {"inputs": inputs, "skipped_files": list(found.skipped), "options": {**run.identity(), "output": write}}
