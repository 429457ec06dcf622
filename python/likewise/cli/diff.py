"""``likewise diff``: whether two runs gave the same answer."""

from pathlib import Path

import click

from likewise.cli.terminal import printable

_HELP = """Say whether two runs gave the same answer: recipe, evidence rows, and kept documents in input order.

Exit status 0: the same. 1: different, with the first differences named.

\b
Example:
  likewise dedup a.jsonl -o one --threads 1
  likewise dedup a.jsonl -o two
  likewise diff one two
"""


@click.command("diff", help=_HELP)
@click.argument("first", type=click.Path(file_okay=False, path_type=Path), metavar="RUN1")
@click.argument("second", type=click.Path(file_okay=False, path_type=Path), metavar="RUN2")
@click.option("--quiet", "-q", is_flag=True, help="Only the exit status.")
def command(first: Path, second: Path, quiet: bool) -> int:  # noqa: FBT001 - click's call
    """Run the command."""
    from likewise.io.runs import run_differences

    differences, compared = run_differences(first, second)
    if not quiet:
        for difference in differences:
            click.echo(printable(difference))
        if not differences:
            click.echo(f"the same answer ({compared})")
    return 1 if differences else 0
