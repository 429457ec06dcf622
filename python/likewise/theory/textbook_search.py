"""The searches from the literature in plain NumPy, for teaching and comparison.

This module and the index do not use each other.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter, check_integer

Codes = NDArray[np.uint64]
Rows = NDArray[np.int64]

MAX_STORED = 1000
_MAX_NEIGHBORS = 1_000_000
_MAX_TABLES = 1024


class HistoricalSearch(ABC):
    """A search for all fingerprints within a radius of a query, by a method from the literature.

    Attributes
    ----------
    num_probes, num_candidates : int
        Number of lookups and of compared fingerprints of the last query.
    """

    def __init__(self, codes: Codes, within: int) -> None:
        self.codes, self.within = codes, within
        self.num_probes = self.num_candidates = 0

    def query(self, fingerprint: int) -> Rows:
        """Return the rows within the radius of a fingerprint, ascending."""
        query = np.uint64(fingerprint)
        self.num_probes = self.num_candidates = 0
        rows: Rows = np.unique(np.concatenate([*self._candidates(query), np.zeros(0, np.int64)]))
        near: Rows = rows[np.bitwise_count(self.codes[rows] ^ query) <= self.within]
        return near

    @abstractmethod
    def _candidates(self, query: np.uint64) -> Iterator[Rows]:
        """Yield the rows to compare, and count them."""

    def _look_up(self, values: Codes, rows: Rows, wanted: Codes) -> Rows:
        """Return the rows whose value is one of the wanted values, with a binary search for each."""
        low = np.searchsorted(values, wanted, "left")
        high = np.searchsorted(values, wanted, "right")
        self.num_probes += len(wanted)
        self.num_candidates += int((high - low).sum())
        hit = high > low
        return np.concatenate([rows[a:b] for a, b in zip(low[hit], high[hit], strict=True)] or [rows[:0]])


class _Scan(HistoricalSearch):
    """Compares all fingerprints."""

    def _candidates(self, query: np.uint64) -> Iterator[Rows]:
        self.num_candidates = len(self.codes)
        yield np.arange(len(self.codes))


class _ProbedNeighbors(HistoricalSearch):
    """Looks up all values within the radius of the query in one sorted table. Section 3, the first extreme."""

    def __init__(self, codes: Codes, within: int, bits: int) -> None:
        super().__init__(codes, within)
        self._masks = _masks(bits, within)
        self._rows = np.argsort(codes, kind="stable")
        self._values = codes[self._rows]

    def _candidates(self, query: np.uint64) -> Iterator[Rows]:
        yield self._look_up(self._values, self._rows, query ^ self._masks)


class _StoredNeighbors(HistoricalSearch):
    """Stores all values within the radius of each fingerprint, and looks up the query once. Section 3, the other."""

    def __init__(self, codes: Codes, within: int, bits: int) -> None:
        super().__init__(codes, within)
        if len(codes) > MAX_STORED:
            raise InvalidParameter(
                "fingerprints", f"{len(codes)} codes are too many; neighbors are stored for at most {MAX_STORED}"
            )
        masks = _masks(bits, within)
        values = (codes[:, None] ^ masks).reshape(-1)
        order = np.argsort(values, kind="stable")
        self._values, self._rows = values[order], order // len(masks)

    def _candidates(self, query: np.uint64) -> Iterator[Rows]:
        yield self._look_up(self._values, self._rows, np.array([query]))


class _PermutedTables(HistoricalSearch):
    """Looks up the query's key in copies sorted by the bits of one key, the others cleared. Section 3.1."""

    def __init__(self, codes: Codes, within: int, keys: list[int]) -> None:
        super().__init__(codes, within)
        self._tables = []
        for key in keys:
            mask = np.uint64(key)
            order = np.argsort(codes & mask, kind="stable")
            self._tables.append((mask, (codes & mask)[order], order))

    def _candidates(self, query: np.uint64) -> Iterator[Rows]:
        for mask, values, rows in self._tables:
            yield self._look_up(values, rows, np.array([query & mask]))


