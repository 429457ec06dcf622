"""``likewise copies``: copies of given documents."""

import json
from functools import partial
from pathlib import Path
from typing import Any

import click

from likewise.cli.options.commands import LongCommand, flag, option
from likewise.cli.options.recipe import QUIET, document_options, output_directory, take_run
from likewise.cli.options.terminal import bad_line, skipped_line, table_lines
from likewise.errors import counted
from likewise.progress import printable, shown

_HELP = """Find copies of given documents in corpora, runs and indexes.

DOCUMENT is a file of documents in any format that dedup reads, or a text. --ids gives documents by id; they are looked
up in all places. A place is a corpus (file, directory or glob), the output directory of a finished run, the directory
of an index, or the URL of a Redis server.

Kinds of copies: exact (equal after normalization), near, containing (the given document is less than 80% as long), and
duplicate (a run or an index removed the document as a duplicate of a copy). In corpora and runs, texts are compared as
by decontaminate. An index is searched with its own recipe, which does not find containing copies.

OUT will contain copies.parquet (one row per copy), given.parquet, summary.json, and delete/ with the ids to delete from
each place.

\b
Examples:
  likewise copies withdrawn.txt --in corpus.jsonl --in out --in seen.lw -o found
  likewise copies --ids ids.txt --in corpus.jsonl -o found
  likewise copies "A sentence of at least twelve words, copied from the page of the complaint." --in corpus/
"""
_MOST_SHOWN = 20


@click.command("copies", cls=LongCommand, help=_HELP)
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
def command(
    documents: tuple[str, ...],
    places: tuple[str, ...],
    ids_file: str | None,
    out: str | None,
    quiet: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Run the command."""
    from likewise.cli.index.documents import ids_in
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
    from likewise.errors import InvalidInput
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
    if summary["num_bad_rows"] or summary["num_blank_lines"]:
        lines.append(bad_line(summary))
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
    if summary["skipped_files"]:
        lines.append(skipped_line(summary["skipped_files"]))
    lines += [f"not searched: {place}" for place in summary["not_reached"]]
    where = "nothing was written (no -o)" if out is None else f"results in {out}"
    lines.append(f"{summary['timings']['total_s']:.2f} s; {where}")
    for line in lines:
        click.echo(printable(line), err=True)
