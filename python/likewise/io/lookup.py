"""Lookup of single documents by id."""

from collections.abc import Sequence
from pathlib import Path

from likewise.errors import InvalidInput
from likewise.io.source.source import Source, each_piece, shown_document

_PIECE_BYTES = 4 << 20


def find_texts(sources: Sequence[Source], doc_ids: Sequence[str], work: Path) -> list[str]:
    """Return the texts of documents by id; without an id field the id is ``file:line``."""
    found: dict[str, str] = {}
    wanted = set(doc_ids)
    for source in sources:
        for first_line, piece in each_piece(source, _PIECE_BYTES, work):
            ids = piece.ids.to_list()
            for i, (own, line) in enumerate(zip(ids, piece.lines.tolist(), strict=True)):
                doc_id = own if piece.has_id[i] else f"{source.name}:{first_line + line + 1}"
                if doc_id in wanted and doc_id not in found:
                    found[doc_id] = shown_document(piece.texts, i)
            if len(found) == len(wanted):
                return [found[doc_id] for doc_id in doc_ids]
    missing = next(doc_id for doc_id in doc_ids if doc_id not in found)
    raise InvalidInput(f"no document with id {missing!r}; without an id field, ids are file:line")
