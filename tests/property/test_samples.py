"""Samples of sets against the oracle; their estimates and intervals against the truth."""

import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.stages import sets
from tests.oracle import sets as oracle
from tests.oracle.features import Rules, features
from tests.strategies import word_texts

RECIPE = likewise.Recipe.shingles(shingle=1)


@given(texts=st.lists(word_texts, min_size=1, max_size=6), seed=st.sampled_from([0, 3]), size=st.integers(1, 30))
@settings(max_examples=30)
def test_samples(texts, seed, size):
    recipe = likewise.Recipe.shingles(shingle=1, weights="count", seed=seed)
    own = [features(text, Rules("auto", 1, "count", seed)).weights for text in texts]
    for kind, expected in (("min-s", oracle.min_s), ("mod-m", oracle.mod_m)):
        found = sets.sample(texts, recipe, kind=kind, size=size, threads=2)
        assert [found[i].tolist() for i in range(len(found))] == [expected(w, size, seed) for w in own]
        assert found.totals.tolist() == [sum(w.values()) for w in own]
        assert found.is_whole.tolist() == [len(found[i]) == found.totals[i] for i in range(len(found))]


def pair_of_texts(num_shared, num_a, num_b, name=""):
    shared = [f"{name}shared{i}" for i in range(num_shared)]
    a = [f"{name}a{i}" for i in range(num_a - num_shared)]
    b = [f"{name}b{i}" for i in range(num_b - num_shared)]
    return [" ".join([*shared, *a]), " ".join([*b, *shared])]


@pytest.mark.parametrize(("kind", "size"), [("min-s", 500), ("mod-m", 1)])
def test_samples_of_small_sets_are_exact(kind, size):
    found = sets.sample(pair_of_texts(60, 100, 240), likewise.Recipe.shingles(shingle=1), kind=kind, size=size)
    for estimate, truth in (
        (found.resemblance(0, 1), 60 / 280),
        (found.containment(0, 1), 0.6),
        (found.containment(1, 0), 0.25),
    ):
        assert estimate == (truth, 0.0, truth, truth, True)


@pytest.mark.parametrize("kind", sets.KINDS)
def test_empty_texts_are_alike_and_like_nothing_else(kind):
    found = sets.sample(["", " ", "a b c d"], kind=kind)
    for estimate in (found.resemblance, found.containment):
        assert estimate(0, 1)[0] == 1.0
        assert estimate(0, 2)[0] == estimate(2, 0)[0] == 0.0


def test_estimates_follow_the_formulas():
    texts = pair_of_texts(300, 600, 900)
    a, b = (features(text, Rules("auto", 1, "none")).weights for text in texts)
    found = sets.sample(texts, RECIPE, kind="min-s", size=128)
    share = oracle.min_s_resemblance(oracle.min_s(a, 128), oracle.min_s(b, 128), 128)
    estimate = found.resemblance(0, 1)
    assert (estimate.value, estimate.is_exact) == (float(share), False)
    population = 1500 / (1 + share)
    assert estimate.standard_error == pytest.approx(oracle.drawn_error(int(share * 128), 128, population))
    assert estimate[2:4] == pytest.approx(oracle.drawn_interval(int(share * 128), 128, population), abs=1e-9)
    found = sets.sample(texts, RECIPE, kind="mod-m", size=10)
    drawn, theirs = oracle.mod_m(a, 10), oracle.mod_m(b, 10)
    shared = len(set(drawn) & set(theirs))
    estimate = found.containment(0, 1)
    assert estimate.value == shared / len(drawn)
    assert estimate.standard_error == pytest.approx(oracle.drawn_error(shared, len(drawn), 600))
    assert estimate[2:4] == pytest.approx(oracle.drawn_interval(shared, len(drawn), 600), abs=1e-9)
    found = sets.sample(texts, RECIPE, kind="min-wise", size=50)
    shared = int((found[0] == found[1]).sum())
    estimate = found.resemblance(0, 1)
    assert estimate.value == shared / 50
    assert estimate.standard_error == pytest.approx(oracle.drawn_error(shared, 50, math.inf))
    assert estimate[2:4] == pytest.approx(oracle.drawn_interval(shared, 50, math.inf), abs=1e-9)


# Kind, size, shared features and those of each text: truths .01 and .99, 0 and 1, and samples with hardly any hash.
CASES = [
    ("min-s", 64, 5, 300, 300),
    ("min-s", 64, 297, 300, 300),
    ("min-s", 64, 200, 300, 500),
    ("min-s", 64, 0, 300, 300),
    ("min-s", 64, 300, 300, 300),
    ("min-s", 64, 60, 70, 70),
    ("min-s", 64, 100, 100, 2000),
    ("min-s", 64, 30, 60, 1000),
    ("mod-m", 16, 297, 300, 300),
    ("mod-m", 8, 200, 300, 500),
    ("mod-m", 16, 3, 300, 300),
    ("mod-m", 16, 6, 12, 12),
    ("mod-m", 8, 6, 12, 12),
    ("mod-m", 16, 6, 12, 1000),
    ("mod-m", 16, 100, 100, 2000),
    ("mod-m", 16, 0, 40, 40),
    ("min-wise", 64, 5, 300, 300),
    ("min-wise", 64, 295, 300, 300),
    ("min-wise", 64, 200, 300, 500),
    ("min-wise", 64, 0, 60, 60),
]
NUM_PAIRS = 600


