"""Outputs of a run over parts: evidence, documents without their repeats, and emptied documents."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.parts.collection import Collection, Repeats
from likewise.io.inputs import Inputs
from likewise.io.kept import write_files
from likewise.io.source.source import BadRow, Cut, InputFile, Kept
from likewise.io.tables.columns import constant_column, number_column, text_column

# Rows of evidence that are built at once.
_ROWS_AT_ONCE = 1 << 18
_SHOWN_BYTES = 160


def evidence_of(
    collection: Collection, repeats: Repeats, *, unit: str, method: str, measure: str, recipe_id: str
) -> Iterator[Any]:
    """Yield the evidence as Arrow tables with a limited number of rows, one row for each removed part."""
    import pyarrow as pa

    for part in slices(len(repeats), _ROWS_AT_ONCE) if len(repeats) else [slice(0, 0)]:
        columns = places_of(collection, "", repeats.rows[part], repeats.starts[part], repeats.ends[part])
        columns |= places_of(
            collection, "kept_", repeats.kept_rows[part], repeats.kept_starts[part], repeats.kept_ends[part]
        )
        del columns["kept_length"]
        num_rows = len(columns["row"])
        yield pa.table(
            {
                **columns,
                "unit": constant_column(unit, num_rows),
                "measure": constant_column(measure, num_rows),
                "similarity": number_column(repeats.similarity[part]),
                "method": constant_column(method, num_rows),
                "recipe_id": constant_column(recipe_id, num_rows),
            }
        )


def places_of(
    collection: Collection, prefix: str, rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any]
) -> dict[str, Any]:
    """Return the positions of parts as columns of the evidence, whose names start with `prefix`."""
    names, own = collection.file_names(), rows - collection.num_references
    return {
        f"{prefix}row": number_column(own, own < 0),
        "kept_id" if prefix else "doc_id": text_column(collection.doc_ids(rows)),
        f"{prefix}file": text_column(names.take(collection.file_of(rows))),
        f"{prefix}offset": number_column(collection.offsets[rows].astype(np.int64)),
        f"{prefix}length": number_column(collection.lengths[rows].astype(np.int64)),
        f"{prefix}span_start": number_column(starts.astype(np.int64)),
        f"{prefix}span_end": number_column(ends.astype(np.int64)),
    }


def emptied(collection: Collection, cut: Cut, may_be: NDArray[np.bool_] | None = None) -> NDArray[np.int64]:
    """Return the documents to drop, in which only whitespace is left, ascending; changed ones are read again."""
    stays = np.array([file.keeps_emptied for file in collection.files])[collection.file_of(cut.rows)]
    cut = cut.where(~stays if may_be is None else may_be & ~stays)
    rows = [np.zeros(0, np.int64)]
    for part, texts in collection.each_text(cut.rows):
        of_part = cut.take(part)
        rows.append(of_part.rows[of_part.apply(texts)[1]])
    return np.concatenate(rows)


def write_documents(
    collection: Collection,
    found: Inputs,
    cut: Cut,
    dropped: NDArray[np.int64],
    kept: Path,
    *,
    keeps_bad: bool,
    threads: int,
    answer: str,
) -> None:
    """Write each file without the removed parts."""

    def kept_of(number: int, _: InputFile) -> Kept:
        number += collection.num_reference_files
        low, high = collection.starts[number : number + 2].tolist()
        gone = dropped[np.searchsorted(dropped, low) : np.searchsorted(dropped, high)] - low
        own = cut.within(low, high).without(gone)
        offsets: NDArray[np.uint64] = np.delete(collection.offsets[low:high], gone)
        lengths: NDArray[np.uint32] = np.delete(collection.lengths[low:high], gone)
        if keeps_bad and (bad := [row for row in collection.bad_rows[number] if row.length]):
            places = np.searchsorted(offsets, np.array([row.offset for row in bad], np.uint64))
            # A row moves by the number of bad rows before it.
            own = replace(own, rows=own.rows + np.searchsorted(places, own.rows, side="right"))
            offsets = np.insert(offsets, places, [row.offset for row in bad])
            lengths = np.insert(lengths, places, [row.length for row in bad])
        return Kept(offsets, lengths, threads, cut=own)

    write_files(found, kept, kept_of, answer)


def num_kept(collection: Collection, dropped: NDArray[np.int64]) -> list[int]:
    """Return the number of kept documents of each file, without reference documents."""
    starts = collection.starts[collection.num_reference_files :]
    gone = np.diff(np.searchsorted(dropped, starts))
    return [int(size) for size in np.diff(starts) - gone]


def beginnings(collection: Collection, rows: NDArray[np.int64], starts: NDArray[Any], ends: NDArray[Any]) -> list[str]:
    """Return the first characters of parts of documents, for display."""
    needed = np.unique(rows)
    texts = dict(zip(needed.tolist(), collection.texts(needed).to_list(), strict=True))
    places = zip(rows.tolist(), starts.tolist(), ends.tolist(), strict=True)
    return [
        texts[row].encode()[start : min(end, start + _SHOWN_BYTES)].decode(errors="ignore")
        for row, start, end in places
    ]


def write_emptied(collection: Collection, rows: NDArray[np.int64], path: Path) -> None:
    """Write the emptied documents, one JSON object per line; no file if there are none."""
    if not len(rows):
        return
    places = zip(rows.tolist(), collection.doc_ids(rows).to_list(), collection.file_of(rows).tolist(), strict=True)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row, doc_id, number in places:
            entry = {"row": row - collection.num_references, "doc_id": doc_id, "file": collection.files[number].name}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


def bad_rows_of(collection: Collection) -> Iterator[tuple[str, BadRow]]:
    """Yield the bad rows of the documents, with the names of their files."""
    first = collection.num_reference_files
    for source, bad_rows in zip(collection.files[first:], collection.bad_rows[first:], strict=True):
        for bad in bad_rows:
            yield source.name, bad
