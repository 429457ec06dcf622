"""Filters that remove near-duplicates: by a decision about the whole collection, or against an index."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.writers.disk_base import DiskWriter
from datatrove.utils.batching import batched

import likewise
from likewise.arrays import ColumnData
from likewise.errors import InvalidInput, InvalidParameter
from likewise.recipe.recipe import GivenRecipe
from likewise.service.client.opening import open_index

_TEXTS = pa.schema({"id": pa.string(), "text": pa.large_string()})
EVIDENCE = ("kept_id", "measure", "similarity", "distance")

_BATCH = 1000


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


class LikewiseDedupFilter(BaseFilter):
    """Third step: remove the duplicates. Requires the same reader and number of tasks as the first step.

    Parameters
    ----------
    folder : str, tuple or DataFolder
        The working directory.
    exclusion_writer : DiskWriter, optional
        Writer for removed documents. Their metadata contain the evidence: ``likewise_kept_id``, ``likewise_measure``,
        ``likewise_similarity`` and ``likewise_distance``. Those of kept documents contain ``likewise_group_size``.
    """

    name = "Likewise: near-duplicates of the collection"

    def __init__(self, folder: DataFolderLike, exclusion_writer: DiskWriter | None = None) -> None:
        super().__init__(exclusion_writer)
        self.folder = get_datafolder(folder)

    def run(self, data: ColumnData, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the kept documents of a task."""
        path = f"verdicts/{part_name(rank, world_size)}"
        if not self.folder.isfile(path):
            raise InvalidInput("no such file; use the number of tasks of the first step, after the decision", path)
        with self.folder.open(path, "rb") as file:
            table = pq.read_table(file)
        self._verdicts = {verdict["row"]: verdict for verdict in table.to_pylist()}
        self._num_seen, num_documents = 0, int(table.schema.metadata[b"num_documents"])
        yield from super().run(data, rank, world_size)
        if self._num_seen != num_documents:
            raise InvalidInput(f"{self._num_seen:,} documents, but the first step read {num_documents:,}", path)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is kept."""
        verdict = self._verdicts.get(self._num_seen)
        self._num_seen += 1
        if verdict is None or verdict["doc_id"] is None:
            doc.metadata["likewise_group_size"] = 1 if verdict is None else verdict["group_size"]
            return True
        if verdict["doc_id"] != str(doc.id):
            raise InvalidInput(
                f"document {doc.id!r} is not {verdict['doc_id']!r}; read the same documents as in the first step"
            )
        return _removed(self, doc, [verdict[name] for name in EVIDENCE])


class LikewiseFilter(BaseFilter):
    """Remove documents with a near-duplicate in an index, and add the others to the index.

    The result depends on the order in which documents arrive, so tasks that run at the same time give different
    results each time. With ``add=False``, documents are compared with the index only, in any order.

    Parameters
    ----------
    index : str or Path
        Directory of an index, or URL of a service. A directory has one writer: run one task at a time.
    recipe : Recipe or str, optional
        Recipe of a new index.
    add : bool
        Whether to add documents to the index; removed ones are added as duplicates. A task that runs again gets the
        verdicts of its first run.
    collection, key : str, optional
        Collection of a service, and an API key.
    exclusion_writer : DiskWriter, optional
        Writer for removed documents, with the evidence in their metadata as for `LikewiseDedupFilter`.
    """

    name = "Likewise: near-duplicates of an index"

    def __init__(
        self,
        index: str | os.PathLike[str],
        recipe: GivenRecipe | None = None,
        *,
        add: bool = True,
        collection: str | None = None,
        key: str | None = None,
        exclusion_writer: DiskWriter | None = None,
    ) -> None:
        super().__init__(exclusion_writer, batch_size=_BATCH)
        self.index, self.recipe, self.add = index, recipe, add
        self.service = {"collection": collection, "key": key}

    def run(self, data: ColumnData, rank: int = 0, world_size: int = 1) -> Iterator[Document]:
        """Yield the new documents of a task."""
        with open_index(self.index, self.recipe, read_only=not self.add, **self.service) as self._open:
            yield from super().run(data, rank, world_size)

    def filter(self, doc: Document) -> bool | tuple[bool, str]:
        """Return whether a document is new."""
        return self.filter_batch([doc])[0]

    def filter_batch(self, batch: list[Document]) -> list[bool | tuple[bool, str]]:
        """Return which documents are new."""
        texts = [doc.text for doc in batch]
        if self.add:
            verdicts = self._open.check_and_add_batch([str(doc.id) for doc in batch], texts)
            self.stat_update("known", value=int(np.count_nonzero(~verdicts.added)))
        else:
            verdicts = self._open.check_batch(texts)
        return [
            verdict.is_new or _removed(self, doc, [getattr(verdict, name) for name in EVIDENCE])
            for doc, verdict in zip(batch, verdicts, strict=True)
        ]


def _removed(step: PipelineStep, doc: Document, evidence: Sequence[Any]) -> tuple[bool, str]:
    doc.metadata |= {f"likewise_{name}": value for name, value in zip(EVIDENCE, evidence, strict=True)}
    step.stat_update("similarity", value=doc.metadata["likewise_similarity"])
    return False, "near-duplicate"
