"""Each public way to search by Hamming distance, as one function for hamming_exact.py."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

import likewise
from hamming_ours import Likewise, columns
from rivals.hamming_protocol import Found, NotDone

THREADS = 2


def query_batch(codes: np.ndarray, queries: np.ndarray, bits: int, within: int) -> Found:
    """Call HammingIndex.query_batch."""
    searcher = Likewise()
    searcher.build(codes, bits, within, THREADS)
    return searcher.query(queries, within, THREADS)


def pairs(codes: np.ndarray, queries: np.ndarray, bits: int, within: int) -> np.ndarray:
    """Call hamming_pairs."""
    return likewise.hamming_pairs(columns(codes), within=within, threads=THREADS)[0]


def stream(codes: np.ndarray, queries: np.ndarray, bits: int, within: int) -> Found:
    """Call hamming_stream over a flat file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "codes.u64"
        path.write_bytes(codes.astype("<u8").tobytes())
        return Likewise().stream(queries, path, bits, within, THREADS)


def join(codes: np.ndarray, queries: np.ndarray, bits: int, within: int) -> Found:
    """Call hamming_join of the queries and the codes."""
    if not hasattr(likewise, "hamming_join"):
        raise NotDone("this version has no hamming_join")
    found = likewise.hamming_join(columns(queries), columns(codes), within=within, threads=THREADS)[0]
    order = np.argsort(found[:, 0], kind="stable")
    offsets = np.searchsorted(found[order, 0], np.arange(len(queries) + 1))
    return Found(offsets, found[order, 1])


DOORS: dict[str, Callable[[np.ndarray, np.ndarray, int, int], Found | np.ndarray]] = {
    "HammingIndex.query_batch": query_batch,
    "hamming_pairs": pairs,
    "hamming_join": join,
    "hamming_stream": stream,
}
