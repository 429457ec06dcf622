"""Verdicts as columns."""

import numpy as np
from numpy.typing import NDArray

from likewise.index.verdicts import Verdicts

MEASURE = "hamming"


def verdicts_of(
    kept_ids: list[str | None],
    distance: NDArray[np.int64],
    bits: int,
    ids: list[str] | None = None,
    seq: NDArray[np.int64] | None = None,
    added: NDArray[np.bool_] | None = None,
) -> Verdicts:
    """Return verdicts by the ids of the kept documents (None where new) and the distances to them."""
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


def joined(parts: list[Verdicts]) -> Verdicts:
    """Return the verdicts of several parts end to end."""
    if len(parts) == 1:
        return parts[0]
    distances = [part.distance for part in parts if part.distance is not None]
    seqs = [part.seq for part in parts if part.seq is not None]
    ids = [part.doc_ids for part in parts if part.doc_ids is not None]
    return Verdicts(
        is_new=np.concatenate([part.is_new for part in parts]),
        kept_ids=[kept_id for part in parts for kept_id in part.kept_ids],
        similarity=np.concatenate([part.similarity for part in parts]),
        distance=np.concatenate(distances),
        seq=np.concatenate(seqs) if seqs else None,
        added=np.concatenate([part.added for part in parts]),
        measure=MEASURE,
        doc_ids=[doc_id for part in ids for doc_id in part] if ids else None,
    )
