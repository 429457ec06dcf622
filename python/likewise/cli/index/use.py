"""``likewise index add``, ``check``, ``query``, ``remove``: documents of an index."""

import sys
from collections.abc import Iterable
from functools import partial
from typing import Any

import click

from likewise.cli.index import target
from likewise.cli.options.commands import LongCommand, option
from likewise.cli.options.recipe import QUIET, index_input_options
from likewise.errors import InvalidInput, InvalidParameter, counted


@click.command("add", cls=LongCommand)
@index_input_options
@target.DURABILITY
@partial(target.on_index, shown="PATH INPUT...", wanted="INPUT")
@QUIET
def add(on: target.Target, quiet: bool, durability: str | None, **options: Any) -> int:
    """Check documents and add them to the index.

    Prints one JSON object per document, in input order, when the document is stored. Lines of standard input (JSON
    Lines) are answered as they arrive. Adding the same id with the same text again changes nothing (added is false), so
    an interrupted run can be repeated. It is an error to add an id again with another text, or a row without an id;
    earlier rows are stored and printed.

    Fields: doc_id, is_new, seq (order of arrival, from 1) and added; for duplicates also kept_id, measure, similarity
    and distance.

    \b
    Examples:
      likewise index add seen.lw articles.jsonl > verdicts.jsonl
      crawler | likewise index add seen.lw - --id-field url --text-field body
    """
    if on.url is not None and durability is not None:
        raise InvalidParameter(
            "durability", "does not apply to --url: the index has the durability that index create gave it"
        )
    tally, skips = target.Tally(), options["on_error"] == "skip"
    # On a server, each call is one transaction, so a rejected document causes its whole call to be rejected.
    most = target.MOST_AT_ONCE if on.url is None else 2_000
    try:
        with on.open(durability=durability, threads=options["threads"]) as index:
            for documents in target.given_documents(
                on.rest, index.recipe, options, tally, needs_ids=True, most_at_once=most
            ):
                _add(index, documents, tally, skips=skips)
    except KeyboardInterrupt:
        click.echo("interrupted: all printed documents are stored; repeat the command to continue", err=True)
        return 130
    target.say_tally(tally, quiet=quiet)
    return 0


def _add(index: Any, documents: target.GivenDocuments, tally: target.Tally, *, skips: bool) -> None:
    """Add documents and write their verdicts. Documents before a rejected one are added and written."""
    while documents.ids:
        try:
            verdicts = index.check_and_add_batch(documents.ids, documents.texts)
        except InvalidInput as error:
            if error.row is None:
                raise
            before = documents.part(slice(error.row))
            if before.ids:
                target.write_verdicts(index.check_and_add_batch(before.ids, before.texts), before.ids, tally)
            if not skips:
                raise InvalidInput(error.message, documents.name, documents.lines[error.row] + 1) from error
            tally.num_bad_rows += 1
            documents = documents.part(slice(error.row + 1, None))
        else:
            target.write_verdicts(verdicts, documents.ids, tally)
            return


@click.command("check", cls=LongCommand)
@index_input_options
@partial(target.on_index, shown="PATH INPUT...", wanted="INPUT")
@QUIET
def check(on: target.Target, quiet: bool, **options: Any) -> None:
    """Check documents without adding them.

    Prints one JSON object per document, in input order. Nothing is written or locked, so you can run it while another
    process adds documents. Documents do not need ids.

    \b
    Examples:
      likewise index check seen.lw new.jsonl
      likewise index check seen.lw - < new.jsonl | jq -r 'select(.is_new | not) | .kept_id'
    """
    tally = target.Tally()
    with on.open(read_only=True, threads=options["threads"]) as index:
        for documents in target.given_documents(on.rest, index.recipe, options, tally, needs_ids=False):
            target.write_verdicts(index.check_batch(documents.texts), documents.ids, tally)
    target.say_tally(tally, quiet=quiet)


