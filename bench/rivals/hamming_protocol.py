"""The benchmark's interface for packages that search by Hamming distance: a few methods on arrays of 64-bit words."""

from dataclasses import dataclass

import numpy as np


class NotDone(Exception):
    """A package cannot do this row, for the given reason, which the table shows."""


@dataclass(frozen=True)
class Found:
    """Matches of queries in order: those of query i are rows[offsets[i] : offsets[i + 1]].

    If `are_codes`, the searcher stores no rows and returns the distinct fingerprints found, uint64.
    """

    offsets: np.ndarray
    rows: np.ndarray
    are_codes: bool = False


class Searcher:
    """One way of using one package. Codes and queries are (n, words) uint64; `threads` is a limit."""

    name = ""
    package = ""
    settings = ""
    exact = True  # whether it claims to find everything
    builds_once = False  # whether one index can answer every radius
    largest = 10**10
    why_not_larger = ""

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        """Prepare to answer `query` within that radius."""
        raise NotDone("has no search by query")

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        """Return everything within the radius."""
        raise NotDone("has no search by query")

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        """Return (m, 2) rows of all pairs within the radius, once each."""
        raise NotDone("has no search for all pairs")


def as_bytes(codes: np.ndarray) -> np.ndarray:
    """Return (n, words) uint64 as (n, bytes)."""
    return np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), -1)


def from_lists(found: list) -> Found:
    """Return the matches given as one list of rows per query."""
    offsets = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(rows) for rows in found], out=offsets[1:])
    return Found(offsets, np.array([row for rows in found for row in rows], np.int64))
