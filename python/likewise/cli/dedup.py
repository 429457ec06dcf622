"""``likewise dedup``: which documents to keep."""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.checks import counted
from likewise.cli.options.memory_option import MEMORY
from likewise.cli.options.progress import ShownProgress
from likewise.cli.options.recipe import (
    INPUTS,
    QUIET,
    decision_options,
    document_options,
    fields_line,
    names_features,
    recipe_line,
    take_recipe,
    take_run,
)
from likewise.cli.options.terminal import chosen_lines, printable, skipped_line
from likewise.cli.parts import bad_line, check_part_options, part_lines, run_parts, search_line

if TYPE_CHECKING:
    from likewise.batch import IndexUse
    from likewise.batch.engine import Engine
    from likewise.recipe.recipe import Recipe

_HELP = """Decide which documents to keep, with evidence for each that goes.

INPUT is JSON Lines, CSV or TSV (each also in .gz or .zst), Parquet, Arrow IPC, Hugging Face dataset directories or text
files (.txt, .md, .rst): files, directories, globs, or - for standard input (JSON Lines, or what --format says).

OUT gets kept/ (a file for each input file, same name and format, lines byte for byte), removed.parquet (one row for
each removed document: which kept one it matches, measured how, with what result) and summary.json. Nothing has its
final name before all is complete; a run that was killed is continued by the same command. With -o - the kept lines go
to standard output.

By default two documents match when the Jaccard similarity of their word 2-grams, weighted by rarity, reaches a
threshold that the run chooses from the collection; short documents need more. With another --threshold, --weights,
--tokens, --measure, or --method simhash or exact, nothing is taken from the collection unless you name it: words are
3-grams that count alike. A line on stderr shows the recipe. --preset default --threshold T keeps the features of the
default. --engine spark and --unit cannot look at the collection first and use the preset online.

\b
Examples:
  likewise dedup articles.jsonl -o out
  likewise dedup a.parquet b.parquet -o out --threshold 0.9 --keep longest
  likewise dedup pages.jsonl -o out --preset strict
  likewise dedup 'crawl/*.jsonl' -o out --text-field page.body --id-field url
  likewise dedup notes.jsonl -o out --method simhash
  cat notes.jsonl | likewise dedup - -o - > unique.jsonl
  zcat dump.csv.gz | likewise dedup - --format csv -o - > unique.csv
  likewise dedup crawl/ -o out --memory 2GB
  likewise dedup articles.jsonl -o out --index seen.lw
  likewise dedup new.jsonl -o out2 --against seen.lw --add
  likewise dedup pages.jsonl -o out --unit paragraph
  likewise dedup pages.jsonl -o out --unit span --min-tokens 50 --dry-run
  likewise dedup monday.jsonl -o monday --keep-sketches
  likewise dedup tuesday.jsonl -o tuesday --against monday
  likewise dedup 'crawl/*.jsonl.gz' -o out --engine spark --master spark://host:7077
"""


