"""``likewise copies``, ``decontaminate``, ``leaks`` and ``match``: documents of one collection in another."""

import json
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import FRESH, JSON, MEMORY, OVERWRITE, LongCommand, flag, option
from likewise.cli.options.recipe import (
    QUIET,
    WRITE_PREFIX,
    count,
    document_options,
    index_input_options,
    matching_options,
    output_directory,
    search_options,
    take_recipe,
    take_run,
)
from likewise.cli.options.terminal import (
    bad_lines,
    chosen_lines,
    crowd_words,
    print_summary,
    reading_lines,
    skipped_lines,
    table_lines,
)
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.progress import printable, shown

_MOST_SHOWN = 20


@click.command("copies", cls=LongCommand)
@click.argument("documents", nargs=-1, metavar="[DOCUMENT...]")
@option("--in PLACE", "Place to search; repeatable.", to="places", multiple=True, required=True)
@option("--ids FILE", "Ids of given documents, one per line; - for standard input.", to="ids_file")
@output_directory("Output directory. Without it, nothing is written.")
@option(
    "--threshold S",
    "Minimum weighted share of the given document's words found in the other document in the same order, 0 to 1.",
    float,
    0.75,
)
@option(
    "--min-share S",
    "Minimum weighted share of the given document's word 5-grams found in the other document, 0 to 1.",
    float,
    0.2,
)
@option("--min-ngrams N", "For a given document with fewer distinct n-grams, only exact copies are found.", int, 8)
@partial(document_options, without=("tokens_field",))
@flag("--overwrite", "Replace a finished search in OUT.")
@QUIET
@flag("--json", "Print the summary, the given documents and their copies as JSON.", to="as_json")
def copies(
    documents: tuple[str, ...],
    places: tuple[str, ...],
    ids_file: str | None,
    out: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find copies of given documents in corpora, runs and indexes.

    DOCUMENT is a file of documents in any format that dedup reads, or a text. --ids gives documents by id; they are
    looked up in all places. A place is a corpus (file, directory or glob), the output directory of a finished run, the
    directory of an index, or the URL of a Redis server.

    Kinds of copies: exact (equal after normalization), near, containing (the given document is less than 80% as long),
    and duplicate (a run or an index removed the document as a duplicate of a copy). In corpora and runs, texts are
    compared as by decontaminate. An index is searched with its own recipe, which does not find containing copies.

    OUT will contain copies.parquet (one row per copy), given.parquet, summary.json, and delete/ with the ids to delete
    from each place.

    \b
    Examples:
      likewise copies withdrawn.txt --in corpus.jsonl --in out --in seen.lw -o found
      likewise copies --ids ids.txt --in corpus.jsonl -o found
      likewise copies "A sentence of at least twelve words, copied from the page of the complaint." --in corpus/
    """
    from likewise.cli.index.target import ids_in
    from likewise.corpus import ContainmentRules, find_copies

    if not documents and ids_file is None:
        raise click.UsageError("Missing argument 'DOCUMENT...' (or --ids).")
    names = ("threshold", "min_share", "min_ngrams")
    rules, run = ContainmentRules(*(options.pop(name) for name in names)), take_run(options)
    texts, files = _texts_and_files(documents)
    ids = () if ids_file is None else ids_in(ids_file)
    with shown(not quiet) as report:
        found = find_copies(
            places, texts=texts, files=files, ids=ids, output=out, rules=rules, run=run, progress=report, **options
        )
    if as_json:
        tables = {"given": found.given.to_pylist(), "copies": found.copies.to_pylist()}
        click.echo(json.dumps({**found.summary, **tables}, ensure_ascii=False))
    elif not quiet:
        _show(found, out)


def _texts_and_files(documents: tuple[str, ...]) -> tuple[list[str], list[str]]:
    """Distinguish texts from names of files: a name exists, has no whitespace, or has a known ending."""
    from likewise.io.formats import format_by_name

    texts: list[str] = []
    files: list[str] = []
    for document in documents:
        if not document.strip():
            raise InvalidInput("the given text is empty; give a text, or the name of a file")
        is_name = not any(character.isspace() for character in document) and document.isascii()
        is_named = "\n" not in document and format_by_name(Path(document)) is not None
        (files if is_name or is_named or _is_there(document) else texts).append(document)
    return texts, files


def _is_there(name: str) -> bool:
    try:
        return Path(name).exists()
    except (OSError, ValueError):
        return False


def _show(found: Any, out: str | None) -> None:
    from likewise.corpus.copying import copies_line, list_name

    summary = found.summary
    kinds = ("exact", "near", "containing", "duplicate")
    rows = [["place", "", "documents", *kinds]]
    for place in summary["places"]:
        counts = [f"{place['num_copies'][kind]:,}" for kind in kinds]
        rows.append([place["place"], place["kind"], f"{place['num_documents']:,}", *counts])
    for line in table_lines(rows):
        click.echo(printable(line))
    for row in found.copies.slice(0, _MOST_SHOWN).to_pylist():
        where = row["doc_id"] if row["file"] is None else f"{row['doc_id']} ({row['file']})"
        how = "" if row["similarity"] is None else f" {row['similarity']:.3f}"
        via = "" if row["via"] is None else f" of {row['via']}"
        click.echo(printable(f"{row['given']}: {row['kind']}{how}{via}: {where} in {row['place']}"))
    if found.copies.num_rows > _MOST_SHOWN:
        click.echo(f"... and {counted(found.copies.num_rows - _MOST_SHOWN, 'more copy', 'more copies')}")
    lines = [copies_line(summary)]
    if summary["num_too_short"]:
        lines.append(
            f"{counted(summary['num_too_short'], 'given document')} too short for other than exact copies in files"
        )
    if summary["num_without_text"]:
        lines.append(
            f"{counted(summary['num_without_text'], 'given document')} known by id only; give the text to search files"
        )
    lines += bad_lines(summary)
    for number, place in enumerate(summary["places"], 1):
        counts = place["num_copies"]
        if out is not None and place["kind"] == "index" and sum(counts.values()):
            ids = Path(out) / "delete" / f"{list_name(number, place['place'])}.txt"
            lines.append(f"to erase: likewise index erase {place['place']} --ids {ids}")
    if summary["num_unlisted_ids"]:
        lines.append(
            f"{counted(summary['num_unlisted_ids'], 'id')} with a line break: in copies.parquet only, not in the lists "
            "of ids"
        )
    lines += skipped_lines(summary["skipped_files"])
    lines += [f"not searched: {place}" for place in summary["not_reached"]]
    where = "nothing was written (no -o)" if out is None else f"results in {out}"
    lines.append(f"{summary['timings']['total_s']:.2f} s; {where}")
    for line in lines:
        click.echo(printable(line), err=True)


@click.command("decontaminate", cls=LongCommand)
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
@WRITE_PREFIX
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
def decontaminate(
    inputs: tuple[str, ...], against: tuple[str, ...], out: str, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Find items of evaluation sets inside documents, and remove them.

    Each EVALS is NAME=PATH, or a path whose file name without endings becomes the name: a file, a directory or a glob,
    in any format that dedup reads. Text files in directories, such as README.md, are not read as items. The fields
    question, answer, passage and text of an item are searched separately, if the set has them. Use --item-field for
    other fields.

    An item is found verbatim, with different whitespace, case or punctuation, inside a longer text, split across list
    items, or with some words changed. N-grams that many items or documents share have a low weight; rare words and
    numbers have a high one. A place with another number than the item, such as a problem of the same template, is
    listed with differs_in = numbers but not removed; see --unsure. Texts that are too short to search for are listed in
    OUT/items.parquet.

    \b
    Examples:
      likewise decontaminate corpus/ --against gsm8k=gsm8k-test.jsonl -o out
      likewise decontaminate corpus.jsonl --against 'evals/*.jsonl' -o out --write cut
      likewise decontaminate corpus.jsonl --against quiz.jsonl --item-field prompt --item-field target -o out
    """
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
    print_summary(summary, out, as_json=as_json, quiet=quiet, lines=_decontamination_lines, table=set_table)


def _decontamination_lines(summary: dict[str, Any], out: str) -> list[str]:
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


@click.command("leaks", cls=LongCommand)
@click.argument("splits", nargs=-1, required=True, metavar="TRAIN TEST...")
@output_directory("Output directory for leaks.parquet (the pairs) and summary.json.")
@option(
    "--write",
    "kept: also write the splits after the first without their leaking documents, in OUT/kept/NAME/.",
    ("evidence", "kept"),
    "evidence",
)
@search_options
@option(
    "--max-pairs N", "Fail if there are more pairs.  [default: 10,000,000]", count, "10_000_000", show_default=False
)
@document_options
@OVERWRITE
@FRESH
@MEMORY
@QUIET
@JSON
def leaks(splits: tuple[str, ...], out: str | None, quiet: bool, as_json: bool, **options: Any) -> None:
    """Find near-duplicates between the splits of a dataset.

    The first split is the training set. Each SPLIT is NAME=PATH, or a path whose file name without endings becomes the
    name: a file, a directory or a glob, in any format that dedup reads. Repeat a NAME to give several paths. Without a
    NAME, all splits of a saved DatasetDict are read.

    The table shows how many documents of each row's split have a near-duplicate in the column's split. A document
    should be dropped if it matches any document of an earlier split. Recipe options and defaults are those of dedup;
    weights and threshold are computed from all splits together.

    \b
    Examples:
      likewise leaks train.jsonl test.jsonl
      likewise leaks train='data/train-*.parquet' test=data/test.parquet -o out
      likewise leaks train.jsonl validation.jsonl test.jsonl -o out --write kept
    """
    from likewise.corpus import leak_files, leak_table, splits_named

    recipe, run = take_recipe(options, "default", quiet=quiet), take_run(options)
    with shown(not quiet) as report:
        summary = leak_files(splits_named(splits), out, recipe, run=run, progress=report, **options)
    print_summary(summary, out, as_json=as_json, quiet=quiet, lines=_leak_lines, table=leak_table)


def _leak_lines(summary: dict[str, Any], out: str | None) -> list[str]:
    num_dropped = sum(split["num_dropped"] for split in summary["splits"].values())
    return [
        summary["verification"],
        f"{counted(summary['num_pairs'], 'pair')} between splits among "
        f"{counted(summary['num_documents'], 'document')}; {counted(num_dropped, 'document')} to drop"
        f"{crowd_words(summary)}",
        *chosen_lines(summary),
        *reading_lines(summary),
        f"{summary['timings']['total_s']:.2f} s" + ("" if out is None else f"; results in {out}"),
    ]


@click.command("match", cls=LongCommand)
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
def match(
    queries: tuple[str, ...], references: tuple[str, ...], out: str, quiet: bool, as_json: bool, **options: Any
) -> None:
    """Find the reference that each document contains or resembles.

    QUERIES and REFERENCES are in any format that dedup reads. The score is sqrt(reference_share * query_share):
    reference_share is the share of the reference's features found in the document, query_share the share of the
    document's features found in the reference. A document without a match has a row without a reference. References are
    held in memory; documents are streamed.

    \b
    Examples:
      likewise match found.jsonl --in licenses.jsonl
      likewise match 'src/**/LICENSE*' --in licenses/ --format text -o matches.parquet --top 3
    """
    from likewise.corpus import match_files

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
    print_summary(summary, None, as_json=as_json, quiet=quiet, lines=_match_lines)


def _match_lines(summary: dict[str, Any], _out: None) -> list[str]:
    return [
        f"{summary['num_matched']:,} of {counted(summary['num_queries'], 'document')} matched one of "
        f"{counted(summary['num_references'], 'reference')} ({counted(summary['num_bad_rows'], 'bad row')}) "
        f"in {summary['timings']['total_s']:.2f} s",
        *skipped_lines(summary["skipped_files"]),
    ]
