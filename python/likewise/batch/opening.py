"""The steps of every run before its decision: inputs, memory limit, sketched documents, and the recipe."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from likewise.batch.read.columns import HeldDocuments
from likewise.batch.read.resume import RunParts, open_parts
from likewise.batch.read.weighing import known_counts, weighed_files
from likewise.batch.run import open_documents
from likewise.errors import InvalidParameter
from likewise.io.source.source import Source
from likewise.job.options import RunContext
from likewise.progress import Planned, Warned
from likewise.recipe.fields import RecipeFields
from likewise.recipe.methods import Bloom
from likewise.recipe.recipe import Recipe, as_recipe

if TYPE_CHECKING:
    from likewise.batch.against.index import IndexUse
    from likewise.batch.memory import BoundedRun
    from likewise.batch.read.documents import Documents, References
    from likewise.batch.spark.files.engine import SparkEngine
    from likewise.io.inputs import Inputs
    from likewise.job.output import Job


def recipe_of_files(
    recipe: object,
    fields: RecipeFields,
    *,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    engine: SparkEngine | None = None,
) -> Recipe:
    """Return the recipe of a run over files: the given one, that of a preset, or that of fields.

    If none is given, that of the index or finished run `against`, otherwise the preset ``default``; or ``online`` with
    an engine, which cannot count weights or choose a threshold.
    """
    from likewise.batch.against.references import recipe_of_references

    if recipe is None and fields.keys() <= {"keep"}:
        recipe = recipe_of_references(None if index is None else index.against, against)
    return as_recipe(recipe, fields, base="default" if engine is None else "online")


def bounded_run(
    job: Job,
    found: Inputs,
    recipe: Recipe,
    *,
    writes_copies: bool,
    keeps_sketches: bool = False,
    beside: IndexUse | None = None,
) -> BoundedRun:
    """Return the memory limits of the run, and report the plan."""
    from likewise.batch.memory import BoundedRun

    memory_bytes = job.options.memory_bound()
    if memory_bytes is not None and beside is not None and (beside.create is not None or beside.against is not None):
        raise InvalidParameter("memory", "does not limit the memory of an index; remove --memory or the index")
    bounded = BoundedRun(
        found.files,
        recipe,
        memory_bytes,
        job.context.threads,
        job.work,
        job.options.fields,
        writes_copies=writes_copies,
        keeps_sketches=keeps_sketches,
    )
    if bounded.plan is not None:
        job.context.progress(Planned(bounded.plan.lines()))
    return bounded


class OpenedRun(NamedTuple):
    """A run before its decision."""

    documents: Documents
    # Recipe with its weights, its threshold, and the bands that many documents need
    recipe: Recipe
    # Context with as many threads as memory allows
    context: RunContext
    # Summary fields about memory and the choice of the threshold
    facts: dict[str, object]
    parts: RunParts | None


@contextmanager
def opened_run(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    work: Path,
    bounded: BoundedRun | None = None,
    parts: Path | None = None,
    references: References | None = None,
    is_compared: bool = True,
    held: HeldDocuments | None = None,
) -> Iterator[OpenedRun]:
    """Count weights, read and sketch documents, and choose what the recipe leaves open."""
    progress = context.progress
    known = None if parts is None else known_counts(parts, recipe)
    if known is not None:
        progress(Warned("continuing an unfinished run: its document counts are complete"))
    if bounded is None:
        recipe = known or weighed_files(sources, recipe, context, parts)
    else:
        context = context.with_threads(bounded.threads(context.threads))
        recipe = known or weighed_files(sources, recipe, context, parts, bounded.room.weighing_bytes)
    left = None if parts is None else open_parts(parts, recipe, sources, progress, has_counts=known is not None)
    with open_documents(
        sources,
        recipe,
        context,
        work=work,
        needs_texts=is_compared,
        parts=left,
        references=references,
        bounded=bounded,
        held=held,
    ) as documents:
        facts: dict[str, object] = {} if bounded is None else bounded.summary()
        if is_compared and recipe.needs_threshold:
            from likewise.batch.decide.auto_threshold import with_chosen_threshold

            recipe, choice = with_chosen_threshold(recipe, documents, context, left)
            facts |= choice
        if is_compared and isinstance(recipe.sketch, Bloom):
            from likewise.batch.search.bloom import with_bands_where_many

            recipe = with_bands_where_many(recipe, documents, progress)
        yield OpenedRun(documents, recipe, context, facts, left)
