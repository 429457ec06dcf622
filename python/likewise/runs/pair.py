"""Two documents of a finished run, compared by what decided, with the evidence about them."""

from pathlib import Path
from typing import Any

from likewise.batch.against.references import find_references
from likewise.io.inputs import find_texts
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.evidence import readable
from likewise.io.output.whole import scratch_directory
from likewise.measures.comparison import Comparison, compare
from likewise.progress import no_progress
from likewise.runs.audit.opening import check_references_exist
from likewise.runs.viewing.view import RunView, file_run


def compare_in_run(
    run: Path, ids: tuple[str, str], *, inputs: Path | None = None
) -> tuple[Comparison, dict[str, Any] | None]:
    """Compare two documents of a run by its recipe and weights."""
    with RunView(run, inputs=inputs) as view, scratch_directory() as work:
        view.check_complete()
        against = view.summary.get("against", {}).get("paths", [])
        check_references_exist(against)
        references = find_references(against, view.stated, file_run(view.summary), None, no_progress)
        a, b = find_texts((*view.sources(), *references.files), ids, work)
        if view.stated.only_within is not None:
            a, b = (text.partition("\n")[2] for text in (a, b))
        return compare(a, b, view.recipe), _evidence(run / EVIDENCE, ids)


def _evidence(path: Path, ids: tuple[str, str]) -> dict[str, Any] | None:
    """Return the row about two documents in either direction."""
    import pyarrow.parquet as pq

    pairs = [[("doc_id", "==", removed), ("kept_id", "==", kept)] for removed, kept in (ids, ids[::-1])]
    with readable(path):
        rows: list[dict[str, Any]] = pq.read_table(path.absolute(), filters=pairs).to_pylist()
    return rows[0] if rows else None
