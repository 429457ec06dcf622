"""simhash-pybind (all pairs of a set of integers) and simhash (an index of Simhash objects)."""

import logging

import numpy as np

from rivals.hamming_protocol import Found, NotDone, Searcher, from_lists
from rivals.protocol import make_importable


class Pybind(Searcher):
    """find_all over the distinct integers; we add equal ones back, within the measured time."""

    name = "simhash-pybind find_all"
    package = "simhash-pybind"
    settings = "find_all(set of integers, blocks=k + 1, bits=k): the fastest of 4, 5 and 6 blocks at k=3"
    largest = 10_000_000
    why_not_larger = "a set of Python integers and as many tuples do not fit the memory"

    def pairs(self, codes: np.ndarray, bits: int, within: int, threads: int) -> np.ndarray:
        if bits != 64:
            raise NotDone("64 bits only")
        make_importable("simhash-pybind")
        import simhash

        values, first, inverse = np.unique(codes[:, 0], return_index=True, return_inverse=True)
        order = np.argsort(inverse, kind="stable")
        starts = np.searchsorted(inverse[order], np.arange(len(values) + 1))
        found = np.array(list(simhash.find_all(set(values.tolist()), within + 1, within)), np.uint64).reshape(-1, 2)
        left, right = (np.searchsorted(values, found[:, side]) for side in (0, 1))
        single = np.diff(starts) == 1
        plain = single[left] & single[right]
        pairs = [np.sort(np.stack([first[left[plain]], first[right[plain]]], axis=1), axis=1)]
        for a, b in zip(left[~plain], right[~plain], strict=True):
            rows_a, rows_b = order[starts[a] : starts[a + 1]], order[starts[b] : starts[b + 1]]
            pairs.append(np.sort(np.stack(np.meshgrid(rows_a, rows_b), axis=-1).reshape(-1, 2), axis=1))
        for value in np.flatnonzero(~single):
            rows = np.sort(order[starts[value] : starts[value + 1]])
            pairs.append(rows[np.stack(np.triu_indices(len(rows), 1), axis=1)])
        return np.concatenate(pairs)


class Index(Searcher):
    """SimhashIndex: k + 1 blocks, each a dictionary of sets of strings."""

    name = "simhash SimhashIndex"
    package = "simhash"
    settings = "SimhashIndex(k=k)"
    largest = 1_000_000
    why_not_larger = "about 1 kB of Python objects a fingerprint"

    def build(self, codes: np.ndarray, bits: int, within: int, threads: int) -> None:
        if bits != 64:
            raise NotDone("tried at 64 bits only")
        make_importable("simhash")
        from simhash import Simhash, SimhashIndex

        quiet = logging.getLogger("simhash")
        quiet.setLevel(logging.CRITICAL)
        self.make = Simhash
        self.index = None
        self.index = SimhashIndex(
            [(str(row), Simhash(value)) for row, value in enumerate(codes[:, 0].tolist())], k=within, log=quiet
        )

    def query(self, queries: np.ndarray, within: int, threads: int) -> Found:
        found = [self.index.get_near_dups(self.make(value)) for value in queries[:, 0].tolist()]
        return from_lists([[int(row) for row in rows] for rows in found])
