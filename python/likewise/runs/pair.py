"""Two documents of a finished run, compared by what decided, with the evidence about them."""

from pathlib import Path
from typing import Any

from likewise.batch.against.references import find_references
from likewise.io.inputs import find_inputs
from likewise.io.lookup import find_texts
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.scratch import scratch_directory
from likewise.measures.comparison import Comparison, compare
from likewise.progress import no_progress
from likewise.runs.audit.opening import check_references_exist, named_inputs, paths_of_inputs
from likewise.runs.evidence import readable
from likewise.runs.viewing.view import RunView, file_run


def compare_in_run(
    run: Path, ids: tuple[str, str], *, inputs: Path | None = None
) -> tuple[Comparison, dict[str, Any] | None]:
    """Compare two documents of a run by its recipe and weights."""
    with RunView(run, inputs=inputs) as view, scratch_directory() as work:
        view.check_complete()
        recipe, reading = view.recipe, file_run(view.summary)
        found = find_inputs(
            paths_of_inputs(run, view.summary, inputs),
            reading.read_rules(view.stated),
            file_format=reading.format_for(recipe),
            delimiter=reading.delimiter,
        )
        found = named_inputs(found, [file["path"] for file in view.summary["inputs"]])
        against = view.summary.get("against", {}).get("paths", [])
        check_references_exist(against)
        references = find_references(against, view.stated, reading, None, no_progress)
        a, b = find_texts((*found.files, *references.files), ids, work)
        if view.stated.only_within is not None:
            a, b = (text.partition("\n")[2] for text in (a, b))
        return compare(a, b, recipe), _evidence(run / EVIDENCE, ids)


def _evidence(path: Path, ids: tuple[str, str]) -> dict[str, Any] | None:
    """Return the row about two documents in either direction."""
    import pyarrow.parquet as pq

    pairs = [[("doc_id", "==", removed), ("kept_id", "==", kept)] for removed, kept in (ids, ids[::-1])]
    with readable(path):
        rows: list[dict[str, Any]] = pq.read_table(path, filters=pairs).to_pylist()
    return rows[0] if rows else None