@click.command("query", cls=LongCommand)
@option("--id ID", "Id of a stored document; repeatable.", to="doc_ids", multiple=True)
@option("--k N", "Maximum neighbors per document.", click.IntRange(1), 10)
@option("--min-similarity S", "Minimum similarity of a neighbor.", click.FloatRange(0, 1), 0.0)
@option(
    "--among",
    "Documents to search: all stored ones, the kept ones, or only those kept ones that a verdict would be based "
    "on.  [default: all; with --url: candidates]",
    ("all", "kept", "candidates"),
)
@index_input_options
@partial(target.on_index, shown="PATH [INPUT...]", wanted=None)
def query(
    doc_ids: tuple[str, ...], k: int, min_similarity: float, among: Any, on: target.Target, **options: Any
) -> None:
    """List the most similar documents, or look up an id.

    Prints one JSON object per document of INPUT with the documents nearest to it, most similar first. "matches" shows
    whether the two are near-duplicates. With --id, prints a stored document and its group (the kept document and its
    duplicates) instead.

    \b
    Examples:
      likewise index query seen.lw candidates.jsonl --k 3
      likewise index query seen.lw --id doc-17
    """
    on.check("" if doc_ids else "INPUT")
    with on.open(read_only=True) as index:
        for doc_id in doc_ids:
            target.write_lines([_known(index, doc_id)])
        if doc_ids:
            return
        for documents in target.given_documents(on.rest, index.recipe, options, target.Tally(), needs_ids=False):
            found = index.neighbors_batch(documents.texts, k, min_similarity, among=among)
            target.write_lines(
                {"doc_id": doc_id, "neighbors": [_neighbor(other) for other in neighbors]}
                for doc_id, neighbors in zip(documents.ids, found, strict=True)
            )


def _neighbor(other: Any) -> dict[str, Any]:
    return {name: getattr(other, name) for name in ("doc_id", "similarity", "distance", "matches")}


def _known(index: Any, doc_id: str) -> dict[str, Any]:
    document = index.get(doc_id)
    if document is None:
        raise InvalidInput(f"no document in the index has the id {doc_id!r}")
    known: dict[str, Any] = {"doc_id": doc_id, "seq": document.seq, "is_new": document.is_new}
    if not document.is_new:
        known |= {name: getattr(document, name) for name in ("kept_id", "measure", "similarity", "distance")}
    return known | {"member_ids": list(index.group(doc_id).member_ids)}


@click.command("remove")
@option("--on-error", "What to do with unknown ids: fail or skip.", ("fail", "skip"), "fail")
@partial(target.on_index, shown="PATH ID...", wanted="ID")
@QUIET
def remove(on_error: str, on: target.Target, quiet: bool) -> None:
    """Remove documents and reassign their duplicates.

    Takes ids, or - to read one id per line from standard input, and prints one JSON object per id. When a kept document
    is removed, each of its duplicates is reassigned to another matching kept document or becomes kept itself. A kept
    document is never demoted. Fields: doc_id, was_kept, promoted (ids) and moved (doc_id and its new kept_id).

    \b
    Examples:
      likewise index remove seen.lw doc-17 doc-23
      likewise index remove seen.lw - < withdrawn.txt
    """
    num_skipped = 0
    with on.open() as index:
        for doc_id in _ids(on.rest):
            if on_error == "skip" and index.get(doc_id) is None:
                num_skipped += 1
                continue
            removal = index.remove(doc_id)
            moved = [{"doc_id": member, "kept_id": kept_id} for member, kept_id in removal.moved]
            promoted = list(removal.promoted)
            target.write_lines(
                [{"doc_id": removal.doc_id, "was_kept": removal.was_kept, "promoted": promoted, "moved": moved}]
            )
    if num_skipped and not quiet:
        click.echo(f"{counted(num_skipped, 'id')} not in the index, skipped", err=True)


def _ids(given: tuple[str, ...]) -> Iterable[str]:
    if given != ("-",):
        return given
    lines = (line.rstrip(b"\r\n").decode("utf-8", "replace") for line in sys.stdin.buffer)
    return (line for line in lines if line)
