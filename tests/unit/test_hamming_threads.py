"""Threads search one HammingIndex while others add and remove: no row that is present throughout is missed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from likewise import HammingIndex

WITHIN = 3
NUM_FIRST, NUM_ADDED, NUM_AT_ONCE = 6_000, 24_000, 600
SEARCHERS, ADDERS = 3, 2


class Shared:
    """One index and its state: `code_of` by row after an add has returned, rows about to be removed, removed rows."""

    def __init__(self) -> None:
        random = np.random.default_rng(11)
        # Few free bits, so that a query finds many rows and not only its own.
        codes = random.integers(0, 1 << 64, NUM_FIRST + NUM_ADDED, np.uint64) & np.uint64(0xFF00_0000_00FF_FF0F)
        self.index = HammingIndex(codes[:NUM_FIRST], within=WITHIN, threads=1)
        self.waiting = [codes[at : at + NUM_AT_ONCE] for at in range(NUM_FIRST, len(codes), NUM_AT_ONCE)]
        self.lock = threading.Lock()
        self.code_of = dict(enumerate(codes[:NUM_FIRST].tolist()))
        self.leaving: set[int] = set()
        self.gone: set[int] = set()
        self.results: list[tuple[int, list[int], list[int]]] = []
        self.running = ADDERS + 1

    def add(self) -> None:
        """Add batch after batch, and publish each when it is added."""
        try:
            while True:
                with self.lock:
                    if not self.waiting:
                        return
                    batch = self.waiting.pop()
                rows = self.index.add(batch)
                with self.lock:
                    self.code_of.update(zip(rows.tolist(), batch.tolist(), strict=True))
        finally:
            with self.lock:
                self.running -= 1

    def remove(self) -> None:
        """Remove every fourth known row, until the adders are done."""
        is_last = False
        try:
            while not is_last:
                with self.lock:
                    is_last = self.running == 1
                    rows = [row for row in self.code_of if row % 4 == 0 and row not in self.leaving]
                    self.leaving.update(rows)
                assert self.index.remove(rows) == len(rows)
                with self.lock:
                    self.gone.update(rows)
        finally:
            with self.lock:
                self.running -= 1

    def search(self, seed: int) -> int:
        """Search near present rows, alone and in batches, until all else is done; return the number of searches."""
        random = np.random.default_rng(seed)
        num = 0
        while True:
            num += 1
            with self.lock:
                is_last = self.running == 0
                present = list(self.code_of.items())
                gone = set(self.gone)
            # Batches of more than 4096 queries are sorted.
            picked = [present[i] for i in random.integers(0, len(present), 5_000 if num % 4 == 0 else 1)]
            bits = random.integers(0, 64, len(picked)).tolist()
            queries = [code ^ (1 << bit) for (_, code), bit in zip(picked, bits, strict=True)]
            if len(queries) == 1:
                rows, distances = self.index.query(queries[0])
                found = [(rows.tolist(), distances.tolist())]
            else:
                offsets, rows, distances = self.index.query_batch(np.array(queries, np.uint64))
                bounds = list(zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True))
                found = [(rows[low:high].tolist(), distances[low:high].tolist()) for low, high in bounds]
            with self.lock:
                leaving = set(self.leaving)
                self.results += [(query, *one) for query, one in zip(queries[:50], found[:50], strict=True)]
            for (row, _), (rows, _) in zip(picked, found, strict=True):
                assert row in rows or row in leaving, f"row {row} is missed"
                assert gone.isdisjoint(rows), "a removed row comes back"
            if is_last:
                return num


def test_searches_run_while_rows_come_and_go():
    shared = Shared()
    with ThreadPoolExecutor(SEARCHERS + ADDERS + 1) as pool:
        searchers = [pool.submit(shared.search, seed) for seed in range(SEARCHERS)]
        others = [pool.submit(shared.add) for _ in range(ADDERS)] + [pool.submit(shared.remove)]
        for future in others:
            future.result()
        assert all(future.result() > 1 for future in searchers)
    # Every result has the stated distance.
    assert len(shared.results) > SEARCHERS
    for query, rows, distances in shared.results:
        assert distances == [(shared.code_of[row] ^ query).bit_count() for row in rows]
        assert all(distance <= WITHIN for distance in distances)
    assert len(shared.index) == NUM_FIRST + NUM_ADDED - len(shared.gone)
    assert len(shared.gone) == (NUM_FIRST + NUM_ADDED) // 4
