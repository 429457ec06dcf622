"""``likewise index check``: check documents without adding them."""

from typing import Any

import click

from likewise.cli.index.documents import Tally, given_documents, say_tally, write_verdicts
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.help import LongCommand
from likewise.cli.options.recipe import QUIET, index_input_options

_HELP = """Check documents without adding them.

Prints one JSON object per document, in input order. Nothing is written or locked, so you can run it while another
process adds documents. Documents do not need ids.

\b
Examples:
  likewise index check seen.lw new.jsonl
  likewise index check seen.lw - < new.jsonl | jq -r 'select(.is_new | not) | .kept_id'
"""


@click.command("check", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH INPUT...")
@index_input_options
@target_options
@QUIET
def command(places: tuple[str, ...], url: str | None, prefix: str | None, quiet: bool, **options: Any) -> None:
    """Run the command."""
    path, inputs = split_target(places, url, "INPUT")
    tally = Tally()
    with open_index(path, url, prefix, read_only=True, threads=options["threads"]) as index:
        for documents in given_documents(inputs, index.recipe, options, tally, needs_ids=False):
            write_verdicts(index.check_batch(documents.texts), documents.ids, tally)
    say_tally(tally, quiet=quiet)
