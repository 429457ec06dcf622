"""Weights by rarity in files: as a table of its own, or as the first of two passes."""

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from likewise.batch.budget.timing import Timing
from likewise.batch.options import FileRun
from likewise.batch.read.resume import PART_BYTES
from likewise.batch.read.sketched import HeldDocuments
from likewise.batch.read.weighing import count_sources, counted, of_few_documents
from likewise.batch.run import RunRules
from likewise.errors import LikewiseError
from likewise.io.inputs import find_inputs
from likewise.io.output.scratch import scratch_directory
from likewise.io.source.source import Source
from likewise.progress import Progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe, as_recipe
from likewise.recipe.recipe import Recipe
from likewise.stages.weights import DEFAULT_MEMORY_BYTES, Weights

_COUNTED, _TABLE = "counted.json", "weights.lww"


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
    """Return the weights of features by their rarity in files.

    Parameters
    ----------
    inputs : path or sequence of paths
        Files, directories, globs, or ``-``.
    recipe : Recipe or str, optional
        Determines the features; ``Recipe.minhash(weights="idf")`` if None.
    run : FileRun, optional
        How files are read.
    memory_bytes : float or str
        Memory limit for the counts.
    output : Path, optional
        Where the table will go; refused before the work if it is an input.
    progress : bool or callable, optional
        True shows bars in a terminal or a notebook. A function is called with the events of :mod:`likewise.progress`.

    Returns
    -------
    Weights
        The table, to be written or given to a recipe.

    Raises
    ------
    InvalidInput
        If a row is bad and `run` does not say ``on_error="skip"``, too many are, or `output` is an input.
    """
    recipe = as_recipe(Recipe.minhash(weights="idf") if recipe is None else recipe)
    run = run or FileRun()
    rules = run.run_rules()
    with scratch_directory() as work:
        found = find_inputs(
            [inputs] if isinstance(inputs, str | Path) else list(inputs),
            run.read_rules(recipe),
            file_format=run.format_for(recipe),
            delimiter=run.delimiter,
            output=output,
            stdin=run.stdin,
            spool_directory=work,
        )
        return count_sources(
            found.files,
            recipe,
            threads=rules.threads,
            timing=Timing(),
            progress=taken(progress),
            memory_bytes=memory_bytes,
            on_error=rules.on_error,
            max_bad_rows=rules.max_bad_rows,
        )


def weighed_files(
    files: Sequence[Source],
    recipe: Recipe,
    rules: RunRules,
    timing: Timing,
    progress: Progress,
    parts: Path | None = None,
    memory_bytes: int = DEFAULT_MEMORY_BYTES,
    held: HeldDocuments | None = None,
) -> Recipe:
    """Return the recipe with its weights and the size of its filters, for each of which files may be read once more.

    Where a directory for parts is given, what was counted stays there for a run that continues this one. `held` takes
    the features that are cut here.

    Raises
    ------
    RecipeMismatch
        If the recipe names a table and the count comes to another.
    """
    needs_reading = recipe.needs_counting or recipe.needs_filter_bits
    if parts is not None and needs_reading and (known := _known(parts, recipe)) is not None:
        return known
    found = counted(
        files,
        recipe,
        threads=rules.threads,
        timing=timing,
        progress=progress,
        memory_bytes=memory_bytes,
        held=held,
    )
    if parts is not None and needs_reading and sum(file.num_bytes for file in files) >= PART_BYTES:
        _keep(parts, found)
    return found


def _keep(parts: Path, recipe: Recipe) -> None:
    parts.mkdir(exist_ok=True)
    if recipe.table is not None:
        recipe.table.write(parts / _TABLE)
    facts = json.dumps({"filter_bits": recipe.fields["filter_bits"], "has_table": recipe.table is not None})
    unfinished = parts / "counted.unfinished"
    unfinished.write_text(facts, encoding="utf-8", newline="\n")
    unfinished.replace(parts / _COUNTED)


def _known(parts: Path, recipe: Recipe) -> Recipe | None:
    """Return the recipe with what an earlier run counted, if that is there and whole."""
    with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError, LikewiseError):
        facts = json.loads((parts / _COUNTED).read_text(encoding="utf-8"))
        if facts["has_table"]:
            recipe = recipe.with_table(Weights.read(parts / _TABLE))
        elif recipe.needs_counting:
            recipe = of_few_documents(recipe)
        return recipe.replace(filter_bits=facts["filter_bits"]) if recipe.needs_filter_bits else recipe
    return None
