"""The first of two passes: data about all documents that a recipe needs before sketching."""

import contextlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from likewise.batch.read import ingest
from likewise.batch.read.resume import PART_BYTES
from likewise.errors import InvalidInput, LikewiseError, counted
from likewise.io.output.scratch import scratch_for
from likewise.io.source.bad_rows import NO_LIMIT, BadRowTally
from likewise.io.source.source import ReadTask, Source
from likewise.job.options import FileRun, RunContext, RunRules
from likewise.job.reading import found_inputs, in_order, jobs_of, refusal, total_bytes
from likewise.progress import Progress, Warned, no_progress, shows_progress, taken
from likewise.recipe.methods import Bloom
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.sketch import FilterSize
from likewise.stages.weights import DEFAULT_MEMORY_BYTES, Counter, Sample, Weights

# With fewer documents, all features are equally rare.
_LEAST_DOCUMENTS = 2
_COUNTED, _TABLE = "counted.json", "weights.lww"


def count_sources(
    sources: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    *,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    is_sampled: bool = False,
) -> Weights:
    """Return the weights of features by their rarity in all documents, or if `is_sampled`, in a sample of many."""
    counter = Sample() if is_sampled else Counter(recipe, memory_bytes)
    tally = BadRowTally(context.rules.max_bad_rows)
    read_into(counter, sources, "weighing", context, tally)
    if context.rules.max_bad_rows is not NO_LIMIT and (told := tally.finish()) is not None:
        context.progress(Warned(told))
    with context.timing.wall("weighing"):
        if isinstance(counter, Sample):
            table = counter.count(recipe, memory_bytes, threads=context.threads)
        else:
            table = counter.finish(threads=context.threads)
    # A run on one document has nothing to compare.
    for doubt in doubts_of(table) if not recipe.needs_threshold or table.num_documents >= _LEAST_DOCUMENTS else []:
        context.progress(Warned(doubt))
    return table


def read_into(
    counter: Counter | Sample | FilterSize,
    sources: Sequence[Source],
    stage: str,
    context: RunContext,
    tally: BadRowTally | None = None,
) -> None:
    """Read all documents once and pass their texts to `counter`."""

    def count(number: int, _: int, job: ReadTask) -> None:
        source = sources[number]
        # A source with a single job may use all threads for it.
        threads = context.threads if 0 < source.num_bytes <= ingest.PIECE_BYTES else 1
        for piece in job.read():
            if piece.bad_rows and context.rules.on_error == "fail":
                # The lines of earlier jobs may be uncounted.
                raise InvalidInput(refusal(source, piece.bad_rows[0]).message, source.name)
            if tally is not None:
                tally.add(source.name, None, piece)
            counter.add(piece.texts, threads=threads)

    # Files decompressed for this pass are deleted after it.
    with context.timing.wall(stage), scratch_for(sources) as unpacked:
        jobs = jobs_of(sources, ingest.PIECE_BYTES, unpacked, count)
        for _ in in_order(stage, jobs, total_bytes(sources), context):
            pass


def doubts_of(table: Weights) -> list[str]:
    """Return warnings about the reliability of a counted table, one sentence each."""
    doubts = []
    if not table.is_exact:
        doubts.append(
            "the counts do not fit in memory (48 bytes per distinct feature), so they come from a sketch and may be "
            f"too high, by up to {table.excess:,} for all but {table.excess_probability:.1%} of the features. For "
            "exact counts, run likewise weights with a larger --memory."
        )
    if table.num_documents < _LEAST_DOCUMENTS:
        doubts.append(
            f"only {counted(table.num_documents, 'document')} with distinct feature sets; in so few documents, "
            "all features look equally rare"
        )
    return doubts


def weighed_files(
    files: Sequence[Source],
    recipe: Recipe,
    context: RunContext,
    parts: Path | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
) -> Recipe:
    """Return the recipe with its weights, then its filter size, from files that can be read again.

    A directory for parts keeps the counts for a later run.
    """
    needs_reading = recipe.needs_counting or recipe.needs_filter_bits
    if parts is not None and (known := known_counts(parts, recipe)) is not None:
        return known
    found, context = recipe, replace(context, rules=RunRules(context.threads, "skip"))
    if found.needs_counting:
        table = count_sources(files, found, context, memory_bytes=memory_bytes, is_sampled=True)
        found = found.with_table(table)
    if isinstance(found.sketch, Bloom) and found.sketch.filter_bits is None:
        size = FilterSize(found, found.sketch)
        read_into(size, files, "sizing", context)
        found = found.replace(filter_bits=size.finish())
    if parts is not None and needs_reading and sum(file.num_bytes for file in files) >= PART_BYTES:
        parts.mkdir(exist_ok=True)
        if found.table is not None:
            found.table.write(parts / _TABLE)
        facts = json.dumps({"filter_bits": found.fields["filter_bits"], "has_table": found.table is not None})
        unfinished = parts / "counted.unfinished"
        unfinished.write_text(facts, encoding="utf-8", newline="\n")
        unfinished.replace(parts / _COUNTED)
    return found


def known_counts(parts: Path, recipe: Recipe) -> Recipe | None:
    """Return the recipe with the counts of an earlier run, if it needs some, and they are stored and undamaged."""
    if not (recipe.needs_counting or recipe.needs_filter_bits):
        return None
    with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError, LikewiseError):
        facts = json.loads((parts / _COUNTED).read_text(encoding="utf-8"))
        if facts["has_table"]:
            recipe = recipe.with_table(Weights.read(parts / _TABLE))
        return recipe.replace(filter_bits=facts["filter_bits"]) if recipe.needs_filter_bits else recipe
    return None


@shows_progress
def weigh_files(
    inputs: Sequence[str | Path] | str | Path,
    recipe: GivenRecipe | None = None,
    *,
    run: FileRun | None = None,
    memory_bytes: float | str = DEFAULT_MEMORY_BYTES,
    output: Path | None = None,
    progress: Progress | bool | None = None,
) -> Weights:
    """Return the weights of features by their rarity in files."""
    recipe = as_recipe(Recipe.minhash(weights="idf") if recipe is None else recipe)
    run = run or FileRun()
    with found_inputs(inputs, recipe, run, output, no_progress) as found:
        return count_sources(
            found.files,
            recipe,
            RunContext(run.run_rules(), progress=taken(progress)),
            memory_bytes=memory_bytes,
        )
