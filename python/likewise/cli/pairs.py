"""``likewise pairs``: all verified pairs."""

import sys
from typing import Any

import click

from likewise.cli.options.commands import MEMORY, PLACE, LongCommand, flag, option
from likewise.cli.options.recipe import (
    INPUTS,
    QUIET,
    count,
    input_options,
    search_options,
    take_recipe_beside,
    take_run,
)
from likewise.cli.options.terminal import chosen_lines, crowd_words, print_summary, skipped_lines
from likewise.errors import InvalidParameter, counted
from likewise.progress import shown


@click.command("pairs", cls=LongCommand)
@INPUTS
@option("-o --out PAIRS", "Output file (.tsv, .jsonl or .parquet), or - for TSV to stdout.", required=True)
@search_options
@option(
    "--against PATH",
    "List only pairs of a document of INPUT (a) with one of PATH (b): a file, a directory of files, or the output "
    "directory of a run (its kept documents, and its recipe by default). Repeatable.",
    PLACE,
    multiple=True,
)
@option(
    "--max-pairs N",
    "Fail if there are more pairs. 1,000 copies of a text make 499,500 pairs.  [default: 10,000,000]",
    count,
    "10_000_000",
    show_default=False,
)
@input_options
@MEMORY
@QUIET
@flag("--json", "Print counts and timings as JSON to stdout.", to="as_json")
def command(inputs: tuple[str, ...], out: str, quiet: bool, as_json: bool, **options: Any) -> None:
    """List all verified pairs of near-duplicates.

    INPUT is in any format that dedup reads: files, directories, globs, or - for standard input. Rows have the columns
    doc_id_a, doc_id_b, similarity and distance, and are not sorted. With --measure containment, document doc_id_a is
    contained in doc_id_b, and both directions are listed; with --against, only new documents contained in reference
    documents are listed. Recipe options and defaults are the same as for dedup.

    \b
    Examples:
      likewise pairs articles.jsonl -o pairs.tsv
      likewise pairs articles.jsonl -o pairs.parquet --threshold 0.7 --recall 0.99
      likewise pairs new.jsonl -o pairs.tsv --against old.jsonl
      likewise pairs notes.jsonl -o - --method simhash --within 6 | sort
    """
    from likewise.batch.pair_files import pair_files

    recipe, run = take_recipe_beside(options, None, options["against"], "default", quiet=quiet), take_run(options)
    if out == "-" and as_json:
        raise InvalidParameter("json", "cannot be combined with -o -, which writes pairs to standard output")
    with shown(not quiet) as report:
        summary = pair_files(inputs, out, recipe, run=run, progress=report, stdout=sys.stdout.buffer, **options)
    print_summary(summary, None, as_json=as_json, quiet=quiet, lines=_lines)


def _lines(summary: dict[str, Any], _out: None) -> list[str]:
    num_others = summary.get("against", {}).get("num_documents")
    others = "" if num_others is None else f"and {num_others:,} of --against "
    return [
        f"{counted(summary['num_pairs'], 'pair')} among {counted(summary['num_documents'], 'document')} {others}"
        f"({counted(summary['num_bad_rows'], 'bad row')}) "
        f"in {summary['timings']['total_s']:.2f} s{crowd_words(summary)}",
        *chosen_lines(summary),
        *skipped_lines(summary["skipped_files"]),
    ]
