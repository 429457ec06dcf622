"""Likewise with the interface of its rivals (rivals/hamming_protocol.py)."""

from pathlib import Path

import numpy as np

import likewise
from rivals.hamming_protocol import Found, NotDone, Searcher


def columns(codes: np.ndarray) -> np.ndarray:
    """Return an (n,) array if a fingerprint is one word, as the public functions take it."""
    return codes[:, 0] if codes.shape[1] == 1 else codes


class Likewise(Searcher):
    """The index, all pairs, and the pass over a flat file."""

    name = "likewise"
    package = "likewise"
    settings = (
        "HammingIndex(codes, within=k, memory=bytes of the row), query_batch; hamming_pairs; hamming_stream; "
        "HammingIndex.build(flat file, index file)"
    )

    def __init__(self, memory_bytes: int | None = None, *, with_rows: bool = True) -> None:
        self.memory_bytes, self.with_rows = memory_bytes, with_rows

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        if not hasattr(likewise, "HammingIndex"):
            raise NotDone("this version has no HammingIndex")
        self.index = None
        ids = None if self.with_rows else False
        self.index = likewise.HammingIndex(columns(codes), ids, within, self.memory_bytes, bits=bits, threads=threads)

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        """Query with the threads that the index was made with."""
        found = self.index.query_batch(columns(queries), within)
        return Found(found.offsets, found.rows, are_codes=not self.with_rows)

    def query_one(self, query: np.ndarray, within: int) -> object:
        """Ask one query, as an online caller does."""
        return self.index.query(query, within)

    def build_file(self, source: Path, path: Path, bits: int, within: int, threads: int, memory_bytes: int) -> None:
        """Build an index file from a flat file, in bounded memory."""
        if not hasattr(getattr(likewise, "HammingIndex", None), "build"):
            raise NotDone("this version builds no index file")
        ids = None if self.with_rows else False
        self.index = likewise.HammingIndex.build(
            source, path, within, ids=ids, memory=memory_bytes, table_memory=self.memory_bytes, bits=bits,
            threads=threads,
        )  # fmt: skip

    def open(self, path: Path, threads: int) -> None:
        """Map the saved file."""
        self.index = likewise.HammingIndex.open(path, threads=threads)

    def keys(self) -> list[tuple[int, int]]:
        """Return (mask, radius) of the tables of the index."""
        return self.index.stats["keys"]

    def facts(self) -> dict[str, object]:
        """Return the statistics of the index."""
        return {"stats": self.index.stats}

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        return likewise.hamming_pairs(columns(codes), within=within, threads=threads)[0]

    def write_pairs(self, codes: np.ndarray, out: Path, within: int, threads: int, memory_bytes: int) -> int:
        """Write all pairs of a mapped file to Parquet, in bounded memory; return their number."""
        found = likewise.hamming_pairs(columns(codes), within=within, out=out, memory=memory_bytes, threads=threads)
        return found.num_pairs

    def stream(self, queries: np.ndarray, path: Path, bits: int, within: int, threads: int) -> Found:
        """Pass once over a flat file."""
        from likewise import hamming

        if not hasattr(hamming, "hamming_stream"):
            raise NotDone("this version has no hamming_stream")
        offsets, rows, _ = hamming.hamming_stream(columns(queries), path, within, bits=bits, threads=threads)
        return Found(offsets, rows)
