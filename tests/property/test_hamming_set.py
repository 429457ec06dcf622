"""A Hamming index that adds and removes fingerprints, against a dict: calls in any order, files saved in between."""

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from likewise import HammingIndex
from tests.oracle import hamming as oracle

codes = st.integers(0, 2**64 - 1) | st.sampled_from([0, 1, 3, 7, 2**63, 2**64 - 1, 0xFF00FF, 0xFF00FE])


class Changes(RuleBasedStateMachine):
    """Additions, removals and searches; batches large enough for merges; files in between."""

    @initialize(start=st.lists(codes, max_size=30), within=st.sampled_from([0, 2, 3, 6, 40]))
    def begin(self, start, within):
        self.within = within
        self.model = dict(enumerate(start))
        self.next_row = len(start)
        words = np.array(start, np.uint64)
        self.index = HammingIndex(words, within=within, threads=1)

    def take(self, words):
        rows = self.index.add(words)
        assert rows.tolist() == list(range(self.next_row, self.next_row + len(words)))
        self.model.update(zip(rows.tolist(), words.tolist(), strict=True))
        self.next_row += len(words)

    @rule(batch=st.lists(codes, max_size=20))
    def add(self, batch):
        self.take(np.array(batch, np.uint64))

    @rule(
        seed=st.integers(0, 50), num=st.sampled_from([900, 4097]), mask=st.sampled_from([2**64 - 1, 0x3F0000000000001F])
    )
    def add_many(self, seed, num, mask):
        if len(self.model) < 12_000:
            random = np.random.default_rng(seed)
            self.take(random.integers(0, 1 << 64, num, np.uint64) & np.uint64(mask))

    @rule(data=st.data())
    def remove(self, data):
        rows = data.draw(st.lists(st.integers(0, self.next_row + 1), max_size=12))
        gone = {row for row in rows if row in self.model}
        assert self.index.remove(rows) == len(gone)
        for row in gone:
            del self.model[row]

    @rule(data=st.data(), flips=st.lists(st.integers(0, 63), max_size=4))
    def search(self, data, flips):
        query = data.draw(st.sampled_from(sorted(self.model.values())) if self.model else codes)
        for bit in flips:
            query ^= 1 << bit
        for within in {0, self.within}:
            rows, distances = self.index.query(query, within)
            found = list(zip(rows.tolist(), distances.tolist(), strict=True))
            assert found == oracle.matches(self.model, query, within)

    @rule(query=codes, num=st.integers(1, 6))
    def nearest(self, query, num):
        rows, distances = self.index.nearest(query, num)
        found = list(zip(distances.tolist(), rows.tolist(), strict=True))
        assert found == oracle.nearest(self.model, query, num)

    @rule()
    def save_and_open(self):
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory, "set.lw")
            self.index.save(path)
            self.index = HammingIndex.open(path, verify=True, threads=1)

    @invariant()
    def size(self):
        if hasattr(self, "model"):
            assert len(self.index) == len(self.model)


Changes.TestCase.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)
TestChanges = Changes.TestCase
