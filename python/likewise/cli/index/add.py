"""``likewise index add`` and ``check``: check documents, and add them."""

from typing import Any

import click

from likewise.cli.index.documents import MOST_AT_ONCE, GivenDocuments, Tally, given_documents, say_tally, write_verdicts
from likewise.cli.index.target import DURABILITY, open_index, split_target, target_options
from likewise.cli.options.commands import LongCommand
from likewise.cli.options.recipe import QUIET, index_input_options

_HELP = """Check documents and add them to the index.

Prints one JSON object per document, in input order, when the document is stored. Lines of standard input (JSON Lines)
are answered as they arrive. Adding the same id with the same text again changes nothing (added is false), so an
interrupted run can be repeated. It is an error to add an id again with another text, or a row without an id; earlier
rows are stored and printed.

Fields: doc_id, is_new, seq (order of arrival, from 1) and added; for duplicates also kept_id, measure, similarity and
distance.

\b
Examples:
  likewise index add seen.lw articles.jsonl > verdicts.jsonl
  crawler | likewise index add seen.lw - --id-field url --text-field body
"""


_CHECK_HELP = """Check documents without adding them.

Prints one JSON object per document, in input order. Nothing is written or locked, so you can run it while another
process adds documents. Documents do not need ids.

\b
Examples:
  likewise index check seen.lw new.jsonl
  likewise index check seen.lw - < new.jsonl | jq -r 'select(.is_new | not) | .kept_id'
"""


@click.command("add", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH INPUT...")
@index_input_options
@DURABILITY
@target_options
@QUIET
def command(
    places: tuple[str, ...], url: str | None, prefix: str | None, quiet: bool, durability: str | None, **options: Any
) -> int:
    """Run the command."""
    from likewise.errors import InvalidParameter

    path, inputs = split_target(places, url, "INPUT")
    if url is not None and durability is not None:
        raise InvalidParameter(
            "durability", "does not apply to --url: the index has the durability that index create gave it"
        )
    tally, skips = Tally(), options["on_error"] == "skip"
    # On a server, each call is one transaction, so a rejected document causes its whole call to be rejected.
    most = MOST_AT_ONCE if url is None else 2_000
    try:
        with open_index(path, url, prefix, durability=durability, threads=options["threads"]) as index:
            for documents in given_documents(inputs, index.recipe, options, tally, needs_ids=True, most_at_once=most):
                _add(index, documents, tally, skips=skips)
    except KeyboardInterrupt:
        click.echo("interrupted: all printed documents are stored; repeat the command to continue", err=True)
        return 130
    say_tally(tally, quiet=quiet)
    return 0


def _add(index: Any, documents: GivenDocuments, tally: Tally, *, skips: bool) -> None:
    """Add documents and write their verdicts. Documents before a rejected one are added and written."""
    from likewise.errors import InvalidInput

    while documents.ids:
        try:
            verdicts = index.check_and_add_batch(documents.ids, documents.texts)
        except InvalidInput as error:
            if error.row is None:
                raise
            before = documents.part(slice(error.row))
            if before.ids:
                write_verdicts(index.check_and_add_batch(before.ids, before.texts), before.ids, tally)
            if not skips:
                raise InvalidInput(error.message, documents.name, documents.lines[error.row] + 1) from error
            tally.num_bad_rows += 1
            documents = documents.part(slice(error.row + 1, None))
        else:
            write_verdicts(verdicts, documents.ids, tally)
            return


@click.command("check", cls=LongCommand, help=_CHECK_HELP)
@click.argument("places", nargs=-1, metavar="PATH INPUT...")
@index_input_options
@target_options
@QUIET
def check(places: tuple[str, ...], url: str | None, prefix: str | None, quiet: bool, **options: Any) -> None:
    """Run the command."""
    path, inputs = split_target(places, url, "INPUT")
    tally = Tally()
    with open_index(path, url, prefix, read_only=True, threads=options["threads"]) as index:
        for documents in given_documents(inputs, index.recipe, options, tally, needs_ids=False):
            write_verdicts(index.check_batch(documents.texts), documents.ids, tally)
    say_tally(tally, quiet=quiet)
