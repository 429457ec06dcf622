"""What a run over parts writes: evidence, the documents without their repeats, and those left empty."""

import json
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.parts.collection import Collection, Repeats
from likewise.io.source.source import as_array
from likewise.io.tables.columns import constant_column, number_column, text_column

_COPY_BYTES = 4 << 20
_PACKED_BYTES = 2 << 20
# Lines that are written anew at once.
_REWRITTEN_BYTES = 8 << 20


def evidence_of(
    collection: Collection, repeats: Repeats, *, unit: str, method: str, measure: str, recipe_id: str
) -> Any:  # noqa: ANN401 - PyArrow has no types
    """Return the evidence as an Arrow table: a row for each part that was taken out.

    Returns
    -------
    pyarrow.Table
        Columns row, doc_id, file, offset, length, span_start, span_end, kept_row, kept_id, kept_file, kept_offset,
        kept_span_start, kept_span_end, unit, measure, similarity, method, recipe_id. Spans are bytes of the UTF-8 of
        the texts.
    """
    import pyarrow as pa

    num_rows = len(repeats)
    columns = places_of(collection, "", repeats.rows, repeats.starts, repeats.ends)
    columns |= places_of(collection, "kept_", repeats.kept_rows, repeats.kept_starts, repeats.kept_ends)
    del columns["kept_length"]
    return pa.table(
        {
            **columns,
            "unit": constant_column(unit, num_rows),
            "measure": constant_column(measure, num_rows),
            "similarity": number_column(repeats.similarity),
            "method": constant_column(method, num_rows),
            "recipe_id": constant_column(recipe_id, num_rows),
        }
    )


