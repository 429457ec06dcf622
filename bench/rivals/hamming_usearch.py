"""usearch: a graph of near neighbors over packed bits; approximate, and by number of neighbors, not radius."""

import numpy as np

from rivals.hamming_protocol import Found, NotDone, Searcher, as_bytes

NUM_NEIGHBORS = 10  # its default


class Graph(Searcher):
    """Its index with its defaults; results beyond the radius are dropped."""

    name = "usearch Index"
    package = "usearch"
    settings = "Index(ndim=bits, metric=Hamming, dtype=B1), search(queries, 10), results within the radius"
    exact = False
    builds_once = True
    largest = 1_000_000
    why_not_larger = "adds some 5,000 fingerprints per second and thread"

    def __init__(self) -> None:
        self._built = 0

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        from usearch.index import Index, MetricKind, ScalarKind

        if self._built != len(codes):
            self.index = Index(ndim=bits, metric=MetricKind.Hamming, dtype=ScalarKind.B1)
            self.index.add(np.arange(len(codes)), as_bytes(codes), threads=threads)
            self._built = len(codes)

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        return _within(self.index.search(as_bytes(queries), NUM_NEIGHBORS, threads=threads), len(queries), within)

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        raise NotDone("returns a number of neighbors, not a radius")


class Exact(Searcher):
    """Its exhaustive search, with a limit of ten results."""

    name = "usearch search(exact=True)"
    package = "usearch"
    settings = "search(codes, queries, 10, Hamming, exact=True), results within the radius"
    exact = False  # for the radius: an eleventh match is not returned
    builds_once = True

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        self.codes = as_bytes(codes)

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        from usearch.index import MetricKind, search

        found = search(self.codes, as_bytes(queries), NUM_NEIGHBORS, MetricKind.Hamming, exact=True, threads=threads)
        return _within(found, len(queries), within)


def _within(matches, num_queries: int, within: int) -> Found:
    keys = np.asarray(matches.keys).reshape(num_queries, -1)
    near = np.asarray(matches.distances).reshape(num_queries, -1) <= within
    near &= np.arange(keys.shape[1]) < np.asarray(matches.counts if num_queries > 1 else [keys.shape[1]])[:, None]
    offsets = np.zeros(num_queries + 1, np.int64)
    np.cumsum(near.sum(axis=1), out=offsets[1:])
    return Found(offsets, keys[near].astype(np.int64))
