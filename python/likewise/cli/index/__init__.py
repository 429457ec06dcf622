"""``likewise index``: documents as they arrive."""

from typing import ClassVar

import click

from likewise.cli.options.lazy import LazyGroup

_HELP = """Ask and feed an index: is this a near-duplicate of anything seen before, and of what?

An index is a directory (PATH), or with --url a Redis or Valkey server that many processes share. Documents come as
JSON Lines or any other format that dedup reads; verdicts go out as JSON Lines, as soon as they are known. What was
printed is stored: it survives a kill at any moment.

\b
Examples:
  likewise index create seen.lw --method simhash --within 3
  likewise index add seen.lw articles.jsonl > verdicts.jsonl
  crawler | likewise index add seen.lw - | jq -r 'select(.is_new) | .doc_id'
  likewise index check seen.lw candidates.jsonl
  likewise index remove seen.lw doc-17
"""


class _Commands(LazyGroup):
    listed: ClassVar = {
        "create": ("likewise.cli.index.create", "Make an empty index by a recipe."),
        "add": ("likewise.cli.index.add", "Say of each document whether it is new, and remember it."),
        "check": ("likewise.cli.index.check", "Say of each document whether it is new; remember nothing."),
        "remove": ("likewise.cli.index.remove", "Forget documents; say who is promoted in their place."),
        "query": ("likewise.cli.index.query", "List the nearest kept documents, or all that is known of an id."),
        "stats": ("likewise.cli.index.stats", "Print counts, sizes, recipe and versions."),
        "verify": ("likewise.cli.index.verify", "Check what is on disk against itself."),
        "compact": ("likewise.cli.index.compact", "Merge what is in pieces and give space back."),
        "snapshot": ("likewise.cli.index.snapshot", "Copy an index that is in use."),
        "export": ("likewise.cli.index.export", "Write all documents with their verdicts as JSON Lines."),
    }


@click.command(cls=_Commands, help=_HELP)
def command() -> None:
    """Take a command."""
