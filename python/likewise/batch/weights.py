"""Weight tables by rarity, counted from files."""

from collections.abc import Sequence
from pathlib import Path

from likewise.batch.budget.timing import Timing
from likewise.batch.options import FileRun
from likewise.batch.read.weighing import count_sources
from likewise.io.inputs import find_inputs
from likewise.io.output.scratch import scratch_directory
from likewise.io.stamps import Watch
from likewise.progress import Progress, shows_progress, taken
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
        watch = Watch(found.files)
        weights = count_sources(
            found.files,
            recipe,
            threads=rules.threads,
            timing=Timing(),
            progress=taken(progress),
            memory_bytes=memory_bytes,
            on_error=rules.on_error,
            max_bad_rows=rules.max_bad_rows,
        )
        watch.check()
        return weights
