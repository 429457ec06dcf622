"""Spans of words that repeat: found by windows, told as the longest stretches, measured on the texts."""

import re
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.dedup.run import RunRules
from likewise.dedup.timing import Timing
from likewise.io.source import Job, Piece, as_array
from likewise.progress import Progress
from likewise.repeats.collection import Collection, Repeats, check_piece, read_in_order
from likewise.repeats.units import PartRules
from likewise.repeats.windows import Firsts, SeenTwice

_BYTES_A_WORD = 6
_UNPACKED_TIMES = 4
# Stretches whose texts are read again at once by a thread, and bytes of their lines.
_STRETCHES_AT_ONCE, _BYTES_AT_ONCE = 4096, 32 << 20
# Words that are compared at once.
_WORDS_AT_ONCE = 1 << 20
# What goes with a last word: what touches it, and the spaces behind.
_BEHIND = re.compile(rb"\S*\s*")

# Places of first words among those of all: of the stretch and of what it repeats; and its windows.
_Stretches = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
_JobCounts = list[tuple[tuple[int, int], NDArray[np.uint32]]]


def repeated_spans(
    collection: Collection,
    parts: PartRules,
    rules: RunRules,
    *,
    work: Path,
    timing: Timing,
    progress: Progress,
) -> tuple[Repeats, dict[str, Any]]:
    """Find the stretches of words that stand elsewhere before, and what to say of it in the summary.

    Parameters
    ----------
    collection : Collection
        Takes the documents; nothing has been read yet.
    parts : PartRules
        Resolved: the words of a window.
    rules : RunRules
        What else is asked.
    work, timing, progress
        A directory for what is put aside; take seconds and events.

    Notes
    -----
    A window of N words is repeated if the first equal one is of an earlier document, or of the same one and does not
    overlap it; a word goes if some repeated window holds it. So what goes does not depend on what went before, and each
    word that goes stands elsewhere. Memory is that of the counts of hashes (up to 1 GiB,
    about a sixth of the bytes of text), on each thread a 64th of the windows that may repeat (16 bytes each, and twice
    as much for sorting) and then texts of some 32 MB, and some 60 bytes a stretch; disk is 32 bytes a window that may
    repeat.
    """
    assert parts.min_tokens is not None
    num_words = parts.min_tokens
    with timing.wall("reading_and_sketching"):
        counts, seen = _first_pass(collection, num_words, rules, work, progress)
    collection.finish(allow_doubles=rules.duplicate_ids == "allow")
    of_documents = np.concatenate([np.zeros(1, np.uint32), *(of_job for _, of_job in counts)])
    doc_starts = np.cumsum(of_documents, dtype=np.int64)
    firsts = Firsts(work, num_words, doc_starts)
    try:
        with timing.wall("candidates"):
            _second_pass(collection, num_words, seen, counts, firsts, rules, work, progress)
            del seen
            stretches = list(_stretches(firsts.matches(rules.threads)))
        with timing.wall("verification"):
            repeats = _measured(collection, stretches, doc_starts, num_words, rules.threads)
    finally:
        firsts.close()
    return repeats, {"num_words": int(doc_starts[-1]), "recall": 1.0, "num_capped": 0}


