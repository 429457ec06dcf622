"""``likewise match``: the references that each query carries."""

import json
import sys
from typing import Any

import click

from likewise.checks import counted
from likewise.cli.options.progress import ShownProgress
from likewise.cli.options.recipe import QUIET, index_input_options, matching_options, take_recipe, take_run
from likewise.cli.options.terminal import skipped_line

_HELP = """Find the references that each document contains or resembles, with a score.

QUERIES and REFERENCES are of any format that dedup reads. The score is sqrt(reference_share * query_share): the
share of the reference's features found in the document, and the share of the document's features found in the
reference. A document without an answer has a row without a reference.
References are held in memory, documents are streamed.

\b
Examples:
  likewise match found.jsonl --in licenses.jsonl
  likewise match 'src/**/LICENSE*' --in licenses/ --format text -o matches.parquet --top 3
"""


@click.command("match", help=_HELP)
@click.argument("queries", nargs=-1, required=True, metavar="QUERIES...")
@click.option(
    "--in", "references", multiple=True, required=True, metavar="REFERENCES", help="Where references are; repeatable."
)
@click.option(
    "-o",
    "--out",
    default="-",
    metavar="MATCHES",
    help="A .tsv, .jsonl or .parquet file, or - for TSV on stdout.  [default: -]",
)
@click.option(
    "--top", type=click.IntRange(1), default=1, show_default=True, metavar="N", help="References listed for a document."
)
@click.option(
    "--min-score", type=float, default=0.05, show_default=True, metavar="S", help="Least score of an answer, 0 to 1."
)
@click.option(
    "--shingle", type=int, metavar="N", help="Consecutive tokens in a feature, 1 to 64.  [default: 2, of char 9]"
)
@click.option(
    "--weights",
    metavar="RULE|FILE",
    help="Weight of a feature: none; by its occurrences: count, log-count; by how few references hold it: idf, "
    "log-count-idf; by a FILE: a table of likewise weights or a lexicon.  [default: idf]",
)
@matching_options
@index_input_options
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print counts and seconds as JSON on stdout.")
def command(
    queries: tuple[str, ...],
    references: tuple[str, ...],
    out: str,
    top: int,
    min_score: float,
    quiet: bool,  # noqa: FBT001 - click's call
    as_json: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.corpus import match_files
    from likewise.errors import InvalidParameter

    if options["recipe_file"] is None and options["preset"] is None:
        options |= {"method": "shingles", "weights": options["weights"] or "idf"}
    recipe, run = take_recipe(options), take_run(options | {"duplicate_ids": "allow"})
    if out == "-" and as_json:
        raise InvalidParameter("json", "does not go with -o -: standard output carries the matches")
    with ShownProgress(quiet=quiet) as progress:
        summary = match_files(
            queries,
            references,
            out,
            recipe,
            top=top,
            min_score=min_score,
            run=run,
            progress=progress.report,
            stdout=sys.stdout.buffer,
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
