"""Group labels as fields of each row of an input; the result of a run in memory as that of a run over files."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArraySpace, ArrowColumn, ArrowTable, slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.write.evidence import write_evidence
from likewise.io.output.directory import DOCUMENTS, EVIDENCE, OVERRULED
from likewise.io.source.added import Added, AddedFields
from likewise.io.tables.columns import constant_column, null_where, number_column, text_column
from likewise.job.output import Job
from likewise.job.reading import FileRun
from likewise.progress import no_progress
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import RECIPE, write_companions

_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Labels:
    """Labels of consecutive documents."""

    is_kept: NDArray[np.bool_]
    # The kept document of its group: itself, or the one that its evidence names; -1 for a document of an index
    leaders: NDArray[np.int64]
    # Position among removed documents, in the order of the evidence, from 0; -1 for kept ones
    positions: NDArray[np.int64]
    # Similarity to the kept document; NaN for kept ones
    similarity: NDArray[np.float64]

    def take(self, rows: NDArray[np.int64]) -> "Labels":
        """Return the labels of these rows."""
        return Labels(self.is_kept[rows], self.leaders[rows], self.positions[rows], self.similarity[rows])


class Groups:
    """The groups of the evidence: a kept document, and the documents removed as its duplicates."""

    def __init__(
        self,
        num_rows: int,
        removed_rows: NDArray[np.int64],
        kept_rows: NDArray[np.int64],
        similarity: NDArray[np.float64],
        space: ArraySpace | None = None,
    ) -> None:
        self._removed_rows = removed_rows
        self._kept_rows = kept_rows
        self._similarity = similarity
        self._num_duplicates = (space or ArraySpace()).zeros(num_rows, np.uint32)
        for part in slices(len(kept_rows), _AT_ONCE):
            leaders = kept_rows[part]
            np.add.at(self._num_duplicates, leaders[leaders >= 0], 1)

    def num_duplicates(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the number of documents removed as duplicates of each of these rows."""
        return self._num_duplicates[rows].astype(np.int64)

    def labels(self, rows: slice) -> Labels:
        """Return the labels of consecutive documents."""
        low, high = (int(bound) for bound in np.searchsorted(self._removed_rows, [rows.start, rows.stop]))
        places = self._removed_rows[low:high] - rows.start
        num_rows = rows.stop - rows.start
        leaders = np.arange(rows.start, rows.stop, dtype=np.int64)
        positions = np.full(num_rows, -1, np.int64)
        similarity = np.full(num_rows, np.nan)
        leaders[places] = self._kept_rows[low:high]
        positions[places] = np.arange(low, high)
        similarity[places] = self._similarity[low:high]
        return Labels(positions < 0, leaders, positions, similarity)


class DocumentGroups:
    """The groups of a run over files, named by their kept documents, or by their places if two of these share an id."""

    def __init__(
        self, documents: Documents, decision: Decision, kept_ids: Sequence[str], *, may_share_ids: bool = False
    ) -> None:
        self._documents = documents
        self._decision = decision
        self._groups = Groups(
            len(documents), decision.removed_rows, decision.kept_rows, decision.similarity, documents.room.space
        )
        self._of_index = np.flatnonzero(decision.kept_rows < 0) if kept_ids else np.zeros(0, np.int64)
        self._kept_ids = kept_ids
        self._are_by_place = may_share_ids and documents.share_ids(decision.kept)
        self._sizes_of_index = Counter(kept_ids)

    def unique(self) -> NDArray[np.bool_]:
        """Return which documents are kept and have no duplicates."""
        mask = self._documents.room.space.zeros(len(self._documents), np.bool_)
        for part in slices(len(mask), _AT_ONCE):
            rows = np.arange(part.start, part.stop)
            mask[part] = self._decision.kept[part] & (self._groups.num_duplicates(rows) == 0)
        return mask

    def added(self, number: int, offsets: NDArray[np.uint64], prefix: str) -> Added:
        """Return the labels of one input as fields to add to its rows."""
        first, end = int(self._documents.starts[number]), int(self._documents.starts[number + 1])
        places = self._documents.offsets[first:end]

        def columns(part: slice) -> tuple[NDArray[np.bool_], list[Any]]:
            some = offsets[part]
            low = int(np.searchsorted(places, some[0]))
            high = int(np.searchsorted(places, some[-1], "right"))
            found = self._columns(slice(first + low, first + high))
            if high - low == len(some):
                return np.ones(len(some), bool), found
            is_document = np.isin(some, places[low:high])
            rows = number_column(np.cumsum(is_document) - 1, ~is_document)
            return is_document, [column.take(rows) for column in found]

        return Added(AddedFields(prefix), columns)

    def _columns(self, rows: slice) -> list[Any]:
        labels = self._groups.labels(rows)
        ids = self._ids(labels, self._documents.doc_ids)
        return [
            number_column(labels.is_kept),
            self._ids(labels, self._documents.place_ids) if self._are_by_place else ids,
            null_where(ids, labels.is_kept),
            number_column(labels.similarity, labels.is_kept),
            number_column(self._sizes(labels)),
        ]

    def _ids(self, labels: Labels, names_of: Callable[[NDArray[np.int64]], Any]) -> ArrowColumn:
        of_index = labels.leaders < 0
        if not of_index.any():
            return names_of(labels.leaders)
        own = iter(names_of(labels.leaders[~of_index]).to_pylist())
        other = iter(self._ids_of_index(labels))
        return text_column([next(other if flag else own) for flag in of_index.tolist()])

    def _ids_of_index(self, labels: Labels) -> list[str]:
        positions = labels.positions[labels.leaders < 0]
        return [self._kept_ids[number] for number in np.searchsorted(self._of_index, positions).tolist()]

    def _sizes(self, labels: Labels) -> NDArray[np.int64]:
        is_own = labels.leaders >= self._documents.num_references
        sizes = self._groups.num_duplicates(np.maximum(labels.leaders, 0)) + is_own
        of_index = labels.leaders < 0
        sizes[of_index] = [self._sizes_of_index[name] for name in self._ids_of_index(labels)]
        return sizes


def save_run(
    target: str | Path,
    documents: ArrowTable,
    tables: tuple[ArrowTable, ArrowTable | None],
    recipe: Recipe,
    summary: Mapping[str, Any],
    *,
    overwrite: bool,
) -> None:
    """Write documents (columns id and text), the evidence, that of overruled documents, if any, and the summary."""
    import pyarrow.parquet as pq

    # Rows without a text are no documents of a run over files.
    position = np.cumsum(np.asarray(documents["text"].is_valid())) - 1
    options = FileRun(on_error="skip", duplicate_ids="allow", max_bad_rows="100%")
    with Job(target, options, no_progress, overwrite=overwrite) as job:
        job.claim(recipe_id=recipe.recipe_id)
        with job.writing() as work:
            pq.write_table(documents, work / DOCUMENTS, compression="zstd")
            write_companions(recipe, work / RECIPE)
            for name, table in zip((EVIDENCE, OVERRULED), tables, strict=True):
                if table is not None:
                    write_evidence([_placed(table, position)], work / name)
            num_bytes = (work / DOCUMENTS).stat().st_size
        counts = {name: summary[name] for name in ("num_documents", "num_kept", "num_bad_rows")}
        job.finish(
            {
                **summary,
                "input_directory": str(Path(target).resolve()),
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
