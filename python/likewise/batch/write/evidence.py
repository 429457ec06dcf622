"""The evidence of a run: one row for each removed document, in input order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowColumn, ArrowTable, slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.io.output.evidence import AGAINST, INPUT, Places
from likewise.io.tables.columns import constant_column, nullable_text_column, number_column, text_column
from likewise.recipe.recipe import Recipe
from likewise.stages.verify import NAMES_OF


def evidence(documents: Documents, recipe: Recipe, decision: Decision) -> ArrowTable:
    """Return the evidence table of verdicts."""
    return _evidence_of(documents, recipe, decision, slice(0, len(decision.removed_rows)), ())


def evidence_tables(documents: Documents, recipe: Recipe, decision: Decision, kept_ids: Sequence[str]) -> Iterator[Any]:
    """Yield the table of :func:`evidence` in parts that fit the run's memory limit; at least one part.

    For kept rows of -1, ids come from `kept_ids`, of an index, in order.
    """
    num_given = 0
    for part in slices(len(decision.removed_rows), documents.room.rows_at_once):
        given = int(np.count_nonzero(decision.kept_rows[part] < 0)) if kept_ids else 0
        yield _evidence_of(documents, recipe, decision, part, kept_ids[num_given : num_given + given])
        num_given += given
    if not len(decision.removed_rows):
        yield _evidence_of(documents, recipe, decision, slice(0, 0), ())


def _evidence_of(
    documents: Documents, recipe: Recipe, decision: Decision, part: slice, kept_ids: Sequence[str]
) -> ArrowTable:
    kept_rows, below = decision.kept_rows[part], decision.below_threshold
    penalty = None
    if recipe.siblings is not None and decision.penalty is not None:
        # An index does not hand out the words of its documents.
        penalty = np.where(kept_rows >= 0, decision.penalty[part], np.nan)
    return evidence_table(
        documents.places(decision.removed_rows[part]),
        documents.places(kept_rows)
        if not kept_ids
        else documents.places(kept_rows[kept_rows >= 0]).spread(kept_rows < 0, kept_ids),
        recipe,
        decision.similarity[part],
        None if decision.distance is None else decision.distance[part].astype(np.int32),
        required=_required(documents, recipe, decision, part),
        penalty=penalty,
        differs_in=None if decision.differs is None else named(decision.differs[part], kept_rows < 0),
        below_threshold=None if below is None else below[part],
    )


def evidence_of_overruled(documents: Documents, recipe: Recipe, decision: Decision) -> ArrowTable:
    """Return the evidence table of documents kept by a user's decision although they match a kept document."""
    found = decision.overruled
    assert found is not None
    alone = decision._replace(
        removed_rows=found.rows,
        kept_rows=found.kept_rows,
        similarity=found.similarity,
        distance=None if decision.distance is None else found.distance,
        penalty=None,
        differs=None,
        below_threshold=None,
    )
    return _evidence_of(documents, recipe, alone, slice(0, len(found.rows)), ())


def _required(documents: Documents, recipe: Recipe, decision: Decision, part: slice) -> NDArray[np.float64] | None:
    """Return the similarity that each removed document had to reach, NaN in an index; None if it is the threshold."""
    if recipe.short_margin is None and recipe.siblings is None:
        return None
    rows, kept_rows = decision.removed_rows[part], decision.kept_rows[part]
    penalty = np.zeros(len(rows)) if decision.penalty is None else decision.penalty[part]
    required = np.full(len(rows), np.nan)
    is_here = kept_rows >= 0
    features = documents.num_features
    fewest = np.minimum(features[rows[is_here]], features[kept_rows[is_here]])
    required[is_here] = recipe.required_similarity(fewest, penalty[is_here])
    return required


class FurtherColumns(TypedDict, total=False):
    """Columns of some runs: arrays, whose NaN becomes null, or Arrow columns."""

    required: NDArray[np.float64] | None
    penalty: NDArray[np.float64] | None
    differs_in: ArrowColumn | None
    below_threshold: NDArray[np.bool_] | None


def evidence_table(
    removed: Places,
    kept: Places,
    recipe: Recipe,
    similarity: NDArray[np.float64],
    distance: NDArray[np.int32] | None,
    **further: Unpack[FurtherColumns],
) -> ArrowTable:
    """Return the evidence as an Arrow table, with further columns unless they are None."""
    import pyarrow as pa

    num_rows, method, recipe_id = len(removed.rows), recipe.method, recipe.recipe_id
    in_memory = removed.files.null_count == num_rows
    absent = pa.nulls(num_rows, pa.int64())
    is_reference = kept.is_reference
    source: Any = constant_column(INPUT, num_rows)
    if is_reference is not None:
        source = text_column([AGAINST if flag else INPUT for flag in is_reference.tolist()])
    is_placeless = None if is_reference is None else kept.offsets < 0

    columns = {
        "row": number_column(removed.rows),
        "doc_id": removed.doc_ids,
        "file": removed.files,
        "offset": absent if in_memory else number_column(removed.offsets),
        "length": absent if in_memory else number_column(removed.lengths),
        "kept_row": number_column(kept.rows, is_reference),
        "kept_id": kept.doc_ids,
        "kept_source": source,
        "kept_file": kept.files,
        "kept_offset": absent if in_memory else number_column(kept.offsets, is_placeless),
        "measure": constant_column(recipe.measure, num_rows),
        "similarity": number_column(similarity),
        "distance": pa.nulls(num_rows, pa.int32()) if distance is None else number_column(distance),
        "method": constant_column(method, num_rows),
        "recipe_id": constant_column(recipe_id, num_rows),
    }
    for name, values in cast("Mapping[str, Any]", further).items():
        if values is not None:
            is_number = isinstance(values, np.ndarray)
            columns[name] = number_column(values, np.isnan(values)) if is_number else values
    return pa.table(columns)


def write_evidence(tables: Iterable[Any], path: Path) -> None:
    """Write tables of evidence to one Parquet file."""
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for table in tables:
            if writer is None:
                writer = pq.ParquetWriter(path, table.schema, compression="zstd")
            # Ids of 2 GB and more have the type large_string.
            writer.write_table(table if table.schema == writer.schema else table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


def named(differs: NDArray[np.uint8], is_unknown: NDArray[np.bool_] | None = None) -> ArrowColumn:
    """Return the names of the differences of each document, null where they are unknown."""
    places = differs.astype(np.int64)
    if is_unknown is not None:
        places[is_unknown] = -1
    return nullable_text_column([(*NAMES_OF, None)[place] for place in places.tolist()])
