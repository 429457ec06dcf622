"""``likewise dedup``: which documents to keep."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options import INPUTS, QUIET, decision_options, document_options, recipe_line, take_recipe, take_run
from likewise.cli.progress import ShownProgress
from likewise.cli.terminal import printable

if TYPE_CHECKING:
    from likewise.dedup.engine import Engine
    from likewise.recipe import Recipe

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
  likewise dedup articles.jsonl -o out --index seen.lw
  likewise dedup new.jsonl -o out2 --against seen.lw --add
  likewise dedup 'crawl/*.jsonl.gz' -o out --engine spark --master spark://host:7077
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
@click.option(
    "--index",
    "index",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Make a new index of all documents, removed ones too, so that later ones can be asked: seen it before?",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Remove also what matches a kept document of this index. Its recipe serves, and of the options that make a "
    "recipe only --keep acts beside it, unless all are named as they were for the index.",
)
@click.option("--add", is_flag=True, help="Add the documents that stay to the index of --against.")
@click.option("--overwrite", is_flag=True, help="Replace the finished run in OUT.")
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where documents are read, sketched and compared; the answer is the same.",
)
@click.option(
    "--master", metavar="URL", help="Spark: where it runs, such as spark://HOST:7077 or yarn.  [default: local[*]]"
)
@click.option(
    "--checkpoint-dir",
    metavar="PATH",
    help="Spark: where finished stages stay, so that the same command goes on after a failure.  [default: in OUT, "
    "until the run ends]",
)
@click.option(
    "--driver-memory", metavar="SIZE", help="Spark: what a search by distance may take on the driver.  [default: 4GB]"
)
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON on stdout.")
def command(
    inputs: tuple[str, ...],
    out: str,
    output: str,
    index: Path | None,
    against: Path | None,
    add: bool,  # noqa: FBT001 - click's call
    overwrite: bool,  # noqa: FBT001
    engine: str,
    master: str | None,
    checkpoint_dir: str | None,
    driver_memory: str | None,
    quiet: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.dedup import IndexUse, dedup_files, stream_dedup
    from likewise.errors import InvalidParameter

    use = IndexUse(index, against, add)
    elsewhere = _engine(engine, {"master": master, "checkpoint_dir": checkpoint_dir, "driver_memory": driver_memory})
    recipe, run = _recipe(options, against), take_run(options)
    if out == "-":
        others = (("output", output != "kept"), ("engine", elsewhere is not None))
        for name, is_given in (("json", as_json), ("overwrite", overwrite), *others):
            if is_given:
                raise InvalidParameter(name, "does not go with -o -: standard output carries the kept lines")
    with ShownProgress(quiet=quiet) as progress:
        if out == "-":
            summary = stream_dedup(inputs, sys.stdout.buffer, recipe, run=run, index=use, progress=progress.report)
        else:
            summary = dedup_files(
                inputs,
                out,
                recipe,
                run=run,
                write=output,
                overwrite=overwrite,
                index=use,
                engine=elsewhere,
                progress=progress.report,
            )
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        for line in summary_lines(summary, None if out == "-" else out):
            click.echo(printable(line), err=True)


def _engine(name: str, options: dict[str, str | None]) -> "Engine | None":
    """Return what decides in place of this machine, with the options that it takes; None for this machine."""
    from likewise.errors import InvalidParameter

    given = {option: value for option, value in options.items() if value is not None}
    if name == "spark":
        from likewise.spark import SparkEngine

        return SparkEngine(given.pop("master", "local[*]"), **given)
    if given:
        raise InvalidParameter(next(iter(given)), "acts with --engine spark only")
    return None


def _recipe(options: dict[str, Any], against: Path | None) -> "Recipe":
    """Return the recipe of the options; that of the index where none but --keep is named."""
    from likewise.recipe_check import FIELDS_OF_METHOD

    names = {"method", "recipe_file", *(name for fields in FIELDS_OF_METHOD.values() for name in fields)} - {"keep"}
    if against is None or not against.is_dir() or any(options.get(name) for name in names):
        return take_recipe(options)
    from likewise.index import Index

    keep = options["keep"]
    for name in (names | {"keep"}) & set(options):
        del options[name]
    with Index(against, read_only=True) as index:
        return index.recipe if keep is None else index.recipe.replace(keep=keep)


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
    if "against" in summary:
        seen = summary["against"]
        added = "; those that stay were added to it" if seen["adds"] else ""
        lines.append(f"{seen['num_removed']:,} removed for documents of the index {seen['path']}{added}")
    if "index" in summary:
        lines.append(f"an index of all documents in {summary['index']}")
    if summary["skipped_files"]:
        lines.append(f"skipped {len(summary['skipped_files']):,} files of other kinds (listed in summary.json)")
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    if out is not None:
        lines.append(f"recipe {summary['recipe_id']}; results in {out}")
    return lines
