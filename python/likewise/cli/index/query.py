"""``likewise index query``: the nearest kept documents, or all that is known of an id."""

from typing import Any

import click

from likewise.cli.index.documents import Tally, given_documents, write_lines
from likewise.cli.index.target import open_index, split_target, target_options
from likewise.cli.options.help import LongCommand
from likewise.cli.options.recipe import index_input_options

_HELP = """List the most similar kept documents, or look up an id.

Prints one JSON object per document of INPUT with the kept documents that match it, most similar first. With --id,
prints a stored document and its group (the kept document and its duplicates) instead.

\b
Examples:
  likewise index query seen.lw candidates.jsonl --limit 3
  likewise index query seen.lw --id doc-17
"""


@click.command("query", cls=LongCommand, help=_HELP)
@click.argument("places", nargs=-1, metavar="PATH [INPUT...]")
@click.option("--id", "doc_ids", multiple=True, metavar="ID", help="Id of a stored document; repeatable.")
@click.option(
    "--limit", type=click.IntRange(1), default=10, show_default=True, metavar="N", help="Maximum matches per document."
)
@index_input_options
@target_options
def command(
    places: tuple[str, ...],
    doc_ids: tuple[str, ...],
    limit: int,
    url: str | None,
    prefix: str | None,
    **options: Any,  # noqa: ANN401
) -> None:
    """Run the command."""
    path, inputs = split_target(places, url, "" if doc_ids else "INPUT")
    with open_index(path, url, prefix, read_only=True) as index:
        for doc_id in doc_ids:
            write_lines([_known(index, doc_id)])
        if doc_ids:
            return
        for documents in given_documents(inputs, index.recipe, options, Tally(), needs_ids=False):
            texts = documents.texts.to_list()
            write_lines(
                {"doc_id": doc_id, "neighbors": [_neighbor(other) for other in index.neighbors(text, limit=limit)]}
                for doc_id, text in zip(documents.ids, texts, strict=True)
            )


def _neighbor(other: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"doc_id": other.doc_id, "similarity": other.similarity, "distance": other.distance}


def _known(index: Any, doc_id: str) -> dict[str, Any]:  # noqa: ANN401 - of either back end
    from likewise.errors import InvalidInput

    document = index.get(doc_id)
    if document is None:
        raise InvalidInput(f"no document in the index has the id {doc_id!r}")
    known: dict[str, Any] = {"doc_id": doc_id, "seq": document.seq, "is_new": document.is_new}
    if not document.is_new:
        known |= {name: getattr(document, name) for name in ("kept_id", "measure", "similarity", "distance")}
    return known | {"member_ids": list(index.group(doc_id).member_ids)}
