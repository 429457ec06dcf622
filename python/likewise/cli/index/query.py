"""``likewise index query``: find the most similar documents, or look up an id."""

from typing import Any

import click

from likewise.cli.index.documents import Tally, given_documents, write_lines
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.commands import LongCommand, option
from likewise.cli.options.recipe import index_input_options

_HELP = """List the most similar documents, or look up an id.

Prints one JSON object per document of INPUT with the documents nearest to it, most similar first. "matches" shows
whether the two are near-duplicates. With --id, prints a stored document and its group (the kept document and its
duplicates) instead.

\b
Examples:
  likewise index query seen.lw candidates.jsonl --k 3
  likewise index query seen.lw --id doc-17
"""


@click.command("query", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH [INPUT...]")
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
@target_options
def command(
    places: tuple[str, ...],
    doc_ids: tuple[str, ...],
    k: int,
    min_similarity: float,
    among: str | None,
    url: str | None,
    prefix: str | None,
    **options: Any,
) -> None:
    """Run the command."""
    path, inputs = split_target(places, url, "" if doc_ids else "INPUT")
    with open_index(path, url, prefix, read_only=True) as index:
        for doc_id in doc_ids:
            write_lines([_known(index, doc_id)])
        if doc_ids:
            return
        for documents in given_documents(inputs, index.recipe, options, Tally(), needs_ids=False):
            options_of_search: Any = {} if among is None else {"among": among}
            found = index.neighbors_batch(documents.texts, k, min_similarity, **options_of_search)
            write_lines(
                {"doc_id": doc_id, "neighbors": [_neighbor(other) for other in neighbors]}
                for doc_id, neighbors in zip(documents.ids, found, strict=True)
            )


def _neighbor(other: Any) -> dict[str, Any]:
    return {name: getattr(other, name) for name in ("doc_id", "similarity", "distance", "matches")}


def _known(index: Any, doc_id: str) -> dict[str, Any]:
    from likewise.errors import InvalidInput

    document = index.get(doc_id)
    if document is None:
        raise InvalidInput(f"no document in the index has the id {doc_id!r}")
    known: dict[str, Any] = {"doc_id": doc_id, "seq": document.seq, "is_new": document.is_new}
    if not document.is_new:
        known |= {name: getattr(document, name) for name in ("kept_id", "measure", "similarity", "distance")}
    return known | {"member_ids": list(index.group(doc_id).member_ids)}
