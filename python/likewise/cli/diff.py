"""``likewise diff``: the differences between the results of two runs."""

import json
from pathlib import Path

import click

from likewise.cli.options.commands import flag
from likewise.progress import printable

# Maximum number of differing rows that --json lists; all are counted.
_MOST_LISTED = 1000


@click.command("diff")
@click.argument("first", type=click.Path(file_okay=False, path_type=Path), metavar="RUN1")
@click.argument("second", type=click.Path(file_okay=False, path_type=Path), metavar="RUN2")
@flag("--json", "Print counts and differing rows as JSON.", to="as_json")
@flag("--quiet -q", "Print nothing; only set the exit status.")
def command(first: Path, second: Path, as_json: bool, quiet: bool) -> int:
    """Compare the results of two runs: recipe, evidence rows, and kept documents in input order.

    Exit status: 0 if they are equal; 1 if they differ, with the first differences. With --json, prints an object with
    is_same, compared, the differing recipe fields and counts (both values), and for evidence and kept documents the
    number of differences (num_differing) and the first 1,000.

    \b
    Examples:
      likewise diff one two
      likewise diff one two --json | jq .evidence.num_differing
    """
    from likewise.errors import InvalidParameter
    from likewise.runs.diff import compare_runs, run_differences

    if as_json:
        if quiet:
            raise InvalidParameter("quiet", "cannot be combined with --json")
        found = compare_runs(first, second, most=_MOST_LISTED, with_counts=True)
        click.echo(json.dumps(found.to_dict(), ensure_ascii=False))
        return 0 if found.is_same else 1
    differences, compared = run_differences(first, second)
    if not quiet:
        for difference in differences:
            click.echo(printable(difference))
        if not differences:
            click.echo(f"no differences ({compared})")
    return 1 if differences else 0
