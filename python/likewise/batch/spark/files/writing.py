"""Outputs that workers write: each kept file in one task, the evidence in one task.

In a directory that workers and the driver see under one path, a file gets its name when it is complete, so that a task
can be repeated. Elsewhere, Spark writes directories of text or Parquet.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from io import BytesIO
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from likewise._native import Texts
from likewise.arrays import ColumnData
from likewise.batch.spark.rows.arrow_columns import (
    bytes_of,
    groups_of,
    numbers_of,
    runs_of,
    starts_of,
    texts_of,
    values_of,
    with_nulls,
)
from likewise.batch.spark.run import BAD, DOCUMENT, TALLY
from likewise.batch.spark.sketching import DIGEST_BYTES
from likewise.batch.spark.stages import worker_errors
from likewise.batch.write.evidence import write_evidence
from likewise.batch.write.kept_rows import write_kept
from likewise.batch.write.summary import ContentDigest
from likewise.errors import InvalidInput
from likewise.io.lines.lines import LineFile
from likewise.io.output.whole import scratch_directory
from likewise.io.source.source import InputFile, Kept, Piece, Source, each_piece
from likewise.io.tables.columns import text_column

PIECE_BYTES = 1 << 20
# Rows of the evidence that are written at once.
_ROWS_AT_ONCE = 1 << 18
# Directory of incomplete files, next to the complete ones.
_INCOMPLETE = "incomplete"
_NO_PLACE = -1


def write_kept_files(rows: DataFrame, sources: Sequence[InputFile], target: Path) -> list[int]:
    """Write the kept documents of each input, and return the number of rows of each.

    Shuffles 20 bytes for each kept document. A worker holds 12 bytes for each kept document of one file.
    """
    target.mkdir()
    work = partial(_write_files, sources=list(sources), target=target)
    with worker_errors():
        written = dict(_by_file(rows, len(sources)).mapInArrow(work, "part int, num_rows long").collect())
    for number, source in enumerate(sources):
        if (written[number] or not source.is_document) and not (target / source.name).exists():
            raise _elsewhere(target / source.name)
    return [int(written[number]) for number in range(len(sources))]


def write_kept_lines(rows: DataFrame, sources: Sequence[LineFile], url: str) -> None:
    """Let Spark write the kept lines of each input, unpacked, to its own directory ``file=NAME``."""
    lines = _by_file(rows, len(sources)).mapInArrow(
        partial(_kept_lines, sources=list(sources)), "file string not null, number long, line binary"
    )
    # The cast changes no bytes. Spark keeps this order, since `file` is never null.
    named = lines.select("file", "number", F.col("line").cast("string").alias("value"))
    with worker_errors():
        in_order = named.sortWithinPartitions("file", "number").select("file", "value")
        in_order.write.mode("overwrite").partitionBy("file").text(url)


def _by_file(rows: DataFrame, num_sources: int) -> DataFrame:
    """Return kept rows in order, those of each input in one partition, after a row without a place."""
    # So files are also written if none of their documents is kept.
    each = rows.sparkSession.createDataFrame(
        [(number, _NO_PLACE, 0) for number in range(num_sources)], "part int, offset long, length long"
    )
    in_order = rows.select("part", "offset", "length").union(each).repartition("part")
    return in_order.sortWithinPartitions("part", "offset")


def write_evidence_file(
    evidence: DataFrame,
    empty: ColumnData,
    path: Path,
    starts: Sequence[Sequence[int]],
) -> dict[int, int]:
    """Write the evidence in row order, and return the number of removed documents of each input.

    One task sorts and writes all rows. It spills to disk what does not fit in memory.
    """
    in_order = evidence.repartition(1).sortWithinPartitions("row")
    work = partial(_write_evidence, empty=empty, path=path, starts=starts)
    with worker_errors():
        counts = dict(in_order.mapInArrow(work, "part int, num_rows long").collect())
    if not counts:
        write_evidence([empty], path)
    elif not path.exists():
        raise _elsewhere(path)
    return {int(part): int(count) for part, count in counts.items()}


def content_digests(documents: DataFrame) -> dict[int, str]:
    """Return the content digest of each input that has documents.

    Shuffles about 60 bytes and the id for each document. One task per input sorts its documents, and spills to disk
    what does not fit in its memory.
    """
    in_order = documents.repartition("part").sortWithinPartitions("part", "row")
    with worker_errors():
        return dict(in_order.mapInArrow(_digest_inputs, "part int, content string").collect())


def _digest_inputs(batches: Iterator[Any]) -> Iterator[Any]:
    """Yield the digest of each input, from sorted documents. Runs on a worker."""
    schema = pa.schema({"part": pa.int32(), "content": pa.string()})
    for number, parts in groupby(runs_of(batches, "part"), itemgetter(0)):
        content, held = ContentDigest(), None
        for _, part in parts:
            rows = pa.table(part)
            held = rows if held is None else pa.concat_tables([held, rows])
            while len(held) >= ContentDigest.ROWS_AT_ONCE:
                _add_documents(content, held.slice(0, ContentDigest.ROWS_AT_ONCE))
                held = held.slice(ContentDigest.ROWS_AT_ONCE)
        if held:
            _add_documents(content, held)
        yield pa.RecordBatch.from_pydict({"part": [number], "content": [content.hexdigest()]}, schema)


def _add_documents(content: ContentDigest, rows: Any) -> None:
    digests = bytes_of(rows.column("digest"), DIGEST_BYTES).view("<u8")
    offsets, lengths = (numbers_of(rows.column(name)) for name in ("offset", "length"))
    ids = Texts.concat([texts_of(chunk) for chunk in rows.column("doc_id").chunks])
    content.add(digests, offsets.astype(np.uint64), lengths.astype(np.uint32), ids)


def _elsewhere(path: Path) -> InvalidInput:
    return InvalidInput(
        "workers wrote this file, but it is missing here; choose an output directory on a disk that all machines share",
        str(path),
    )


def _incomplete(path: Path) -> Path:
    """Return a new path in the directory of incomplete files, which is deleted when the run ends."""
    directory = path.parent / _INCOMPLETE
    directory.mkdir(parents=True, exist_ok=True)
    return directory / uuid.uuid4().hex


def _files(batches: Iterator[Any]) -> Iterator[tuple[int, NDArray[np.uint64], NDArray[np.uint32]]]:
    """Yield number, offsets and lengths of each input, from sorted rows."""
    for number, parts in groups_of(batches, "part"):
        offsets, lengths = (
            np.concatenate([numbers_of(part.column(name)) for part in parts]) for name in ("offset", "length")
        )
        is_row = offsets != _NO_PLACE
        yield number, offsets[is_row].astype(np.uint64), lengths[is_row].astype(np.uint32)


def _write_files(batches: Iterator[Any], *, sources: list[InputFile], target: Path) -> Iterator[Any]:
    """Write the kept files of the given rows. Runs on a worker."""
    for number, offsets, lengths in _files(batches):
        source = sources[number]
        path, incomplete = target / source.name, _incomplete(target)
        with scratch_directory() as work:
            for _ in source.unpacking(PIECE_BYTES, work):
                pass
            write_kept(source, incomplete, Kept(offsets, lengths, 1))
        if incomplete.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            incomplete.replace(path)
        yield _counts([number], [len(offsets)])


def _kept_lines(batches: Iterator[Any], *, sources: list[LineFile]) -> Iterator[Any]:
    """Yield the kept lines of the given rows. Runs on a worker."""
    for number, offsets, lengths in _files(batches):
        source, num_lines = sources[number], 0
        with scratch_directory() as work:
            for _ in source.unpacking(PIECE_BYTES, work):
                pass
            group = np.cumsum(lengths, dtype=np.int64) // PIECE_BYTES
            bounds = [0, *(1 + np.flatnonzero(np.diff(group))).tolist(), len(offsets)]
            for low, high in pairwise(bounds):
                out = BytesIO()
                source.stream_kept(out, offsets[low:high], lengths[low:high], with_head=low == 0)
                lines = out.getvalue().split(b"\n")[:-1]
                yield pa.RecordBatch.from_pydict(
                    {
                        "file": pa.array([source.name] * len(lines), pa.string()),
                        "number": pa.array(range(num_lines, num_lines + len(lines)), pa.int64()),
                        "line": pa.array(lines, pa.binary()),
                    }
                )
                num_lines += len(lines)


def _write_evidence(
    batches: Iterator[Any],
    *,
    empty: ColumnData,
    path: Path,
    starts: Sequence[Sequence[int]],
) -> Iterator[Any]:
    """Write sorted evidence, and yield the counts of inputs. Runs on a worker."""
    parts, first_rows = (np.array(column, np.int64) for column in zip(*starts, strict=True))
    counts = np.zeros(len(parts), np.int64)
    incomplete = _incomplete(path)

    def tables() -> Iterator[Any]:
        held: list[Any] = []
        for batch in batches:
            held.append(batch)
            if sum(part.num_rows for part in held) >= _ROWS_AT_ONCE:
                yield pa.Table.from_batches(held)
                held = []
        if held:
            yield pa.Table.from_batches(held)

    def written() -> Iterator[Any]:
        for table in tables():
            # An input without documents has the same first row as the next one, which the search finds.
            of_rows = np.searchsorted(first_rows, numbers_of(table.column("row")), side="right") - 1
            counts[:] += np.bincount(of_rows, minlength=len(parts))
            yield table.select(empty.schema.names).cast(empty.schema)

    write_evidence(written(), incomplete)
    if counts.any():
        incomplete.replace(path)
    is_there = counts > 0
    yield _counts(parts[is_there].tolist(), counts[is_there].tolist())


def _counts(parts: list[int], counts: list[int]) -> Any:
    schema = "part int, num_rows long"
    return with_nulls(schema, part=np.array(parts, np.int32), num_rows=np.array(counts, np.int64))


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
        # The files, with their sizes and modification times
        self.identity: dict[str, Any] = {"inputs": list(stamps)}

    def documents(self) -> DataFrame:
        """Return documents, bad rows and a tally of each piece, with part (the file's number) and number."""
        texts = "text binary" if self._has_bytes else "text string"
        fields = "".join(f", {name} string" for name in self._fields)
        schema = (
            f"part int, number long, kind int, {texts}, doc_id string, has_id boolean, offset long, length long, "
            f"line long, reason string{fields}"
        )
        numbers = self._spark.createDataFrame([(number,) for number in range(len(self._sources))], "source int")
        read = partial(_read, sources=self._sources, schema=schema, fields=self._fields, has_bytes=self._has_bytes)
        return numbers.repartition(len(self._sources)).mapInArrow(read, schema)

    def describe(self, documents: DataFrame) -> dict[str, Any]:
        """Return the first row of each file that has documents."""
        counts = documents.groupBy("part").agg(F.count_if(F.col("kind") == DOCUMENT).alias("num_rows")).collect()
        return starts_of((int(row["part"]), int(row["num_rows"])) for row in counts)

    def check_same(self, facts: Mapping[str, Any], directory: str) -> None:
        """Do nothing, since changed files are recognized by their sizes and times, which are part of the identity."""


def _read(
    batches: Iterator[Any], *, sources: list[Source], schema: str, fields: list[str], has_bytes: bool
) -> Iterator[Any]:
    """Yield the pieces of numbered files. Runs on a worker."""
    for number in values_of(batches, "source"):
        num_documents = 0
        with scratch_directory() as work:
            for first_line, piece in each_piece(sources[number], PIECE_BYTES, work):
                yield from _rows(piece, number, num_documents, first_line, schema, fields, has_bytes=has_bytes)
                num_documents += len(piece.texts)


def _rows(
    piece: Piece, part: int, first_number: int, first_line: int, schema: str, fields: list[str], *, has_bytes: bool
) -> Iterator[Any]:
    num = len(piece.texts)
    if num:
        yield with_nulls(
            schema,
            part=np.full(num, part, np.int32),
            number=np.arange(first_number, first_number + num, dtype=np.int64),
            kind=np.full(num, DOCUMENT, np.int32),
            text=pa.array(piece.texts.to_list(), pa.binary()) if has_bytes else text_column(piece.texts),
            doc_id=text_column(piece.ids),
            has_id=piece.has_id.astype(bool),
            offset=piece.offsets.astype(np.int64),
            length=piece.lengths.astype(np.int64),
            line=piece.lines.astype(np.int64) + first_line,
            **{name: text_column(values) for name, values in zip(fields, piece.fields, strict=True)},
        )
    # A tally has blank lines of the piece in the column of offsets, a bad row its lines in that of numbers.
    others = [(BAD, row.offset, row.length, row.line + first_line, row.reason, row.num_lines) for row in piece.bad_rows]
    others.append((TALLY, piece.num_blank, 0, 0, "", -1))
    kinds, offsets, lengths, lines, reasons, numbers = zip(*others, strict=True)
    yield with_nulls(
        schema,
        part=np.full(len(others), part, np.int32),
        number=np.array(numbers, np.int64),
        kind=np.array(kinds, np.int32),
        has_id=np.zeros(len(others), bool),
        offset=np.array(offsets, np.int64),
        length=np.array(lengths, np.int64),
        line=np.array(lines, np.int64),
        reason=pa.array(reasons, pa.string()),
    )
