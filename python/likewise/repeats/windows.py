"""Hashes of windows of words: which were met twice, and which was first of those that are equal."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_LEAST_SLOTS, _MOST_SLOTS = 1 << 16, 1 << 30
# A slot that a hash meets by chance costs work, not truth.
_SLOTS_A_HASH = 16
_PARTITIONS = 64
_RECORD = np.dtype([("hash", "<u8"), ("place", "<u8")])
_MATCH = np.dtype([("place", "<u8"), ("first", "<u8")])


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
        self, least: Hashes, places: NDArray[np.int64], width: int
    ) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
        """Return slots of the hashes of consecutive windows, and how often each is met.

        Parameters
        ----------
        least : ndarray of shape (m,), uint64
            The least hash of each window.
        places : ndarray of shape (m,), int64
            Where the windows begin: those of a document follow each other, and none touches another document's.
        width : int
            Windows that one short window can be the least of. A longer run of one hash is met more than once.
        """
        is_begin = np.concatenate([[True], (least[1:] != least[:-1]) | (np.diff(places) != 1)])[: len(least)]
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
    """Records put aside in files by the upper bits of a number, to be taken back one file at a time.

    Parameters
    ----------
    place : Path
        A new directory.
    dtype : numpy dtype
        Of a record.
    """

    def __init__(self, place: Path, dtype: np.dtype[np.void]) -> None:
        place.mkdir()
        self._dtype = dtype
        self._files = [(place / str(number)).open("w+b") for number in range(_PARTITIONS)]

    def add(self, records: NDArray[np.void], numbers: NDArray[np.int64]) -> None:
        """Append records to the partitions of these numbers."""
        order = np.argsort(numbers, kind="stable")
        records = records[order]
        bounds = np.searchsorted(numbers[order], np.arange(_PARTITIONS + 1))
        for number, (low, high) in enumerate(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)):
            if high > low:
                self._files[number].write(records[low:high].tobytes())

    def take(self) -> Iterator[NDArray[np.void]]:
        """Yield the records of each partition, whose file goes then."""
        for file in self._files:
            file.seek(0)
            yield np.frombuffer(file.read(), self._dtype)
            file.truncate(0)
            file.close()

    def close(self) -> None:
        """Close what is open."""
        for file in self._files:
            file.close()


class Firsts:
    """Finds for each window the first that is equal, on disk.

    Parameters
    ----------
    work : Path
        A directory for files: 16 bytes a window.
    num_words : int
        Words of a window.
    doc_starts : ndarray of shape (n + 1,), int64
        Where the words of each document begin among those of all.
    """

    def __init__(self, work: Path, num_words: int, doc_starts: NDArray[np.int64]) -> None:
        self._num_words = num_words
        self._doc_starts = doc_starts
        self._by_hash = Partitions(work / "windows", _RECORD)
        self._by_place = Partitions(work / "matches", _MATCH)
        self._step = max(1, -(-int(doc_starts[-1]) // _PARTITIONS))

    def add(self, hashes: Hashes, places: NDArray[np.int64]) -> None:
        """Put windows aside: their hashes, and where among all words each begins."""
        records = np.empty(len(hashes), _RECORD)
        records["hash"], records["place"] = hashes, places
        self._by_hash.add(records, (hashes >> np.uint64(58)).astype(np.int64))

    def matches(self) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Yield windows that repeat one, in order, and the first that each repeats.

        That is of an earlier document, or of the same one and does not overlap.
        """
        for records in self._by_hash.take():
            order = np.lexsort((records["place"], records["hash"]))
            hashes, places = records["hash"][order], records["place"][order].astype(np.int64)
            if not len(hashes):
                continue
            is_first = np.concatenate([[True], hashes[1:] != hashes[:-1]])
            firsts = places[np.maximum.accumulate(np.where(is_first, np.arange(len(places)), 0))]
            own_start = self._doc_starts[np.searchsorted(self._doc_starts, places, side="right") - 1]
            repeats = ~is_first & ((firsts < own_start) | (firsts + self._num_words <= places))
            found = np.empty(int(repeats.sum()), _MATCH)
            found["place"], found["first"] = places[repeats], firsts[repeats]
            self._by_place.add(found, (found["place"] // np.uint64(self._step)).astype(np.int64))
        for found in self._by_place.take():
            order = np.argsort(found["place"], kind="stable")
            yield found["place"][order].astype(np.int64), found["first"][order].astype(np.int64)

    def close(self) -> None:
        """Close what is open."""
        self._by_hash.close()
        self._by_place.close()
