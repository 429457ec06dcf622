"""The model behind a choice, against slow code from its definition."""

import math

import numpy as np
import pytest

from likewise.tuning import choice as model
from likewise.tuning.choice import fitted, probability
from likewise.tuning.grid import Sample

SETTINGS = [np.arange(2, 99) / 100, 1 - np.arange(52, -1, -1) / 128]
PRIORS = [(0, 3), (2.5, 1), (1, 1), (0, 1), (0, 1)]


def sampled(num_pairs=300, num_documents=40, seed=0):
    random = np.random.default_rng(seed)
    first = random.beta(1, 4, num_pairs).astype(np.float32)
    second = np.clip(first + random.normal(0, 0.1, num_pairs), 0, 1).astype(np.float32)
    return [first, second], Sample([first, second], SETTINGS, num_documents)


def rank_by_hand(similarity, among):
    """Return the middle rank, with steps of 2**-14 as ties."""
    step = int(np.float32(similarity) * np.float32(16384))
    steps = [int(one * np.float32(16384)) for one in among]
    return sum(one > step for one in steps) + (sum(one == step for one in steps) + 1) / 2


def test_features_are_those_of_the_definition():
    similarities, found = sampled()
    pairs = np.array([[0.3, 0.0, 1.0], [0.5, 0.2, 1.0]])
    features = found.features(pairs)
    for number, (a, b) in enumerate(pairs.T):
        above = [-math.log(rank_by_hand(s, some) / 40) for s, some in zip((a, b), similarities, strict=True)]
        mean = sum(above) / 2
        expected = [1, mean, 10 * ((a + b) / 2 - 0.5), above[0] - mean, above[1] - mean]
        assert features[number] == pytest.approx(expected, abs=1e-6)


def test_expected_f1_is_that_counted_pair_by_pair():
    similarities, found = sampled()
    # All pairs are in the pool, in a different order.
    features = found.features(np.stack(similarities))
    order = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in found.features_of_pool]
    likely = np.random.default_rng(1).uniform(0, 1, 300)
    curves = found.expected_f1(likely[order])
    for similarity, settings, curve in zip(similarities, SETTINGS, curves, strict=True):
        for setting, f1 in list(zip(settings.tolist(), curve.tolist(), strict=True))[::7]:
            taken = [i for i in range(300) if similarity[i] >= np.float32(setting)]
            hits = sum(likely[i] for i in taken)
            assert f1 == pytest.approx(2 * hits / (len(taken) + likely.sum()))


@pytest.mark.parametrize("num_duplicates", [0, 30, 200])
def test_labeled_duplicates_are_some_of_those_that_are_expected(num_duplicates):
    similarities, found = sampled()
    features = found.features(np.stack(similarities))
    order = [int(np.flatnonzero((features == row).all(axis=1))[0]) for row in found.features_of_pool]
    random = np.random.default_rng(7)
    likely = random.uniform(0, 0.8, 300)
    known = random.choice(300, 240, replace=False)
    said = np.arange(240) < num_duplicates
    label = dict(zip(known.tolist(), said.tolist(), strict=True))
    left = max(0.0, sum(likely) - num_duplicates)
    others = sum(likely[i] for i in range(300) if i not in label)
    wanted = [float(label[i]) if i in label else likely[i] * min(1.0, left / others) for i in range(300)]
    assert (left < others) == (num_duplicates > 100)
    curves = found.expected_f1(likely[order], known, said)
    for similarity, settings, curve in zip(similarities, SETTINGS, curves, strict=True):
        for setting, f1 in list(zip(settings.tolist(), curve.tolist(), strict=True))[::7]:
            taken = [i for i in range(300) if similarity[i] >= np.float32(setting)]
            hits = sum(wanted[i] for i in taken)
            assert f1 == pytest.approx(2 * hits / max(len(taken) + sum(wanted), 1e-300))


