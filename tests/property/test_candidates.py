"""Which pairs are compared: bands against the dictionary model, Hamming tables against brute force (P5)."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import _native
from tests.conftest import instruction_sets
from tests.oracle import candidates


def model_pairs(signatures, order, bands, rows, slot_bits):
    model = candidates.BandModel(bands, rows, slot_bits)
    pairs = {(later, earlier) for later, row in enumerate(order) for earlier in model.arrive(later, signatures[row])}
    return pairs, model.num_capped


def native_pairs(buckets, num_positions, step, states=None, min_equal=0, threads=1):
    found, considered = [], 0
    for low in range(0, num_positions, step):
        high = min(low + step, num_positions)
        pairs = buckets.candidates(low, high, states, min_equal=min_equal, threads=threads)
        found += list(zip(np.asarray(pairs.later).tolist(), np.asarray(pairs.earlier).tolist(), strict=True))
        considered += pairs.num_considered
    assert found == sorted(set(found))
    return set(found), considered


@given(
    seed=st.integers(0, 10**6),
    num_documents=st.integers(0, 400),
    num_values=st.sampled_from([1, 2, 3, 50]),
    plan=st.sampled_from([(4, 2), (8, 1), (2, 4), (1, 8), (1, 3), (2, 3)]),
    slot_bits=st.sampled_from([8, 16, 32]),
)
def test_bands_equal_the_model(seed, num_documents, num_values, plan, slot_bits):
    rng = np.random.default_rng(seed)
    num_slots, (bands, rows) = 8, plan
    slots = rng.integers(0, num_values, (num_documents, num_slots)).astype(f"<u{slot_bits // 8}")
    order = rng.permutation(num_documents).astype(np.uint32)
    expected, num_capped = model_pairs(slots.tolist(), order.tolist(), bands, rows, slot_bits)
    flat = slots.reshape(-1).view(np.uint8)
    for threads, step in ((1, 1000), (2, 37), (7, 1000)):
        buckets = _native.search_bands(flat, num_slots, slot_bits // 8, order, bands=bands, rows=rows, threads=threads)
        assert buckets.num_capped == num_capped
        found, considered = native_pairs(buckets, num_documents, step, threads=threads)
        assert found == expected
        assert considered == len(expected)


@pytest.mark.parametrize("bands", [1, 3])
def test_full_levels_are_capped(bands):
    num = 500
    flat = np.zeros(num * 12, np.uint8)
    order = np.arange(num, dtype=np.uint32)
    buckets = _native.search_bands(flat, 12, 1, order, bands=bands, rows=4, threads=2)
    found, _ = native_pairs(buckets, num, 64)
    assert buckets.num_capped == bands * (num - 3 * 64)
    assert max(Counter(later for later, _ in found).values()) == 3 * 64


@given(seed=st.integers(0, 10**6), min_equal=st.integers(0, 8))
def test_states_and_estimate_only_leave_pairs_out(seed, min_equal):
    rng = np.random.default_rng(seed)
    num, num_slots = 120, 8
    slots = rng.integers(0, 3, (num, num_slots)).astype("<u2")
    order = rng.permutation(num).astype(np.uint32)
    states = rng.choice([0, 1, 2], num).astype(np.uint8)
    buckets = _native.search_bands(slots.reshape(-1).view(np.uint8), num_slots, 2, order, bands=4, rows=2, threads=2)
    everything, _ = native_pairs(buckets, num, 50)
    expected = {
        (later, earlier)
        for later, earlier in everything
        if states[earlier] != 2 and int((slots[order[later]] == slots[order[earlier]]).sum()) >= min_equal
    }
    for _ in instruction_sets():
        found, considered = native_pairs(buckets, num, 50, states, min_equal, 2)
        assert found == expected
        assert considered == len(everything)


def hamming_expected(words, order, within):
    rows = words[order]
    found = {}
    for later in range(1, len(rows)):
        distances = np.bitwise_count(rows[later] ^ rows[:later]).sum(axis=1)
        for earlier in np.flatnonzero(distances <= within):
            found[later, int(earlier)] = int(distances[earlier])
    return found


def fingerprints(rng, num, bits, kind):
    """Return uniform fingerprints, few centers with small errors, or ones that share most of their bits."""
    num_words = -(-bits // 64)
    words = rng.integers(0, 2**64, (num, num_words), dtype=np.uint64)
    if kind == "clusters":
        words = words[rng.integers(0, max(1, num // 20), num)]
        for _ in range(6):
            at = rng.integers(0, bits, num)
            flip = rng.random(num) < 0.6
            words[np.arange(num), at // 64] ^= np.where(flip, np.uint64(1) << (at % 64).astype(np.uint64), np.uint64(0))
    elif kind == "skewed":
        words &= np.uint64(0x0000_0000_0000_FF00)
    if bits % 64:
        words[:, -1] &= np.uint64(2 ** (bits % 64) - 1)
    return np.ascontiguousarray(words)


def self_joined(words, bits, within, threads):
    """Return the distance of each pair (later, earlier) of a join of fingerprints with themselves."""
    side = (np.ascontiguousarray(words).reshape(-1), None)
    found = _native.join_fingerprints(side, None, bits, within=within, max_pairs=10**8, threads=threads)
    rows, distances = np.asarray(found[0]).reshape(-1, 2).tolist(), np.asarray(found[1]).tolist()
    assert rows == sorted(rows)
    pairs = {(later, earlier): distance for (earlier, later), distance in zip(rows, distances, strict=True)}
    assert len(pairs) == len(rows)
    return pairs


@pytest.mark.parametrize("kind", ["uniform", "clusters", "skewed"])
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(0, 300),
    bits=st.sampled_from([32, 64, 96, 128, 256]),
    within=st.integers(0, 12) | st.sampled_from([24, 32]),
)
def test_hamming_pairs_are_exact(kind, seed, num, bits, within):
    rng = np.random.default_rng(seed)
    words = fingerprints(rng, num, bits, kind)
    order = rng.permutation(num).astype(np.uint32)
    expected = hamming_expected(words, order, within)
    for threads in (1, 2):
        for _ in instruction_sets():
            assert self_joined(words[order], bits, within, threads) == expected


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "within"), [(64, 0), (64, 3), (64, 6), (64, 10), (128, 12), (256, 20), (32, 4)])
def test_hamming_pairs_are_exact_among_many(isa, bits, within):
    rng = np.random.default_rng(bits + within)
    words = np.concatenate([fingerprints(rng, 8000, bits, "clusters"), fingerprints(rng, 4000, bits, "uniform")])
    order = rng.permutation(len(words)).astype(np.uint32)
    expected = hamming_expected(words, order, within)
    assert self_joined(words[order], bits, within, 2) == expected


def test_distances_and_equal_slots():
    rng = np.random.default_rng(5)
    words = rng.integers(0, 2**64, (50, 2), dtype=np.uint64)
    a, b = rng.integers(0, 50, (2, 200)).astype(np.uint32)
    found = np.asarray(_native.distances(words.reshape(-1), 128, a, b))
    assert found.tolist() == np.bitwise_count(words[a] ^ words[b]).sum(axis=1).tolist()
    for width in (1, 2, 4):
        slots = rng.integers(0, 3, (50, 37)).astype(f"<u{width}")
        found = np.asarray(_native.num_equal(slots.reshape(-1).view(np.uint8), 37, width, a, b))
        assert found.tolist() == (slots[a] == slots[b]).sum(axis=1).tolist()
