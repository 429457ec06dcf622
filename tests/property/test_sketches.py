"""Fingerprints and signatures against the oracle, for every instruction set and any weights."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import _native
from tests.conftest import instruction_sets
from tests.oracle import sketches
from tests.strategies import seeds, weighted_sets


def arrays(weighted):
    return np.array(list(weighted), np.uint64), np.array(list(weighted.values()), np.uint32)


@given(weighted=weighted_sets, bits=st.sampled_from([32, 64, 96, 128, 192, 256]))
def test_simhash(weighted, bits):
    features, weights = arrays(weighted)
    expected = sketches.simhash_words(weighted, bits)
    plain = sketches.simhash_words(dict.fromkeys(weighted, 1), bits)
    for _ in instruction_sets():
        assert np.asarray(_native.simhash_features(features, weights, bits=bits)).tolist() == expected
        assert np.asarray(_native.simhash_features(features, None, bits=bits)).tolist() == plain


def test_simhash_of_exact_ties_is_zero(isa):
    features = np.array([2**64 - 1, 0], np.uint64)
    assert np.asarray(_native.simhash_features(features, None, bits=64)).tolist() == [0]


@pytest.mark.parametrize("num_features", [1, 127, 128, 254, 255, 256, 257, 509, 511, 1021, 65_537])
def test_simhash_where_counters_widen(isa, num_features):
    # All ones in most features: every byte counter reaches its limit.
    features = np.full(num_features, 2**64 - 1, np.uint64)
    features[: num_features // 3] = np.arange(num_features // 3, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    ones = sum(
        (features >> np.uint64(i) & np.uint64(1)).astype(np.int64).sum() * 2 > num_features and 1 << i
        for i in range(64)
    )
    found = np.asarray(_native.simhash_features(features, None, bits=64))
    assert found.tolist() == [ones]


def test_simhash_of_great_weights(isa):
    features = np.array([1, 2, 3], np.uint64)
    weights = np.array([2**32 - 1, 2**32 - 1, 2**32 - 1], np.uint32)
    expected = sketches.simhash_words(dict.fromkeys([1, 2, 3], 2**32 - 1), 128)
    assert np.asarray(_native.simhash_features(features, weights, bits=128)).tolist() == expected


@given(
    sets=st.lists(weighted_sets.map(lambda s: {f: min(v, 15) for f, v in s.items()}), max_size=4),
    num_slots=st.sampled_from([1, 2, 3, 16, 33, 64]),
    slot_bits=st.sampled_from([8, 16, 32]),
    scheme=st.sampled_from(["bucket", "classical"]),
    seed=seeds,
)
def test_minhash(sets, num_slots, slot_bits, scheme, seed):
    offsets = np.cumsum([0, *map(len, sets)]).astype(np.int64)
    features = np.array([f for s in sets for f in s], np.uint64)
    weights = np.array([v for s in sets for v in s.values()], np.uint32)
    expected = b"".join(
        sketches.slot_bytes(sketches.minhash(s, num_slots, slot_bits, scheme, seed), slot_bits) for s in sets
    )
    for _ in instruction_sets():
        for threads in (1, 2):
            found = _native.minhash_features(
                offsets, features, weights, num_slots=num_slots, slot_bits=slot_bits, scheme=scheme, seed=seed,
                threads=threads,
            )  # fmt: skip
            assert np.asarray(found).tobytes() == expected


@pytest.mark.parametrize("num_features", [1, 2, 5, 40, 64, 65, 127, 128, 129, 300, 1000])
@pytest.mark.parametrize("num_slots", [1, 8, 100, 128, 256])
def test_bucket_filling_in_every_regime(isa, num_features, num_slots):
    """Few features need many rounds, and the last ones are assigned to single slots."""
    weighted = {(i * 0x9E3779B97F4A7C15 + 5) % 2**64: 1 for i in range(num_features)}
    features, _ = arrays(weighted)
    found = _native.minhash_features(
        np.array([0, num_features], np.int64), features, None, num_slots=num_slots, slot_bits=32, scheme="bucket",
        seed=3,
    )  # fmt: skip
    expected = sketches.minhash(weighted, num_slots, 32, "bucket", 3)
    assert np.asarray(found).view("<u4").tolist() == expected


@given(weighted_sets)
def test_the_order_of_features_does_not_count(weighted):
    features, weights = arrays(weighted)
    turned = np.ascontiguousarray(features[::-1]), np.ascontiguousarray(weights[::-1])
    for bits in (64, 128):
        a = np.asarray(_native.simhash_features(features, weights, bits=bits)).tolist()
        assert a == np.asarray(_native.simhash_features(*turned, bits=bits)).tolist()
