"""Plans of runs of ``likewise plan``: on this machine, and on Spark."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.recipe import recipe_line, take_recipe
from likewise.cli.options.terminal import has_color
from likewise.errors import InvalidParameter, counted, num_threads, parse_size

if TYPE_CHECKING:
    from likewise.batch.budget.cluster_plans import RunPlan

# Average of the documents of the benchmarks.
DOCUMENT_BYTES = 1173


def run_on_spark(given: dict[str, Any], search: dict[str, Any], options: dict[str, Any], *, as_json: bool) -> None:
    """Print the costs of running a recipe on Spark."""
    from likewise.batch.budget.cluster_plans import plan_run

    for name in ("documents", "engine"):
        if given[name] is None:
            other = "--engine spark" if name == "engine" else "--documents"
            raise InvalidParameter(
                name, f"a plan of a run on Spark requires {other}; to plan a search, give --n instead"
            )
    for name, value in search.items():
        if value is not None and value is not False:
            raise InvalidParameter(
                name.replace("_", "-"), "applies only to a search (--n), not to a run on Spark (--documents); remove it"
            )
    workers = 1 if given["workers"] is None else given["workers"]
    for name, value in (("documents", given["documents"]), ("workers", workers)):
        if value < 1:
            raise InvalidParameter(name, f"{value} is less than 1")
    document_bytes = DOCUMENT_BYTES
    if given["document_bytes"] is not None:
        document_bytes = parse_size("document-bytes", given["document_bytes"])
    recipe = take_recipe(options).resolve()
    plan = plan_run(recipe, given["documents"], workers, document_bytes)
    if as_json:
        click.echo(json.dumps(plan.to_dict()))
    else:
        _draw(plan, recipe_line(recipe.to_dict()))


def _draw(plan: "RunPlan", recipe: str) -> None:
    from rich.console import Console
    from rich.table import Table

    documents, cores = counted(plan.num_documents, "document"), counted(plan.workers, "core")
    console = Console(file=sys.stdout, highlight=False, no_color=not has_color(sys.stdout), width=100)
    console.print(recipe)
    console.print(f"{documents} of {plan.document_bytes:,.0f} bytes on {cores} of Spark\n")
    table = Table(box=None, pad_edge=False)
    for name in ("stage", "shuffled", "written", "core-seconds", "memory of a worker"):
        table.add_column(name, justify="left" if name == "stage" else "right")
    for stage in plan.stages:
        sizes = [_gigabytes(stage.shuffle_bytes), _gigabytes(stage.stored_bytes)]
        table.add_row(stage.name, *sizes, f"{stage.core_s:,.0f}", _gigabytes(stage.worker_bytes))
    totals = [sum(stage.shuffle_bytes for stage in plan.stages), sum(stage.stored_bytes for stage in plan.stages)]
    table.add_row("all", *map(_gigabytes, totals), f"{plan.core_s:,.0f}", "", style="bold")
    console.print(table)
    console.print(f"\n{plan.core_s / 3600:,.1f} core-hours, about {plan.hours:,.1f} hours on {cores}")
    if plan.serial_s > 0:
        console.print(f"one worker decides the slabs alone for {plan.serial_s:,.0f} s of them")
    if plan.warning is not None:
        console.print(plan.warning, soft_wrap=True)
    console.print("extrapolated from 100,000 documents of 2.4 kB on two cores")


def _gigabytes(num_bytes: float) -> str:
    return f"{num_bytes / 1e9:,.2f} GB" if num_bytes < 1e11 else f"{num_bytes / 1e9:,.0f} GB"


_MEMORY = "4GB"


def run_here(given: dict[str, Any], search: dict[str, Any], options: dict[str, Any], *, as_json: bool) -> None:
    """Print the plan of a run with a memory limit."""
    from likewise.batch.memory import plan_of
    from likewise.job.reading import FileRun

    for name, value in search.items():
        if name != "memory" and value is not None and value is not False:
            raise InvalidParameter(name.replace("_", "-"), "applies only to a search (--n), not to a run (--documents)")
    if given["documents"] < 1:
        raise InvalidParameter("documents", f"{given['documents']} is less than 1")
    size = given["document_bytes"]
    document_bytes = DOCUMENT_BYTES if size is None else parse_size("document-bytes", size)
    limit = FileRun(memory_bytes=search["memory"] or _MEMORY).memory_bound()
    assert limit is not None
    recipe = take_recipe(options, base="default").resolve()
    plan = plan_of(recipe, given["documents"], document_bytes, limit, num_threads(None))
    if as_json:
        click.echo(json.dumps(plan.to_dict()))
        return
    click.echo("\n".join([recipe_line(recipe.to_dict()), *plan.lines()]))