@click.command("dedup", help=_HELP)
@INPUTS
@click.option(
    "-o", "--out", required=True, metavar="OUT", help="Directory for the results, or - for kept lines to stdout."
)
@decision_options
@document_options
@MEMORY
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
    multiple=True,
    metavar="PATH",
    help="Remove also what matches a kept document of an index or of a finished run (its output directory), or any "
    "document of files; can be repeated for runs and files. The recipe of the index or run serves, and of the options "
    "that make a recipe only --keep acts beside it, unless all are named as they were.",
)
@click.option("--add", is_flag=True, help="Add the documents that stay to the index of --against.")
@click.option(
    "--unit",
    type=click.Choice(["document", "line", "paragraph", "sentence", "span"]),
    default="document",
    show_default=True,
    help="Take repeated parts out of documents instead, the first of each stays: equal ones, or with --method near "
    "ones; span: any stretch of words. JSON Lines.",
)
@click.option(
    "--min-tokens",
    type=int,
    metavar="N",
    help="With --unit: words of the shortest part that goes.  [default: 0; span: 50]",
)
@click.option("--dry-run", is_flag=True, help="With --unit: write nothing, say what would go.")
@click.option(
    "--keep-sketches",
    is_flag=True,
    help="Keep the sketches of what stays in OUT/sketches, so that --against OUT need not read and sketch it again.",
)
@click.option(
    "--store-pairs",
    type=float,
    metavar="FLOOR",
    help="Write pairs.parquet: every verified pair from this similarity on, for the threshold page of likewise serve. "
    "Changes no verdict.",
)
@click.option("--overwrite", is_flag=True, help="Replace the finished run in OUT.")
@click.option("--fresh", is_flag=True, help="Begin anew where an unfinished run in OUT would be continued or refused.")
@click.option(
    "--engine",
    type=click.Choice(["local", "spark"]),
    default="local",
    show_default=True,
    help="Where documents are read, sketched and compared; the answer is the same.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Spark: where it runs, such as spark://HOST:7077 or yarn.  [default: local[*,4]: "
    "this machine, a failed task is tried again up to four times]",
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
    against: tuple[Path, ...],
    add: bool,  # noqa: FBT001 - click's call
    unit: str,
    min_tokens: int | None,
    dry_run: bool,  # noqa: FBT001
    keep_sketches: bool,  # noqa: FBT001
    store_pairs: float | None,
    overwrite: bool,  # noqa: FBT001
    fresh: bool,  # noqa: FBT001
    engine: str,
    master: str | None,
    checkpoint_dir: str | None,
    driver_memory: str | None,
    quiet: bool,  # noqa: FBT001
    as_json: bool,  # noqa: FBT001
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.batch import IndexUse, dedup_files, stream_dedup
    from likewise.errors import InvalidParameter

    if unit != "document":
        others = {"index": index, "against": against, "add": add, "output": output != "kept"}
        others |= {"keep_sketches": keep_sketches, "store_pairs": store_pairs is not None}
        others |= {"memory": options["memory"] is not None, "engine": engine != "local", "master": master is not None}
        others |= {"checkpoint_dir": checkpoint_dir is not None, "driver_memory": driver_memory is not None}
        for name in (name for name, value in others.items() if value):
            raise InvalidParameter(name, "does not act with --unit")
        check_part_options(unit, options)
        # Equal parts, unless a recipe was asked for.
        has_recipe = any(options[name] is not None for name in ("method", "preset", "recipe_file"))
        summary = run_parts(
            inputs,
            out,
            unit,
            min_tokens,
            options if has_recipe else options | {"method": "exact"},
            dry_run=dry_run,
            overwrite=overwrite,
            fresh=fresh,
            quiet=quiet,
        )
        _told(summary, None if dry_run else out, as_json=as_json, quiet=quiet, lines=part_lines)
        return
    for name in (name for name, is_given in (("min_tokens", min_tokens is not None), ("dry_run", dry_run)) if is_given):
        raise InvalidParameter(name, "acts with --unit only")
    asked, references = _told_apart(against)
    use = IndexUse(index, asked, add)
    elsewhere = _engine(engine, {"master": master, "checkpoint_dir": checkpoint_dir, "driver_memory": driver_memory})
    recipe, run = _recipe(options, use, references, elsewhere, quiet=quiet), take_run(options)
    if out == "-":
        given = {"json": as_json, "overwrite": overwrite, "fresh": fresh, "output": output != "kept"}
        given |= {
            "keep_sketches": keep_sketches,
            "store_pairs": store_pairs is not None,
            "engine": elsewhere is not None,
        }
        for name, is_given in given.items():
            if is_given:
                raise InvalidParameter(name, "does not go with -o -: standard output carries the kept lines")
    with ShownProgress(quiet=quiet) as progress:
        if out == "-":
            summary = stream_dedup(
                inputs, sys.stdout.buffer, recipe, run=run, index=use, against=references, progress=progress.report
            )
        else:
            summary = dedup_files(
                inputs,
                out,
                recipe,
                run=run,
                write=output,
                overwrite=overwrite,
                fresh=fresh,
                index=use,
                against=references,
                keep_sketches=keep_sketches,
                store_pairs=store_pairs,
                engine=elsewhere,
                progress=progress.report,
            )
    _told(summary, None if out == "-" else out, as_json=as_json, quiet=quiet, lines=summary_lines)
    if out != "-" and not as_json and not quiet and sys.stderr.isatty():
        _first_look(Path(out))


def _first_look(out: Path) -> None:
    """Show what to look at first. Documents are shown on terminals only, never in a log."""
    from likewise.errors import LikewiseError
    from likewise.runs.viewing import first_look

    try:
        lines = first_look(out)
    except (LikewiseError, OSError):
        # The run itself is complete: an input that is gone or changed spoils only this.
        return
    for line in lines:
        click.echo(printable(line), err=True)


def _told(
    summary: dict[str, Any],
    out: str | None,
    *,
    as_json: bool,
    quiet: bool,
    lines: Callable[[dict[str, Any], str | None], list[str]],
) -> None:
    if as_json:
        click.echo(json.dumps(summary, ensure_ascii=False))
    elif not quiet:
        for line in lines(summary, out):
            click.echo(printable(line), err=True)


def _engine(name: str, options: dict[str, str | None]) -> "Engine | None":
    """Return what decides in place of this machine, with the options that it takes; None for this machine."""
    from likewise.errors import InvalidParameter

    given = {option: value for option, value in options.items() if value is not None}
    if name == "spark":
        from likewise.spark import SparkEngine

        return SparkEngine(given.pop("master", "local[*,4]"), **given)
    if given:
        raise InvalidParameter(next(iter(given)), "acts with --engine spark only")
    return None


def _told_apart(against: tuple[Path, ...]) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the index that is meant, or else the runs and files."""
    from likewise.errors import InvalidParameter
    from likewise.io.places import check_place

    for path in against:
        check_place(path, elsewhere="--against takes indexes, runs and files of this machine; copy it here")
    indexes = [path for path in against if path.is_dir() and _is_index(path)]
    if not indexes:
        return None, against
    if len(against) > 1:
        raise InvalidParameter("against", f"the index {indexes[0]} goes with no other; name it alone")
    return indexes[0], ()


def _is_index(path: Path) -> bool:
    from likewise.index.opening import exists

    return exists(path)


def _recipe(
    options: dict[str, Any], use: "IndexUse", references: tuple[Path, ...], engine: "Engine | None", *, quiet: bool
) -> "Recipe":
    """Return the recipe of the options; that of the index or of the first run where none but --keep is named."""
    from likewise.batch.against.references import recipe_of_references
    from likewise.recipe.rules import FIELDS_OF_METHOD

    names = {"method", "preset", "recipe_file", *(name for fields in FIELDS_OF_METHOD.values() for name in fields)} - {
        "keep"
    }
    found = None if any(options.get(name) for name in names) else recipe_of_references(use.against, references)
    if found is None:
        is_told = names_features(options) and not quiet
        recipe = take_recipe(options, "default" if engine is None else "online")
        if is_told:
            click.echo(fields_line(recipe), err=True)
        return recipe
    keep = options["keep"]
    for name in (names | {"keep"}) & set(options):
        del options[name]
    return found if keep is None else found.replace(keep=keep)


def summary_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return a summary as lines for people; the first says how removals were verified."""
    seconds = summary["timings"]
    stages = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in seconds["wall_s"].items())
    lines = [
        summary["verification"],
        f"{counted(summary['num_documents'], 'document')}: {summary['num_kept']:,} kept, "
        f"{summary['num_removed']:,} removed ({summary['num_empty']:,} empty, {summary['num_short']:,} short)",
        search_line(summary),
        recipe_line(summary["recipe"]),
    ]
    if "chosen_threshold" in summary:
        lines += chosen_lines(summary["chosen_threshold"])
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(bad_line(summary))
    if num := summary.get("num_without_id"):
        have = "has" if num == 1 else "have"
        lines.append(
            f"{counted(num, 'document')} {have} no id (missing, null or NaN) where others of the file have one; the "
            "evidence names such by file and line"
        )
    for name, count in summary.get("num_without_field", {}).items():
        if count:
            lines.append(
                f"{name}, by which --keep ranks, is missing in {counted(count, 'document')}; such come last by it"
            )
    if not summary.get("weights", {}).get("is_exact", True):
        lines.append(f"weights by a counting sketch: counts may be too high by up to {summary['weights']['excess']:,}")
    if summary["num_below_threshold"]:
        lines.append(
            counted(
                summary["num_below_threshold"],
                "removed document does not match its kept one",
                "removed documents do not match their kept one",
            )
            + " (below_threshold)"
        )
    if "continued" in summary:
        continued = summary["continued"]
        lines.append(
            f"continued: {counted(continued['num_bytes'], 'byte')} of the input had been sketched, "
            f"{counted(continued['num_decided'], 'document')} decided"
        )
    if "against" in summary:
        seen = summary["against"]
        added = "; those that stay were added to it" if seen.get("adds") else ""
        what = f"the index {seen['path']}" if "path" in seen else ", ".join(seen["paths"])
        lines.append(f"{seen['num_removed']:,} removed for documents of {what}{added}")
    if "stored_pairs" in summary:
        stored = summary["stored_pairs"]
        lines.append(f"{counted(stored['num_pairs'], 'pair')} from {stored['floor']:g} on in pairs.parquet")
    if "index" in summary:
        lines.append(f"an index of all documents in {summary['index']}")
    if summary["skipped_files"]:
        lines.append(skipped_line(summary["skipped_files"]))
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    if out is not None:
        lines.append(f"recipe {summary['recipe_id']}; results in {out}")
    return lines
