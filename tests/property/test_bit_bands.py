"""Bands of sampled bits: plan, compared pairs and share of pairs found, against the oracle and the model."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise import _native
from likewise.errors import InvalidParameter
from likewise.hamming.pairs import hamming_pairs
from tests.conftest import instruction_sets
from tests.oracle import candidates
from tests.property.test_candidates import fingerprints, hamming_expected


def as_integers(words):
    return [sum(int(word) << (64 * i) for i, word in enumerate(row)) for row in words]


@pytest.mark.parametrize(("bits", "within"), [(64, 3), (64, 12), (96, 20), (128, 24), (128, 32), (256, 64), (32, 9)])
@pytest.mark.parametrize("recall", [0.5, 0.95, 0.99])
def test_the_plan_is_the_oracles(bits, within, recall):
    bands, rows, reached = _native.plan_bit_bands(bits, within, recall)
    assert (bands, rows) == candidates.plan_bit_bands(bits, within, recall)
    assert math.isclose(reached, candidates.bit_band_recall(bits, within, bands, rows), rel_tol=1e-9)
    recipe = likewise.Recipe.simhash(bits=bits, within=within, recall=recall)
    assert recipe.stated_recall == reached >= recall
    assert likewise.Recipe.from_json(recipe.resolve().to_json()).recipe_id == recipe.recipe_id
    assert recipe.recipe_id != likewise.Recipe.simhash(bits=bits, within=within).recipe_id


@settings(max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(0, 300),
    bits=st.sampled_from([32, 64, 128]),
    kind=st.sampled_from(["uniform", "clusters", "skewed"]),
    plan=st.sampled_from([(1, 1), (5, 3), (7, 12), (3, 24)]),
)
def test_buckets_are_those_of_the_model(seed, num, bits, kind, plan):
    rng = np.random.default_rng(seed)
    words = fingerprints(rng, num, bits, kind)
    order = rng.permutation(num).astype(np.uint32)
    within = bits // 4
    model = candidates.BitBandModel(bits, *plan, seed=seed)
    codes = as_integers(words)
    expected = []
    for later, row in enumerate(order.tolist()):
        for earlier in sorted(model.arrive(later, codes[row])):
            distance = candidates.distance(codes[row], codes[order[earlier]])
            if distance <= within:
                expected.append((later, earlier, distance))
    buckets = _native.BitBandBuckets(
        words.reshape(-1), bits, order, within=within, bands=plan[0], rows=plan[1], seed=seed
    )
    for isa in instruction_sets():
        for cuts in ([0, num], [0, num // 3, num // 2, num]):
            found, capped = [], 0
            for low, high in itertools.pairwise(cuts):
                later, earlier, distance, num_capped = buckets.pairs(low, high, max_pairs=10**9, threads=2, isa=isa)
                found += zip(*(np.asarray(x).tolist() for x in (later, earlier, distance)), strict=True)
                capped += num_capped
            assert found == expected
            assert capped == model.num_capped


@pytest.mark.parametrize(("bits", "within", "recall"), [(64, 12, 0.9), (128, 32, 0.6), (128, 20, 0.99)])
def test_pairs_at_the_radius_are_found_as_often_as_stated(bits, within, recall):
    rng = np.random.default_rng(bits + within)
    num = 3000
    words = rng.integers(0, 2**64, (num, bits // 64), dtype=np.uint64)
    copies = words.copy()
    for row in range(num):
        for bit in rng.choice(bits, within, replace=False).tolist():
            copies[row, bit // 64] ^= np.uint64(1) << np.uint64(bit % 64)
    both = np.concatenate([words, copies])
    exact = hamming_expected(both, np.arange(2 * num), within)
    pairs, distances = hamming_pairs(both if bits > 64 else both[:, 0], within=within, recall=recall, seed=9)
    found = {(b, a): d for (a, b), d in zip(pairs.tolist(), distances.tolist(), strict=True)}
    assert found.items() <= exact.items()
    planted = sum((row + num, row) in found for row in range(num))
    order = np.arange(2 * num, dtype=np.uint32)
    *_, (bands, rows, stated) = _native.bit_band_pairs(
        both.reshape(-1), bits, order, within=within, recall=recall, seed=9
    )
    assert stated >= recall
    assert stated == pytest.approx(float(candidates.bit_band_recall(bits, within, bands, rows)))
    # Binomial: five standard deviations.
    assert abs(planted - num * stated) < 5 * math.sqrt(num * stated * (1 - stated))


def test_what_cannot_be_planned_is_refused():
    codes = np.arange(9, dtype=np.uint64)
    with pytest.raises(InvalidParameter, match="cannot be reached"):
        hamming_pairs(codes, within=64, recall=0.9)
    with pytest.raises(InvalidParameter, match="recall"):
        hamming_pairs(codes, within=3, recall=1.0)
    with pytest.raises(InvalidParameter, match="need a recall"):
        likewise.Recipe.simhash(within=3, bands=5, rows=5)
    with pytest.raises(InvalidParameter, match="set both bands and rows"):
        likewise.Recipe.simhash(within=3, recall=0.9, bands=5)
    with pytest.raises(InvalidParameter, match="rows"):
        likewise.Recipe.simhash(within=3, recall=0.9, bands=5, rows=25)
    with pytest.raises(InvalidParameter, match="applies only to Hamming-only recipes"):
        likewise.Recipe.simhash(threshold=0.9, bands=5, rows=5)


def test_an_exact_call_is_exact_and_one_with_a_recall_says_so():
    texts = [f"the quick brown fox {i} jumps over the lazy dog {i % 7}" for i in range(60)]
    exact = likewise.Recipe.simhash(bits=128, within=40, shingle=1, short_threshold=0.0)
    assert exact.resolve().sketch.bands is None
    assert exact.stated_recall == 1.0
    rng = np.random.default_rng(1)
    words = rng.integers(0, 2**64, (400, 2), dtype=np.uint64) & np.uint64(0x0F0F)
    pairs, _ = hamming_pairs(words, within=6)
    assert {(b, a) for a, b in pairs.tolist()} == set(hamming_expected(words, np.arange(400), 6))
    result = likewise.dedup(texts, exact.replace(recall=0.9))
    assert "bands of" in result.summary["verification"]
    assert 0.9 <= result.summary["recall"] < 1.0
    assert result.summary["recipe"]["bands"] == _native.plan_bit_bands(128, 40, 0.9)[0]
