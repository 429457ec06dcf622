"""``likewise dedup``: which documents to keep."""

import json
import sys
from typing import Any

import click

from likewise.cli.options import INPUTS, QUIET, decision_options, document_options, recipe_line, take_recipe, take_run
from likewise.cli.progress import ShownProgress
from likewise.cli.terminal import printable

_HELP = """Decide which documents to keep, with evidence for each that goes.

INPUT is JSON Lines, CSV or TSV (each also in .gz or .zst), Parquet, Arrow IPC, Hugging Face dataset directories or text
files (.txt, .md, .rst): files, directories, globs, or - for standard input (JSON Lines, or what --format says).

OUT gets kept/ (a file for each input file, same name and format, lines byte for byte), removed.parquet (one row for
each removed document: which kept one it matches, measured how, with what result) and summary.json. Nothing has its
final name before all is complete. With -o - the kept lines go to standard output.

\b
Examples:
  likewise dedup articles.jsonl -o out
  likewise dedup a.parquet b.parquet -o out --threshold 0.9 --keep longest
  likewise dedup 'crawl/*.jsonl' -o out --text-field page.body --id-field url
  likewise dedup notes.jsonl -o out --method simhash
  cat notes.jsonl | likewise dedup - -o - > unique.jsonl
  zcat dump.csv.gz | likewise dedup - --format csv -o - > unique.csv
"""


@click.command("dedup", help=_HELP)
@INPUTS
@click.option(
    "-o", "--out", required=True, metavar="OUT", help="Directory for the results, or - for kept lines to stdout."
)
@decision_options
@document_options
@click.option(
    "--output",
    type=click.Choice(["kept", "evidence"]),
    default="kept",
    show_default=True,
    help="evidence: write no copies of documents.",
)
@click.option("--overwrite", is_flag=True, help="Replace the finished run in OUT.")
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on stdout.")
def command(
    inputs: tuple[str, ...],
    out: str,
    output: str,
    overwrite: bool,  # noqa: FBT001 - click's call
    quiet: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.dedup import dedup_files, stream_dedup
    from likewise.errors import InvalidParameter

    recipe, run = take_recipe(options), take_run(options)
    if out == "-":
        for name, is_given in (("json", as_json), ("overwrite", overwrite), ("output", output != "kept")):
            if is_given:
                raise InvalidParameter(name, "does not go with -o -: standard output carries the kept lines")
    with ShownProgress(quiet=quiet) as progress:
        if out == "-":
            summary = stream_dedup(inputs, sys.stdout.buffer, recipe, run=run, progress=progress.report)
        else:
            summary = dedup_files(
                inputs, out, recipe, run=run, write=output, overwrite=overwrite, progress=progress.report
            )
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        for line in summary_lines(summary, None if out == "-" else out):
            click.echo(printable(line), err=True)


def summary_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return a summary as lines for people; the first says how removals were verified."""
    recall = summary["recall"]
    found = "no model of the recall" if recall is None else f"P(found) at the threshold: {recall:.4f}"
    candidates, capped = summary["num_candidates"], summary["num_capped"]
    searched = "" if candidates is None else f"; {candidates:,} candidate pairs, {capped:,} capped"
    seconds = summary["timings"]
    stages = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in seconds["wall_s"].items())
    lines = [
        summary["verification"],
        f"{summary['num_documents']:,} documents: {summary['num_kept']:,} kept, {summary['num_removed']:,} removed"
        f" ({summary['num_empty']:,} empty, {summary['num_short']:,} short)",
        f"{found}{searched}",
        recipe_line(summary["recipe"]),
    ]
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(f"{summary['num_bad_rows']:,} bad rows, {summary['num_blank_lines']:,} blank lines")
    if not summary.get("weights", {}).get("is_exact", True):
        lines.append(f"weights by a counting sketch: counts may be too high by up to {summary['weights']['excess']:,}")
    if summary["num_below_threshold"]:
        lines.append(
            f"{summary['num_below_threshold']:,} removed documents do not match their kept one (below_threshold)"
        )
    if summary["skipped_files"]:
        lines.append(f"skipped {len(summary['skipped_files']):,} files of other kinds (listed in summary.json)")
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    if out is not None:
        lines.append(f"recipe {summary['recipe_id']}; results in {out}")
    return lines
