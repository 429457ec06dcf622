"""Repeated spans of words: found by windows, merged into maximal stretches, and verified on the texts.

A word is removed if a window of N words that contains it equals an earlier one that does not overlap it.
`crates/core/src/repeats` explains why.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.parts.collection import Collection, Repeats
from likewise.batch.parts.units import PartRules
from likewise.io.source.source import ReadTask, as_array
from likewise.job.options import RunContext

_BYTES_A_WORD = 6
# Maximum bytes of the counts of one hash.
_BYTES_A_HASH = 8
# Bytes of windows held in memory before some are written to disk.
_WINDOW_BYTES = 256 << 20
# Maximum stretches whose texts a thread reads again at once, and bytes of their lines beyond the first's.
_STRETCHES_AT_ONCE, _BYTES_AT_ONCE = 1 << 14, 8 << 20
# For longer texts, one stretch more at once per this many bytes.
_BYTES_A_STRETCH = 64

# Number of words of each document, by job and piece.
_JobCounts = list[tuple[tuple[int, int], list[NDArray[np.uint32]]]]


def repeated_spans(
    collection: Collection,
    parts: PartRules,
    context: RunContext,
    *,
    work: Path,
    memory_bytes: int | None = None,
) -> tuple[Repeats, dict[str, Any]]:
    """Return the stretches of words that occur earlier, and the summary fields about them.

    A window of N words is repeated if the first equal window is in an earlier document, or in the same one without
    overlap; a word is removed if a repeated window contains it. So removals do not depend on earlier removals, and each
    removed word is kept elsewhere. If stretches start close to each other, only a few that cover all removed words
    become rows: at most 8 in N words.

    Memory: the counts of hashes (about a tenth of the bytes of text, at most 1 GiB); windows that may repeat (16 bytes
    each, up to 256 MiB, then on disk with up to 32 bytes each); on each thread 64 bytes for each of a part of the
    windows (about 262,144 words, or a 4096th of all), then texts of about 8 MB, or of two documents if these are
    longer; and about 60 bytes per stretch.
    """
    assert parts.min_tokens is not None
    num_words = parts.min_tokens
    timing = context.timing
    with timing.wall("reading_and_sketching"):
        counts, seen = _first_pass(collection, num_words, context, work, memory_bytes)
    of_documents = np.concatenate([np.zeros(1, np.uint32), *(of_piece for _, of_job in counts for of_piece in of_job)])
    doc_starts = np.cumsum(of_documents, dtype=np.int64)
    with timing.wall("candidates"):
        window_bytes = _WINDOW_BYTES if memory_bytes is None else min(_WINDOW_BYTES, memory_bytes // 4)
        windows = _native.RepeatedWindows(work, num_words, int(doc_starts[-1]), memory_bytes=window_bytes)
        _second_pass(collection, seen, counts, windows, context, work)
        del seen
        stretches = windows.stretches(doc_starts, threads=context.threads)
        del windows
    with timing.wall("verification"):
        places, firsts, num_windows = (as_array(column, np.int64) for column in stretches)
        # Reference documents come first, and nothing is removed from them.
        own = int(np.searchsorted(places, doc_starts[collection.num_references]))
        lengths = num_windows[own:] + (num_words - 1)
        repeats = _measured(collection, places[own:], firsts[own:], lengths, doc_starts, context.threads)
    num_own = int(doc_starts[-1] - doc_starts[collection.num_references])
    return repeats, {"num_words": num_own, "recall": 1.0, "num_capped": 0, "num_crowded": 0}


def _first_pass(
    collection: Collection,
    num_words: int,
    context: RunContext,
    work: Path,
    memory_bytes: int | None,
) -> tuple[_JobCounts, _native.SeenTwice]:
    """Read the documents; return their numbers of words by job, and which short windows occur twice."""
    num_bytes = int(sum(file.text_bytes() for file in collection.files))
    # Number of windows in which one shorter window can be the minimum.
    width = num_words - num_words // 2 + 1
    # Of random hashes, one in (width + 1) / 2 is the minimum of some window.
    num_hashes = 2 * num_bytes // _BYTES_A_WORD // (width + 1)
    if memory_bytes is not None:
        num_hashes = min(num_hashes, memory_bytes // 4 // _BYTES_A_HASH)
    seen = _native.SeenTwice(num_words, num_hashes)

    found: _JobCounts = []
    for file, number, counts in collection.read(
        lambda piece: as_array(seen.count(piece.texts), np.uint32), context, work, "windows"
    ):
        found.append(((file, number), counts))
    return found, seen


def _second_pass(
    collection: Collection,
    seen: _native.SeenTwice,
    counts: _JobCounts,
    windows: _native.RepeatedWindows,
    context: RunContext,
    work: Path,
) -> None:
    """Add the windows that may be repeated."""
    starts: dict[tuple[int, int], list[int]] = {}
    start = 0
    for key, of_job in counts:
        starts[key] = []
        for of_piece in of_job:
            starts[key].append(start)
            start += int(of_piece.sum(dtype=np.int64))

    def second(file: int, number: int, job: ReadTask) -> None:
        for piece, first in zip(job.read(), starts[file, number], strict=True):
            windows.add(piece.texts, seen, first)

    for _ in collection.each_job("matching", second, context, work):
        pass


def _measured(
    collection: Collection,
    places: NDArray[np.int64],
    firsts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    doc_starts: NDArray[np.int64],
    threads: int,
) -> Repeats:
    """Return the stretches whose words equal those of their first occurrence in the texts themselves."""
    # If another stretch follows immediately, text between the two is removed too. Places are ascending.
    ends = places + lengths
    is_followed = np.append(places, -1)[np.searchsorted(places, ends)] == ends
    rows, kept_rows = (np.searchsorted(doc_starts, at, side="right") - 1 for at in (places, firsts))
    begins, kept_begins = places - doc_starts[rows], firsts - doc_starts[kept_rows]
    num_going = _num_going(rows, places, ends)

    def measured(bounds: tuple[int, int]) -> NDArray[np.int64]:
        part = slice(*bounds)
        needed, owners = np.unique(np.concatenate([rows[part], kept_rows[part]]), return_inverse=True)
        own, kept = np.split(owners.astype(np.uint32), 2)
        numbers, *spans = _native.equal_stretches(
            collection.texts(needed),
            own,
            begins[part].astype(np.uint32),
            kept,
            kept_begins[part].astype(np.uint32),
            lengths[part].astype(np.uint32),
            is_followed[part].astype(np.uint8),
            num_going[part].astype(np.uint32),
        )
        equal = bounds[0] + as_array(numbers, np.uint32).astype(np.int64)
        start, end, kept_start, kept_end = (as_array(span, np.uint32) for span in spans)
        return np.stack([rows[equal], start, end, kept_rows[equal], kept_start, kept_end]).astype(np.int64)

    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-parts") as pool:
        found = list(pool.map(measured, pairwise(_batches(collection.lengths, rows, kept_rows))))
    columns = np.concatenate([np.zeros((6, 0), np.int64), *found], axis=1)
    # Order by position: stretches of one document may be returned in a different order.
    order = np.lexsort((columns[2], columns[1], columns[0]))
    rows, kept_rows = columns[0][order], columns[3][order]
    starts, ends, kept_starts, kept_ends = (columns[i][order].astype(np.uint32) for i in (1, 2, 4, 5))
    return Repeats(rows, starts, ends, kept_rows, kept_starts, kept_ends, np.ones(len(rows)))


def _num_going(rows: NDArray[np.int64], places: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the number of words removed from the start of each stretch, or 0 if the word before it is removed too."""
    num_going = np.zeros(len(rows), np.int64)
    if len(rows):
        is_first = np.ones(len(rows), bool)
        is_first[1:] = (places[1:] > np.maximum.accumulate(ends)[:-1]) | (rows[1:] != rows[:-1])
        firsts = np.flatnonzero(is_first)
        num_going[firsts] = np.maximum.reduceat(ends, firsts) - places[firsts]
    return num_going


