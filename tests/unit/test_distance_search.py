"""Searching by distance, block by block, gives the candidates of brute force, however blocks are cut."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.arrays import ArraySpace, frozen
from likewise.batch.budget.room import Room
from likewise.batch.search import distance as distance_search
from likewise.batch.search.distance import DistanceSearch, block_length, join_bytes
from likewise.stages.groups import KEPT, REMOVED

RECIPE = likewise.Recipe.simhash(bits=64, within=5).resolve()
MEASURED = likewise.Recipe.simhash(threshold=0.8, bits=64, within=5).resolve()


def near_fingerprints(num, seed):
    """Return fingerprints a few bits away from a few centers."""
    random = np.random.default_rng(seed)
    centers = random.integers(0, 2**64, 6, np.uint64)
    flips = np.bitwise_or.reduce(np.uint64(1) << random.integers(0, 64, (num, 3), np.uint64), axis=1)
    return centers[random.integers(0, 6, num)] ^ flips, random


def search_of(codes, order, recipe, num_features=None, bound=None, threads=1):
    """Return a search of fingerprints in an order of priority, and its position limit."""
    features = np.full(len(codes), 64, np.uint32) if num_features is None else num_features
    room = Room(ArraySpace(), tables_bytes=bound)
    documents = SimpleNamespace(sketches=frozen(codes), room=room, num_features=features, stays=None)
    return DistanceSearch(SimpleNamespace(documents=documents, order=order), recipe, threads)


def brute_force(codes, order, within):
    """Return (later, earlier, distance) of all pairs of positions within a radius, sorted."""
    placed = codes[order]
    distance = np.bitwise_count(placed[:, None] ^ placed)
    later, earlier = np.nonzero(distance <= within)
    pairs = zip(later.tolist(), earlier.tolist(), distance[later, earlier].tolist(), strict=True)
    return [pair for pair in pairs if pair[1] < pair[0]]


def verdicts_of(pairs, num, matches):
    """Return the state of each position by the rule of leaders."""
    states = np.full(num, KEPT, np.uint8)
    for later, earlier, distance in pairs:
        if states[earlier] == KEPT and matches(later, earlier, distance):
            states[later] = REMOVED
    return states


def all_candidates(search, first, sizes, verdicts, max_pairs):
    """Return all candidates from a position on with kept earlier ones, requested as by a run."""
    num = len(verdicts)
    states, low, number, found = np.zeros(num, np.uint8), first, 0, []
    # A continued run knows the earlier verdicts.
    states[:first] = verdicts[:first]
    while low < num:
        high = min(num, low + sizes[number % len(sizes)])
        some = search.candidates(low, high, frozen(states), max_pairs)
        assert low < some.end <= high
        pairs = list(zip(some.later.tolist(), some.earlier.tolist(), some.distance.tolist(), strict=True))
        assert pairs == sorted(set(pairs))
        assert all(low <= later < some.end for later, _, _ in pairs)
        states[low : some.end] = verdicts[low : some.end]
        # A position removed within this range may or may not be listed.
        found += [pair for pair in pairs if verdicts[pair[1]] == KEPT]
        low, number = some.end, number + 1
    return found


@given(
    num=st.integers(1, 150),
    least=st.integers(1, 60),
    bound=st.sampled_from([None, 1]),
    sizes=st.lists(st.integers(1, 70), min_size=1, max_size=4),
    max_pairs=st.sampled_from([1, 20, 10_000]),
    late=st.floats(0, 0.99),
    share=st.sampled_from([0.0, 0.25, 1.0]),
    short=st.sampled_from([0.0, 0.3]),
    is_measured=st.booleans(),
    seed=st.integers(0, 99),
)
@settings(max_examples=120, deadline=None)
def test_candidates_are_those_of_brute_force(
    num, least, bound, sizes, max_pairs, late, share, short, is_measured, seed
):
    codes, random = near_fingerprints(num, seed)
    order = random.permutation(num).astype(np.uint32)
    num_features = np.where(random.random(num) < short, 10, 64).astype(np.uint32)
    chance = random.random((num, num)) < 0.5

    def matches(later, earlier, _):
        # Texts decide on pairs of measured recipes, and on those of short documents.
        is_short = min(num_features[order[later]], num_features[order[earlier]]) < 64
        return chance[later, earlier] if is_measured or is_short else True

    pairs = brute_force(codes, order, 5)
    verdicts = verdicts_of(pairs, num, matches)
    first = int(late * num)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(distance_search, "_LEAST_POSITIONS", least)
        context.setattr(distance_search, "_AT_ONCE", 7)
        context.setattr(distance_search, "_REMOVED_SHARE", share)
        search = search_of(codes, order, MEASURED if is_measured else RECIPE, num_features, bound)
        found = all_candidates(search, first, sizes, verdicts, max_pairs)
    assert found == [pair for pair in pairs if pair[0] >= first and verdicts[pair[1]] == KEPT]


@pytest.mark.parametrize(("max_pairs", "bound"), [(100, None), (5000, 1), (2**40, None)])
def test_all_pairs_without_verdicts(max_pairs, bound, monkeypatch):
    monkeypatch.setattr(distance_search, "_LEAST_POSITIONS", 70)
    codes, random = near_fingerprints(300, 1)
    order = random.permutation(300).astype(np.uint32)
    search, found, low = search_of(codes, order, RECIPE, bound=bound, threads=2), [], 0
    while low < 300:
        some = search.candidates(low, 300, None, max_pairs)
        found += zip(some.later.tolist(), some.earlier.tolist(), some.distance.tolist(), strict=True)
        low = some.end
    assert found == brute_force(codes, order, 5)
    assert len(found) > 1000


def test_blocks_of_one_template_are_cut_off():
    """All 3,000 fingerprints are within the radius: 4.5 million pairs, of which one call lists a part."""
    bits = np.uint64(1) << np.arange(3000, dtype=np.uint64) % np.uint64(40)
    search = search_of(bits, np.arange(3000, dtype=np.uint32), likewise.Recipe.simhash(bits=64, within=2).resolve())
    low, num_pairs = 0, 0
    while low < 3000:
        some = search.candidates(low, 3000, None, 100_000)
        assert len(some.later) <= 103_000
        assert some.end > low
        num_pairs += len(some.later)
        low = some.end
    assert num_pairs == 3000 * 2999 // 2


def test_blocks_fit_in_memory():
    assert join_bytes(RECIPE.sketch) == 44
    assert join_bytes(likewise.Recipe.simhash(bits=128, within=3).sketch) == 72
    assert block_length(RECIPE.sketch, 10**7) == 10**7 // 88
    codes, _ = near_fingerprints(300, 2)
    search = search_of(codes, np.arange(300, dtype=np.uint32), RECIPE)
    assert 0 < search.predicted_seconds < 1
