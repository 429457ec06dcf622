"""Candidates are listed by ranges of positions, whose length follows the density of pairs."""

from functools import partial

import numpy as np
import pytest

import likewise
from likewise.batch.budget.room import Room
from likewise.batch.decide import verification
from likewise.batch.read import ingest
from likewise.batch.search.search import Candidates
from likewise.job.reading import Timing
from tests.recipes import RECIPES


class Dense:
    """Every position is near every earlier one."""

    def candidates(self, low, high, _, max_pairs):
        # Stops after the position that reaches the bound, as the core does.
        totals = np.cumsum(np.arange(low, high))
        high = low + min(high - low, int(np.searchsorted(totals, max_pairs)) + 1)
        later = np.repeat(np.arange(low, high, dtype=np.uint32), np.arange(low, high))
        return Candidates(later, np.zeros(len(later), np.uint32), None, len(later), high)


@pytest.mark.parametrize("max_pairs", [1, 50_000])
def test_no_list_is_longer_than_the_bound_and_one_position(max_pairs):
    ranges = list(verification.ranges_of_candidates(Dense(), 3000, None, Timing(), max_pairs))
    assert [low for low, _, _ in ranges] == [0, *(high for _, high, _ in ranges[:-1])]
    assert ranges[-1][1] == 3000
    assert max(len(found.later) for _, _, found in ranges) <= max_pairs + 3000
    assert sum(len(found.later) for _, _, found in ranges) == 3000 * 2999 // 2
    if max_pairs > 1:
        # The guess follows the density, so that few searches are cut off.
        assert len(ranges) < 2 * (3000 * 2999 // 2) / max_pairs


def test_sparse_pairs_are_listed_in_large_ranges():
    class Sparse(Dense):
        def candidates(self, low, high, _, max_pairs):
            found = super().candidates(0, min(2, high - low), None, max_pairs)
            return Candidates(found.later, found.earlier, None, 1, high)

    ranges = verification.ranges_of_candidates(Sparse(), 60_000, None, Timing(), 1 << 22)
    sizes = [high - low for low, high, _ in ranges]
    assert sizes == [256, 512, 1024, 2048, 4096, 8192, 16384, 16384, 11104]


@pytest.mark.parametrize("most", [1, 7, 300])
def test_ranges_of_any_size_give_the_same_answer(monkeypatch, most):
    from tests.quality.test_promises import planted

    for name in ("minhash", "simhash-cosine", "shingles-weighted", "shingles-containment"):
        whole = likewise.dedup(planted(), RECIPES[name])
        pairs = likewise.pairs(planted(), RECIPES[name])
        with monkeypatch.context() as patched:
            patched.setattr(ingest, "Room", partial(Room, max_pairs=most))
            parts = likewise.dedup(planted(), RECIPES[name])
            assert likewise.pairs(planted(), RECIPES[name]).equals(pairs)
        assert parts.removed.equals(whole.removed)
        assert parts.summary["num_candidates"] == whole.summary["num_candidates"]


@pytest.fixture(scope="module")
def pages():
    """Return 2,000 pages, half from one template plus a few words, so that hundreds of pairs of each are measured."""
    template = " ".join(f"t{i}" for i in range(40))
    own = [" ".join(f"x{i}q{j}" for j in range(10 + i % 25)) for i in range(2000)]
    return [f"{template} {words}" if i % 2 else f"{words} {words[::-1]}" for i, words in enumerate(own)]


@pytest.mark.parametrize("group", ["leaders", "components"])
def test_feature_sets_that_find_no_room_change_no_answer(monkeypatch, pages, group):
    recipe = likewise.Recipe.minhash(0.6, shingle=1, group=group)
    pages = pages[:250]
    whole = likewise.dedup(pages, recipe)
    assert 20 < whole.summary["num_removed"] < 120
    pairs = likewise.pairs(pages, recipe)
    # Memory for some sets; for those of a block but not of a range; for all.
    for sets_bytes in (15_000, 120_000, 2_000_000):
        with monkeypatch.context() as patched:
            patched.setattr(ingest, "Room", partial(Room, sets_bytes=sets_bytes))
            assert likewise.dedup(pages, recipe).removed.equals(whole.removed)
            assert likewise.pairs(pages, recipe).equals(pairs)


def test_texts_of_a_range_are_read_together_and_once(monkeypatch, pages):
    batches = []
    read = verification.Verifier._add

    def counted(self, positions, reader, **options):
        batches.append(len(positions))
        read(self, positions, reader, **options)

    monkeypatch.setattr(verification.Verifier, "_add", counted)
    # Pairs are decided in many more steps.
    monkeypatch.setattr(verification, "_PAIRS_AT_ONCE", 1000)
    likewise.dedup(pages, likewise.Recipe.minhash(0.6, shingle=1, overflow="levels"), threads=2)
    assert 900 < sum(batches) <= 2000
    # Four ranges, each read by two threads.
    assert len(batches) <= 8
