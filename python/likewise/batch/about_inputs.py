"""The part of a summary about the inputs, and the message of a run that was interrupted."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.io.inputs import Inputs
from likewise.job.options import FileRun

_CONTENT_BYTES = 16


class ContentDigest:
    """A digest of one input as a run read it: locations, ids and features of its documents, in order."""

    #: Documents per call of `add`, except the last.
    ROWS_AT_ONCE = 1 << 16

    def __init__(self) -> None:
        self._found = hashlib.blake2b(digest_size=_CONTENT_BYTES)

    def add(
        self, digests: NDArray[np.uint64], offsets: NDArray[np.uint64], lengths: NDArray[np.uint32], ids: Texts
    ) -> None:
        """Add the next documents: digests of their features, shape (n, 2), locations in the file, and ids."""
        for column in (digests, offsets, lengths, np.asarray(ids.hashes())):
            self._found.update(np.ascontiguousarray(column).data)

    def hexdigest(self) -> str:
        """Return 32 hexadecimal digits."""
        return self._found.hexdigest()


@dataclass(frozen=True)
class InputCounts:
    """Counts of one input for the summary."""

    num_documents: int
    num_kept: int
    num_bad_rows: int
    # The digest of :func:`content_digest`
    content: str | None


def about_inputs(
    found: Inputs, documents: Documents, decision: Decision, run: FileRun, write: str
) -> dict[str, object]:
    """Return the summary fields about the inputs: location, counts, and reading options."""
    counts = []
    for number in range(documents.num_reference_sources, documents.num_reference_sources + len(found.files)):
        rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
        num_kept, num_bad = int(decision.kept[rows].sum()), len(documents.bad_rows[number])
        counts.append(InputCounts(rows.stop - rows.start, num_kept, num_bad, content_digest(documents, number)))
    return about_counted(found, counts, run, write)


def about_counted(found: Inputs, counts: Sequence[InputCounts], run: FileRun, write: str) -> dict[str, object]:
    """Return the summary fields of :func:`about_inputs` from the counts of each input."""
    inputs = [
        {
            "path": file.name,
            "num_bytes": file.num_bytes,
            "content": count.content,
            "num_documents": count.num_documents,
            "num_kept": count.num_kept,
            "num_bad_rows": count.num_bad_rows,
            **file.facts(),
        }
        for file, count in zip(found.files, counts, strict=True)
    ]
    return {
        "input_directory": None if found.parent is None else str(found.parent),
        "inputs": inputs,
        "skipped_files": list(found.skipped),
        "options": {**run.identity(), "write": write},
        **found.provenance(),
    }


def content_digest(documents: Documents, number: int) -> str | None:
    """Return the :class:`ContentDigest` of one input."""
    digests = documents.digests.reshape(-1, 2)
    if len(digests) != len(documents):
        return None
    content = ContentDigest()
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    for part in slices(end - first, ContentDigest.ROWS_AT_ONCE):
        rows = slice(first + part.start, first + part.stop)
        ids = documents.ids.take(np.arange(rows.start, rows.stop))
        content.add(digests[rows], documents.offsets[rows], documents.lengths[rows], ids)
    return content.hexdigest()
