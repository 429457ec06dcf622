"""``likewise plan``: bands or radius and their recall, or a search plan for a number of fingerprints."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.commands import READ, LongCommand, flag, option
from likewise.cli.options.recipe import count, plan_options, recipe_line, take_recipe
from likewise.cli.options.terminal import has_color
from likewise.errors import InvalidParameter, parse_size

if TYPE_CHECKING:
    from rich.console import Console

    from likewise.stages.bands import Plan

_BAR = 50
_RUN_OPTIONS = ("documents", "engine", "workers", "document_bytes")
_SEARCH_OPTIONS = ("n", "memory", "explain", "without_ids", "sample")


@click.command("plan", cls=LongCommand)
@plan_options
@option("--n N", "Plan a search of N fingerprints (default: --bits 64 --within 3).", count)
@option(
    "--memory SIZE",
    "Memory limit: of the run with --documents (default: 4GB), of tables and ids with --n (default: 4 times the "
    "fingerprints).",
)
@flag("--explain", "With --n: show the cost of published searches; with --memory, which of them fit.")
@flag("--without-ids", "With --n: do not store ids; queries return fingerprints.")
@option("--sample", "With --n: sample of fingerprints (.npy) used to balance blocks when bits are skewed.", READ)
@option("--documents N", "Plan a run over N documents.", count)
@option("--engine", "Plan a run on this engine; requires --documents.", ("spark",))
@option("--workers N", "With --engine spark: cores that run tasks.  [default: 1]", count)
@option("--document-bytes SIZE", "With --documents: text per document, such as 2kB.  [default: 1173]")
@flag("--json", "Print the plan as JSON.", to="as_json")
def command(as_json: bool, **options: Any) -> None:
    """Show the bands or radius for a threshold, or plan a run or a search of fingerprints.

    Without --n: shows the resolved recipe and the probability of finding a pair at each similarity, which depends
    neither on margins for short documents nor on names (--siblings). With --n: shows the size, time and tables of an
    exact Hamming search over N fingerprints; with --explain, of published searches. With --documents: shows the
    memory, disk space and time of a run on this machine; with --engine spark, the stages of a run on Spark with bytes,
    core-seconds and memory.

    \b
    Examples:
      likewise plan --threshold 0.8 --recall 0.99 --num-slots 256
      likewise plan --method simhash --bits 128 --threshold 0.9
      likewise plan --n 1e9 --within 3 --memory 16GB
      likewise plan --documents 1e8 --document-bytes 2kB --memory 8GB
      likewise plan --documents 1e9 --engine spark --workers 50
    """
    run = {name: options.pop(name) for name in _RUN_OPTIONS}
    search = {name: options.pop(name) for name in _SEARCH_OPTIONS}
    if any(value is not None for value in run.values()):
        from likewise.cli.plan import runs

        is_here = run["documents"] is not None and run["engine"] is None and run["workers"] is None
        (runs.run_here if is_here else runs.run_on_spark)(run, search, options, as_json=as_json)
        return
    if any(value is not None and value is not False for value in search.values()):
        _plan_search({**search, "as_json": as_json}, options)
        return
    from likewise.stages.bands import plan

    found = plan(take_recipe(options))
    if as_json:
        click.echo(json.dumps(found.to_dict()))
    else:
        _draw(found)


def _plan_search(search: dict[str, Any], options: dict[str, Any]) -> None:
    from likewise.cli.plan import hamming as plan_hamming

    if search["memory"] is not None:
        search["memory"] = parse_size("memory", search["memory"])
    search.update(bits=options.pop("bits"), within=options.pop("within"))
    for name, value in options.items():
        if value is not None and not (name == "method" and value == "simhash"):
            raise InvalidParameter(
                name, "cannot be combined with --n; of the recipe options, --n accepts --bits and --within"
            )
    plan_hamming.run(search)


def _draw(found: "Plan") -> None:
    from rich.console import Console
    from rich.text import Text

    from likewise.recipe.methods import Bloom, MinHash, SimHashDistance

    recipe = found.recipe
    console = Console(file=sys.stdout, highlight=False, no_color=not has_color(sys.stdout), width=100)
    method = recipe.sketch
    axis = "Jaccard" if isinstance(method, MinHash) else "cosine"
    console.print(recipe_line(recipe.to_dict()))
    if recipe.needs_threshold:
        console.print(
            "each run chooses its threshold and search; likewise plan --threshold T shows the search for a threshold"
        )
        return
    if isinstance(method, Bloom):
        _draw_filters(found, console)
        return
    if not found.curve:
        console.print("exact: all matching pairs are found")
        return
    console.print(f"{found.bytes_a_document} bytes per document")
    if isinstance(method, SimHashDistance):
        console.print(f"exact: all pairs within {method.within} bits are found")
    elif found.recall is None:
        console.print(f"no recall model for measure {recipe.measure}; the curve is that of the search")
    else:
        console.print(f"P(found) at {recipe.measure} {recipe.threshold}: {found.recall:.4f}")
    console.print(f"\n{axis:>8}  P(found)")
    threshold = recipe.candidate_threshold if isinstance(method, MinHash) else recipe.threshold
    for similarity, probability in found.curve:
        at_threshold = similarity == threshold
        line = Text(f"{similarity:8.3f}  {probability:8.4f}  ")
        line.append("█" * round(probability * _BAR), style="bold green" if at_threshold else "blue")
        line.append("·" * (_BAR - round(probability * _BAR)), style="dim")
        line.append("  <- threshold" if at_threshold else "")
        console.print(line)


def _draw_filters(found: "Plan", console: "Console") -> None:
    size = (
        f"{found.bytes_a_document} bytes"
        if found.bytes_a_document
        else "a quarter of a byte per feature of the largest document,"
    )
    console.print(f"{size} per document")
    threshold = f"{found.recipe.measure} {found.recipe.threshold}"
    if found.recall is None:
        console.print(f"no recall model at {threshold}")
    else:
        console.print(f"P(found) at {threshold}: {found.recall:.4f}")
