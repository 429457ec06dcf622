"""The distinct documents of a SimHash run in slabs, in order of priority: fingerprints, sizes, and some texts.

Short documents are also compared by their texts, so a slab has the texts of documents that may match a short one.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.batch.decide.verification import Verifier
from likewise.batch.spark.hamming.stored import read_table, write_table
from likewise.batch.spark.near import Fingerprints, documents_of
from likewise.batch.spark.rows.arrow_columns import bytes_of, numbers_of, texts_of
from likewise.io.tables.columns import number_column
from likewise.job.options import RunContext, RunRules
from likewise.recipe.methods import SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe

STORED = "slab int, name string, num_rows long"


@dataclass(frozen=True, eq=False)
class RunSlab:
    """Documents of a slab, or its kept documents."""

    # Ranks, ascending
    ranks: NDArray[np.int64]
    words: NDArray[np.uint64]
    num_features: NDArray[np.int64]
    # Texts; null for documents that no short document can match
    texts: Any

    def take(self, rows: NDArray[np.int64]) -> RunSlab:
        """Return the documents of some rows."""
        texts = self.texts.take(number_column(rows))
        return RunSlab(self.ranks[rows], self.words[rows], self.num_features[rows], texts)

    def fingerprints(self) -> Fingerprints:
        """Return the slab as the documents of a local run."""
        places = np.flatnonzero(self.texts.is_valid().to_numpy(zero_copy_only=False)).astype(np.int64)
        held = [texts_of(self.texts.take(number_column(places)))] if len(places) else []
        every = np.arange(len(self.ranks), dtype=np.int64)
        words = np.ascontiguousarray(self.words).reshape(-1)
        documents = documents_of(words, self.num_features, every, places, [Texts.from_list([]), *held])
        return Fingerprints(self.ranks, documents)

    def write(self, directory: str) -> str:
        """Write the slab to a new file and return its name."""
        import pyarrow as pa

        width = 8 * self.words.shape[1]
        data = pa.py_buffer(np.ascontiguousarray(self.words))
        columns = {
            "rank": number_column(self.ranks),
            "code": pa.Array.from_buffers(pa.binary(width), len(self.ranks), [None, data]),
            "num_features": number_column(self.num_features),
            "text": self.texts,
        }
        name = f"slab-{uuid.uuid4().hex}"
        write_table(directory, name, pa.table(columns))
        return name

    @classmethod
    def read(cls, directory: str, name: str) -> RunSlab:
        """Return the slab that :meth:`write` wrote."""
        import pyarrow as pa

        table = read_table(directory, name)
        code, text = table.column("code"), table.column("text")
        width = code.type.byte_width
        parts = [
            np.frombuffer(part.buffers()[1], np.uint8, len(part) * width, part.offset * width)
            for part in code.chunks
            if len(part)
        ]
        words = np.concatenate([np.zeros(0, np.uint8), *parts]).view("<u8").reshape(-1, width // 8)
        texts = pa.concat_arrays(text.chunks) if text.num_chunks else pa.array([], text.type)
        return cls(numbers_of(table.column("rank")), words, numbers_of(table.column("num_features")), texts)


def with_short_texts(positions: DataFrame, texts: DataFrame, recipe: Recipe) -> DataFrame:
    """Return rank, sketch, num_features, text of distinct documents. Text is null if no short document can match."""
    method = recipe.method_as(SimHash)
    chosen = positions.select("rank", "sketch", "num_features")
    if not isinstance(method, SimHashDistance):
        return chosen.withColumn("text", F.lit(None).cast(texts.schema["payload"].dataType))
    may_meet = method.may_meet_short(F.col("num_features"))
    short = positions.where(may_meet).select("rank").join(texts, "rank")
    return chosen.join(short.select("rank", F.col("payload").alias("text")), "rank", "left")


def store_slabs(batches: Iterator[Any], *, directory: str, num_words: int) -> Iterator[Any]:
    """Write the documents of each slab to a file and yield its name; rows come by slab and rank. Runs on a worker."""
    held: list[Any] = []
    number = None
    for batch in batches:
        values = numbers_of(batch.column("slab"))
        bounds = [0, *(np.flatnonzero(values[1:] != values[:-1]) + 1).tolist(), len(values)]
        for start, end in pairwise(bounds):
            if start == end:
                continue
            if number is not None and values[start] != number:
                yield _stored(held, number, directory, num_words)
                held = []
            number = int(values[start])
            held.append(batch.slice(start, end - start))
    if number is not None:
        yield _stored(held, number, directory, num_words)


def _stored(held: Sequence[Any], number: int, directory: str, num_words: int) -> Any:
    import pyarrow as pa

    code = np.concatenate([bytes_of(part.column("sketch"), 8 * num_words) for part in held])
    slab = RunSlab(
        np.concatenate([numbers_of(part.column("rank")) for part in held]),
        code.view("<u8"),
        np.concatenate([numbers_of(part.column("num_features")) for part in held]),
        pa.concat_arrays([part.column("text") for part in held]),
    )
    name = slab.write(directory)
    columns = {"slab": pa.array([number], pa.int32()), "name": [name], "num_rows": [len(slab.ranks)]}
    return pa.RecordBatch.from_pydict(columns)


def matching(
    one: RunSlab, rows: NDArray[np.int64], other: RunSlab, others: NDArray[np.int64], recipe: Recipe
) -> tuple[NDArray[np.bool_], int]:
    """Return which pairs within the radius match, and how many were measured by text because one side is short."""
    method = recipe.method_as(SimHash)
    matches = np.ones(len(rows), bool)
    if not isinstance(method, SimHashDistance):
        return matches, 0
    few = np.flatnonzero(method.is_short(np.minimum(one.num_features[rows], other.num_features[others])))
    if not len(few):
        return matches, 0
    a, a_places = np.unique(rows[few], return_inverse=True)
    b, b_places = np.unique(others[few], return_inverse=True)
    import pyarrow as pa

    both = [one.take(a), other.take(b)]
    joined = RunSlab(
        np.arange(len(a) + len(b)),
        np.concatenate([side.words for side in both]),
        np.concatenate([side.num_features for side in both]),
        pa.concat_arrays([side.texts for side in both]),
    ).fingerprints()
    with Verifier(joined.documents, joined.collapsed, recipe, RunContext(RunRules(1))) as verifier:
        later, earlier = (b_places + len(a)).astype(np.uint32), a_places.astype(np.uint32)
        values = verifier.without_unlike_short(later, earlier, np.ones(len(few)))
        num_measured = verifier.num_measured
    matches[few[np.isnan(values)]] = False
    return matches, num_measured
