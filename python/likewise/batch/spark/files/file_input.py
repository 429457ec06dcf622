"""Files as an input of Spark. One task reads each file, with the readers of a local run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from likewise.batch.spark.files.writing import PIECE_BYTES
from likewise.batch.spark.rows.numbering import starts_of
from likewise.batch.spark.run import BAD, DOCUMENT, TALLY
from likewise.io.output.scratch import scratch_directory
from likewise.io.source.source import Piece, Source, each_piece
from likewise.io.tables.columns import number_column, text_column


class FileInput:
    """Files that all workers see under the same paths as the driver."""

    def __init__(
        self,
        spark: SparkSession,
        sources: Sequence[Source],
        stamps: Sequence[Mapping[str, Any]],
        *,
        fields: tuple[str, ...],
        has_bytes: bool,
    ) -> None:
        self._spark = spark
        self._sources = list(sources)
        self._fields = [f"field{number}" for number in range(len(fields))]
        self._has_bytes = has_bytes
        self._identity = {"inputs": list(stamps)}

    def identity(self) -> Mapping[str, Any]:
        """Return the files, with their sizes and modification times."""
        return self._identity

    def documents(self) -> DataFrame:
        """Return documents, bad rows and a tally of each piece, with part (the file's number) and number."""
        texts = "text binary" if self._has_bytes else "text string"
        fields = "".join(f", {name} string" for name in self._fields)
        schema = (
            f"part int, number long, kind int, {texts}, doc_id string, has_id boolean, offset long, length long, "
            f"line long, reason string{fields}"
        )
        numbers = self._spark.createDataFrame([(number,) for number in range(len(self._sources))], "source int")
        read = partial(_read, sources=self._sources, fields=self._fields, has_bytes=self._has_bytes)
        return numbers.repartition(len(self._sources)).mapInArrow(read, schema)

    def describe(self, documents: DataFrame) -> dict[str, Any]:
        """Return the first row of each file that has documents."""
        counts = documents.groupBy("part").agg(F.count_if(F.col("kind") == DOCUMENT).alias("num_rows")).collect()
        return starts_of((int(row["part"]), int(row["num_rows"])) for row in counts)

    def check_same(self, facts: Mapping[str, Any], directory: str) -> None:
        """Do nothing, since changed files are recognized by their sizes and times, which are part of the identity."""


def _read(batches: Iterator[Any], *, sources: list[Source], fields: list[str], has_bytes: bool) -> Iterator[Any]:
    """Yield the pieces of numbered files. Runs on a worker."""
    for batch in batches:
        for number in batch.column("source").to_pylist():
            num_documents = 0
            with scratch_directory() as work:
                for first_line, piece in each_piece(sources[number], PIECE_BYTES, work):
                    yield from _rows(piece, number, num_documents, first_line, fields, has_bytes=has_bytes)
                    num_documents += len(piece.texts)


def _rows(
    piece: Piece, part: int, first_number: int, first_line: int, fields: list[str], *, has_bytes: bool
) -> Iterator[Any]:
    import pyarrow as pa

    num, bad = len(piece.texts), piece.bad_rows
    texts = pa.array(piece.texts.to_list(), pa.binary()) if has_bytes else text_column(piece.texts)
    kind_of_text = pa.binary() if has_bytes else pa.string()
    if num:
        documents = {
            "part": number_column(np.full(num, part, np.int32)),
            "number": number_column(np.arange(first_number, first_number + num, dtype=np.int64)),
            "kind": number_column(np.full(num, DOCUMENT, np.int32)),
            "text": texts,
            "doc_id": text_column(piece.ids),
            "has_id": number_column(piece.has_id.astype(bool)),
            "offset": number_column(piece.offsets.astype(np.int64)),
            "length": number_column(piece.lengths.astype(np.int64)),
            "line": number_column(piece.lines.astype(np.int64) + first_line),
            "reason": pa.nulls(num, pa.string()),
        }
        more = {name: text_column(values) for name, values in zip(fields, piece.fields, strict=True)}
        yield pa.RecordBatch.from_pydict(documents | more)
    # A tally has blank lines of the piece in the column of offsets, a bad row its lines in that of numbers.
    others = [*((BAD, row.offset, row.length, row.line + first_line, row.reason, row.num_lines) for row in bad)]
    others.append((TALLY, piece.num_blank, 0, 0, "", -1))
    columns = list(zip(*others, strict=True))
    nulls = len(others)
    yield pa.RecordBatch.from_pydict(
        {
            "part": number_column(np.full(nulls, part, np.int32)),
            "number": pa.array(columns[5], pa.int64()),
            "kind": pa.array(columns[0], pa.int32()),
            "text": pa.nulls(nulls, kind_of_text),
            "doc_id": pa.nulls(nulls, pa.string()),
            "has_id": number_column(np.zeros(nulls, bool)),
            "offset": pa.array(columns[1], pa.int64()),
            "length": pa.array(columns[2], pa.int64()),
            "line": pa.array(columns[3], pa.int64()),
            "reason": pa.array(columns[4], pa.string()),
            **{name: pa.nulls(nulls, pa.string()) for name in fields},
        }
    )
