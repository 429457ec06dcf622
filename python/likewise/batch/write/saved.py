"""The result of a run in memory as the output directory of a run over files, with its documents."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowTable
from likewise.io.output.directory import DOCUMENTS
from likewise.io.output.evidence import write_evidence
from likewise.io.tables.columns import constant_column, number_column
from likewise.job.options import FileRun
from likewise.job.output import Job
from likewise.progress import no_progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import RECIPE, write_companions


def save_run(
    target: Path,
    documents: ArrowTable,
    tables: Mapping[str, ArrowTable],
    recipe: Recipe,
    summary: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write documents (columns id and text), tables of evidence by their file names, and the summary."""
    import pyarrow.parquet as pq

    # Rows without a text are no documents of a run over files.
    position = np.cumsum(np.asarray(documents["text"].is_valid())) - 1
    options = FileRun(on_error="skip", duplicate_ids="allow", max_bad_rows="100%")
    with Job(target, options, no_progress, overwrite=overwrite) as job:
        job.claim(recipe_id=recipe.recipe_id)
        with job.writing() as work:
            pq.write_table(documents, work / DOCUMENTS, compression="zstd")
            write_companions(recipe, work / RECIPE)
            for name, table in tables.items():
                write_evidence([_placed(table, position)], work / name)
            num_bytes = (work / DOCUMENTS).stat().st_size
        counts = {name: summary[name] for name in ("num_documents", "num_kept", "num_bad_rows")}
        job.finish(
            {
                **summary,
                "input_directory": str(target.resolve()),
                "inputs": [{"path": DOCUMENTS, "num_bytes": num_bytes, "content": None, **counts}],
                "skipped_files": [],
                "options": {**options.identity(), "write": "evidence"},
            }
        )


def _placed(table: ArrowTable, position: NDArray[np.int64]) -> ArrowTable:
    """Return evidence of documents in memory with their places in the file of documents, and their positions in it."""
    file = constant_column(DOCUMENTS, len(table))
    rows, kept_rows = (number_column(position[table[name].to_numpy()]) for name in ("row", "kept_row"))
    columns = {
        "row": rows,
        "kept_row": kept_rows,
        "file": file,
        "offset": table["row"],
        "length": number_column(np.ones(len(table), np.int64)),
        "kept_file": file,
        "kept_offset": table["kept_row"],
    }
    for name, column in columns.items():
        table = table.set_column(table.column_names.index(name), name, column)
    for name in ("doc_id", "kept_id"):
        table = table.set_column(table.column_names.index(name), name, table[name].cast("string"))
    return table
