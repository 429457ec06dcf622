"""Exact measures against fractions; the decision pass and components against the rule fed one by one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
import likewise.stages.verify
from likewise import _native
from likewise.stages import sets as sets_of_samples
from tests.conftest import instruction_sets
from tests.oracle import decide, measures
from tests.oracle.features import Rules, features
from tests.strategies import word_texts

MEASURES = ("jaccard", "containment", "cosine", "dice", "overlap")


@given(
    batch=st.lists(word_texts, min_size=1, max_size=8),
    weights=st.sampled_from(["none", "count", "log-count"]),
    shingle=st.integers(1, 3),
    threshold=st.sampled_from([0.0, 0.3, 0.5, 0.8, 1.0]),
)
def test_similarity_of_pairs(batch, weights, shingle, threshold):
    rules = Rules("word", shingle, weights)
    sets = _native.FeatureSets(len(batch), _native.FeatureRules(*rules[:4]))
    sets.add(np.arange(len(batch), dtype=np.uint32), _native.Texts.from_list(batch), threads=2)
    later, earlier = (x.reshape(-1).astype(np.uint32) for x in np.meshgrid(range(len(batch)), range(len(batch))))
    own = [features(text, rules).weights for text in batch]
    for measure in MEASURES:
        expected = [measures.similarity(own[a], own[b], measure) for a, b in zip(later, earlier, strict=True)]
        expected = [value if value >= threshold else math.nan for value in expected]
        for _ in instruction_sets():
            found, _ = sets.verify(later, earlier, measure=measure, threshold=threshold, threads=2)
            np.testing.assert_array_equal(np.asarray(found), expected)


@pytest.mark.parametrize(("num_shared", "num_each"), [(4, 5), (8, 10), (3, 3), (600, 700), (1, 2), (2, 3)])
def test_a_pair_exactly_at_the_threshold_matches(isa, num_shared, num_each):
    shared = [f"shared{i}" for i in range(num_shared)]
    a = " ".join([*shared, *(f"a{i}" for i in range(num_each - num_shared))])
    rules = _native.FeatureRules("word", 1, "none", 0)
    sets = _native.FeatureSets(2, rules)
    sets.add(np.array([0, 1], np.uint32), _native.Texts.from_list([a, " ".join(shared)]), threads=1)
    at = num_shared / num_each
    zero, one = np.array([0], np.uint32), np.array([1], np.uint32)
    for threshold, matches in ((at, True), (math.nextafter(at, 1), at == 1), (math.nextafter(at, 0), True)):
        found = np.asarray(sets.verify(zero, one, measure="jaccard", threshold=threshold, threads=1)[0])
        assert (found[0] == at) == matches, threshold


def expected_decision(num, edges):
    """Return the expected states and evidence for edges {(later, earlier): similarity}."""
    states, best = [], []
    for later in range(num):
        mine = [(-s, e) for (row, e), s in edges.items() if row == later and states[e] == 1 and not math.isnan(s)]
        states.append(2 if mine else 1)
        best.append(min(mine) if mine else None)
    return states, best


@given(
    num=st.integers(1, 30),
    edges=st.dictionaries(
        st.tuples(st.integers(0, 29), st.integers(0, 29)), st.sampled_from([0.5, 0.75, 1.0, math.nan]), max_size=80
    ),
    step=st.integers(1, 30),
)
def test_leaders(num, edges, step):
    edges = {(max(a, b), min(a, b)): s for (a, b), s in sorted(edges.items(), key=str) if a != b and max(a, b) < num}
    states, best = expected_decision(num, edges)
    decision = _native.Leaders(num)
    for low in range(0, num, step):
        high = min(num, low + step)
        part = sorted((pair, s) for pair, s in edges.items() if low <= pair[0] < high)
        decision.decide(
            low,
            high,
            np.array([p[0] for p, _ in part], np.uint32),
            np.array([p[1] for p, _ in part], np.uint32),
            np.array([s for _, s in part], np.float64),
            np.array([p[0] - p[1] for p, _ in part], np.uint32),
        )
    assert np.asarray(decision.states).tolist() == states
    for row, evidence in enumerate(best):
        if evidence:
            assert np.asarray(decision.best_earlier)[row] == evidence[1]
            assert np.asarray(decision.best_similarity)[row] == -evidence[0]
            assert np.asarray(decision.best_distance)[row] == row - evidence[1]


@given(num=st.integers(1, 40), pairs=st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=60))
def test_components(num, pairs):
    pairs = [(max(p), min(p)) for p in pairs if max(p) < num and p[0] != p[1]]
    later, earlier = (np.array([p[side] for p in pairs], np.uint32) for side in (0, 1))
    assert np.asarray(_native.components(num, later, earlier)).tolist() == decide.components(num, pairs)


def test_containment_is_that_of_the_first_in_the_second_everywhere():
    """The short text has two shingles, all in the long one, which has six: containment 1, and 1/3 in reverse."""
    short, long = "a b c d", "a b c d e f g h"
    recipe = likewise.Recipe.shingles(0.9, measure="containment")
    rows = np.array([[0, 1], [1, 0]])
    assert likewise.stages.verify.verify_pairs([short, long], rows, recipe, measure="containment").tolist() == [
        1.0,
        2 / 6,
    ]
    samples = sets_of_samples.sample([short, long], recipe)
    assert [samples.containment(*row).value for row in rows.tolist()] == [1.0, 2 / 6]
    measured = likewise.compare(short, long, recipe).measures
    assert (measured.containment_a_in_b, measured.containment_b_in_a) == (1.0, 2 / 6)
    for texts, first in (([short, long], 0), ([long, short], 1)):
        found = likewise.pairs(texts, recipe)
        assert [found[name].to_pylist() for name in ("row_a", "row_b", "similarity")] == [[first], [1 - first], [1.0]]
        removed = likewise.dedup(texts, recipe).removed.select(["row", "kept_row", "similarity"])
        assert [column.to_pylist() for column in removed.columns] == [[first], [1 - first], [1.0]]
        assert likewise.dedup(texts, recipe.replace(keep="shortest")).kept.all()
