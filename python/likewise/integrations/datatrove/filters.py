"""Filters that remove near-duplicates: by a decision about the whole collection, or against an index."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from datatrove.data import Document
from datatrove.io import DataFolderLike, get_datafolder
from datatrove.pipeline.base import PipelineStep
from datatrove.pipeline.filters.base_filter import BaseFilter
from datatrove.pipeline.writers.disk_base import DiskWriter

from likewise.arrays import ColumnData
from likewise.errors import InvalidInput
from likewise.integrations.datatrove.collection import EVIDENCE, part_name
from likewise.recipe.recipe import GivenRecipe
from likewise.service.client.opening import open_index

_BATCH = 1000


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
