"""Plans of runs on this machine of ``likewise plan``: memory, disk space and time."""

import json
from typing import Any

import click

from likewise.cli.options.recipe import recipe_line, take_recipe
from likewise.cli.plan.spark import DOCUMENT_BYTES
from likewise.errors import num_threads, parse_size

_MEMORY = "4GB"


def run(given: dict[str, Any], search: dict[str, Any], options: dict[str, Any], *, as_json: bool) -> None:
    """Print the plan of a run with a memory limit."""
    from likewise.batch.memory import plan_of
    from likewise.errors import InvalidParameter
    from likewise.job.options import FileRun

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
