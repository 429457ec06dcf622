"""``likewise leaks``: near-duplicates between the splits of a dataset."""

import json
import sys
from typing import Any

import click

from likewise.checks import counted
from likewise.cli.options.help import LongCommand
from likewise.cli.options.memory_option import MEMORY
from likewise.cli.options.recipe import (
    QUIET,
    count,
    directory_name,
    document_options,
    search_options,
    take_recipe,
    take_run,
)
from likewise.cli.options.summary import bad_line, crowd_words
from likewise.cli.options.terminal import chosen_lines, printable, skipped_line, table_lines
from likewise.progress import shown

_HELP = """Find near-duplicates between the splits of a dataset.

The first split is the training set. Each SPLIT is NAME=PATH, or a path whose file name without endings becomes the
name: a file, a directory or a glob, in any format that dedup reads. Repeat a NAME to give several paths. Without a
NAME, all splits of a saved DatasetDict are read.

The table shows how many documents of each row's split have a near-duplicate in the column's split. A document should be
dropped if it matches any document of an earlier split. Recipe options and defaults are those of dedup; weights and
threshold are computed from all splits together.

\b
Examples:
  likewise leaks train.jsonl test.jsonl
  likewise leaks train='data/train-*.parquet' test=data/test.parquet -o out
  likewise leaks train.jsonl validation.jsonl test.jsonl -o out --write kept
"""


@click.command("leaks", cls=LongCommand, help=_HELP)
@click.argument("splits", nargs=-1, required=True, metavar="TRAIN TEST...")
@click.option(
    "-o",
    "--out",
    callback=directory_name,
    metavar="OUT",
    help="Output directory for leaks.parquet (the pairs) and summary.json.",
)
@click.option(
    "--write",
    type=click.Choice(["evidence", "kept"]),
    default="evidence",
    show_default=True,
    help="kept: also write the splits after the first without their leaking documents, in OUT/kept/NAME/.",
)
@search_options
@click.option(
    "--max-pairs",
    type=count,
    metavar="N",
    default="10_000_000",
    help="Fail if there are more pairs.  [default: 10,000,000]",
)
@document_options
@click.option("--overwrite", is_flag=True, help="Replace a finished run in OUT.")
@click.option("--fresh", is_flag=True, help="Discard an unfinished run in OUT instead of continuing it.")
@MEMORY
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON to stdout.")
def command(
    splits: tuple[str, ...],
    out: str | None,
    write: str,
    max_pairs: int,
    overwrite: bool,
    fresh: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the command."""
    from likewise.corpus import leak_files, splits_named
    from likewise.errors import InvalidParameter

    if out == "-":
        raise InvalidParameter("out", "must be a directory")
    recipe, run = take_recipe(options, "default", quiet=quiet), take_run(options)
    with shown(not quiet) as report:
        summary = leak_files(
            splits_named(splits),
            out,
            recipe,
            run=run,
            write=write,
            max_pairs=max_pairs,
            overwrite=overwrite,
            fresh=fresh,
            progress=report,
        )
    if as_json:
        json.dump(summary, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    elif not quiet:
        for line in _table_lines(summary):
            click.echo(printable(line))
        for line in _lines(summary, out):
            click.echo(printable(line), err=True)


def _table_lines(summary: dict[str, Any]) -> list[str]:
    """Return the lines of the table of splits by splits."""
    from likewise.corpus import leak_table

    return table_lines(leak_table(summary))


def _lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return the remaining lines of a summary."""
    num_dropped = sum(split["num_dropped"] for split in summary["splits"].values())
    lines = [
        summary["verification"],
        f"{counted(summary['num_pairs'], 'pair')} between splits among "
        f"{counted(summary['num_documents'], 'document')}; {counted(num_dropped, 'document')} to drop"
        f"{crowd_words(summary)}",
    ]
    if "chosen_threshold" in summary:
        lines += chosen_lines(summary["chosen_threshold"])
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(bad_line(summary))
    if summary["skipped_files"]:
        lines.append(skipped_line(summary["skipped_files"]))
    lines.append(f"{summary['timings']['total_s']:.2f} s" + ("" if out is None else f"; results in {out}"))
    return lines