def gain_by_hand(at, offset, features, said, pool, share):
    """Return the logarithm of the maximized function."""
    gain = sum(-0.5 * ((x - mean) / error) ** 2 for x, (mean, error) in zip(at, PRIORS, strict=True))
    if share:
        gain -= 0.5 * ((offset - 1) / 2) ** 2
    total = sum(1 / (1 + math.exp(-sum(x * y for x, y in zip(at, row, strict=True)))) for row in pool)
    for row, is_duplicate in zip(features, said, strict=True):
        odds = sum(x * y for x, y in zip(at, row, strict=True))
        gain -= math.log(1 + math.exp(-(odds + offset) if is_duplicate else odds + offset))
        if is_duplicate:
            gain += share * (-math.log(1 + math.exp(-odds)) - math.log(total))
    return gain


@pytest.mark.parametrize(("share", "few_labels"), [(0.0, 100), (0.05, 100), (3.0, 100), (7.5, 10)])
def test_a_fit_is_where_the_definition_is_highest(share, few_labels, monkeypatch):
    is_drawn_by_likeness = not share
    monkeypatch.setattr(model, "_SHARE_OF_SAMPLE", share)
    monkeypatch.setattr(model, "_FEW_LABELS", few_labels)
    similarities, found = sampled()
    random = np.random.default_rng(2)
    drawn = random.choice(300, 25, replace=False)
    features = found.features(np.stack(similarities)[:, drawn])
    said = random.random(25) < similarities[0][drawn] * 2
    at = fitted(found, features, said, is_drawn_by_likeness=is_drawn_by_likeness)
    pool = found.features_of_pool.tolist()
    # There are 25 labels, of which at most `few_labels` count.
    share *= min(1.0, few_labels / 25)

    def gain(moved):
        offsets = [0.0] if is_drawn_by_likeness else np.linspace(-2, 6, 81)
        return max(gain_by_hand(moved, offset, features.tolist(), said.tolist(), pool, share) for offset in offsets)

    best = gain(at.tolist())
    for place in range(len(at)):
        for step in (-0.3, 0.3):
            moved = at.copy()
            moved[place] += step
            assert gain(moved.tolist()) < best


def test_a_draw_that_shows_more_duplicates_than_there_are_is_seen_through():
    # As many duplicates as others are labeled among the most similar pairs, although others are ten times as many.
    random = np.random.default_rng(3)
    similarity = random.beta(1, 5, 20_000).astype(np.float32)
    is_duplicate = random.random(20_000) < probability(30 * (similarity - 0.6))
    found = Sample([similarity], SETTINGS[:1], 600)
    alike = np.argsort(-similarity)[: 11 * int(is_duplicate.sum())]
    drawn = np.concatenate([random.choice(alike[is_duplicate[alike] == kind], 100) for kind in (True, False)])
    features = found.features(similarity[None, drawn])

    def told(is_drawn_by_likeness):
        at = fitted(found, features, is_duplicate[drawn], is_drawn_by_likeness=is_drawn_by_likeness)
        return float(probability(found.features_of_pool @ at).sum())

    truth = is_duplicate.sum()
    assert told(is_drawn_by_likeness=True) > 1.5 * truth
    assert truth / 1.5 < told(is_drawn_by_likeness=False) < 1.5 * truth


def test_a_large_pool_is_looked_at_in_part():
    random = np.random.default_rng(4)
    similarity = random.uniform(0, 1, 60_000).astype(np.float32)
    found = Sample([similarity], SETTINGS[:1], 1000)
    assert len(found.features_of_pool) == 40_000
    assert 3000 < len(found.few_features) <= 6000
    assert found.few_stand_for.sum() == pytest.approx(40_000, rel=1e-3)
    assert (np.diff(found.features_of_pool[:, 1]) <= 0).all()


def test_one_pair_is_enough_to_go_through():
    found = Sample([np.array([0.5], np.float32)], SETTINGS[:1], 2)
    at = fitted(found, found.features(np.array([[0.5]])), np.array([True]), is_drawn_by_likeness=False)
    assert np.isfinite(at).all()
    assert np.isfinite(found.expected_f1(probability(found.features_of_pool @ at))[0]).all()