def _first_pass(
    collection: Collection, num_words: int, rules: RunRules, work: Path, progress: Progress
) -> tuple[_JobCounts, SeenTwice]:
    """Note the documents; return their words by job, and which short windows were met twice."""
    num_bytes = sum(file.num_bytes * (_UNPACKED_TIMES if file.codec else 1) for file in collection.files)
    # Windows that one shorter window can be the least of.
    width = num_words - num_words // 2 + 1
    # Of random hashes every (width + 1) / 2-th is the least of some window.
    seen = SeenTwice(2 * num_bytes // _BYTES_A_WORD // (width + 1))
    lock = threading.Lock()

    def first(file: int, number: int, job: Job) -> tuple[int, int, Piece, NDArray[np.uint32]]:
        (piece,) = job.read()
        counts, least, _ = _hashed(piece.texts, num_words, with_whole=False)
        counted = seen.counted(least, _num_windows(counts, num_words), width)
        with lock:
            seen.add(*counted)
        collection.add(file, number, piece)
        return file, number, piece, counts

    found: _JobCounts = []
    first_lines = [0] * len(collection.files)
    for file, number, piece, counts in read_in_order(
        collection.files, work, "windows", first, threads=rules.threads, progress=progress
    ):
        check_piece(collection.files[file], first_lines[file], piece, rules.on_error)
        first_lines[file] += piece.num_lines
        found.append(((file, number), counts))
    return found, seen


def _second_pass(
    collection: Collection,
    num_words: int,
    seen: SeenTwice,
    counts: _JobCounts,
    firsts: Firsts,
    rules: RunRules,
    work: Path,
    progress: Progress,
) -> None:
    """Put aside the windows that may repeat one."""
    ends = np.cumsum([of_job.sum(dtype=np.int64) for _, of_job in counts])
    starts = {key: int(end - of_job.sum(dtype=np.int64)) for (key, of_job), end in zip(counts, ends, strict=True)}

    def second(file: int, number: int, job: Job) -> None:
        (piece,) = job.read()
        of_documents, least, whole = _hashed(piece.texts, num_words, with_whole=True)
        may_repeat = np.flatnonzero(seen.twice(least))
        # Of each document one window begins at each word but the last ones.
        num_windows = _num_windows(of_documents, num_words)
        gaps = np.cumsum(of_documents - num_windows) - (of_documents - num_windows)
        places = may_repeat + np.repeat(gaps, num_windows)[may_repeat]
        firsts.add(whole[may_repeat], places + starts[file, number])

    for _ in read_in_order(collection.files, work, "matching", second, threads=rules.threads, progress=progress):
        pass


def _words(
    texts: _native.Texts,
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint64]]:
    counts, starts, ends, hashes = _native.cut_words(texts)
    return (
        as_array(counts, np.uint32),
        as_array(starts, np.uint32),
        as_array(ends, np.uint32),
        as_array(hashes, np.uint64),
    )


def _hashed(
    texts: _native.Texts, num_words: int, *, with_whole: bool
) -> tuple[NDArray[np.uint32], NDArray[np.uint64], NDArray[np.uint64]]:
    counts, least, whole = _native.hash_windows(texts, num_words, with_whole=with_whole)
    return as_array(counts, np.uint32), as_array(least, np.uint64), as_array(whole, np.uint64)


def _num_windows(counts: NDArray[np.uint32], num_words: int) -> NDArray[np.int64]:
    """Return how many windows the documents of so many words have."""
    return np.maximum(counts.astype(np.int64) - (num_words - 1), 0)