def historical_search(name: str, fingerprints: Codes, *, bits: int = 64, within: int = 3) -> HistoricalSearch:
    """Return one of the searches from the literature over fingerprints, exact and ready for queries.

    Parameters
    ----------
    name : str
        A name from :func:`historical_names` or :func:`~likewise.theory.textbook.textbook_searches`:
        ``"scan"``, ``"all neighbors probed"``, ``"all neighbors stored"`` (up to 1,000 fingerprints), ``"4 blocks"``,
        ``"4 blocks, then 4 of the rest"``, ``"2 of 5 blocks"``, ``"3 of 6 blocks"``. The last four are for radius 3 and
        have 4, 16, 10 and 20 tables.
    fingerprints : array of shape (n,), uint64
        The fingerprints to search.
    bits : int
        Width, 1 to 64.
    within : int
        Radius, 0 to `bits`.

    Raises
    ------
    InvalidParameter
        If there is no such search for this width and radius, the fingerprints have a different type or are wider, or
        there are too many neighbors to store.

    Notes
    -----
    Use these searches for teaching and as a reference implementation, with up to a few thousand fingerprints. For real
    work, use :class:`likewise.HammingIndex`. Source: Manku, Jain, Das Sarma, Detecting near-duplicates for web
    crawling, WWW 2007, section 3.

    Examples
    --------
    >>> codes = np.array([0b0000, 0b0111, 0b1111, 0b1000], np.uint64)
    >>> search = historical_search("2 blocks", codes, bits=4, within=1)
    >>> search.query(0b0101).tolist(), search.num_probes, search.num_candidates
    ([1], 2, 1)
    """
    bits = check_integer("bits", bits, 1, 64)
    within = check_integer("within", within, 0, bits)
    codes = np.asarray(fingerprints)
    if codes.dtype != np.uint64 or codes.ndim != 1:
        raise InvalidParameter("fingerprints", f"shape {codes.shape}, {codes.dtype}; expected uint64 of shape (n,)")
    if bits < 64 and len(codes) and int(codes.max()) >> bits:
        raise InvalidParameter("fingerprints", f"{int(codes.max())} has more than {bits} bits")
    if name == "scan":
        return _Scan(codes, within)
    if name == "all neighbors probed":
        return _ProbedNeighbors(codes, within, bits)
    if name == "all neighbors stored":
        return _StoredNeighbors(codes, within, bits)
    tables = _tables(bits, within)
    if name not in tables:
        raise InvalidParameter("name", f"{name!r} is not one of {', '.join(historical_names(bits, within))}")
    return _PermutedTables(codes, within, tables[name])


def historical_names(bits: int = 64, within: int = 3) -> tuple[str, ...]:
    """Return the names of the searches for a width and a radius.

    Examples
    --------
    >>> historical_names()[3:]
    ('4 blocks', '4 blocks, then 4 of the rest', '2 of 5 blocks', '3 of 6 blocks')
    """
    return ("scan", "all neighbors probed", "all neighbors stored", *_tables(bits, within))


def _tables(bits: int, within: int) -> dict[str, list[int]]:
    """Return the keys of the permuted tables by name, as masks."""
    found: dict[str, list[int]] = {}
    for chosen in (1, 2, 3):
        count = within + chosen
        if count > bits or math.comb(count, chosen) > _MAX_TABLES:
            continue
        blocks = _cut(range(bits), count)
        name = f"{count} blocks" if chosen == 1 else f"{chosen} of {count} blocks"
        found[name] = [_mask(itertools.chain(*some)) for some in itertools.combinations(blocks, chosen)]
        rest = bits - len(blocks[0])
        if chosen == 1 and within and rest >= count and count * count <= _MAX_TABLES:
            found[f"{count} blocks, then {count} of the rest"] = [
                _mask([*block, *part])
                for block in blocks
                for part in _cut([bit for bit in range(bits) if bit not in block], count)
            ]
    return found


def _cut(positions: "range | list[int]", count: int) -> list[list[int]]:
    """Return positions divided into runs of lengths as equal as possible, longer runs first."""
    short, num_long = divmod(len(positions), count)
    ends = list(itertools.accumulate(short + (part < num_long) for part in range(count)))
    return [list(positions[start:end]) for start, end in itertools.pairwise([0, *ends])]


def _mask(positions: "itertools.chain[int] | list[int]") -> int:
    return sum(1 << bit for bit in positions)


def _masks(bits: int, within: int) -> Codes:
    """Return all patterns of at most `within` errors."""
    count = sum(math.comb(bits, errors) for errors in range(within + 1))
    if count > _MAX_NEIGHBORS:
        raise InvalidParameter("within", f"{within} of {bits} bits: {count} neighbors; the limit is {_MAX_NEIGHBORS}")
    patterns = (some for errors in range(within + 1) for some in itertools.combinations(range(bits), errors))
    return np.fromiter((_mask(list(some)) for some in patterns), np.uint64, count)
