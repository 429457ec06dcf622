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
        "ttl_s": source.about.ttl_s,
        **more,
    }


def check_mark(mark: dict[str, Any], source: Source, place: str, remedy: str) -> None:
    """Raise StoreError unless the mark is of the same documents."""
    now = mark_fields(source)
    if any(mark.get(name) != now[name] for name in ("version", "standing", "ttl_s")):
        raise StoreError(
            f"{place} contains part of a move from {mark.get('source')}, which has changed since, from another "
            f"index, or with another ttl; {remedy}, and repeat the move"
        )
