"""Searches on one machine, by the functions of a local run: fingerprints of a slab, and full buckets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.batch.decide.decision import Decision, decide
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.crowds import CrowdSearch
from likewise.batch.spark.rows.arrow_columns import numbers_of, texts_of
from likewise.batch.spark.rows.numbering import sorted_slices
from likewise.errors import InvalidParameter
from likewise.io.tables.arrow import MemorySource
from likewise.io.tables.columns import number_column
from likewise.job.options import RunContext, RunRules
from likewise.progress import Progress
from likewise.recipe.recipe import Recipe

_WORD_BYTES = 8
# Bytes of a feature of a document in an exact join, including counts.
_BYTES_A_JOINED = 80
_PAIRS_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Distinct fingerprints in one process, in order of priority."""

    ranks: NDArray[np.int64]
    # Fingerprints as the documents of a local run, with only the texts that the check of short documents may read
    documents: Documents

    @property
    def collapsed(self) -> Collapsed:
        """The order of a local run, in which all are already distinct and sorted."""
        rows = np.arange(len(self.ranks), dtype=np.int64)
        return Collapsed(rows, rows.astype(np.uint32), rows)


def crowd_pairs(
    texts: DataFrame,
    recipe: Recipe,
    num_ranks: int,
    num_crowded: int,
    threads: int,
    memory_bytes: int,
    take: Callable[[Any], None],
) -> int:
    """Pass the candidate pairs of documents with full buckets to `take`, and return their number."""
    import pyarrow as pa

    row = texts.agg(F.sum("num_features"), F.sum(F.octet_length("payload"))).collect()[0]
    needed = _BYTES_A_JOINED * int(row[0] or 0) + int(row[1] or 0)
    if needed > memory_bytes:
        raise InvalidParameter(
            "driver_memory",
            f"{num_crowded:,} documents are in full buckets; comparing them takes about {needed / 1e9:.1f} GB on the "
            f"driver, but only {memory_bytes / 1e9:.1f} GB are allowed; raise the limit, or use --overflow levels, "
            "which may miss pairs of them",
        )
    ranks, features, held = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [Texts.from_list([])]
    for _, _, table in sorted_slices(texts, "rank", num_ranks, most=1 << 20):
        ranks.append(numbers_of(table.column("rank")))
        features.append(numbers_of(table.column("num_features")))
        held += [texts_of(chunk) for chunk in table.column("payload").chunks]
    every = np.concatenate(ranks)
    documents = documents_of(np.zeros(0, np.uint64), np.concatenate(features), every, every, held)
    crowd = Fingerprints(every, documents)
    positions = np.arange(len(every), dtype=np.uint32)
    search = CrowdSearch(documents, crowd.collapsed, recipe, positions, threads)
    low = num_pairs = 0
    while low < len(every):
        later, earlier, low = search.candidates(low, len(every), None, _PAIRS_AT_ONCE)
        take(pa.table({"later": number_column(every[later]), "earlier": number_column(every[earlier])}))
        num_pairs += len(later)
    return num_pairs


def documents_of(
    sketches: NDArray[np.uint64],
    features: NDArray[np.int64],
    ranks: NDArray[np.int64],
    short_ranks: NDArray[np.int64],
    short_texts: list[Texts],
) -> Documents:
    """Return fingerprints as the documents of a local run, with the texts of `short_ranks`, which are ascending."""
    num = len(ranks)
    kinds = {part.kind for part in short_texts if len(part)} or {"text"}
    nothing = Texts.from_list([""]) if kinds == {"text"} else Texts.from_bytes([b""])
    held = Texts.concat([nothing, *(part for part in short_texts if len(part))])
    # All other texts are read as empty. An empty text matches no short text, and neither could they.
    places = np.zeros(num, np.uint64)
    places[np.searchsorted(ranks, short_ranks)] = np.arange(1, len(short_ranks) + 1, dtype=np.uint64)
    return Documents(
        sources=[MemorySource(held)],
        starts=np.array([0, num], np.int64),
        sketches=sketches,
        shapes=np.zeros(num, np.uint8),
        num_features=features.astype(np.uint32),
        digests=np.zeros(0, np.uint64),
        offsets=places,
        lengths=np.ones(num, np.uint32),
        lines=np.zeros(num, np.uint32),
        ids=Texts.from_list([]),
        has_id=np.zeros(num, bool),
        text_lengths=None,
        fields={},
        bad_rows=[[]],
        num_blank=0,
        spool=None,
        spooled=[],
    )


def decided_by_distance(held: Fingerprints, recipe: Recipe, threads: int, progress: Progress) -> Decision:
    """Return the verdicts of a Hamming-only run on fingerprints; rows are places in `held`."""
    return decide(held.documents, held.collapsed, recipe, RunContext(RunRules(threads), progress=progress))
