"""Warning about one group that holds more than half of a collection."""

import numpy as np

from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents

# In a smaller group, anyone sees what was removed.
_LEAST_DOCUMENTS = 10
_ROWS_AT_ONCE = 1 << 20


def group_warning(documents: Documents, decision: Decision) -> str | None:
    """Return a warning if one group holds more than half of the documents of a run, equal copies aside, or None."""
    num_documents = len(documents) - documents.num_references
    least = max(_LEAST_DOCUMENTS, num_documents // 2 + 1)
    if len(decision.removed_rows) + 1 < least:
        return None
    sizes = documents.room.space.zeros(len(documents), np.int64)
    # A reference document is in no group of the run.
    sizes[documents.num_references :] = 1
    for part in slices(len(decision.kept_rows), _ROWS_AT_ONCE):
        rows = decision.kept_rows[part]
        # Documents of an index have no row.
        np.add.at(sizes, rows[(rows >= 0) & (decision.similarity[part] < 1.0)], 1)
    largest = int(sizes.max())
    if largest < least:
        return None
    return (
        f"one group holds {largest:,} of {num_documents:,} documents that differ; they may share a form or a notice "
        "instead of being copies. Look at some pairs, and if they are none, give a higher threshold or remove the "
        "shared text first."
    )
