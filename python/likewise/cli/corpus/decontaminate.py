"""``likewise decontaminate``: items of evaluation sets inside documents."""

from functools import partial
from typing import Any

import click

from likewise.cli.options.commands import FRESH, JSON, OVERWRITE, LongCommand, option
from likewise.cli.options.recipe import QUIET, document_options, output_directory, take_run
from likewise.cli.options.terminal import print_summary, reading_lines
from likewise.errors import counted
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
@option("--against EVALS", "Evaluation set, as NAME=PATH or PATH; repeat for several.", multiple=True, required=True)
@output_directory(
    "Output directory for contaminated.parquet (the places found), items.parquet and summary.json.", required=True
)
@option(
    "--write",
    "What to write in addition to the evidence. kept: documents that contain no item. cut: all documents without "
    "the passages found (not for web archives). annotated: all rows, with the fields is_contaminated, item_set, "
    "item_id, item_field and similarity. evidence: nothing else.",
    ("kept", "cut", "annotated", "evidence"),
    "kept",
)
@option(
    "--write-prefix PREFIX",
    "Prefix for the names of the fields that --write annotated adds.",
    default="",
    show_default=False,
)
@option(
    "--threshold S",
    "Minimum weighted share of the item's words found in the document in the same order, 0 to 1.",
    float,
    0.75,
)
@option("--min-share S", "Minimum weighted share of the item's word 5-grams found in the document, 0 to 1.", float, 0.2)
@option("--min-ngrams N", "A text of an item with fewer distinct n-grams is too short to be found.", int, 8)
@option("--unsure", "Whether to keep or remove what differs from an item in a number.", ("keep", "remove"), "keep")
@option(
    "--weights TABLE",
    "Take the rarity of n-grams from a table that likewise weights --shingle 5 wrote, instead of counting CORPUS.",
    click.Path(exists=True, dir_okay=False),
)
@option(
    "--item-field FIELD",
    "Field of an item to search for, dots for nested fields; repeat for several. Each set needs one of them; the "
    "first one that it has must be a text in every item.  [default: those of question, answer, passage, text that a "
    "set has]",
    multiple=True,
)
@option("--item-id-field FIELD", "Field of the id of an item, or none to use its row.  [default: id, or the row]")
@partial(document_options, without=("tokens_field", "duplicate_ids"))
@OVERWRITE
@FRESH
@QUIET
@JSON
def command(
    inputs: tuple[str, ...], against: tuple[str, ...], out: str, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Run the command."""
    from likewise.corpus import ContainmentRules, decontaminate_files, set_table, splits_named
    from likewise.stages.weights import read_table

    names = ("threshold", "min_share", "min_ngrams", "unsure")
    rules, run = ContainmentRules(*(options.pop(name) for name in names)), take_run(options)
    weights, item_fields = options.pop("weights"), options.pop("item_field") or None
    splits = splits_named(against, "against", "evaluation sets")
    with shown(not quiet) as report:
        summary = decontaminate_files(
            inputs,
            splits,
            out,
            rules,
            run=run,
            weights=None if weights is None else read_table(weights),
            item_fields=item_fields,
            progress=report,
            **options,
        )
    print_summary(summary, out, as_json=as_json, quiet=quiet, lines=_lines, table=set_table)


def _lines(summary: dict[str, Any], out: str) -> list[str]:
    from likewise.corpus import decontamination_line

    lines = [summary["verification"], decontamination_line(summary)]
    if summary["most_found"]:
        most = summary["most_found"][0]
        lines.append(
            f"in most documents ({most['num_documents']:,}): {most['set']} {most['item_id']} {most['field']}, "
            f"{most['text'][:60]!r}"
        )
    lines += reading_lines(summary)
    if num_other := summary["num_other_numbers"]:
        verb = "removed" if summary["unsure"] == "remove" else "not removed"
        place = counted(num_other, "place differs", "places differ")
        lines.append(f"{place} from an item in a number, {verb}: differs_in in {out}/contaminated.parquet")
    num_short = sum(facts["num_too_short"] for facts in summary["items"].values())
    if num_short:
        lines.append(f"{counted(num_short, 'text')} of items too short to be found: see {out}/items.parquet")
    return [*lines, f"{summary['timings']['total_s']:.2f} s; results in {out}"]
