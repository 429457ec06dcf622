"""The part of each input to write: locations and texts of kept documents, and bad rows."""

from collections.abc import Callable, Iterator
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
    offsets, lengths = documents.room.space.growing(np.uint64), documents.room.space.growing(np.uint32)
    for _, places, sizes, order in merged_places(documents, kept, number, _AT_ONCE, keeps_bad=on_error == "keep"):
        offsets.append(places[order])
        lengths.append(sizes[order])
    return offsets.take(), lengths.take()


def merged_places(
    documents: Documents, kept: NDArray[np.bool_], number: int, at_once: int, *, keeps_bad: bool
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint32], NDArray[np.int64]]]:
    """Yield the kept rows of a source in parts, offsets and lengths of these and of bad rows, and the order of both."""
    first, end = int(documents.starts[number]), int(documents.starts[number + 1])
    # The damage of a file may have no bytes to keep. Bad rows are in file order, like documents.
    bad = [row for row in documents.bad_rows[number] if row.length] if keeps_bad else []
    bad_offsets = np.array([row.offset for row in bad], np.uint64)
    bad_lengths = np.array([row.length for row in bad], np.uint32)
    num_merged = 0
    for part in slices(end - first, at_once) if end > first else [slice(0, 0)]:
        rows = first + part.start + np.flatnonzero(kept[first + part.start : first + part.stop])
        behind = first + part.stop
        until = len(bad) if behind == end else int(np.searchsorted(bad_offsets, documents.offsets[behind]))
        offsets = np.concatenate([documents.offsets[rows], bad_offsets[num_merged:until]])
        lengths = np.concatenate([documents.lengths[rows], bad_lengths[num_merged:until]])
        num_merged = until
        yield rows, offsets, lengths, np.argsort(offsets, kind="stable")


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
