"""``likewise leaks``: near-duplicates between the splits of a dataset."""

from typing import Any

import click

from likewise.cli.options.commands import FRESH, JSON, MEMORY, OVERWRITE, LongCommand, option
from likewise.cli.options.recipe import (
    QUIET,
    count,
    document_options,
    output_directory,
    search_options,
    take_recipe,
    take_run,
)
from likewise.cli.options.terminal import chosen_lines, crowd_words, print_summary, reading_lines
from likewise.errors import counted
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
@output_directory("Output directory for leaks.parquet (the pairs) and summary.json.")
@option(
    "--write",
    "kept: also write the splits after the first without their leaking documents, in OUT/kept/NAME/.",
    ("evidence", "kept"),
    "evidence",
)
@search_options
@option(
    "--max-pairs N", "Fail if there are more pairs.  [default: 10,000,000]", count, "10_000_000", show_default=False
)
@document_options
@OVERWRITE
@FRESH
@MEMORY
@QUIET
@JSON
def command(splits: tuple[str, ...], out: str | None, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run the command."""
    from likewise.corpus import leak_files, leak_table, splits_named

    recipe, run = take_recipe(options, "default", quiet=quiet), take_run(options)
    with shown(not quiet) as report:
        summary = leak_files(splits_named(splits), out, recipe, run=run, progress=report, **options)
    print_summary(summary, out, as_json=as_json, quiet=quiet, lines=_lines, table=leak_table)


def _lines(summary: dict[str, Any], out: str | None) -> list[str]:
    num_dropped = sum(split["num_dropped"] for split in summary["splits"].values())
    lines = [
        summary["verification"],
        f"{counted(summary['num_pairs'], 'pair')} between splits among "
        f"{counted(summary['num_documents'], 'document')}; {counted(num_dropped, 'document')} to drop"
        f"{crowd_words(summary)}",
    ]
    if "chosen_threshold" in summary:
        lines += chosen_lines(summary["chosen_threshold"])
    lines += reading_lines(summary)
    lines.append(f"{summary['timings']['total_s']:.2f} s" + ("" if out is None else f"; results in {out}"))
    return lines
