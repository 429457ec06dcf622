"""``likewise match``: the references that documents contain or resemble."""

import json
import sys
from typing import Any

import click

from likewise.cli.options.commands import LongCommand, flag, option
from likewise.cli.options.recipe import QUIET, index_input_options, matching_options, take_recipe, take_run
from likewise.cli.options.terminal import skipped_line
from likewise.errors import counted
from likewise.progress import shown

_HELP = """Find the reference that each document contains or resembles.

QUERIES and REFERENCES are in any format that dedup reads. The score is sqrt(reference_share * query_share):
reference_share is the share of the reference's features found in the document, query_share the share of the document's
features found in the reference. A document without a match has a row without a reference. References are held in
memory; documents are streamed.

\b
Examples:
  likewise match found.jsonl --in licenses.jsonl
  likewise match 'src/**/LICENSE*' --in licenses/ --format text -o matches.parquet --top 3
"""


@click.command("match", cls=LongCommand, help=_HELP)
@click.argument("queries", nargs=-1, required=True, metavar="QUERIES...")
@option("--in REFERENCES", "References; repeat for several.", to="references", multiple=True, required=True)
@option(
    "-o --out MATCHES",
    "Output file (.tsv, .jsonl or .parquet), or - for TSV to stdout.  [default: -]",
    default="-",
    show_default=False,
)
@option("--top N", "Maximum references per document.", click.IntRange(1), 1)
@option("--min-score S", "Minimum score of a match, 0 to 1.", float, 0.05)
@option("--shingle N", "Number of consecutive tokens in a feature (1 to 64).  [default: 2; char: 9]", int)
@option(
    "--weights RULE|FILE",
    "Feature weights: none, count, log-count, idf, log-count-idf, or a file. idf uses the number of references "
    "with the feature. A file is a table from likewise weights or a lexicon.  [default: idf]",
)
@matching_options
@index_input_options
@QUIET
@flag("--json", "Print counts and timings as JSON to stdout.", to="as_json")
def command(
    queries: tuple[str, ...], references: tuple[str, ...], out: str, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run the command."""
    from likewise.corpus import match_files
    from likewise.errors import InvalidParameter

    if options["recipe_file"] is None and options["preset"] is None:
        options |= {"method": "shingles", "weights": options["weights"] or "idf"}
    options["duplicate_ids"] = "allow"
    recipe, run = take_recipe(options), take_run(options)
    if out == "-" and as_json:
        raise InvalidParameter("json", "cannot be combined with -o -, which writes matches to standard output")
    with shown(not quiet) as report:
        summary = match_files(
            queries, references, out, recipe, run=run, progress=report, stdout=sys.stdout.buffer, **options
        )
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        click.echo(
            f"{summary['num_matched']:,} of {counted(summary['num_queries'], 'document')} matched one of "
            f"{counted(summary['num_references'], 'reference')} ({counted(summary['num_bad_rows'], 'bad row')}) "
            f"in {summary['timings']['total_s']:.2f} s",
            err=True,
        )
        if summary["skipped_files"]:
            click.echo(skipped_line(summary["skipped_files"]), err=True)
