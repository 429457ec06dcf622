"""``likewise index check``: say of each document whether it is new, and remember nothing."""

from typing import Any

import click

from likewise.cli.index.documents import Tally, given_documents, say_tally, write_verdicts
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.recipe import QUIET, index_input_options

_HELP = """Say of each document whether the index has seen its like: one line of JSON for each, in their order.

Nothing is written, and nothing is locked: it may run beside the process that adds. Documents need no id.

\b
Examples:
  likewise index check seen.lw new.jsonl
  likewise index check seen.lw - < new.jsonl | jq -r 'select(.is_new | not) | .kept_id'
"""


@click.command("check", help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH INPUT...")
@index_input_options
@target_options
@QUIET
def command(
    places: tuple[str, ...],
    url: str | None,
    prefix: str | None,
    quiet: bool,  # noqa: FBT001 - click's call
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    path, inputs = split_target(places, url, "INPUT")
    tally = Tally()
    with open_index(path, url, prefix, read_only=True, threads=options["threads"]) as index:
        for documents in given_documents(inputs, index.recipe, options, tally, needs_ids=False):
            write_verdicts(index.check_batch(documents.texts), documents.ids, tally)
    say_tally(tally, quiet=quiet)
