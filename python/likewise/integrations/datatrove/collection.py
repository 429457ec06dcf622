"""Decide which documents of a whole collection to remove: the first two of three steps."""

import json
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.utils.batching import batched

import likewise
from likewise.arrays import ColumnData
from likewise.errors import InvalidInput, InvalidParameter
from likewise.recipe.recipe import GivenRecipe

_TEXTS = pa.schema({"id": pa.string(), "text": pa.large_string()})
_BATCH = 1000
EVIDENCE = ("kept_id", "measure", "similarity", "distance")


class LikewiseDedupTexts(PipelineStep):
    """First step of three, any number of tasks: save ids and texts for the decision.

    Parameters
    ----------
    folder : str, tuple or DataFolder
        Working directory of the three steps, which all tasks can reach. The compressed texts are stored in ``texts``
        and can be deleted after the decision.
    """

    type, name = "🫂 - DEDUP", "Likewise: texts"

    def __init__(self, folder: DataFolderLike) -> None:
        super().__init__()
        self.folder = get_datafolder(folder)

    def run(self, data: ColumnData, rank: int = 0, world_size: int = 1) -> None:
        """Save the documents of a task."""
        path = f"texts/{part_name(rank, world_size)}"
        with self.folder.open(path, "wb") as file, pq.ParquetWriter(file, _TEXTS, compression="zstd") as writer:
            for documents in batched(data, _BATCH):
                with self.track_time("batch"):
                    columns = [[str(doc.id) for doc in documents], [doc.text for doc in documents]]
                    writer.write_table(pa.table(columns, _TEXTS))
                for doc in documents:
                    self.stat_update("total")
                    self.update_doc_stats(doc)


class LikewiseDedupDecision(PipelineStep):
    """Second step, one task: decide with :func:`likewise.dedup` which documents to keep, on all processors.

    The result is that of one call for the documents of all tasks, in the order of the tasks. It is written to
    ``verdicts`` and ``summary.json`` in the working directory.

    Parameters
    ----------
    folder : str, tuple or DataFolder
        The working directory.
    recipe : Recipe or str, optional
        Determines when two documents match; or the name of a preset, as for :func:`likewise.dedup`.
    threads : int, optional
        Number of threads; all processors if None.
    """

    type, name = "🫂 - DEDUP", "Likewise: decision"

    def __init__(
        self, folder: DataFolderLike, recipe: GivenRecipe | None = None, *, threads: int | None = None
    ) -> None:
        super().__init__()
        self.folder, self.recipe, self.threads = get_datafolder(folder), recipe, threads

    def run(self, data: ColumnData = None, rank: int = 0, world_size: int = 1) -> None:
        """Decide which documents to keep."""
        if world_size != 1:
            raise InvalidParameter("tasks", f"{world_size} given; the decision must run as one task")
        parts = sorted(self.folder.list_files("texts"))
        if parts != [f"texts/{part_name(part, len(parts))}" for part in range(len(parts))] or not parts:
            raise InvalidInput(
                "is not the output of all tasks of one run; delete it and run them again",
                str(self.folder.path) + "/texts",
            )
        lengths: list[int] = []
        with self.track_time("collection"):
            reader = pa.RecordBatchReader.from_batches(_TEXTS, self._batches(parts, lengths))
            found = likewise.dedup(reader, self.recipe, duplicate_ids="allow", threads=self.threads)
            evidence = found.removed.select(["row", "doc_id", *EVIDENCE])
            rows, sizes = np.unique(found.removed.column("kept_row").to_numpy(), return_counts=True)
            kept = pa.table({"row": rows, "group_size": sizes + 1})
            verdicts = pa.concat_tables([evidence, kept], promote_options="default").sort_by("row")
            starts = np.cumsum([0, *lengths])
            cuts = np.searchsorted(verdicts.column("row").to_numpy(), starts)
            for part, length in enumerate(lengths):
                some = verdicts.slice(cuts[part], cuts[part + 1] - cuts[part])
                some = some.set_column(0, "row", pa.array(some.column("row").to_numpy() - starts[part]))
                with self.folder.open(f"verdicts/{part_name(part, len(parts))}", "wb") as file:
                    pq.write_table(some.replace_schema_metadata({"num_documents": str(length)}), file)
            with self.folder.open("summary.json", "wb") as file:
                file.write(json.dumps(found.summary).encode())
        for name in ("num_documents", "num_kept", "num_removed"):
            self.stat_update(name, value=found.summary[name])

    def _batches(self, parts: list[str], lengths: list[int]) -> Iterator[pa.RecordBatch]:
        for path in parts:
            with self.folder.open(path, "rb") as file:
                table = pq.ParquetFile(file)
                lengths.append(table.metadata.num_rows)
                yield from table.iter_batches(_BATCH)


def part_name(rank: int, world_size: int) -> str:
    """Return the name of the file of a task."""
    return f"{rank:05d}-of-{world_size:05d}.parquet"
