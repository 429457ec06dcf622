"""What a summary reports about the inputs, and what is reported of a run that ended early."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.options import FileRun
from likewise.batch.read.documents import Documents
from likewise.io.inputs import Inputs
from likewise.io.output.directory import OutputDirectory
from likewise.progress import Progress, Warned

_AT_ONCE = 1 << 16
_CONTENT_BYTES = 16


def about_inputs(
    found: Inputs, documents: Documents, decision: Decision, run: FileRun, write: str
) -> dict[str, object]:
    """Return what the summary says of the inputs: where they lay, their counts, and how they were read."""
    inputs = []
    for number, file in enumerate(found.files, documents.num_reference_sources):
        rows = slice(int(documents.starts[number]), int(documents.starts[number + 1]))
        inputs.append(
            {
                "path": file.name,
                "num_bytes": file.num_bytes,
                "content": content_digest(documents, number),
                "num_documents": rows.stop - rows.start,
                "num_kept": int(decision.kept[rows].sum()),
                "num_bad_rows": len(documents.bad_rows[number]),
                **file.facts(),
            }
        )
    return {
        "input_directory": None if found.parent is None else str(found.parent),
        "inputs": inputs,
        "skipped_files": list(found.skipped),
        "options": {**run.identity(), "write": write},
        **found.provenance(),
    }


def content_digest(documents: Documents, number: int) -> str | None:
    """Return a digest of what a run made of one input: places, ids and features of its documents.

    Parameters
    ----------
    documents : Documents
        All documents.
    number : int
        Of the source.

    Returns
    -------
    str or None
        32 hexadecimal digits. None of documents whose features were not read. A change that leaves all features as they
        are, such as one of case, is seen only where it moves what follows.
    """
    digests = documents.digests.reshape(-1, 2)
    if len(digests) != len(documents):
        return None
    found = hashlib.blake2b(digest_size=_CONTENT_BYTES)
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    for part in slices(end - first, _AT_ONCE):
        rows = slice(first + part.start, first + part.stop)
        ids = documents.ids.take(np.arange(rows.start, rows.stop)).hashes()
        for column in (digests[rows], documents.offsets[rows], documents.lengths[rows], np.asarray(ids)):
            found.update(np.ascontiguousarray(column).data)
    return found.hexdigest()


@contextmanager
def told_if_left(directory: OutputDirectory, progress: Progress) -> Iterator[OutputDirectory]:
    """Enter a directory, and say so if what is done is left there for another run."""
    try:
        with directory:
            yield directory
    except BaseException:
        if directory.is_left:
            progress(Warned(f"progress is saved in {directory.path}; repeat the command to continue"))
        raise
