"""Runs over the parts of documents: from names of inputs to an output directory."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.budget.timing import Timing
from likewise.batch.options import FileRun
from likewise.batch.parts.collection import Collection, Repeats
from likewise.batch.parts.spans import repeated_spans
from likewise.batch.parts.units import PartRules, repeated_units
from likewise.batch.parts.writing import Rewriter, evidence_of, write_bad_rows, write_documents, write_emptied
from likewise.batch.run import RunContext
from likewise.batch.write.remote import run_to_store
from likewise.batch.write.summary import check_of, write_summary
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs, find_inputs
from likewise.io.kept import json_lines
from likewise.io.output.directory import EMPTIED, ERRORS, EVIDENCE, KEPT, OutputDirectory, check_free
from likewise.io.output.evidence import write_evidence
from likewise.io.output.scratch import scratch_directory
from likewise.io.remote import is_remote, local_path
from likewise.io.stamps import check_unchanged, stamps
from likewise.progress import Progress, StageFinished, StageStarted, shows_progress, taken
from likewise.recipe.given import GivenRecipe, as_recipe
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import Recipe

_MOST_SHOWN = 5
_SHOWN_BYTES = 160


@shows_progress
def dedup_parts(
    inputs: Sequence[str | Path] | str | Path,
    output: str | Path,
    parts: PartRules,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    dry_run: bool = False,
    overwrite: bool = False,
    fresh: bool = False,
    progress: Progress | bool | None = None,
) -> dict[str, Any]:
    """Take parts out of documents that stand in them, or in another one, before.

    Parameters
    ----------
    inputs : path or sequence of paths
        JSON Lines: files, directories, globs, or ``-``.
    output : path
        Directory for ``kept/`` (a file for each input, in which only the text field of lines is new, and only where
        something went), ``removed.parquet`` (a row for each part), ``emptied.jsonl`` (documents of which nothing was
        left) and ``summary.json``.
    parts : PartRules
        What parts are.
    recipe : Recipe or str, optional
        When two parts match; ``Recipe.exact()`` if None. Spans are compared word by word, whatever it says.
    run : FileRun, optional
        How files are read.
    dry_run : bool
        Write nothing, and say in the summary what would go.
    overwrite : bool
        Replace a finished run.
    fresh : bool
        Begin anew where an unfinished run of other settings would be refused.
    progress : bool or callable, optional
        True shows bars in a terminal or a notebook. A function is called with the events of :mod:`likewise.progress`.

    Returns
    -------
    dict
        The summary, as written.

    Raises
    ------
    InvalidInput
        If an input is not JSON Lines, a row is bad, an id comes twice, or the output directory is not free.
    InvalidParameter
        If the recipe is for whole documents, or cannot act.
    """
    recipe, run, report = (
        as_recipe(Recipe.exact() if recipe is None else recipe).resolve(),
        run or FileRun(),
        taken(progress),
    )
    if run.memory_bytes is not None:
        raise InvalidParameter("memory", "does not apply to parts of documents")
    parts, rules, timing = parts.resolved(), run.run_rules(), Timing()
    _check(recipe, run, parts)
    if is_remote(output) and not dry_run:
        return run_to_store(
            str(output),
            inputs,
            lambda local: dedup_parts(inputs, local, parts, recipe, run=run, progress=progress),
            overwrite=overwrite,
        )
    target = Path(local_path(output))
    if not dry_run:
        check_free(target, overwrite=overwrite)
    with ExitStack() as stack:
        found = find_inputs(
            [inputs] if isinstance(inputs, str | Path) else list(inputs),
            run.read_rules(recipe),
            file_format=run.format_for(recipe),
            output=target,
            stdin=run.stdin,
            spool_directory=stack.enter_context(scratch_directory()),
            progress=report,
        )
        files = json_lines(found.files)
        options = {**run.identity(), "write": "kept", "unit": parts.unit, "min_tokens": parts.min_tokens}
        read = stamps(found)
        directory = None
        if not dry_run:
            identity = {"recipe_id": recipe.recipe_id, "recipe": recipe.to_dict(), "inputs": read, **options}
            identity["version"] = _native.__version__
            directory = stack.enter_context(OutputDirectory(target, identity, overwrite=overwrite, fresh=fresh))
        work = directory.work if directory is not None else stack.enter_context(scratch_directory())
        collection, context = Collection(files), RunContext(rules, timing, report)
        if parts.unit == "span":
            repeats, about = repeated_spans(collection, parts, context, work=work)
        else:
            repeats, about = repeated_units(collection, recipe, parts, context, work=work)
        repeats = _in_order(repeats)
        rewriter = Rewriter(collection, repeats, keeps_words_apart=parts.unit == "span", threads=rules.threads)
        report(StageStarted("writing", 0, "bytes"))
        began = Timing.now()
        with timing.wall("writing"):
            measure = "equality" if parts.unit == "span" else recipe.measure
            method = "exact" if parts.unit == "span" else recipe.method
            if directory is None:
                num_kept = rewriter.counted()
            else:
                table = evidence_of(
                    collection, repeats, unit=parts.unit, method=method, measure=measure, recipe_id=recipe.recipe_id
                )
                write_evidence([table], work / EVIDENCE)
                (work / KEPT).mkdir()
                num_kept = write_documents(
                    collection,
                    rewriter,
                    work / KEPT,
                    work,
                    keeps_bad=run.on_error == "keep",
                    threads=rules.threads,
                )
                write_emptied(collection, rewriter.emptied, work / EMPTIED)
                write_bad_rows(collection, work / ERRORS)
        report(StageFinished("writing", Timing.now() - began))
        check_unchanged(found, read)
        summary = _summary(collection, repeats, rewriter, recipe, parts, num_kept, found)
        summary |= about | {"options": options, "is_dry_run": dry_run, "timings": timing.to_dict()}
        if directory is not None:
            write_summary(work, summary)
            directory.finish()
    return summary


def _check(recipe: Recipe, run: FileRun, parts: PartRules) -> None:
    if run.tokens_field is not None:
        raise InvalidParameter("tokens_field", "does not apply: parts of texts are removed, and tokens are not text")
    if len(run.text_fields) != 1:
        raise InvalidParameter("text_field", "must be a single field, since its text is rewritten")
    if parts.unit == "span" and not isinstance(recipe.sketch, Exact):
        raise InvalidParameter("method", f"{recipe.method} does not apply to spans, which match word for word")
    plain = Recipe.exact()
    for name in ("fold", "markup") if parts.unit == "span" else ():
        if getattr(recipe, name) != getattr(plain, name):
            raise InvalidParameter(name, "does not apply to spans, which are compared in the original text")
    if recipe.only_within is not None:
        raise InvalidParameter("only_within", "does not apply to parts, which are compared with all others")
    if recipe.keep != "first":
        raise InvalidParameter("keep", f"{recipe.keep} does not apply to parts: the first occurrence is kept")
    if recipe.needs_threshold:
        raise InvalidParameter("threshold", "auto does not apply to parts; give a number")
    if recipe.needs_counting or recipe.needs_filter_bits:
        name = "weights" if recipe.needs_counting else "filter_bits"
        raise InvalidParameter(
            name, "cannot be counted in a first pass for parts of documents; give a table or a number"
        )


def _places(rows: NDArray[np.int64], starts: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return one number for each row and start, both below 2^32, that orders as these do."""
    places: NDArray[np.uint64] = (rows.astype(np.uint64) << np.uint64(32)) | starts.astype(np.uint64)
    return places


