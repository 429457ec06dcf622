"""Searching by distance slab by slab gives the candidates of a search that holds all tables at once."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.arrays import ArraySpace, frozen
from likewise.batch.budget.room import Room
from likewise.batch.search import distance as slab_search
from likewise.batch.search.distance import DistanceSearch, SlabSearch, open_distance_search, slab_length, table_bytes
from likewise.stages.groups import KEPT, REMOVED

RECIPE = likewise.Recipe.simhash(bits=64, within=5).resolve()


def near_fingerprints(num, seed):
    """Return fingerprints a few bits away from a few centers."""
    random = np.random.default_rng(seed)
    centers = random.integers(0, 2**64, 6, np.uint64)
    flips = np.bitwise_or.reduce(np.uint64(1) << random.integers(0, 64, (num, 3), np.uint64), axis=1)
    return centers[random.integers(0, 6, num)] ^ flips, random


def all_candidates(search, first, sizes, states, max_pairs):
    """Return all candidates from a position on, removing positions near a kept one, as a run does."""
    num = len(states)
    states, low, number, found = states.copy(), first, 0, []
    while low < num:
        high = min(num, low + sizes[number % len(sizes)])
        some = search.candidates(low, high, frozen(states), max_pairs)
        assert low < some.end <= high
        pairs = list(zip(some.later.tolist(), some.earlier.tolist(), some.distance.tolist(), strict=True))
        assert pairs == sorted(pairs)
        assert all(low <= later < some.end for later, _, _ in pairs)
        for position in range(low, some.end):
            matched = any(later == position and states[earlier] == KEPT for later, earlier, _ in pairs)
            states[position] = REMOVED if matched else KEPT
        # A position removed within this range may or may not be listed.
        found += [pair for pair in pairs if states[pair[1]] == KEPT]
        low, number = some.end, number + 1
    return found, states


@given(
    num=st.integers(1, 150),
    slab=st.integers(1, 60),
    sizes=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    max_pairs=st.sampled_from([1, 20, 10_000]),
    late=st.floats(0, 0.99),
    most=st.sampled_from([1, 30, 10_000]),
    seed=st.integers(0, 99),
)
@settings(max_examples=60)
def test_candidates_are_the_same(num, slab, sizes, max_pairs, late, most, seed):
    codes, random = near_fingerprints(num, seed)
    order = random.permutation(num).astype(np.uint32)
    documents = SimpleNamespace(sketches=frozen(codes), room=Room(ArraySpace()))
    collapsed = SimpleNamespace(order=order)
    states = np.full(num, 0, np.uint8)
    whole = DistanceSearch(documents, collapsed, RECIPE.sketch, 1)
    wanted, verdicts = all_candidates(whole, 0, [num], states, 2**40)
    first = int(late * num)
    # A continued run knows the earlier verdicts.
    states[:first] = verdicts[:first]
    with pytest.MonkeyPatch.context() as context:
        context.setattr(slab_search, "_MOST_PUT_ASIDE", most)
        context.setattr(slab_search, "_RANGE", 7)
        search = SlabSearch(documents, collapsed, RECIPE.sketch, 1, slab)
        found, ended = all_candidates(search, first, sizes, states, max_pairs)
    assert found == [pair for pair in wanted if pair[0] >= first]
    assert (ended == verdicts).all()


@pytest.mark.parametrize("most", [200, 1 << 26])
def test_all_pairs_without_verdicts(most, monkeypatch):
    monkeypatch.setattr(slab_search, "_MOST_PUT_ASIDE", most)
    monkeypatch.setattr(slab_search, "_RANGE", 10)
    codes, _ = near_fingerprints(300, 1)
    documents = SimpleNamespace(sketches=frozen(codes), room=Room(ArraySpace()))
    collapsed = SimpleNamespace(order=np.arange(300, dtype=np.uint32))
    whole = DistanceSearch(documents, collapsed, RECIPE.sketch, 1).candidates(0, 300, None, 2**40)
    search, found, low = SlabSearch(documents, collapsed, RECIPE.sketch, 2, 70), [], 0
    while low < 300:
        some = search.candidates(low, 300, None, 100)
        found += zip(some.later.tolist(), some.earlier.tolist(), some.distance.tolist(), strict=True)
        low = some.end
    assert found == list(zip(whole.later.tolist(), whole.earlier.tolist(), whole.distance.tolist(), strict=True))
    assert len(found) > 1000


def test_slabs_where_memory_does_not_hold_all(monkeypatch):
    codes, _ = near_fingerprints(300, 2)
    collapsed = SimpleNamespace(order=np.arange(300, dtype=np.uint32))
    monkeypatch.setattr(slab_search, "_LEAST_POSITIONS", 10)
    assert table_bytes(RECIPE.sketch) == 72
    for bound, kind in ((None, DistanceSearch), (300 * 72, DistanceSearch), (300 * 72 - 1, SlabSearch)):
        documents = SimpleNamespace(sketches=frozen(codes), room=Room(ArraySpace(), tables_bytes=bound))
        assert type(open_distance_search(documents, collapsed, RECIPE.sketch, 1)) is kind
    assert slab_length(RECIPE.sketch, 300 * 72 - 1) == pytest.approx(300 / 2 * 72 / (72 + 16), abs=1)
