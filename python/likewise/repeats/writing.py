"""What a run over parts writes: the evidence, the documents without their repeats, those that were left empty."""

import json
import re
from collections.abc import Iterator, Sequence
from json.decoder import scanstring  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput
from likewise.io.columns import constant_column, number_column, text_column
from likewise.io.jsonl import JsonlFile
from likewise.repeats.collection import Collection, Repeats

_COPY_BYTES = 4 << 20
_PACKED_BYTES = 2 << 20
_BRACKETS = re.compile(r'["\[\]{}]')
_PLAIN = re.compile(r"[^\s,\]}]+")
_SPACES = " \t\r\n\ufeff"


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
    names = _native.Texts.from_list([file.name for file in collection.files])
    columns: dict[str, Any] = {}
    for prefix, rows, starts, ends in (
        ("", repeats.rows, repeats.starts, repeats.ends),
        ("kept_", repeats.kept_rows, repeats.kept_starts, repeats.kept_ends),
    ):
        columns |= {
            f"{prefix}row": number_column(rows),
            "kept_id" if prefix else "doc_id": text_column(collection.doc_ids(rows)),
            f"{prefix}file": text_column(names.take(collection.file_of(rows))),
            f"{prefix}offset": number_column(collection.offsets[rows].astype(np.int64)),
            f"{prefix}length": number_column(collection.lengths[rows].astype(np.int64)),
            f"{prefix}span_start": number_column(starts),
            f"{prefix}span_end": number_column(ends),
        }
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


class Rewriter:
    """Documents without the parts that are taken out.

    Parameters
    ----------
    collection : Collection
        The documents.
    repeats : Repeats
        What goes.
    """

    def __init__(self, collection: Collection, repeats: Repeats) -> None:
        self._collection = collection
        self._rows, self._bounds = np.unique(repeats.rows, return_index=True)
        self._bounds = np.append(self._bounds, len(repeats))
        self._starts, self._ends = repeats.starts, repeats.ends
        # Rows of documents that were left empty, and bytes of text that went.
        self.emptied: list[int] = []
        self.num_removed_bytes = 0

    def lines(self, number: int) -> Iterator[tuple[int, bytes | None]]:
        """Yield rows of file `number` of which something goes, with their new lines; None where nothing is left."""
        low, high = np.searchsorted(self._rows, self._collection.starts[number : number + 2]).tolist()
        if low == high:
            return
        file = self._collection.files[number]
        with file.plain_path.open("rb") as source:
            for i in range(low, high):
                row = int(self._rows[i])
                source.seek(int(self._collection.offsets[row]))
                line = source.read(int(self._collection.lengths[row]))
                spans = slice(int(self._bounds[i]), int(self._bounds[i + 1]))
                yield row, self._line(file, row, line, self._starts[spans].tolist(), self._ends[spans].tolist())

    def _line(self, file: JsonlFile, row: int, line: bytes, starts: list[int], ends: list[int]) -> bytes | None:
        text = line.decode("utf-8", "surrogatepass")
        start, end = _value_place(text, file.rules.text_fields[0], file.name)
        value = scanstring(text, start + 1, False)[0].encode("utf-8", "surrogatepass")  # noqa: FBT003 - its signature
        kept, at = [], 0
        for first, last in zip(starts, ends, strict=True):
            if first > at:
                kept.append(value[at:first])
            at = max(at, last)
        kept.append(value[at:])
        left = b"".join(kept)
        self.num_removed_bytes += len(value) - len(left)
        shown = left.decode("utf-8", "surrogatepass")
        if not shown.strip():
            self.emptied.append(row)
            return None
        made = json.dumps(shown, ensure_ascii=text.isascii())
        return f"{text[:start]}{made}{text[end:]}".encode("utf-8", "surrogatepass")


def _value_place(line: str, name: str, file: str) -> tuple[int, int]:
    """Return where the value of a field stands in a line: a string with its quotes."""
    at, end = _skipped(line, 0), 0
    parts = name.split(".")
    for depth, part in enumerate(parts):
        found = _member(line, at, part)
        if found is None:
            raise InvalidInput(f"the line has no field {name!r} any more; run again when the file rests", file)
        at, end = found
        if line[at] != ("{" if depth < len(parts) - 1 else '"'):
            raise InvalidInput(f"the field {name!r} is another now; run again when the file rests", file)
    return at, end


def _member(line: str, at: int, name: str) -> tuple[int, int] | None:
    """Return where the value of an object's member stands."""
    at = _skipped(line, at + 1)
    while line[at] == '"':
        key, at = scanstring(line, at + 1, False)  # noqa: FBT003
        start = _skipped(line, _skipped(line, at) + 1)
        end = _value_end(line, start)
        if key == name:
            return start, end
        at = _skipped(line, end)
        if line[at] != ",":
            return None
        at = _skipped(line, at + 1)
    return None


def _value_end(line: str, at: int) -> int:
    """Return where a value ends; however deep it is."""
    if line[at] == '"':
        return int(scanstring(line, at + 1, False)[1])  # noqa: FBT003
    if line[at] not in "[{":
        plain = _PLAIN.match(line, at)
        return at if plain is None else plain.end()
    depth = 0
    while (found := _BRACKETS.search(line, at)) is not None:
        at = found.end()
        if found[0] == '"':
            at = int(scanstring(line, at, False)[1])  # noqa: FBT003
            continue
        depth += 1 if found[0] in "[{" else -1
        if depth == 0:
            break
    return at


def _skipped(line: str, at: int) -> int:
    while line[at] in _SPACES:
        at += 1
    return at


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
    if keeps_bad and (bad := collection.bad_rows[number]):
        offsets = np.concatenate([offsets, [row.offset for row in bad]])
        lengths = np.concatenate([lengths, [row.length for row in bad]])
        order = np.argsort(offsets, kind="stable")
        offsets, lengths, rows = offsets[order], lengths[order], np.append(rows, [-1] * len(bad))[order]
    at = np.full(high - low, -1, np.int64)
    at[rows[rows >= 0] - low] = np.flatnonzero(rows >= 0)
    num_gone, done = 0, 0
    with collection.files[number].plain_path.open("rb") as source:
        for row, line in rewriter.lines(number):
            place = int(at[row - low])
            _copy(source, out, offsets[done:place], lengths[done:place])
            done = place + 1
            if line is None:
                num_gone += 1
            else:
                out.write(line + b"\n")
        _copy(source, out, offsets[done:], lengths[done:])
    return int(high - low) - num_gone


def _copy(source: BinaryIO, out: BinaryIO, offsets: NDArray[np.int64], lengths: NDArray[np.int64]) -> None:
    """Write lines, each with a newline; lines that touch at once."""
    if not len(offsets):
        return
    ends = offsets + lengths + 1
    breaks = np.flatnonzero(offsets[1:] != ends[:-1]) + 1
    starts = offsets[np.concatenate([[0], breaks])].tolist()
    stops = ends[np.concatenate([breaks - 1, [len(ends) - 1]])].tolist()
    for start, stop in zip(starts, stops, strict=True):
        source.seek(start)
        data = b""
        left = stop - start
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
    places = zip(rows, collection.doc_ids(found), collection.file_of(found).tolist(), strict=True)
    with path.open("w", encoding="utf-8") as file:
        for row, doc_id, number in places:
            entry = {"row": row, "doc_id": doc_id, "file": collection.files[number].name}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
