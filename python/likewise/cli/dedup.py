"""``likewise dedup``: near-duplicates of a collection, removed."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from likewise.cli.options.commands import FRESH, JSON, MEMORY, OVERWRITE, PLACE, READ, LongCommand, flag, option
from likewise.cli.options.recipe import (
    INPUTS,
    QUIET,
    WRITE_PREFIX,
    decision_options,
    directory_name,
    document_options,
    recipe_line,
    take_recipe_beside,
    take_run,
)
from likewise.cli.options.terminal import bad_lines, chosen_lines, print_summary, search_line, skipped_lines
from likewise.errors import InvalidParameter, LikewiseError, counted
from likewise.progress import printable, shown

if TYPE_CHECKING:
    from likewise.batch.spark.files.engine import SparkEngine

# Maximum number of values, and of pairs of values, in the summary.
_MOST_COUNTED = 5


@click.command("dedup", cls=LongCommand)
@INPUTS
@option("-o --out OUT", "Output directory, or - to write kept lines to stdout.  [required]", callback=directory_name)
@flag(
    "--dry-run",
    "Make all decisions, but write no files. Shows counts, groups by size and the removals nearest to the "
    "threshold; -o is then optional, and output options have no effect.",
)
@decision_options
@document_options
@option(
    "--document-by FIELD",
    "Join rows with the same value of FIELD, such as repo or chat, into one document, which is kept or removed as a "
    "whole.",
)
@MEMORY
@option(
    "--write WHAT",
    "What to write in addition to the evidence. kept: kept documents. annotated: all rows, with the fields "
    "is_kept, group, "
    "duplicate_of, similarity and group_size. unique: kept documents without duplicates. groups: one row per group, in "
    "groups.parquet; can be combined with another one, as in kept,groups. evidence: nothing else.",
    default="kept",
)
@WRITE_PREFIX
@option(
    "--date-field FIELD",
    "Field with numbers or ISO 8601 dates. With --write groups, adds the columns first_seen and last_seen, "
    "over all runs in --against that wrote groups.",
)
@option(
    "--count-by FIELD",
    "Field, such as a source, whose values are counted in the summary and the report: documents and removed "
    "documents of each value, and which value duplicates which. With --write groups, adds the counts of each group.",
)
@option(
    "--count-weight FUNCTION",
    "With --write groups, add a weight column computed from n, the number of copies in all runs: log "
    "(1 + ln n), sqrt, inverse (1 / n) or cap:N (n, but at most N).",
)
@option(
    "--decisions FILE",
    "Keep the documents that FILE lists, whatever they match. FILE is a CSV file with the columns doc_id and "
    "decision (keep), as exported from the page of a run. overruled.parquet then names the kept documents that they "
    "match.",
    READ,
)
@option(
    "--index PATH",
    "Also create an index of all documents, including removed ones, for later duplicate checks.",
    PLACE,
    to="index",
)
@option(
    "--against PATH",
    "Also remove documents that match an index, an earlier run or files. PATH is an index, the output directory "
    "of a run (only its kept documents count) or a file; repeat the option for several runs or files. The recipe of "
    "the index or run applies; of the recipe options, only --keep may differ.",
    PLACE,
    multiple=True,
)
@flag("--add", "Add kept documents to the index given with --against.")
@flag(
    "--keep-sketches",
    "Store the sketches of kept documents in OUT/sketches, so that --against OUT need not compute them again.",
)
@option(
    "--store-pairs FLOOR",
    "Also write pairs.parquet, all verified pairs with at least this similarity, for the threshold page of "
    "likewise serve. Verdicts do not change.",
    float,
)
@OVERWRITE
@FRESH
@option("--engine NAME", "local or spark. One recipe gives the same results.", ("local", "spark"), "local")
@option(
    "--master URL",
    "Spark master URL, such as spark://HOST:7077 or yarn.  [default: local[*,4], this machine with up to four "
    "attempts per task]",
)
@option(
    "--checkpoint-dir PATH",
    "Spark: directory for finished stages, so that the same command continues after a failure.  [default: in OUT "
    "until the run ends]",
)
@option("--driver-memory SIZE", "Spark: memory limit on the driver for open pairs.  [default: 4GB]")
@QUIET
@JSON
def command(
    inputs: tuple[str, ...],
    out: str | None,
    against: tuple[Path, ...],
    dry_run: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Remove near-duplicates and record why each was removed.

    INPUT is a JSON Lines, CSV or TSV file (also .gz or .zst), Parquet, Arrow, a Hugging Face dataset directory, a web
    archive (WARC, WET, ARC) or a text file (.txt, .md, .rst); a directory or a glob of these; or - for standard input.

    OUT will contain kept/ (one file per input file, with the same name and format), removed.parquet (one row per
    removed document, with the kept document that it matches and their similarity) and summary.json. Outputs are renamed
    into place only when the run succeeds. To resume a run that was killed, repeat the same command. With -o -, kept
    lines go to standard output.

    By default, two documents match when the Jaccard similarity of their word 2-grams, weighted by rarity, reaches a
    threshold chosen from the collection; short documents need a higher similarity. When you set --threshold, other
    --weights, --measure, --tokens other than auto or word, or --method simhash or exact, another default applies, for
    words unweighted 3-grams; stderr shows the recipe. Use --preset default --threshold T to keep the default features.
    --engine spark uses the preset online.

    \b
    Examples:
      likewise dedup articles.jsonl --dry-run
      likewise dedup articles.jsonl -o out
      likewise dedup 'crawl/*.jsonl' -o out --text-field page.body --id-field url
      likewise dedup new.jsonl -o out2 --against seen.lw --add
      zcat dump.csv.gz | likewise dedup - --format csv -o - > unique.csv
    """
    from likewise.batch.against.index import IndexUse
    from likewise.batch.files import DedupOptions, deduplicate, stream_dedup
    from likewise.batch.write.groups import GroupColumns

    asked, references = _told_apart(against)
    of_index = (options.pop("index"), asked, options.pop("add"))
    use = IndexUse(*of_index) if any(of_index) else None
    of_spark = {name: options.pop(name) for name in ("master", "checkpoint_dir", "driver_memory")}
    elsewhere = _engine(options.pop("engine"), of_spark)
    base = "default" if elsewhere is None else "online"
    recipe = take_recipe_beside(options, asked, references, base, quiet=quiet)
    run = take_run(options)
    if out == "-" and not dry_run:
        defaults = {"overwrite": False, "fresh": False, "write": "kept", "write_prefix": ""}
        defaults |= dict.fromkeys(("date_field", "count_by", "count_weight", "decisions"))
        defaults |= {"keep_sketches": False, "store_pairs": None}
        given = {"json": as_json, **{name: options[name] != value for name, value in defaults.items()}}
        for name, is_given in {**given, "engine": elsewhere is not None}.items():
            if is_given:
                raise InvalidParameter(name, "cannot be combined with -o -, which writes kept lines to standard output")
        with shown(not quiet) as report:
            summary = stream_dedup(
                inputs, sys.stdout.buffer, recipe, run=run, index=use, against=references, progress=report
            )
        print_summary(summary, None, as_json=as_json, quiet=quiet, lines=summary_lines)
        return
    overwrite, fresh = options.pop("overwrite"), options.pop("fresh")
    columns = GroupColumns(*(options.pop(name) for name in ("date_field", "count_by", "count_weight")))
    asked_for = DedupOptions(run, columns=columns, index=use, against=references, engine=elsewhere, **options)
    if dry_run:
        from likewise.runs.viewing.first_look import preview

        # Documents are shown on terminals only, never in a log.
        shows_texts = not as_json and sys.stderr.isatty()
        with shown(not quiet) as report:
            found = preview(inputs, recipe, options=asked_for, shows_texts=shows_texts, progress=report)
        print_summary(found.to_dict(), None, as_json=as_json, quiet=quiet, lines=preview_lines)
        return
    if out is None:
        raise click.UsageError("Missing option '-o' / '--out' (or --dry-run).")
    with shown(not quiet) as report:
        summary = deduplicate(inputs, out, recipe.resolve(), asked_for, overwrite=overwrite, fresh=fresh, report=report)
    print_summary(summary, out, as_json=as_json, quiet=quiet, lines=summary_lines)
    if not as_json and not quiet and sys.stderr.isatty():
        _first_look(Path(out))


