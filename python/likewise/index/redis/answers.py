"""Answers in the types that every index returns."""

import numpy as np
from numpy.typing import NDArray

from likewise.index.redis.search import Record
from likewise.index.verdicts import Document, Verdicts

MEASURE = "hamming"


def verdicts_of(
    kept_ids: list[str | None],
    distance: NDArray[np.int64],
    bits: int,
    ids: list[str] | None = None,
    seq: NDArray[np.int64] | None = None,
    added: NDArray[np.bool_] | None = None,
) -> Verdicts:
    """Return verdicts from the ids of the kept documents (None for new documents) and the distances to them."""
    is_new = np.array([kept_id is None for kept_id in kept_ids], bool)
    return Verdicts(
        is_new=is_new,
        kept_ids=kept_ids,
        similarity=np.where(is_new, np.nan, 1.0 - distance / bits),
        distance=np.where(is_new, -1, distance).astype(np.int32),
        seq=seq,
        added=np.zeros(len(is_new), bool) if added is None else added,
        measure=MEASURE,
        doc_ids=ids,
    )


def document_of(record: Record, kept_id: str | None, bits: int) -> Document:
    """Return a stored document with its verdict; `kept_id` is the id of its leader, None if it is kept itself."""
    is_new = kept_id is None
    return Document(
        record.doc_id,
        is_new,
        kept_id,
        None if is_new else MEASURE,
        None if is_new else 1.0 - record.distance / bits,
        None if is_new else record.distance,
        record.row + 1,
        record.arrival_s,
    )
