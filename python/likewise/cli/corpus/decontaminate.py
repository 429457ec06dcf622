"""``likewise decontaminate``: items of evaluation sets inside documents."""

import json
import sys
from functools import partial
from typing import Any

import click

from likewise.checks import counted
from likewise.cli.options.help import LongCommand
from likewise.cli.options.recipe import QUIET, directory_name, document_options, take_run
from likewise.cli.options.summary import bad_line
from likewise.cli.options.terminal import printable, skipped_line, table_lines
from likewise.progress import shown

_HELP = """Find items of evaluation sets inside documents, and remove them.

Each EVALS is NAME=PATH, or a path whose file name without endings becomes the name: a file, a directory or a glob, in
any format that dedup reads. Text files in directories, such as README.md, are not read as items. The fields question,
answer, passage and text of an item are searched separately, if the set has them. Use --item-field for other fields.

An item is found verbatim, with different whitespace, case or punctuation, inside a longer text, split across list
items, or with some words changed. N-grams that many items or documents share have a low weight; rare words and numbers
have a high one. A place with another number than the item, such as a problem of the same template, is listed with
differs_in = numbers but not removed; see --unsure. Texts that are too short to search for are listed in
OUT/items.parquet.

\b
Examples:
  likewise decontaminate corpus/ --against gsm8k=gsm8k-test.jsonl -o out
  likewise decontaminate corpus.jsonl --against 'evals/*.jsonl' -o out --write cut
  likewise decontaminate corpus.jsonl --against quiz.jsonl --item-field prompt --item-field target -o out
"""


@click.command("decontaminate", cls=LongCommand, help=_HELP)
@click.argument("inputs", nargs=-1, required=True, metavar="CORPUS...")
@click.option(
    "--against",
    multiple=True,
    required=True,
    metavar="EVALS",
    help="Evaluation set, as NAME=PATH or PATH; repeat for several.",
)
@click.option(
    "-o",
    "--out",
    required=True,
    callback=directory_name,
    metavar="OUT",
    help="Output directory for contaminated.parquet (the places found), items.parquet and summary.json.",
)
@click.option(
    "--write",
    type=click.Choice(["kept", "cut", "annotated", "evidence"]),
    default="kept",
    show_default=True,
    help="What to write in addition to the evidence. kept: documents that contain no item. cut: all documents without "
    "the passages found (not for web archives). annotated: all rows, with the fields is_contaminated, item_set, "
    "item_id, item_field and similarity. evidence: nothing else.",
)
@click.option(
    "--write-prefix",
    default="",
    metavar="PREFIX",
    help="Prefix for the names of the fields that --write annotated adds.",
)
@click.option(
    "--threshold",
    type=float,
    default=0.75,
    show_default=True,
    metavar="S",
    help="Minimum weighted share of the item's words found in the document in the same order, 0 to 1.",
)
@click.option(
    "--min-share",
    type=float,
    default=0.2,
    show_default=True,
    metavar="S",
    help="Minimum weighted share of the item's word 5-grams found in the document, 0 to 1.",
)
@click.option(
    "--min-ngrams",
    type=int,
    default=8,
    show_default=True,
    metavar="N",
    help="A text of an item with fewer distinct n-grams is too short to be found.",
)
@click.option(
    "--unsure",
    type=click.Choice(["keep", "remove"]),
    default="keep",
    show_default=True,
    help="Whether to keep or remove what differs from an item in a number.",
)
@click.option(
    "--weights",
    type=click.Path(exists=True, dir_okay=False),
    metavar="TABLE",
    help="Take the rarity of n-grams from a table that likewise weights --shingle 5 wrote, instead of counting CORPUS.",
)
@click.option(
    "--item-field",
    multiple=True,
    metavar="FIELD",
    help="Field of an item to search for, dots for nested fields; repeat for several. Each set needs one of them; the "
    "first one that it has must be a text in every item.  [default: those of question, answer, passage, text that a "
    "set has]",
)
@click.option(
    "--item-id-field",
    metavar="FIELD",
    help="Field of the id of an item, or none to use its row.  [default: id, or the row]",
)
@partial(document_options, without=("tokens_field", "duplicate_ids"))
@click.option("--overwrite", is_flag=True, help="Replace a finished run in OUT.")
@click.option("--fresh", is_flag=True, help="Discard an unfinished run in OUT instead of continuing it.")
@QUIET
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON to stdout.")
def command(
    inputs: tuple[str, ...],
    against: tuple[str, ...],
    out: str,
    write: str,
    write_prefix: str,
    threshold: float,
    min_share: float,
    min_ngrams: int,
    unsure: str,
    weights: str | None,
    item_field: tuple[str, ...],
    item_id_field: str | None,
    overwrite: bool,
    fresh: bool,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the command."""
    from likewise.corpus import ContainmentRules, decontaminate_files, splits_named
    from likewise.errors import InvalidParameter
    from likewise.stages.weights import read_table

    if out == "-":
        raise InvalidParameter("out", "must be a directory")
    rules, run = ContainmentRules(threshold, min_share, min_ngrams, unsure), take_run(options)
    with shown(not quiet) as report:
        summary = decontaminate_files(
            inputs,
            splits_named(against, "against", "evaluation sets"),
            out,
            rules,
            run=run,
            weights=None if weights is None else read_table(weights),
            item_fields=item_field or None,
            item_id_field=item_id_field,
            write=write,
            write_prefix=write_prefix,
            overwrite=overwrite,
            fresh=fresh,
            progress=report,
        )
    if as_json:
        json.dump(summary, sys.stdout, ensure_ascii=False)
        sys.stdout.write("\n")
    elif not quiet:
        _show(summary, out)


def _show(summary: dict[str, Any], out: str) -> None:
    from likewise.corpus import decontamination_line, set_table

    for line in table_lines(set_table(summary)):
        click.echo(printable(line))
    lines = [summary["verification"], decontamination_line(summary)]
    if summary["most_found"]:
        most = summary["most_found"][0]
        lines.append(
            f"in most documents ({most['num_documents']:,}): {most['set']} {most['item_id']} {most['field']}, "
            f"{most['text'][:60]!r}"
        )
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(bad_line(summary))
    if summary["skipped_files"]:
        lines.append(skipped_line(summary["skipped_files"]))
    if num_other := summary["num_other_numbers"]:
        verb = "removed" if summary["unsure"] == "remove" else "not removed"
        place = counted(num_other, "place differs", "places differ")
        lines.append(f"{place} from an item in a number, {verb}: differs_in in {out}/contaminated.parquet")
    num_short = sum(facts["num_too_short"] for facts in summary["items"].values())
    if num_short:
        lines.append(f"{counted(num_short, 'text')} of items too short to be found: see {out}/items.parquet")
    lines.append(f"{summary['timings']['total_s']:.2f} s; results in {out}")
    for line in lines:
        click.echo(printable(line), err=True)
