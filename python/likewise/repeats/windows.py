"""Windows of words by rolling hashes: which may repeat, and where each stood first."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Hashes = NDArray[np.uint64]
_BASE = 0x9E3779B97F4A7C15 | 1
_BASE_INVERSE = pow(_BASE, -1, 1 << 64)
_MIX = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_LEAST_SLOTS, _MOST_SLOTS = 1 << 16, 1 << 30
# A slot that a hash meets by chance costs work, not truth.
_SLOTS_A_HASH = 16
_PARTITIONS = 64
_RECORD = np.dtype([("hash", "<u8"), ("place", "<u8")])
_MATCH = np.dtype([("place", "<u8"), ("first", "<u8")])


class Windows:
    """Hashes of windows of consecutive words.

    Parameters
    ----------
    num_words : int
        Words of a window.

    Notes
    -----
    A window is H(i) = sum over j of h(i + j) B^-j (mod 2^64), read off prefix sums, and mixed. Of each window
    the least hash of the shorter windows inside it is looked at (winnowing: Schleimer, Wilkerson, Aiken,
    SIGMOD 2003, section 3): equal windows have equal ones, so a window whose least hash was met once repeats nothing.
    """

    def __init__(self, num_words: int) -> None:
        self.num_words = num_words
        self.short = num_words // 2
        # Short windows inside a window.
        self.num_inside = num_words - self.short + 1
        self._powers = np.ones(1, np.uint64)
        self._inverses = np.ones(1, np.uint64)

    def least(self, words: Hashes) -> Hashes:
        """Return the least hash of the short windows inside each window; there are len(words) - num_words + 1."""
        count = len(words) - self.num_words + 1
        if count <= 0:
            return np.zeros(0, np.uint64)
        return _sliding_minimum(self._hashes(words, self.short, None), self.num_inside)

    def hashes(self, words: Hashes, places: NDArray[np.int64]) -> Hashes:
        """Return the hashes of the windows that begin at these places."""
        return self._hashes(words, self.num_words, places)

    def _hashes(self, words: Hashes, length: int, places: NDArray[np.int64] | None) -> Hashes:
        powers, inverses = self._of_length(len(words) + 1)
        sums = np.zeros(len(words) + 1, np.uint64)
        np.cumsum(words * inverses[: len(words)], out=sums[1:])
        if places is None:
            count = len(words) - length + 1
            found = (sums[length:] - sums[:count]) * powers[:count]
        else:
            found = (sums[places + length] - sums[places]) * powers[places]
        found ^= found >> _SHIFT
        found *= _MIX
        found ^= found >> _SHIFT
        return found

    def _of_length(self, length: int) -> tuple[Hashes, Hashes]:
        powers, inverses = self._powers, self._inverses
        if len(powers) < length:
            # To and fro by powers of the base; made anew rather than grown in place, since other threads read them.
            size = max(length, 1 << 16)
            powers, inverses = (_powers(base, size) for base in (_BASE, _BASE_INVERSE))
            self._powers, self._inverses = powers, inverses
        return powers, inverses


def _powers(base: int, size: int) -> Hashes:
    powers = np.full(size, np.uint64(base))
    powers[0] = 1
    np.cumprod(powers, out=powers)
    return powers


def _sliding_minimum(values: Hashes, width: int) -> Hashes:
    """Return the least of each `width` consecutive values, from minima of blocks forwards and backwards."""
    count = len(values) - width + 1
    padded = np.full(-(-len(values) // width) * width, np.uint64(2**64 - 1))
    padded[: len(values)] = values
    blocks = padded.reshape(-1, width)
    forwards = np.minimum.accumulate(blocks, axis=1).reshape(-1)
    backwards = np.minimum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].reshape(-1)
    return np.minimum(backwards[:count], forwards[width - 1 : width - 1 + count])


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
