"""One run from sources to verdicts: the sequence of stages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from likewise.batch.budget.room import Room
from likewise.batch.decide.decision import Decision, VerdictLog, decide
from likewise.batch.read.columns import HeldDocuments, with_references_first
from likewise.batch.read.documents import Collapsed, Documents, collapse
from likewise.batch.read.ingest import References, open_documents, weighed_files
from likewise.errors import InvalidParameter
from likewise.io.source.source import Source
from likewise.job.reading import RunContext
from likewise.progress import Planned, Warned
from likewise.recipe.methods import Bloom
from likewise.recipe.recipe import Recipe

if TYPE_CHECKING:
    from likewise.batch.against.index import IndexUse
    from likewise.batch.memory import BoundedRun
    from likewise.batch.read.resume import RunParts
    from likewise.io.inputs import Inputs
    from likewise.job.output import Job


def ordered(documents: Documents, recipe: Recipe, context: RunContext) -> Collapsed:
    """Order documents by priority and collapse indistinguishable ones."""
    with context.timing.wall("ordering"):
        return collapse(documents, recipe, with_references_first(documents, recipe.keep))


def decided(documents: Documents, recipe: Recipe, context: RunContext, log: VerdictLog | None = None) -> Decision:
    """Return the verdicts on documents, by a resolved recipe."""
    return decide(ordered(documents, recipe, context), recipe, context, log)


def bounded_run(
    job: Job,
    found: Inputs,
    recipe: Recipe,
    *,
    writes_copies: bool,
    keeps_sketches: bool = False,
    beside: IndexUse | None = None,
) -> BoundedRun | None:
    """Return the memory limits of the run, and report the plan; None if it has none."""
    if job.options.memory_bytes is None:
        return None
    if beside is not None:
        raise InvalidParameter("memory", "does not limit the memory of an index; remove --memory or the index")
    from likewise.batch.memory import BoundedRun

    bounded = BoundedRun(job, found.files, recipe, writes_copies=writes_copies, keeps_sketches=keeps_sketches)
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
    room = Room() if bounded is None else bounded.room
    if bounded is not None:
        context = context.with_rules(context.rules._replace(threads=bounded.plan.threads))
    known, left = None, None
    if parts is not None:
        from likewise.batch.read.resume import known_counts, open_parts

        if parts.is_dir() and (known := known_counts(parts, recipe)) is not None:
            progress(Warned("continuing an unfinished run: its document counts are complete"))
    recipe = known or weighed_files(sources, recipe, context, parts, room.weighing_bytes)
    if parts is not None:
        left = open_parts(parts, recipe, sources, progress, has_counts=known is not None)
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
        facts: dict[str, object] = {} if bounded is None else {"memory": bounded.plan.to_dict()}
        if is_compared and recipe.needs_threshold:
            from likewise.batch.decide.auto_threshold import with_chosen_threshold

            recipe, choice = with_chosen_threshold(recipe, documents, context, left)
            facts |= choice
        if is_compared and isinstance(recipe.sketch, Bloom):
            from likewise.batch.search.bloom import with_bands_where_many

            recipe = with_bands_where_many(recipe, documents, progress)
        yield OpenedRun(documents, recipe, context, facts, left)