def places_of(
    collection: Collection, prefix: str, rows: NDArray[np.int64], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> dict[str, Any]:
    """Return the places of parts as columns of the evidence, whose names begin with `prefix`."""
    names = _native.Texts.from_list([file.name for file in collection.files])
    return {
        f"{prefix}row": number_column(rows),
        "kept_id" if prefix else "doc_id": text_column(collection.doc_ids(rows)),
        f"{prefix}file": text_column(names.take(collection.file_of(rows))),
        f"{prefix}offset": number_column(collection.offsets[rows].astype(np.int64)),
        f"{prefix}length": number_column(collection.lengths[rows].astype(np.int64)),
        f"{prefix}span_start": number_column(starts),
        f"{prefix}span_end": number_column(ends),
    }


class Rewriter:
    """Documents without the parts that are taken out.

    Parameters
    ----------
    collection : Collection
        The documents.
    repeats : Repeats
        What goes.
    keeps_words_apart : bool
        Whether a space is written where two words would become one.
    threads : int
        Threads that write lines anew.
    """

    def __init__(self, collection: Collection, repeats: Repeats, *, keeps_words_apart: bool, threads: int) -> None:
        self._collection = collection
        self._keeps_words_apart = keeps_words_apart
        self._threads = threads
        self._rows, self._bounds = np.unique(repeats.rows, return_index=True)
        self._bounds = np.append(self._bounds, len(repeats))
        self._starts, self._ends = repeats.starts, repeats.ends
        # Rows of documents that were left empty, and bytes of text that went.
        self.emptied: list[int] = []
        self.num_removed_bytes = 0

    def lines(self, number: int) -> Iterator[tuple[int, memoryview | None]]:
        """Yield rows of file `number` of which something goes, with their new lines; None where nothing is left.

        Lines end with their newline, and hold until the next batch.
        """
        low, high = np.searchsorted(self._rows, self._collection.starts[number : number + 2]).tolist()
        if low == high:
            return
        file = self._collection.files[number]
        batch = np.cumsum(self._collection.lengths[self._rows[low:high]], dtype=np.int64) // _REWRITTEN_BYTES
        for first, behind in pairwise([low, *(low + 1 + np.flatnonzero(np.diff(batch))).tolist(), high]):
            rows = self._rows[first:behind]
            spans = slice(int(self._bounds[first]), int(self._bounds[behind]))
            lines, ends, num_removed = _native.rewrite_jsonl_rows(
                str(file.plain_path),
                self._collection.offsets[rows],
                self._collection.lengths[rows],
                file.native_rules,
                np.diff(self._bounds[first : behind + 1]).astype(np.uint32),
                self._starts[spans].astype(np.uint32),
                self._ends[spans].astype(np.uint32),
                keeps_words_apart=self._keeps_words_apart,
                threads=self._threads,
            )
            self.num_removed_bytes += num_removed
            data, start = memoryview(lines), 0
            for row, end in zip(rows.tolist(), as_array(ends, np.uint64).tolist(), strict=True):
                if start == end:
                    self.emptied.append(row)
                yield row, data[start:end] if start < end else None
                start = end

    def counted(self) -> list[int]:
        """Go through the documents as if they were written; return how many would stay of each file."""
        starts = self._collection.starts
        num_gone = [sum(line is None for _, line in self.lines(number)) for number in range(len(starts) - 1)]
        return [int(size) - gone for size, gone in zip(np.diff(starts).tolist(), num_gone, strict=True)]


def write_documents(
    collection: Collection, rewriter: Rewriter, kept: Path, work: Path, *, keeps_bad: bool, threads: int
) -> list[int]:
    """Write each file without what goes; return how many documents stay of each.

    Parameters
    ----------
    collection : Collection
        The documents.
    rewriter : Rewriter
        Gives the new lines.
    kept : Path
        The directory of the new files.
    work : Path
        A directory for what must be put aside.
    keeps_bad : bool
        Whether bad rows pass through.
    threads : int
        Threads that pack.
    """
    counts = []
    for number, file in enumerate(collection.files):
        target = kept / file.name
        target.parent.mkdir(parents=True, exist_ok=True)
        plain = target if file.codec is None else work / f"rewritten-{number}"
        with plain.open("xb") as out:
            counts.append(_write(collection, rewriter, number, out, keeps_bad=keeps_bad))
        if file.codec is not None:
            pieces = np.array(_native.jsonl_pieces(str(plain), _PACKED_BYTES), np.uint64).reshape(-1, 2)
            offsets, sizes = (np.ascontiguousarray(column) for column in pieces.T)
            _native.pack_lines(str(plain), str(target), offsets, sizes, codec=file.codec, threads=threads)
            plain.unlink()
    return counts


def _write(collection: Collection, rewriter: Rewriter, number: int, out: BinaryIO, *, keeps_bad: bool) -> int:
    low, high = collection.starts[number : number + 2].tolist()
    offsets, lengths = (column[low:high].astype(np.int64) for column in (collection.offsets, collection.lengths))
    rows = np.arange(low, high)
    if keeps_bad and (bad := [row for row in collection.bad_rows[number] if row.length]):
        offsets = np.concatenate([offsets, [row.offset for row in bad]])
        lengths = np.concatenate([lengths, [row.length for row in bad]])
        order = np.argsort(offsets, kind="stable")
        offsets, lengths, rows = offsets[order], lengths[order], np.append(rows, [-1] * len(bad))[order]
    at = np.full(high - low, -1, np.int64)
    at[rows[rows >= 0] - low] = np.flatnonzero(rows >= 0)
    num_gone, done = 0, 0
    # Plain numbers: stretches between lines that are new are many and short.
    after = offsets + lengths + 1
    starts, ends = offsets.tolist(), after.tolist()
    breaks = np.concatenate([[0], np.cumsum(offsets[1:] != after[:-1])]).tolist()
    with collection.files[number].plain_path.open("rb") as source:

        def stretch(first: int, behind: int) -> None:
            if first < behind and breaks[first] == breaks[behind - 1]:
                _copy_range(source, out, starts[first], ends[behind - 1])
            else:
                for i in range(first, behind):
                    _copy_range(source, out, starts[i], ends[i])

        for row, line in rewriter.lines(number):
            place = int(at[row - low])
            stretch(done, place)
            done = place + 1
            if line is None:
                num_gone += 1
            else:
                out.write(line)
        stretch(done, len(starts))
    return int(high - low) - num_gone


def _copy_range(source: BinaryIO, out: BinaryIO, start: int, stop: int) -> None:
    """Write whole lines; the last one gets a newline if it ends with its file."""
    source.seek(start)
    data, left = b"", stop - start
    while left and (more := source.read(min(left, _COPY_BYTES))):
        data = more
        out.write(data)
        left -= len(data)
    if not data.endswith(b"\n"):
        out.write(b"\n")


def write_emptied(collection: Collection, rows: Sequence[int], path: Path) -> None:
    """Write the documents that were left empty, a JSON object a line; nothing where there are none."""
    if not rows:
        return
    found = np.array(rows, np.int64)
    places = zip(rows, collection.doc_ids(found).to_list(), collection.file_of(found).tolist(), strict=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row, doc_id, number in places:
            entry = {"row": row, "doc_id": doc_id, "file": collection.files[number].name}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def write_bad_rows(collection: Collection, path: Path) -> None:
    """Write the bad rows, a JSON object a line; nothing where there are none."""
    if not any(collection.bad_rows):
        return
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for source, bad_rows in zip(collection.files, collection.bad_rows, strict=True):
            for bad in bad_rows:
                file.write(json.dumps({"file": source.name, "row": bad.line + 1, "reason": bad.reason}) + "\n")