def _in_order(repeats: Repeats) -> Repeats:
    places = _places(repeats.rows, repeats.starts)
    if (places[1:] > places[:-1]).all():
        return repeats
    order = np.lexsort((repeats.ends, places))
    columns = (repeats.rows, repeats.starts, repeats.ends, repeats.kept_rows, repeats.kept_starts, repeats.kept_ends)
    rows, starts, ends, kept_rows, kept_starts, kept_ends = (column[order] for column in columns)
    return Repeats(rows, starts, ends, kept_rows, kept_starts, kept_ends, repeats.similarity[order])


def _summary(
    collection: Collection,
    repeats: Repeats,
    rewriter: Rewriter,
    recipe: Recipe,
    parts: PartRules,
    num_kept: list[int],
    found: Inputs,
) -> dict[str, Any]:
    unit = f"removed span of at least {parts.min_tokens} words" if parts.unit == "span" else f"removed {parts.unit}"
    how = "word for word" if parts.unit == "span" else check_of(recipe)
    return {
        "verification": f"Every {unit} matches an earlier one {how}.",
        "num_documents": len(collection),
        "num_kept": sum(num_kept),
        "num_removed": len(rewriter.emptied),
        "num_removed_parts": len(repeats),
        "num_changed": int(len(np.unique(repeats.rows)) - len(rewriter.emptied)),
        "num_removed_bytes": rewriter.num_removed_bytes,
        "num_emptied": len(rewriter.emptied),
        "num_bad_rows": sum(map(len, collection.bad_rows)),
        "num_blank_lines": collection.num_blank,
        "recipe": recipe.to_dict(),
        "recipe_id": recipe.recipe_id,
        "version": _native.__version__,
        "most_removed": _most_removed(collection, repeats),
        "inputs": [
            {
                "path": file.name,
                "num_bytes": file.num_bytes,
                "num_documents": int(collection.starts[number + 1] - collection.starts[number]),
                "num_kept": num_kept[number],
                "num_bad_rows": len(collection.bad_rows[number]),
            }
            for number, file in enumerate(collection.files)
        ],
        "input_directory": None if found.parent is None else str(found.parent),
        "skipped_files": list(found.skipped),
    }


