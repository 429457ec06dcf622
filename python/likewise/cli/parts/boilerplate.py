"""``likewise boilerplate``: parts that many documents of one site share."""

from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import DRY_RUN, FRESH, JSON, OVERWRITE, PLACE, LongCommand, option
from likewise.cli.options.recipe import INPUTS, QUIET, document_options, output_directory, take_run
from likewise.cli.options.terminal import print_summary, reading_lines
from likewise.errors import counted
from likewise.progress import shown

_HELP = """Remove lines or paragraphs that many documents of one site share.

Most pages of a site have the same menus, footers and notices. A part that occurs in at least --share of the documents
of a site is removed from all of them, including the first. Parts that differ only in case, width and whitespace are
equal. Sites with fewer than --min-documents documents are left as they are.

INPUT is JSON Lines, CSV, Parquet or Arrow. OUT will contain kept/ (the documents without these parts, in the format of
INPUT), removed.parquet (one row per removed part and document), sites.parquet (one row per site) and summary.json.

\b
Examples:
  likewise boilerplate pages.jsonl --site url -o out
  likewise boilerplate pages.jsonl --site source --share 0.5 --unit paragraph -o out --dry-run
"""


@click.command("boilerplate", cls=LongCommand, help=_HELP)
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
def command(inputs: tuple[str, ...], out: Path, quiet: bool, as_json: bool, **options: Any) -> None:
    """Run the command."""
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