def _first_look(out: Path) -> None:
    """Print the results to look at first. Documents are shown on terminals only, never in a log."""
    from likewise.runs.viewing.first_look import first_look

    try:
        lines = first_look(out)
    except (LikewiseError, OSError):
        # The run itself is complete; a missing or changed input affects only this output.
        return
    for line in lines:
        click.echo(printable(line), err=True)


def _engine(name: str, options: dict[str, str | None]) -> "SparkEngine | None":
    """Return the engine with its options; None for this machine."""
    given = {option: value for option, value in options.items() if value is not None}
    if name == "spark":
        from likewise.spark import SparkEngine

        return SparkEngine(given.pop("master", "local[*,4]"), **given)
    if given:
        raise InvalidParameter(next(iter(given)), "requires --engine spark")
    return None


def _told_apart(against: tuple[Path, ...]) -> tuple[Path | None, tuple[Path, ...]]:
    """Return the index and no paths if an index is given, otherwise None and the paths of runs and files."""
    if not against:
        return None, ()
    from likewise.index.opening import exists
    from likewise.io.places import check_place

    for path in against:
        check_place(path, elsewhere="--against supports local indexes, runs and files only; copy it to this machine")
    indexes = [path for path in against if path.is_dir() and exists(path)]
    if not indexes:
        return None, against
    if len(against) > 1:
        raise InvalidParameter(
            "against", f"an index cannot be combined with other --against paths; remove the others or {indexes[0]}"
        )
    return indexes[0], ()