@pytest.mark.parametrize(("kind", "size", "shared", "a", "b"), CASES)
def test_estimates_have_no_bias_and_their_intervals_cover(kind, size, shared, a, b):
    """Over independent pairs of sets with an estimate: the mean, and how often the interval contains the truth."""
    texts = [text for i in range(NUM_PAIRS) for text in pair_of_texts(shared, a, b, f"{i}x")]
    found = sets.sample(texts, RECIPE, kind=kind, size=size)
    for name, truth in (("resemblance", shared / (a + b - shared)), ("containment", shared / a)):
        made = [getattr(found, name)(2 * i, 2 * i + 1) for i in range(NUM_PAIRS)]
        told = [estimate for estimate in made if not math.isnan(estimate.value)]
        assert name == "containment" or len(told) == NUM_PAIRS
        for estimate in made:
            assert estimate in told or estimate[2:] == (0.0, 1.0, False)
            assert estimate not in told or estimate.low <= estimate.value <= estimate.high
            # An error of 0 is stated only if the value is the truth.
            assert estimate.standard_error != 0 or estimate.value == pytest.approx(truth)
        values = [estimate.value for estimate in told]
        spread = statistics.stdev(values)
        # Containment is a curved function of resemblance, capped at 1.
        slack = 0.01 if (kind, name) == ("min-wise", "containment") else 1e-9
        assert abs(statistics.fmean(values) - truth) <= 4 * spread / math.sqrt(len(told)) + slack
        covered = sum(estimate.low - 1e-12 <= truth <= estimate.high + 1e-12 for estimate in told)
        # 95%, minus three standard deviations for chance.
        assert covered >= 0.95 * len(told) - 3 * math.sqrt(0.95 * 0.05 * len(told))
        if 0.3 < truth < 0.7 and len(told) == NUM_PAIRS and shared > 100:
            stated = math.sqrt(statistics.fmean(estimate.standard_error**2 for estimate in told))
            assert 0.85 < stated / spread < 1.15


def test_samples_of_which_nothing_was_drawn_tell_nothing():
    texts = [text for i in range(200) for text in pair_of_texts(6, 12, 1000, f"{i}x")]
    found = sets.sample(texts, RECIPE, kind="mod-m", size=16)
    made = [found.containment(2 * i, 2 * i + 1) for i in range(200)]
    # A whole set in place of an empty sample is not a sample: of the other set, only hashes below 2^64 / 16 are known.
    for i, estimate in enumerate(made):
        assert math.isnan(estimate.value) == bool(found.is_whole[2 * i])
    # (15/16)^12
    assert 0.35 < sum(math.isnan(estimate.value) for estimate in made) / 200 < 0.57


def test_equal_samples_of_large_sets_are_not_known_to_be_equal_sets():
    thousand = " ".join(f"w{i}" for i in range(1000))
    estimate = sets.sample([thousand] * 2, RECIPE, size=64).resemblance(0, 1)
    assert (estimate.value, estimate.high, estimate.is_exact) == (1.0, 1.0, False)
    assert estimate.standard_error > 0.01
    assert 0.9 < estimate.low < 0.96


def test_samples_made_in_different_ways_are_not_compared():
    a, b = sets.sample(["a b c"]), sets.sample(["a b c"], likewise.Recipe.shingles(shingle=2))
    with pytest.raises(likewise.RecipeMismatch, match="shingle"):
        a.resemblance(0, 0, b)
    with pytest.raises(likewise.RecipeMismatch, match="hash"):
        a.resemblance(0, 0, sets.sample(["a b c"], likewise.Recipe.shingles(hash="md5")))
    with pytest.raises(likewise.RecipeMismatch, match="size"):
        a.containment(0, 0, sets.sample(["a b c"], size=3))
    assert a.resemblance(0, 0, sets.sample(["A b c"])).value == 1.0
    with pytest.raises(likewise.InvalidParameter, match="kind"):
        sets.sample(["a"], kind="other")
    with pytest.raises(likewise.InvalidParameter, match="size"):
        sets.sample(["a"], size=0)
    for wrong in (likewise.Recipe.exact(), "shingles"):
        with pytest.raises(likewise.InvalidParameter, match="recipe"):
            sets.sample(["a"], wrong)


def test_rows_of_samples_are_whole_numbers_that_exist():
    found = sets.sample(["a b c", "a b d"])
    assert found.resemblance(-1, np.int64(1)).value == 1.0
    assert found[-1].tolist() == found[1].tolist()
    for name, rows in (
        ("a", (2, 0)),
        ("b", (0, -3)),
        ("a", (True, 0)),
        ("b", (0, None)),
        ("a", (0.0, 1)),
        ("a", ("0", 1)),
    ):
        for estimate in (found.resemblance, found.containment):
            with pytest.raises(likewise.InvalidParameter, match=f"^{name}: "):
                estimate(*rows)
    with pytest.raises(likewise.InvalidParameter, match="row"):
        found[2]
    with pytest.raises(likewise.InvalidParameter, match="other"):
        found.resemblance(0, 1, "samples")
