"""``likewise index``: duplicate checks of documents as they arrive."""

from typing import ClassVar

import click

from likewise.cli import LazyGroup


class _Commands(LazyGroup):
    listed: ClassVar = {
        "create": ("likewise.cli.index.create:create", "Create an empty index with a recipe."),
        "add": ("likewise.cli.index.use:add", "Check documents and add them to the index."),
        "check": ("likewise.cli.index.use:check", "Check documents without adding them."),
        "remove": ("likewise.cli.index.use:remove", "Remove documents and reassign their duplicates."),
        "erase": ("likewise.cli.index.create:erase", "Erase documents from all files of an index."),
        "query": ("likewise.cli.index.use:query", "List the most similar documents, or look up an id."),
        "stats": ("likewise.cli.index.upkeep:stats", "Print counts, sizes, recipe and versions as JSON."),
        "verify": ("likewise.cli.index.upkeep:verify", "Check the integrity of an index."),
        "compact": ("likewise.cli.index.upkeep:compact", "Merge segments and reclaim free space."),
        "snapshot": ("likewise.cli.index.upkeep:snapshot", "Copy an index, even while it is in use."),
        "export": ("likewise.cli.index.upkeep:export", "Write all documents and verdicts to a file."),
        "import": ("likewise.cli.index.upkeep:import_index", "Create an index from an exported Parquet file."),
        "move": ("likewise.cli.index.upkeep:move", "Copy an index with all verdicts to another place."),
    }


@click.command(cls=_Commands)
def command() -> None:
    """Create, query and update a persistent near-duplicate index.

    An index is a directory (PATH) or, with --url, on a Redis or Valkey server or cluster, shared by many processes.
    Inputs are in any format that dedup reads. Verdicts are printed as JSON Lines as soon as they are known. A printed
    verdict has been stored and is not lost if the process is killed.

    \b
    Examples:
      likewise index create seen.lw --method simhash --within 3
      likewise index add seen.lw articles.jsonl > verdicts.jsonl
      crawler | likewise index add seen.lw - | jq -r 'select(.is_new) | .doc_id'
      likewise index check seen.lw candidates.jsonl
    """