def preview_lines(preview: dict[str, Any], out: str | None) -> list[str]:
    """Return the lines that describe what a run would do."""
    sizes = {int(size): num for size, num in preview["group_sizes"].items()}
    lines = summary_lines(preview, out)
    groups = [f"{num:,} of {counted(size, 'document')}" for size, num in sizes.items()]
    lines.append(f"groups: {', '.join(groups) or 'none'}")
    return [*lines, *preview["first_look"], "nothing was written (--dry-run)"]


def _counts_lines(counts: dict[str, Any]) -> list[str]:
    """Return the lines that show which values of a field lose most documents, and to which values."""
    values = sorted(counts["values"], key=lambda one: -one["num_removed"])[:_MOST_COUNTED]
    parts = [
        f"{_value_of(one['value'])} {one['num_removed']:,} of {one['num_documents']:,}"
        for one in values
        if one["num_removed"]
    ]
    lines = [f"removed by {counts['field']} ({counted(counts['num_values'], 'value')}): {', '.join(parts) or 'none'}"]
    pairs = [pair for pair in counts["pairs"] if (pair["removed"], "input") != (pair["kept"], pair["kept_source"])]
    copies = [
        f"{_value_of(pair['removed'])} of {_value_of(pair['kept'])}"
        f"{' (--against)' if pair['kept_source'] != 'input' else ''} {pair['num_removed']:,}"
        for pair in pairs[:_MOST_COUNTED]
    ]
    return [*lines, f"duplicates between values of {counts['field']}: {', '.join(copies)}"] if copies else lines


def _value_of(value: str | None) -> str:
    return "(none)" if value is None else printable(value)


def _continued_line(continued: dict[str, Any]) -> str:
    complete = "document counts were complete, " if continued["has_counts"] else ""
    complete += "the threshold was chosen, " if continued["has_threshold"] else ""
    return (
        f"continued an unfinished run: {complete}{counted(continued['num_bytes'], 'byte')} of input were already "
        f"sketched, {counted(continued['num_decided'], 'document')} decided"
    )


def summary_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return the lines of a summary; the first one states how removals were verified."""
    seconds, is_joined = summary["timings"], "num_rows" in summary
    stages = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in seconds["wall_s"].items())
    lines = [
        summary["verification"],
        f"{counted(summary['num_documents'], 'document')}: {summary['num_kept']:,} kept, "
        f"{summary['num_removed']:,} removed ({summary['num_empty']:,} empty, {summary['num_short']:,} short)",
        *([f"{counted(summary['num_rows'], 'row')}: {summary['num_kept_rows']:,} kept"] if is_joined else []),
        search_line(summary),
        recipe_line(summary["recipe"]),
        *chosen_lines(summary),
        *bad_lines(summary),
    ]
    if num := summary.get("num_without_id"):
        lines.append(
            f"{counted(num, 'document has', 'documents have')} no id (missing, null or NaN) although other rows of the "
            "file have one; removed.parquet identifies them by file and line"
        )
    if num := sum(entry.get("num_orphaned", 0) for entry in summary.get("inputs", ())):
        lines.append(f"{counted(num, 'revisit record refers', 'revisit records refer')} to removed documents")
    for name, count in summary.get("num_without_field", {}).items():
        if count:
            lines.append(f"field {name} of --keep is missing in {counted(count, 'document')}, which rank last")
    if not summary.get("weights", {}).get("is_exact", True):
        lines.append(f"approximate weights: document counts may be too high by up to {summary['weights']['excess']:,}")
    if num := summary["num_below_threshold"]:
        which = counted(num, "removed document does not match its kept", "removed documents do not match their kept")
        lines.append(f"{which} document directly (below_threshold)")
    if summary.get("num_unsure"):
        lines.append(
            f"{summary['num_unsure']:,} of {counted(summary['num_removed'], 'removal')} differ in a first word or in "
            "numbers only (differs_in); --unsure keep keeps them"
        )
    if "continued" in summary:
        lines.append(_continued_line(summary["continued"]))
    if "against" in summary:
        seen = summary["against"]
        added = "; kept documents were added to it" if seen.get("adds") else ""
        what = f"the index {seen['path']}" if "path" in seen else ", ".join(seen["paths"])
        lines.append(f"{seen['num_removed']:,} removed as duplicates of documents in {what}{added}")
    if "counts_by" in summary:
        lines += _counts_lines(summary["counts_by"])
    if "stored_pairs" in summary:
        pairs, floor = counted(summary["stored_pairs"]["num_pairs"], "pair"), summary["stored_pairs"]["floor"]
        lines.append(f"{pairs} with similarity {floor:g} or more in pairs.parquet")
    if "index" in summary:
        lines.append(f"index of all documents: {summary['index']}")
    lines += skipped_lines(summary["skipped_files"])
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    if out is not None:
        lines.append(f"recipe {summary['recipe_id']}; results in {out}")
        if "://" not in str(out) and not is_joined:
            lines.append(f"browse the results: likewise serve {shlex.quote(str(out))}")
    return lines
