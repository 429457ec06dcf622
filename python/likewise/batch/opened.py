"""What every run opens before it decides: documents, sketched, and the recipe with what follows from them."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from likewise.batch.decide.auto_threshold import with_chosen_threshold
from likewise.batch.memory import BoundedRun
from likewise.batch.read.documents import Documents
from likewise.batch.read.references import References
from likewise.batch.read.resume import RunParts, open_parts
from likewise.batch.run import RunContext, open_documents
from likewise.batch.search.bloom import with_bands_where_many
from likewise.batch.weights import weighed_files
from likewise.io.source.source import Source
from likewise.recipe.recipe import Recipe


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run before its decision.

    Parameters
    ----------
    documents : Documents
        Sketched.
    recipe : Recipe
        With its weights, its threshold, and the bands that many documents need.
    context : RunContext
        With as many threads as memory holds.
    facts : dict
        What the summary says of memory, and of how the threshold was chosen.
    parts : RunParts, optional
        What an earlier run left.
    """

    documents: Documents
    recipe: Recipe
    context: RunContext
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
) -> Iterator[OpenedRun]:
    """Count rarity, read and sketch documents, and choose what the recipe leaves open.

    Parameters
    ----------
    sources : sequence of Source
        In the order in which their documents count.
    recipe : Recipe
        Resolved.
    context : RunContext
        Rules, seconds and events.
    work : Path
        A directory for what must be put aside; it goes when the context ends.
    bounded : BoundedRun, optional
        What memory the run keeps to.
    parts : Path, optional
        Where a run that was killed left its parts, and this one leaves its own.
    references : References, optional
        What is held against the documents: the first of the sources.
    is_compared : bool
        Whether documents will be compared: their texts are then read again, and a threshold is chosen.

    Yields
    ------
    OpenedRun
        What the decision needs.

    Raises
    ------
    InvalidInput
        As :func:`open_documents`.
    RecipeMismatch
        If the recipe names a table of weights and the count comes to another.
    """
    timing, progress = context.timing, context.progress
    if bounded is None:
        recipe = weighed_files(sources, recipe, context.rules, timing, progress, parts)
    else:
        context = context.with_threads(bounded.threads(context.threads))
        recipe = weighed_files(sources, recipe, context.rules, timing, progress, parts, bounded.room.weighing_bytes)
    left = None if parts is None else open_parts(parts, recipe, sources, progress)
    with open_documents(
        sources,
        recipe,
        context.rules,
        work=work,
        timing=timing,
        progress=progress,
        needs_texts=is_compared,
        parts=left,
        references=references,
        bounded=bounded,
    ) as documents:
        facts: dict[str, object] = {} if bounded is None else bounded.summary()
        if is_compared:
            recipe, choice = with_chosen_threshold(
                recipe,
                documents,
                threads=context.threads,
                timing=timing,
                progress=progress,
                parts=None if left is None else left.directory,
            )
            facts |= choice
            recipe = with_bands_where_many(recipe, documents, progress)
        yield OpenedRun(documents, recipe, context, facts, left)
