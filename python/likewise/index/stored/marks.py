"""The mark of a new index that is being filled by a move: of which documents, so that the move can be continued."""

from typing import Any

from likewise.errors import InvalidInput, StoreError
from likewise.index.stored.sources import Source

_VERSION = 1


class Occupied(InvalidInput):
    """The destination of a move has an index. If it is the copy, the move was stopped after its work."""


def mark_fields(source: Source, **more: Any) -> dict[str, Any]:
    """Return the mark of a move from a source, as JSON values."""
    return {
        "version": _VERSION,
        "source": source.about.place,
        "standing": source.began,
        "as_of_s": getattr(source, "as_of_s", None),
        "num_documents": len(source),
        **more,
    }


def check_mark(mark: dict[str, Any], source: Source, place: str, remedy: str) -> None:
    """Raise StoreError unless the mark is of the same documents."""
    if mark.get("version") != _VERSION or mark.get("standing") != source.began:
        raise StoreError(
            f"{place} contains part of a move from {mark.get('source')}, which has changed since, or from another "
            f"index; {remedy}, and repeat the move"
        )
