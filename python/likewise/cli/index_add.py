"""``likewise index add``: say of each document whether it is new, and remember it."""

from typing import Any

import click

from likewise.cli.index_documents import Tally, given_documents, say_tally
from likewise.cli.index_target import DURABILITY, open_index, split_target, target_options
from likewise.cli.index_verdicts import write_verdicts
from likewise.cli.options import QUIET, index_input_options

_HELP = """Say of each document whether it is new, and remember it: one line of JSON for each, in their order.

INPUT is any that dedup reads; of - (JSON Lines) each line is answered as soon as it is there. A line is printed when
its document is stored. The same id with the same text changes nothing (added is false), with another text it is an
error; so a run that was interrupted can be started again.

Fields: doc_id, is_new, of duplicates kept_id, measure, similarity, distance; seq (the order of arrival, from 1), added.

\b
Examples:
  likewise index add seen.lw articles.jsonl > verdicts.jsonl
  crawler | likewise index add seen.lw - --id-field url --text-field body
"""


@click.command("add", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH INPUT...")
@index_input_options
@DURABILITY
@target_options
@QUIET
def command(
    places: tuple[str, ...],
    durability: str | None,
    url: str | None,
    prefix: str | None,
    quiet: bool,  # noqa: FBT001 - click's call
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    from likewise.errors import InvalidParameter

    path, inputs = split_target(places, url, "INPUT")
    if url is not None and durability is not None:
        raise InvalidParameter("durability", "is the server's own where --url is given (appendfsync)")
    tally = Tally()
    with open_index(path, url, prefix, durability=durability, threads=options["threads"]) as index:
        for documents in given_documents(inputs, index.recipe, options, tally, needs_ids=True):
            write_verdicts(index.check_and_add_batch(documents.ids, documents.texts), documents.ids, tally)
    say_tally(tally, quiet=quiet)
