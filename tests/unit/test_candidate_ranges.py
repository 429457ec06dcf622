"""Candidates come a range of positions at a time, and the ranges follow how dense the pairs stand."""

import numpy as np
import pytest

from likewise.dedup import candidates
from likewise.dedup.timing import Timing


class Dense:
    """Every position is near every earlier one."""

    def candidates(self, low, high, _):
        later = np.repeat(np.arange(low, high, dtype=np.uint32), np.arange(low, high))
        return candidates.Candidates(later, np.zeros(len(later), np.uint32), None, len(later))


def test_dense_pairs_are_listed_in_small_ranges(monkeypatch):
    monkeypatch.setattr(candidates, "_PAIRS_A_RANGE", 50_000)
    ranges = list(candidates.ranges_of_candidates(Dense(), 3000, lambda: None, Timing()))
    assert [low for low, _, _ in ranges] == [0, *(high for _, high, _ in ranges[:-1])]
    assert ranges[-1][1] == 3000
    # Pairs grow denser while ranges double at first; without the rule the last range would list 3,000,000.
    sizes = [len(found) for _, _, found in ranges]
    assert max(sizes) < 200_000
    assert max(sizes[4:]) < 60_000
    assert sum(len(found) for _, _, found in ranges) == 3000 * 2999 // 2


def test_sparse_pairs_are_listed_in_large_ranges():
    class Sparse(Dense):
        def candidates(self, low, high, _):
            return super().candidates(0, min(2, high - low), None)

    sizes = [high - low for low, high, _ in candidates.ranges_of_candidates(Sparse(), 20_000, lambda: None, Timing())]
    assert sizes == [256, 512, 1024, 2048, 4096, 4096, 4096, 3872]


@pytest.mark.parametrize("most", [1, 7, 300])
def test_ranges_of_any_size_give_the_same_answer(monkeypatch, most):
    import likewise
    from tests.quality.test_promises import planted
    from tests.recipes import RECIPES

    for name in ("minhash", "simhash-cosine"):
        whole = likewise.dedup(planted(), RECIPES[name])
        with monkeypatch.context() as patched:
            patched.setattr(candidates, "_PAIRS_A_RANGE", most)
            parts = likewise.dedup(planted(), RECIPES[name])
        assert parts.removed.equals(whole.removed)
        assert parts.summary["num_candidates"] == whole.summary["num_candidates"]
