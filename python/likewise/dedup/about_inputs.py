"""What a summary says of the inputs, and what a user is told of a run that ended early."""

from collections.abc import Iterator
from contextlib import contextmanager

from likewise.dedup.decision import Decision
from likewise.dedup.documents import Documents
from likewise.dedup.file_run import FileRun
from likewise.dedup.web import provenance, record_counts
from likewise.io.inputs import Inputs
from likewise.io.output import OutputDirectory
from likewise.progress import Progress, Warned


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
                "num_documents": rows.stop - rows.start,
                "num_kept": int(decision.kept[rows].sum()),
                "num_bad_rows": len(documents.bad_rows[number]),
                **record_counts(file),
            }
        )
    return {
        "input_directory": None if found.parent is None else str(found.parent),
        "inputs": inputs,
        "skipped_files": list(found.skipped),
        "options": {**run.identity(), "output": write},
        **provenance(found),
    }


@contextmanager
def told_if_left(directory: OutputDirectory, progress: Progress) -> Iterator[OutputDirectory]:
    """Enter a directory, and say so if what is done is left there for another run."""
    try:
        with directory:
            yield directory
    except BaseException:
        if directory.is_left:
            progress(Warned(f"what was done so far stays in {directory.path}; the same command continues it"))
        raise
