"""Weight tables by rarity, counted from files."""

from collections.abc import Sequence
from pathlib import Path

from likewise.batch.read.weighing import count_sources
from likewise.job.context import RunContext
from likewise.job.options import FileRun
from likewise.job.reading import found_inputs
from likewise.progress import Progress, no_progress, shows_progress, taken
from likewise.recipe.given import GivenRecipe, as_recipe
from likewise.recipe.recipe import Recipe
from likewise.stages.weights import DEFAULT_MEMORY_BYTES, Weights


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
