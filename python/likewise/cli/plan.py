"""``likewise plan``: bands or radius, and what they find."""

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import plan_options, recipe_line, take_recipe
from likewise.cli.terminal import has_colour

if TYPE_CHECKING:
    from likewise.plan import Plan

_BAR = 50

_HELP = """Say which bands or radius a recipe resolves into, and which pairs they find with what probability.

\b
Examples:
  likewise plan
  likewise plan --threshold 0.8
  likewise plan --threshold 0.8 --recall 0.99 --num-slots 256
  likewise plan --method simhash --bits 128 --threshold 0.9
"""


@click.command("plan", help=_HELP)
@plan_options
@click.option("--json", "as_json", is_flag=True, help="Print the plan as JSON.")
def command(as_json: bool, **options: Any) -> None:  # noqa: FBT001, ANN401
    """Run the command."""
    from likewise.plan import plan

    found = plan(take_recipe(options))
    if as_json:
        click.echo(json.dumps(found.to_dict()))
    else:
        _draw(found)


def _draw(found: "Plan") -> None:
    from rich.console import Console
    from rich.text import Text

    recipe = found.recipe
    console = Console(file=sys.stdout, highlight=False, no_color=not has_colour(sys.stdout), width=100)
    axis = "Jaccard" if recipe.method == "minhash" else "cosine"
    console.print(recipe_line(recipe.to_dict()))
    console.print(f"{found.bytes_a_document} bytes a document")
    if recipe.threshold is None:
        console.print(f"exact: every pair within {recipe.within} bits is found")
    elif found.recall is None:
        console.print(f"no model states the recall for measure {recipe.measure}; the curve shows what the search finds")
    else:
        console.print(f"P(found) at {recipe.measure} {recipe.threshold}: {found.recall:.4f}")
    console.print(f"\n{axis:>8}  P(found)")
    threshold = recipe.candidate_threshold if recipe.method == "minhash" else recipe.threshold
    for similarity, probability in found.curve:
        at_threshold = similarity == threshold
        line = Text(f"{similarity:8.3f}  {probability:8.4f}  ")
        line.append("█" * round(probability * _BAR), style="bold green" if at_threshold else "blue")
        line.append("·" * (_BAR - round(probability * _BAR)), style="dim")
        line.append("  <- threshold" if at_threshold else "")
        console.print(line)
