"""Statistical guarantees of sketches: no bias, the angle, P(found); fixed seeds, bounds of many deviations."""

import math

import numpy as np
import pytest

from likewise import _native

STRUCTURED = 0x9E3779B97F4A7C15


def features_of(ids, kind):
    """Return well-mixed features, or consecutive integers times an odd constant."""
    ids = np.asarray(ids, np.uint64)
    if kind == "structured":
        return ids * np.uint64(STRUCTURED)
    ids = ids ^ (ids >> np.uint64(31))
    for multiplier in (0xBF58476D1CE4E5B9, 0x94D049BB133111EB):
        ids = ids * np.uint64(multiplier)
        ids ^= ids >> np.uint64(29)
    return ids


def signature_pairs(num_pairs, num_union, num_shared, kind, *, num_slots, slot_bits, scheme="bucket", seed=0):
    """Return slots of pairs of sets with the given union and intersection; each pair has its own ids."""
    num_own = (num_union - num_shared) // 2
    size = num_shared + num_own
    start = np.arange(num_pairs, dtype=np.uint64)[:, None] * np.uint64(num_union)
    shared = np.arange(num_shared, dtype=np.uint64)
    own = np.arange(num_shared, num_shared + num_own, dtype=np.uint64)
    a = start + np.concatenate([shared, own])
    b = start + np.concatenate([shared, own + np.uint64(num_own)])
    offsets = np.arange(num_pairs + 1, dtype=np.int64) * size
    made = [
        np.asarray(
            _native.minhash_features(
                offsets,
                features_of(ids.reshape(-1), kind),
                None,
                num_slots=num_slots,
                slot_bits=slot_bits,
                scheme=scheme,
                seed=seed,
                threads=2,
            )
        )
        for ids in (a, b)
    ]
    return [slots.view(f"<u{slot_bits // 8}").reshape(num_pairs, num_slots) for slots in made]


def equal_share(num_pairs, *arguments, **options):
    a, b = signature_pairs(num_pairs, *arguments, **options)
    return (a == b).mean(axis=1)


@pytest.mark.parametrize("kind", ["mixed", "structured"])
@pytest.mark.parametrize("scheme", ["bucket", "classical"])
@pytest.mark.parametrize(("num_union", "num_shared"), [(5, 3), (40, 32), (150, 76), (600, 480)])
def test_minhash_has_no_bias(kind, scheme, num_union, num_shared):
    num_pairs = 4000
    share = equal_share(num_pairs, num_union, num_shared, kind, num_slots=64, slot_bits=32, scheme=scheme)
    jaccard = num_shared / (num_shared + 2 * ((num_union - num_shared) // 2))
    # The variance of a slot is at most that of a coin.
    bound = 5 * math.sqrt(jaccard * (1 - jaccard) / 64 / num_pairs) + 1e-9
    assert abs(share.mean() - jaccard) < bound


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["mixed", "structured"])
def test_minhash_has_no_bias_over_a_million_pairs(kind):
    total, expected, num_pairs = 0.0, 0.0, 0
    for num_union, num_shared in ((10, 8), (20, 16), (40, 20), (60, 48), (100, 80)):
        for seed in range(4):
            share = equal_share(50_000, num_union, num_shared, kind, num_slots=128, slot_bits=16, seed=seed)
            mean = num_shared / num_union
            assert abs(share.mean() - mean) <= 0.002, (num_union, seed)
            total, expected, num_pairs = total + share.sum(), expected + mean * 50_000, num_pairs + 50_000
    assert num_pairs == 1_000_000
    # 16 bits agree by chance once in 65,536.
    assert abs(total - expected) / num_pairs <= 0.002


@pytest.mark.parametrize(("num_union", "most"), [(40, 0.55), (150, 0.62), (600, 0.82)])
def test_variance_of_bucket_filling(num_union, most):
    """Below J(1-J)/m by the factors of the design: filling without replacement has less variance for small sets."""
    num_pairs, ratios = 4000, []
    for jaccard in (0.5, 0.8, 0.95):
        num_shared = round(num_union * jaccard / 2) * 2
        exact = num_shared / num_union
        share = equal_share(num_pairs, num_union, num_shared, "mixed", num_slots=128, slot_bits=32)
        ratios.append(((share - exact) ** 2).mean() * 128 / (exact * (1 - exact)))
    assert np.mean(ratios) <= most * 1.06, ratios


@pytest.mark.parametrize("bits", [64, 128, 256])
def test_simhash_distance_follows_the_angle(bits):
    num_pairs, size = 3000, 300
    for num_shared in (150, 240, 285):
        num_own = size - num_shared
        distances = []
        for pair in range(num_pairs // 10):
            ids = features_of(np.arange(num_shared + 2 * num_own) + pair * 10_000, "mixed")
            a, b = ids[:size], np.concatenate([ids[:num_shared], ids[size:]])
            words = [np.asarray(_native.simhash_features(np.ascontiguousarray(x), None, bits=bits)) for x in (a, b)]
            distances.append(int(np.bitwise_count(words[0] ^ words[1]).sum()))
        p = math.acos(num_shared / size) / math.pi
        bound = 5 * math.sqrt(p * (1 - p) / bits / len(distances))
        # Sums of a few hundred signs are nearly, but not exactly, normal, and an exact tie counts as 0.
        assert abs(np.mean(distances) / bits - p) < bound + 0.01


@pytest.mark.parametrize("num_union", [5, 10, 40, 150, 600])
@pytest.mark.parametrize("plan", [(18, 7), (21, 6), (32, 4)], ids=str)
def test_found_as_often_as_the_model_says(num_union, plan):
    """P(found) from bands and rows, within binomial bounds; bucket filling may only do better, for small sets."""
    bands, rows = plan
    num_pairs = 3000
    num_shared = max(1, round(num_union * 0.8))
    num_shared -= (num_union - num_shared) % 2
    jaccard = num_shared / num_union
    a, b = signature_pairs(num_pairs, num_union, num_shared, "mixed", num_slots=128, slot_bits=16)
    same = (a == b)[:, : bands * rows].reshape(num_pairs, bands, rows)
    found = same.all(axis=2).any(axis=1).mean()
    model = _native.s_curve(jaccard, bands, rows)
    assert abs(model - (1 - (1 - jaccard**rows) ** bands)) < 1e-12
    deviation = math.sqrt(model * (1 - model) / num_pairs)
    # Slots of one document are drawn without replacement, which shifts P(found) slightly; the bounds are measured.
    assert found > model - 4 * deviation - 0.02, (found, model)
    assert found < model + 4 * deviation + 0.05, (found, model)


@pytest.mark.parametrize("slot_bits", [8, 16])
def test_cut_slots_agree_by_chance_as_often_as_they_must(slot_bits):
    share = equal_share(4000, 200, 0, "mixed", num_slots=128, slot_bits=slot_bits)
    chance = 2.0**-slot_bits
    assert abs(share.mean() - chance) < 5 * math.sqrt(chance / (4000 * 128)) + 1e-6