def _batches(num_bytes: NDArray[np.uint32], rows: NDArray[np.int64], kept_rows: NDArray[np.int64]) -> list[int]:
    """Return the bounds of batches of stretches whose documents are few, or long, enough to be read at once."""
    bounds = [0]
    documents = np.stack([rows, kept_rows], axis=1).ravel()
    sizes = num_bytes[documents].astype(np.int64)
    # The position of the previous equal document, or -1.
    before = np.full(len(documents), -1, np.int64)
    order = np.argsort(documents, kind="stable")
    is_same = documents[order[1:]] == documents[order[:-1]]
    before[order[1:][is_same]] = order[:-1][is_same]
    while bounds[-1] < len(rows):
        begin, count, num_seen = bounds[-1], 0, _STRETCHES_AT_ONCE
        while count == 0:
            part = slice(2 * begin, 2 * (begin + num_seen))
            # Each document of the batch counts at its first occurrence.
            read = np.cumsum(np.where(before[part] < 2 * begin, sizes[part], 0))[1::2]
            most = np.maximum(_STRETCHES_AT_ONCE, read // _BYTES_A_STRETCH)
            # However long the documents of the first stretch are, further stretches of the same ones follow.
            is_more = (read - read[0] > _BYTES_AT_ONCE) | (np.arange(len(read)) >= most)
            if is_more.any():
                count = int(is_more.argmax())
            elif begin + num_seen >= len(rows):
                count = len(rows) - begin
            num_seen *= 2
        bounds.append(begin + count)
    return bounds if len(rows) else []
