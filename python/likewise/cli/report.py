"""``likewise report``: an HTML report about a run."""

import sys
from pathlib import Path

import click

from likewise.cli.options.commands import flag, option
from likewise.cli.options.recipe import MOVED_INPUTS, QUIET
from likewise.progress import printable, shown


@click.command("report")
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@option(
    "-o --output FILE",
    "Output file, or - for stdout.  [default: OUT/report.html]",
    click.Path(dir_okay=False, allow_dash=True, path_type=Path),
)
@flag("--card", "Write a section for a dataset card instead, as Markdown, to stdout.", to="is_card")
@flag("--no-samples", "Do not include document text.")
@MOVED_INPUTS
@QUIET
def command(
    out: Path,
    output: Path | None,
    is_card: bool,
    no_samples: bool,
    inputs: Path | None,
    quiet: bool,
) -> None:
    """Write an HTML report about a run.

    OUT is the output directory of a command. For dedup, the page shows counts, stage timings, the similarities of
    removed documents, group sizes, recall, and twenty removals with their differences; for repeats, the parts removed
    most and twenty documents; for leaks, decontaminate, copies and boilerplate, the counts and the first rows of each
    table. It is one self-contained file without scripts, safe to send by email.

    \b
    Examples:
      likewise report out
      likewise report out -o monday.html --no-samples
      likewise report out --inputs /archive/articles
      likewise report out --card >> README.md
    """
    from likewise.io.output.directory import REPORT
    from likewise.io.output.whole import write_whole
    from likewise.runs.report import report

    if is_card:
        from likewise.runs.report.sections import card

        text, output = card(out), output or Path("-")
    else:
        with shown(not quiet) as progress:
            text = report(out, samples=not no_samples, inputs=inputs, progress=progress)
    if output is not None and str(output) == "-":
        sys.stdout.buffer.write(text.encode())
        return
    target = out / REPORT if output is None else output
    write_whole(target, text)
    if not quiet:
        click.echo(f"wrote {printable(str(target))}", err=True)
