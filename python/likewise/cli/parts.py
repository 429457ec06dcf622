"""``likewise repeats`` and ``boilerplate``: parts of documents."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import DRY_RUN, FRESH, JSON, MEMORY, OVERWRITE, PLACE, LongCommand, option
from likewise.cli.options.recipe import (
    INPUTS,
    QUIET,
    decision_options,
    document_options,
    output_directory,
    recipe_line,
    take_recipe,
    take_run,
)
from likewise.cli.options.terminal import print_summary, reading_lines, search_line
from likewise.errors import InvalidParameter, counted
from likewise.progress import shown


@click.command("repeats", cls=LongCommand)
@INPUTS
@output_directory(kind=PLACE, required=True)
@option(
    "--unit UNIT",
    "line, paragraph, sentence or span (a run of words).",
    ("line", "paragraph", "sentence", "span"),
    "paragraph",
)
@option("--min-tokens N", "Minimum length of a removed part, in words.  [default: 0; span: 50; conversations: 8]", int)
@option(
    "--against PATH",
    "Also remove parts that occur in these documents. PATH is the output directory of a run (only its kept "
    "documents are used) or a file; repeat the option for several.",
    PLACE,
    multiple=True,
)
@decision_options
@partial(document_options, without=("tokens_field",))
@MEMORY
@DRY_RUN
@OVERWRITE
@FRESH
@QUIET
@JSON
def repeats(inputs: tuple[str, ...], out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Remove repeated lines, paragraphs, sentences or spans from documents.

    A part is removed when it occurs in an earlier document, or earlier in the same document; the first occurrence is
    kept. Parts match when they are equal. With --method or --preset, parts other than spans also match when they are
    similar.

    INPUT can have any format with text in a field or file, but web archives are rejected. OUT will contain kept/ (the
    documents without their repeated parts, in the format of INPUT), removed.parquet (one row per removed part, with the
    place of its first occurrence) and summary.json.

    \b
    Examples:
      likewise repeats pages.jsonl -o out --unit paragraph
      likewise repeats pages.jsonl -o out --unit span --min-tokens 50 --dry-run
      likewise repeats pages.jsonl -o out --unit sentence --method minhash --threshold 0.8
    """
    from likewise.batch.parts import PartRules, dedup_parts

    rules = PartRules(options.pop("unit"), options.pop("min_tokens"))
    from likewise.recipe.fields import FIELDS_OF_METHOD, OPTION_NAMES

    has_recipe = any(options[name] is not None for name in ("method", "preset", "recipe_file"))
    for name in sorted((OPTION_NAMES | {"preset"}) - {"method"} - set(FIELDS_OF_METHOD["exact"])):
        if options.get(name) is None or (has_recipe and rules.unit != "span"):
            continue
        if rules.unit == "span":
            raise InvalidParameter(name, "does not apply to --unit span: spans match word for word")
        raise InvalidParameter(
            name,
            f"requires --method with --unit {rules.unit}, such as --method minhash; by default only equal parts match",
        )
    given = options if has_recipe else options | {"method": "exact"}
    # The default, equal parts, is not shown as a recipe.
    recipe, run = take_recipe(given, quiet=quiet or given is not options), take_run(given)
    with shown(not quiet) as report:
        summary = dedup_parts(inputs, out, rules, recipe, run=run, progress=report, **given)
    print_summary(summary, None if given["dry_run"] else str(out), as_json=as_json, quiet=quiet, lines=part_lines)


def part_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    """Return the lines of a summary."""
    unit = summary["options"]["unit"]
    seconds = summary["timings"]
    stages = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in seconds["wall_s"].items())
    emptied = summary["num_emptied"]
    lines = [
        summary["verification"],
        f"{counted(summary['num_documents'], 'document')}: {counted(summary['num_removed_parts'], f'repeated {unit}')} "
        f"removed from {counted(summary['num_changed'] + emptied, 'document')} "
        f"({counted(summary['num_removed_bytes'], 'byte')} of text); {counted(emptied, 'document')} became empty and "
        f"{'was' if emptied == 1 else 'were'} removed",
    ]
    if "against" in summary:
        seen = summary["against"]
        lines.append(
            f"{seen['num_removed_parts']:,} of them occur in {counted(seen['num_documents'], 'document')} of --against"
        )
    if summary["recipe"]["method"] != "exact":
        lines += [search_line(summary), recipe_line(summary["recipe"])]
    lines += [
        f"{counted(part['num_times'], 'time')}, {counted(part['num_bytes'], 'byte')}: {part['text']!r}"
        for part in summary["most_removed"]
    ]
    lines += reading_lines(summary)
    lines.append(f"{seconds['total_s']:.2f} s: {stages}")
    lines.append("nothing was written (--dry-run)" if out is None else f"results in {out}")
    return lines


