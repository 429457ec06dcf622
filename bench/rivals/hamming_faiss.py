"""faiss: binary indexes, with the settings of its own benchmark of hash tables, made complete for the radius.

nhash tables of b bits, nflip errors looked up in each: complete if nhash * (nflip + 1) > within. These are the
fastest complete settings on 1e6 and 1e7 uniform codes. range_search returns distances *below* its radius.
"""

from typing import ClassVar

import numpy as np

from rivals.hamming_protocol import Found, NotDone, Searcher, as_bytes


def _range_search(index, queries: np.ndarray, within: int, threads: int) -> Found:
    import faiss

    faiss.omp_set_num_threads(threads)
    offsets, _, rows = index.range_search(as_bytes(queries), within + 1)
    return Found(np.asarray(offsets, np.int64), np.asarray(rows, np.int64))


class Flat(Searcher):
    """The exhaustive scan."""

    name = "faiss IndexBinaryFlat"
    package = "faiss-cpu"
    settings = "IndexBinaryFlat(bits)"
    builds_once = True
    most_pairs_of = 200_000

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        self.index = faiss.IndexBinaryFlat(bits)
        self.index.add(as_bytes(codes))

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        return _range_search(self.index, queries, within, threads)

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        if len(codes) > self.most_pairs_of:
            raise NotDone(f"{len(codes):.0e} queries one by one: minutes at 1e6, hours above")
        self.build(codes, bits, within, threads)
        return _pairs(self, codes, within, threads)


class MultiHash(Flat):
    """Multi-index hashing."""

    name = "faiss IndexBinaryMultiHash"
    builds_once = False
    most_pairs_of = 10_000_000
    settings = (
        "IndexBinaryMultiHash(bits, nhash, b): k=3 2x30 bits (at 1e8 2x24), nflip 1; k=6, 8, 10 3x21, nflip k // 3"
    )
    SETTINGS: ClassVar = {3: (2, 30, 1), 6: (3, 21, 2), 8: (3, 21, 2), 10: (3, 21, 3)}
    FEWER_BUCKETS = (2, 24, 1)  # 2 x 1e8 buckets of one would not fit the memory

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        import faiss

        if bits != 64 or within not in self.SETTINGS or (len(codes) > 5e7 and within > 3):
            raise NotDone(f"no setting was tuned for {bits} bits within {within}")
        tables, width, flips = self.FEWER_BUCKETS if len(codes) > 5e7 else self.SETTINGS[within]
        faiss.omp_set_num_threads(threads)
        self.index = faiss.IndexBinaryMultiHash(bits, tables, width)
        self.index.add(as_bytes(codes))
        self.index.nflip = flips


class Hash(Flat):
    """One table on the first bits; complete only if it looks up every error of `within` bits there."""

    name = "faiss IndexBinaryHash"
    settings = "IndexBinaryHash(bits, b=20), nflip = k"

    def __init__(self) -> None:
        self._built = 0

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        import faiss

        faiss.omp_set_num_threads(threads)
        if self._built != len(codes):
            self.index = faiss.IndexBinaryHash(bits, 20)
            self.index.add(as_bytes(codes))
            self._built = len(codes)
        self.index.nflip = within


def _pairs(searcher: Flat, codes: np.ndarray, within: int, threads: int) -> np.ndarray:
    """Return each pair once, querying every row in blocks."""
    found = []
    for low in range(0, len(codes), 100_000):
        part = searcher.query(codes[low : low + 100_000], within, threads)
        left = np.repeat(np.arange(len(part.offsets) - 1) + low, np.diff(part.offsets))
        keep = left < part.rows
        found.append(np.stack([left[keep], part.rows[keep]], axis=1))
    return np.concatenate(found)
