"""What a package that searches by Hamming distance is to the benchmark: a few verbs over arrays of 64-bit words."""

from dataclasses import dataclass

import numpy as np


class NotDone(Exception):
    """A package cannot do this row, for the reason it says; the table shows the reason."""


@dataclass(frozen=True)
class Found:
    """Matches of queries in order: of query i the rows[offsets[i] : offsets[i + 1]].

    Where `are_codes`, the searcher keeps no rows and gives the fingerprints found, each once, uint64.
    """

    offsets: np.ndarray
    rows: np.ndarray
    are_codes: bool = False


class Searcher:
    """One way of using one package. Codes and queries are (n, words) uint64; `threads` is what it may use."""

    name = ""
    package = ""
    settings = ""
    exact = True  # whether it promises to find everything
    builds_once = False  # whether one index serves every radius
    largest = 10**10
    why_not_larger = ""

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        """Make it ready to answer `query` within that radius."""
        raise NotDone("has no search by query")

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        """All that lies within the radius."""
        raise NotDone("has no search by query")

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        """(m, 2) rows of all pairs within the radius, once each."""
        raise NotDone("has no search for all pairs")


def as_bytes(codes: np.ndarray) -> np.ndarray:
    """(n, words) uint64 as (n, bytes)."""
    return np.ascontiguousarray(codes).view(np.uint8).reshape(len(codes), -1)


def from_lists(found: list) -> Found:
    """Lists of rows, one per query."""
    offsets = np.zeros(len(found) + 1, np.int64)
    np.cumsum([len(rows) for rows in found], out=offsets[1:])
    return Found(offsets, np.array([row for rows in found for row in rows], np.int64))
