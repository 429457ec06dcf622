"""What every run on files begins with: its recipe, its inputs, and the memory that it keeps to."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from likewise.batch.against.index import IndexUse
from likewise.batch.against.references import recipe_of_references
from likewise.batch.engine import Engine
from likewise.batch.memory import BoundedRun
from likewise.batch.options import FileRun
from likewise.batch.run import RunRules
from likewise.errors import InvalidParameter
from likewise.io.inputs import Inputs, find_inputs
from likewise.io.output.scratch import scratch_directory
from likewise.progress import Planned, Progress
from likewise.recipe.recipe import Recipe, as_recipe, batch_recipe


def recipe_of_files(
    recipe: object,
    preset: str | None = None,
    *,
    index: IndexUse | None = None,
    against: Sequence[str | Path] = (),
    engine: Engine | None = None,
) -> Recipe:
    """Return the recipe of a run over files, as it was given or that of a preset.

    For neither it is that of the index or finished run `against`, else the preset ``default``; with an engine, which
    cannot count weights or choose a threshold, ``online``.

    Raises
    ------
    InvalidParameter
        If it is not a recipe, there is no such preset, or both are given.
    """
    if recipe is None and preset is None:
        recipe = recipe_of_references(None if index is None else index.against, against)
    return batch_recipe(recipe, preset) if engine is None else as_recipe(recipe, preset)


@contextmanager
def found_inputs(
    inputs: Sequence[str | Path] | str | Path, recipe: Recipe, run: FileRun, output: Path | None, progress: Progress
) -> Iterator[Inputs]:
    """Find the inputs of a run, as a context: a copy of standard input lives as long as it."""
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
            progress=progress,
        )


def bounded_run(
    found: Inputs,
    recipe: Recipe,
    run: FileRun,
    rules: RunRules,
    work: Path,
    progress: Progress,
    *,
    writes_copies: bool,
    beside: IndexUse | None = None,
) -> BoundedRun:
    """Return what memory the run keeps to, and tell its plan."""
    memory_bytes = run.memory_bound()
    if memory_bytes is not None and beside is not None and (beside.create is not None or beside.against is not None):
        raise InvalidParameter("memory", "an index takes what it needs; leave --memory away, or the index")
    bounded = BoundedRun(found.files, recipe, memory_bytes, rules.threads, work, writes_copies=writes_copies)
    if bounded.plan is not None:
        progress(Planned(bounded.plan.lines()))
    return bounded