@click.command("boilerplate", cls=LongCommand)
@INPUTS
@output_directory(kind=PLACE, required=True)
@option("--site FIELD", "Field with the site of a document. For a URL, the host is used.", required=True)
@option(
    "--share S",
    "Share of the site's documents that must contain a part (0 < S <= 1); always at least two documents.",
    float,
    0.3,
)
@option("--unit UNIT", "line, paragraph or sentence.", ("line", "paragraph", "sentence"), "line")
@option("--min-documents N", "Leave sites with fewer documents as they are.", int, 10)
@option("--min-tokens N", "Minimum length of a part, in words.", int, 0)
@partial(document_options, without=("tokens_field",))
@DRY_RUN
@OVERWRITE
@FRESH
@QUIET
@JSON
def boilerplate(inputs: tuple[str, ...], out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Remove lines or paragraphs that many documents of one site share.

    Most pages of a site have the same menus, footers and notices. A part that occurs in at least --share of the
    documents of a site is removed from all of them, including the first. Parts that differ only in case, width and
    whitespace are equal. Sites with fewer than --min-documents documents are left as they are.

    INPUT is JSON Lines, CSV, Parquet or Arrow. OUT will contain kept/ (the documents without these parts, in the format
    of INPUT), removed.parquet (one row per removed part and document), sites.parquet (one row per site) and
    summary.json.

    \b
    Examples:
      likewise boilerplate pages.jsonl --site url -o out
      likewise boilerplate pages.jsonl --site source --share 0.5 --unit paragraph -o out --dry-run
    """
    from likewise.batch.parts import BoilerplateRules, remove_boilerplate

    names = ("site", "share", "unit", "min_documents", "min_tokens")
    rules, run = BoilerplateRules(*(options.pop(name) for name in names)), take_run(options)
    with shown(not quiet) as report:
        summary = remove_boilerplate(inputs, out, rules, run=run, progress=report, **options)
    shown_out = None if options["dry_run"] else str(out)
    print_summary(summary, shown_out, as_json=as_json, quiet=quiet, lines=_lines)


def _lines(summary: dict[str, Any], out: str | None) -> list[str]:
    unit, emptied = summary["options"]["unit"], summary["num_emptied"]
    lines = [
        summary["verification"],
        f"{counted(summary['num_documents'], 'document')} of {counted(summary['num_sites'], 'site')}: "
        f"{counted(summary['num_removed_parts'], f'{unit} removed', f'{unit}s removed')} from "
        f"{counted(summary['num_changed'] + emptied, 'document')} "
        f"({counted(summary['num_removed_bytes'], 'byte')} of text); "
        f"{counted(emptied, 'document')} became empty and {'was' if emptied == 1 else 'were'} removed",
    ]
    if summary["num_in_small_sites"]:
        small = summary["num_sites"] - summary["num_sites_checked"]
        lines.append(
            f"{counted(small, 'site')} with fewer than {summary['options']['min_documents']} documents left as they "
            f"are: {counted(summary['num_in_small_sites'], 'document')}"
        )
    if summary["num_without_site"]:
        site = summary["options"]["site"]
        lines.append(f"{counted(summary['num_without_site'], 'document')} without a value in {site!r} left unchanged")
    lines += [
        f"{part['site']}: {part['num_documents']:,} of {counted(part['num_site_documents'], 'document')}, "
        f"{counted(part['num_bytes'], 'byte')}: {part['text']!r}"
        for part in summary["most_removed"]
    ]
    lines += reading_lines(summary)
    lines.append(f"{summary['timings']['total_s']:.2f} s")
    lines.append("nothing was written (--dry-run)" if out is None else f"results in {out}")
    return lines
