"""Hashes of windows of words: which were met twice, and which was first of those that are equal."""

import threading
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_LEAST_SLOTS, _MOST_SLOTS = 1 << 16, 1 << 30
# A slot that a hash meets by chance costs work, not truth.
_SLOTS_A_HASH = 16
_PARTITIONS = 64


class SeenTwice:
    """Which hashes were met more than once; of others a few by chance, never fewer.

    Parameters
    ----------
    num_expected : int
        Hashes that will be met, about.
    """

    def __init__(self, num_expected: int) -> None:
        slots = min(max(_SLOTS_A_HASH * num_expected, _LEAST_SLOTS), _MOST_SLOTS)
        bits = int(slots - 1).bit_length()
        self._shift = np.uint64(64 - bits)
        self._counts = np.zeros(1 << bits, np.uint8)

    def counted(
        self, least: Hashes, num_windows: NDArray[np.int64], width: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return slots of the hashes of consecutive windows, and how often each is met.

        Parameters
        ----------
        least : ndarray of shape (m,), uint64
            The least hash of each window.
        num_windows : ndarray of shape (n,), int64
            Of each document, one after the other.
        width : int
            Windows that one short window can be the least of. A longer run of one hash is met more than once.
        """
        is_begin = np.append(True, least[1:] != least[:-1])[: len(least)]
        firsts = np.cumsum(num_windows) - num_windows
        is_begin[firsts[num_windows > 0]] = True
        begins = np.flatnonzero(is_begin)
        runs = np.diff(np.append(begins, len(least)))
        slots, which = np.unique(least[begins] >> self._shift, return_inverse=True)
        return slots, np.bincount(which, weights=1.0 + (runs > width)).astype(np.int64)

    def add(self, slots: NDArray[np.uint64], times: NDArray[np.int64]) -> None:
        """Count what :meth:`counted` gave. From one thread at a time."""
        self._counts[slots] = np.minimum(self._counts[slots] + times, 2)

    def twice(self, hashes: Hashes) -> NDArray[np.bool_]:
        """Return whether each hash may have been met twice."""
        found: NDArray[np.bool_] = self._counts[hashes >> self._shift] >= 2
        return found


class Partitions:
    """Pairs of numbers put aside in files by a small number, to be taken back one file at a time.

    Parameters
    ----------
    place : Path
        A new directory.
    """

    def __init__(self, place: Path) -> None:
        place.mkdir()
        self._files = [(place / str(number)).open("w+b") for number in range(_PARTITIONS)]
        self._lock = threading.Lock()

    def add(self, first: Hashes, second: Hashes, numbers: NDArray[np.uint8]) -> None:
        """Append pairs to the partitions of these numbers. Safe from several threads."""
        order = np.argsort(numbers, kind="stable")
        pairs = np.stack([first[order], second[order]], axis=1)
        bounds = np.searchsorted(numbers[order], np.arange(_PARTITIONS + 1)).tolist()
        with self._lock:
            for file, low, high in zip(self._files, bounds[:-1], bounds[1:], strict=True):
                if high > low:
                    file.write(pairs[low:high].data)

    def take(self, number: int) -> tuple[Hashes, Hashes]:
        """Return the pairs of a partition, whose file goes then."""
        file = self._files[number]
        file.seek(0)
        pairs = np.frombuffer(file.read(), np.uint64).reshape(-1, 2)
        file.truncate(0)
        file.close()
        return np.ascontiguousarray(pairs[:, 0]), np.ascontiguousarray(pairs[:, 1])

    def close(self) -> None:
        """Close what is open."""
        for file in self._files:
            file.close()


class Firsts:
    """Finds for each window the first that is equal, on disk.

    Parameters
    ----------
    work : Path
        A directory for files: 32 bytes a window.
    num_words : int
        Words of a window.
    doc_starts : ndarray of shape (n + 1,), int64
        Where the words of each document begin among those of all.
    """

    def __init__(self, work: Path, num_words: int, doc_starts: NDArray[np.int64]) -> None:
        self._num_words = num_words
        self._doc_starts = doc_starts
        self._by_hash = Partitions(work / "windows")
        self._by_place = Partitions(work / "matches")
        self._step = np.uint64(max(1, -(-int(doc_starts[-1]) // _PARTITIONS)))

    def add(self, hashes: Hashes, places: NDArray[np.int64]) -> None:
        """Put windows aside: their hashes, and where among all words each begins. Safe from several threads."""
        self._by_hash.add(hashes, places.astype(np.uint64), (hashes >> np.uint64(58)).astype(np.uint8))

    def matches(self, threads: int) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield windows that repeat one, in order, and the first that each repeats.

        That is of an earlier document, or of the same one and does not overlap. Each thread sorts a partition.
        """
        with ThreadPoolExecutor(threads, thread_name_prefix="likewise-parts") as pool:
            # The parts come in any order: places are sorted afterwards.
            for done in [pool.submit(self._match, number) for number in range(_PARTITIONS)]:
                done.result()
            waiting: deque[Future[tuple[NDArray[np.int64], NDArray[np.int64]]]] = deque()
            for number in range(_PARTITIONS):
                waiting.append(pool.submit(self._matches_of, number))
                if len(waiting) > threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _match(self, number: int) -> None:
        """Put aside the windows of a partition that equal an earlier one."""
        hashes, places = self._by_hash.take(number)
        if not len(hashes):
            return
        # Equal hashes in any order: the least of their places is the first, and that needs no stable sort.
        order = np.argsort(hashes)
        hashes, places = hashes[order], places[order]
        begins = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
        firsts = np.repeat(np.minimum.reduceat(places, begins), np.diff(np.append(begins, len(places))))
        is_later = places != firsts
        places, firsts = places[is_later], firsts[is_later]
        self._by_place.add(places, firsts, (places // self._step).astype(np.uint8))

    def _matches_of(self, number: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        pairs = self._by_place.take(number)
        order = np.argsort(pairs[0])
        places, firsts = (column[order].astype(np.int64) for column in pairs)
        own_start = self._doc_starts[np.searchsorted(self._doc_starts, places, side="right") - 1]
        repeats = (firsts < own_start) | (firsts + self._num_words <= places)
        return places[repeats], firsts[repeats]

    def close(self) -> None:
        """Close what is open."""
        self._by_hash.close()
        self._by_place.close()
