"""Runs over the parts of documents: from names of inputs to an output directory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.options import FileRun
from likewise.batch.parts.collection import Collection, Repeats
from likewise.batch.parts.opening import check_reading, finish_parts, opened_parts
from likewise.batch.parts.spans import repeated_spans
from likewise.batch.parts.units import PartRules, repeated_units
from likewise.batch.parts.writing import beginnings, evidence_of
from likewise.batch.run import RunContext
from likewise.batch.write.remote import run_to_store
from likewise.batch.write.summary import check_of
from likewise.errors import InvalidParameter
from likewise.io.output.directory import EVIDENCE
from likewise.io.remote import is_remote
from likewise.io.source.cut import Cut
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe, as_recipe
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import Recipe

_MOST_SHOWN = 5


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
        Files, directories, globs, or ``-``: JSON Lines, CSV, TSV, Parquet, Arrow and plain text.
    output : path
        Directory for ``kept/`` (a file for each input, of the same format, in which only the text of documents is new,
        and only where something went), ``removed.parquet`` (a row for each part), ``emptied.jsonl`` (documents of which
        nothing was left) and ``summary.json``.
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
        If an input is a web archive or binary, a row is bad, an id comes twice, or the output directory is not free.
    InvalidParameter
        If the recipe is for whole documents, or cannot act.
    """
    recipe, run, report = (
        as_recipe(Recipe.exact() if recipe is None else recipe).resolve(),
        run or FileRun(),
        taken(progress),
    )
    check_reading(run)
    parts = parts.resolved()
    _check(recipe, parts)
    if is_remote(output) and not dry_run:
        return run_to_store(
            str(output),
            inputs,
            lambda local: dedup_parts(inputs, local, parts, recipe, run=run, progress=progress),
            overwrite=overwrite,
        )
    is_span = parts.unit == "span"
    options = {"unit": parts.unit, "min_tokens": parts.min_tokens}
    with opened_parts(
        inputs,
        output,
        recipe,
        run,
        {"recipe_id": recipe.recipe_id, "recipe": recipe.to_dict(), "write": "kept", **options},
        answer=recipe.recipe_id,
        needs_texts=is_span,
        dry_run=dry_run,
        overwrite=overwrite,
        fresh=fresh,
        progress=report,
    ) as opened:
        collection, context = opened.collection, RunContext(run.run_rules(), opened.timing, report)
        if is_span:
            repeats, about = repeated_spans(collection, parts, context, work=opened.work)
        else:
            repeats, about = repeated_units(collection, recipe, parts, context, work=opened.work)
        repeats = _in_order(repeats)
        evidence = evidence_of(
            collection,
            repeats,
            unit=parts.unit,
            method="exact" if is_span else recipe.method,
            measure="equality" if is_span else recipe.measure,
            recipe_id=recipe.recipe_id,
        )
        cut = Cut.of_parts(repeats.rows, repeats.starts, repeats.ends, keeps_words_apart=is_span)
        summary = _verification(recipe, parts) | opened.write(cut, {EVIDENCE: evidence})
        summary["num_removed"] = summary["num_emptied"]
        summary |= {"recipe": recipe.to_dict(), "recipe_id": recipe.recipe_id}
        summary |= {"most_removed": _most_removed(collection, repeats), **about}
        return finish_parts(opened, summary, options)


def _check(recipe: Recipe, parts: PartRules) -> None:
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


def _verification(recipe: Recipe, parts: PartRules) -> dict[str, Any]:
    unit = f"removed span of at least {parts.min_tokens} words" if parts.unit == "span" else f"removed {parts.unit}"
    how = "word for word" if parts.unit == "span" else check_of(recipe)
    return {"verification": f"Every {unit} matches an earlier one {how}."}


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
    most = np.argsort(-num_bytes, kind="stable")[:_MOST_SHOWN]
    rows, starts, ends_kept = (
        column[order[firsts[most]]] for column in (repeats.kept_rows, repeats.kept_starts, repeats.kept_ends)
    )
    texts = beginnings(collection, rows, starts, ends_kept)
    return [
        {"num_times": int(times[i]), "num_bytes": int(num_bytes[i]), "text": text}
        for i, text in zip(most.tolist(), texts, strict=True)
    ]
