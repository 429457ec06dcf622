"""The part of each input to write: locations and texts of kept documents, and bad rows."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.read.documents import Documents
from likewise.io.source.added import Added
from likewise.io.source.bad_rows import write_errors
from likewise.io.source.source import Kept, KeptTexts

_AT_ONCE = 1 << 18


def kept_places(
    documents: Documents, kept: NDArray[np.bool_], number: int, on_error: str
) -> tuple[NDArray[np.uint64], NDArray[np.uint32]]:
    """Return offsets and lengths of the kept rows of one source, including bad rows if they are kept."""
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    # The damage of a file may have no bytes to keep.
    bad = [row for row in documents.bad_rows[number] if row.length] if on_error == "keep" else []
    # Bad rows are in file order, like documents.
    bad_offsets = np.array([row.offset for row in bad], np.uint64)
    bad_lengths = np.array([row.length for row in bad], np.uint32)
    offsets, lengths = documents.room.space.growing(np.uint64), documents.room.space.growing(np.uint32)
    num_merged = 0
    for part in slices(end - first, _AT_ONCE):
        rows = slice(first + part.start, first + part.stop)
        stays = kept[rows]
        places, sizes = documents.offsets[rows][stays], documents.lengths[rows][stays]
        if bad:
            is_last = rows.stop == end
            until = len(bad) if is_last else int(np.searchsorted(bad_offsets, documents.offsets[rows.stop]))
            places = np.concatenate([places, bad_offsets[num_merged:until]])
            sizes = np.concatenate([sizes, bad_lengths[num_merged:until]])
            by_offset = np.argsort(places, kind="stable")
            places, sizes, num_merged = places[by_offset], sizes[by_offset], until
        offsets.append(places)
        lengths.append(sizes)
    if first == end:
        offsets.append(bad_offsets)
        lengths.append(bad_lengths)
    return offsets.take(), lengths.take()


def kept_rows(
    documents: Documents,
    kept: NDArray[np.bool_],
    number: int,
    on_error: str,
    threads: int,
    added_to: Callable[[NDArray[np.uint64]], Added] | None = None,
) -> Kept:
    """Return the rows of one source to write; `added_to` (offsets) returns the fields to add to them."""
    offsets, lengths = kept_places(documents, kept, number, on_error)
    texts: KeptTexts | None = None
    has_others = on_error == "keep" and bool(documents.bad_rows[number])
    if documents.spool is not None and not documents.sources[number].can_read_again and not has_others:
        first, end = int(documents.starts[number]), int(documents.starts[number + 1])
        rows = first + np.flatnonzero(kept[first:end])
        texts = lambda part: [read() for _, read in documents.texts(rows[part], 1)]  # noqa: E731
    return Kept(offsets, lengths, threads, texts, None if added_to is None else added_to(offsets))


def write_bad_rows(documents: Documents, path: Path) -> None:
    """Write file, row and reason of each bad row as JSON Lines; no file if there are none."""
    first = documents.num_reference_sources
    files = zip(documents.sources[first:], documents.bad_rows[first:], strict=True)
    write_errors(((source.name, bad) for source, bad_rows in files for bad in bad_rows), path)