def _stretches(matches: Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> Iterator[_Stretches]:
    """Yield the longest stretches of windows that repeat consecutive ones."""
    place, first = np.zeros(0, np.int64), np.zeros(0, np.int64)
    for more_places, more_firsts in matches:
        place, first = np.concatenate([place, more_places]), np.concatenate([first, more_firsts])
        if not len(place):
            continue
        breaks = np.flatnonzero((np.diff(place) != 1) | (np.diff(first) != 1)) + 1
        begins = np.concatenate([[0], breaks])
        # The last one may go on in what comes next.
        last = int(begins[-1])
        yield place[begins[:-1]], first[begins[:-1]], np.diff(begins)
        place, first = place[last:], first[last:]
    if len(place):
        yield place[:1], first[:1], np.array([len(place)])


def _measured(
    collection: Collection,
    stretches: list[_Stretches],
    doc_starts: NDArray[np.int64],
    num_words: int,
    threads: int,
) -> Repeats:
    """Return the stretches that are equal, word for word, in the texts themselves."""
    nothing = (np.zeros(0, np.int64),) * 3
    places, firsts, num_windows = (np.concatenate(columns) for columns in zip(nothing, *stretches, strict=True))
    lengths = num_windows + num_words - 1
    # Where another stretch follows at once, what stands between goes too. Places rise.
    ends = places + lengths
    following = np.searchsorted(places, ends)
    is_followed = np.append(places, -1)[following] == ends

    rows, kept_rows = (np.searchsorted(doc_starts, at, side="right") - 1 for at in (places, firsts))

    def measured(part: tuple[int, int]) -> NDArray[np.int64]:
        low, high = part
        return _equal_stretches(
            collection,
            doc_starts,
            (rows[low:high], kept_rows[low:high]),
            (places[low:high], firsts[low:high]),
            lengths[low:high],
            is_followed[low:high].tolist(),
        )

    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-parts") as pool:
        found = list(pool.map(measured, pairwise(_batches(collection.lengths, rows, kept_rows))))
    row, start, end, kept_row, kept_start, kept_end = np.concatenate([np.zeros((0, 6), np.int64), *found]).T
    return Repeats(row, start, end, kept_row, kept_start, kept_end, np.ones(len(row)))


def _batches(num_bytes: NDArray[np.uint32], *sides: NDArray[np.int64]) -> list[int]:
    """Return where batches of stretches begin and end, whose documents are few enough to be read at once."""
    sizes = np.zeros(len(sides[0]), np.int64)
    for rows in sides:
        sizes += num_bytes[rows] * np.append(True, rows[1:] != rows[:-1])[: len(rows)]
    return _cuts(np.cumsum(sizes) // _BYTES_AT_ONCE + np.arange(len(sizes)) // _STRETCHES_AT_ONCE)


def _cuts(rising: NDArray[np.int64]) -> list[int]:
    """Return where runs of equal numbers begin, and where the last one ends; nothing where there is none."""
    return [0, *(1 + np.flatnonzero(np.diff(rising))).tolist(), len(rising)] if len(rising) else []


def _are_equal(
    words: NDArray[np.uint64],
    begins: NDArray[np.int64],
    others: NDArray[np.int64],
    lengths: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return which stretches of words equal others of the same lengths, none of which is 0."""
    firsts = np.cumsum(lengths) - lengths
    # Where each word of each stretch stands in it.
    offsets = np.arange(int(lengths.sum())) - np.repeat(firsts, lengths)
    differs = words[np.repeat(begins, lengths) + offsets] != words[np.repeat(others, lengths) + offsets]
    is_equal: NDArray[np.bool_] = ~np.logical_or.reduceat(differs, firsts)
    return is_equal


def _equal_stretches(
    collection: Collection,
    doc_starts: NDArray[np.int64],
    sides: tuple[NDArray[np.int64], NDArray[np.int64]],
    places: tuple[NDArray[np.int64], NDArray[np.int64]],
    lengths: NDArray[np.int64],
    is_followed: list[bool],
) -> NDArray[np.int64]:
    """Return row, start, end of the stretches that equal their firsts, and the same of these: shape (m, 6)."""
    rows, kept_rows = sides
    needed = np.unique(np.concatenate(sides))
    texts = collection.texts(needed)
    counts, starts, ends, words = _words(texts)
    bases = np.cumsum(counts, dtype=np.int64) - counts
    own, other = np.searchsorted(needed, rows), np.searchsorted(needed, kept_rows)
    begins = bases[own] + places[0] - doc_starts[rows]
    kept_begins = bases[other] + places[1] - doc_starts[kept_rows]
    is_equal = np.zeros(len(lengths), np.bool_)
    for low, high in pairwise(_cuts(np.cumsum(lengths) // _WORDS_AT_ONCE)):
        part = slice(low, high)
        is_equal[part] = _are_equal(words, begins[part], kept_begins[part], lengths[part])
    lasts = begins + lengths - 1
    is_last = lasts + 1 == bases[own] + counts[own]
    found: list[int] = []
    number, data = -1, b""
    each = zip(own.tolist(), lasts.tolist(), is_last.tolist(), is_followed, strict=True)
    for i, last, ends_text, goes_on in each:
        if i != number:
            number, data = i, str(texts[i]).encode()
        limit = len(data) if ends_text else int(starts[last + 1])
        behind = _BEHIND.match(data, int(ends[last]), limit)
        assert behind is not None
        found.append(limit if goes_on and not ends_text else behind.end())
    columns = (rows, starts[begins], np.array(found, np.int64), kept_rows, starts[kept_begins])
    return np.stack([*columns, ends[kept_begins + lengths - 1]], axis=1).astype(np.int64)[is_equal]