def _most_removed(collection: Collection, repeats: Repeats) -> list[dict[str, object]]:
    """Return the parts of which most bytes went, by the place that stays."""
    if not len(repeats):
        return []
    kept = _places(repeats.kept_rows, repeats.kept_starts)
    # A plain sort is the fastest by far, and enough where no two stretches begin in one place and end in others.
    order = np.argsort(kept)
    is_begin = np.append(True, kept[order[1:]] != kept[order[:-1]])
    if (repeats.kept_ends[order[1:]] != repeats.kept_ends[order[:-1]])[~is_begin[1:]].any():
        order = np.lexsort((repeats.kept_ends, kept))
        is_begin[1:] |= repeats.kept_ends[order[1:]] != repeats.kept_ends[order[:-1]]
    firsts = np.flatnonzero(is_begin)
    # Stretches may overlap: what two of them hold goes once. They are in order.
    places, ends = _places(repeats.rows, repeats.starts), _places(repeats.rows, repeats.ends)
    behind = np.maximum.accumulate(ends)
    own = ends - np.minimum(np.maximum(places, np.append(np.uint64(0), behind[:-1])), ends)
    num_bytes = np.add.reduceat(own[order].astype(np.int64), firsts)
    times = np.diff(np.append(firsts, len(order)))
    shown = []
    for i in np.argsort(-num_bytes, kind="stable")[:_MOST_SHOWN].tolist():
        first = order[firsts[i]]
        row, start, end = (int(c[first]) for c in (repeats.kept_rows, repeats.kept_starts, repeats.kept_ends))
        (text,) = collection.texts(np.array([row])).to_list()
        part = text.encode()[start : min(end, start + _SHOWN_BYTES)].decode(errors="ignore")
        shown.append({"num_times": int(times[i]), "num_bytes": int(num_bytes[i]), "text": part})
    return shown
