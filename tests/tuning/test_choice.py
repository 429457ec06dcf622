"""Choosing from labels: counts by hand, interval coverage, plausible thresholds."""

import math

import numpy as np
import pytest

from likewise.tuning import choice, measured
from likewise.tuning.choice import Evidence, choices, cross_validated
from likewise.tuning.grid import Sample

SETTINGS = np.arange(2, 99) / 100


def evidence(similarity, is_duplicate, weight=None, others=()):
    """Return evidence from labeled pairs, and from a sample that contains these and others."""
    similarity = np.atleast_2d(np.asarray(similarity, float))
    weight = np.ones(similarity.shape[1]) if weight is None else np.asarray(weight, float)
    sampled = [np.concatenate([some, others]).astype(np.float32) for some in similarity]
    sample = Sample(sampled, [SETTINGS] * len(similarity), similarity.shape[1] // 2)
    return Evidence(similarity, np.asarray(is_duplicate, bool), weight, sample)


def by_hand(verdicts, is_duplicate, weight):
    hits = sum(w for v, d, w in zip(verdicts, is_duplicate, weight, strict=True) if v and d)
    wrong = sum(w for v, d, w in zip(verdicts, is_duplicate, weight, strict=True) if v and not d)
    missed = sum(w for v, d, w in zip(verdicts, is_duplicate, weight, strict=True) if d and not v)
    return hits / (hits + wrong), hits / (hits + missed), 2 * hits / (2 * hits + wrong + missed)


@pytest.mark.parametrize("weight", [[1] * 8, [3, 1, 1, 5, 2, 2, 9, 1]])
def test_precision_recall_and_f1_are_those_counted_by_hand(weight):
    verdicts = np.array([1, 1, 1, 1, 0, 0, 0, 1], bool)
    is_duplicate = np.array([1, 1, 1, 0, 1, 0, 0, 0], bool)
    found = measured(verdicts, is_duplicate, np.array(weight, float))
    shown = found.precision.value, found.recall.value, found.f1.value
    assert shown == pytest.approx(by_hand(verdicts, is_duplicate, weight))
    for one in (found.precision, found.recall, found.f1):
        assert 0 <= one.low <= one.value <= one.high <= 1


@pytest.mark.parametrize("unit", [1e300, 1e-300])
def test_only_how_weights_compare_counts(unit):
    verdicts, is_duplicate = np.arange(60) % 2 == 0, np.arange(60) % 3 == 0
    weight = 1.0 + np.arange(60) % 5
    assert measured(verdicts, is_duplicate, unit * weight).to_dict() == {
        name: pytest.approx(found) for name, found in measured(verdicts, is_duplicate, weight).to_dict().items()
    }
    apart = np.where(np.arange(60) % 2 == 0, unit, 1 / unit)
    assert 0 <= measured(verdicts, is_duplicate, apart).f1.low <= 1


def test_an_interval_of_twenty_in_twenty_is_that_of_the_books():
    # Newcombe 1998, method 4 (score with continuity correction): 20 of 20 is .8001 to 1.
    found = measured(np.ones(20, bool), np.ones(20, bool))
    assert found.precision.low == pytest.approx(0.7999, abs=2e-3)
    assert found.f1.low == pytest.approx(2 * found.recall.low / (1 + found.recall.low))
    assert found.f1.high == 1.0


def test_intervals_hold_the_truth_as_often_as_they_say():
    random = np.random.default_rng(5)
    p_hit, p_wrong = 0.85, 0.1
    # .85 of the duplicates are found, and .1 of the others; both are equally many.
    truth = 2 * p_hit / (1 + p_hit + p_wrong)
    held = 0
    for _ in range(400):
        is_duplicate = random.random(60) < 0.5
        verdicts = random.random(60) < np.where(is_duplicate, p_hit, p_wrong)
        f1 = measured(verdicts, is_duplicate).f1
        held += f1.low <= truth <= f1.high
    assert held >= 0.93 * 400


def test_nothing_counted_is_unknown():
    found = measured(np.zeros(4, bool), np.zeros(4, bool))
    assert math.isnan(found.precision.value)
    assert (found.precision.low, found.precision.high) == (0, 1)
    assert found.to_dict()["f1"]["value"] is None


def test_a_threshold_lies_between_what_is_and_what_is_not():
    random = np.random.default_rng(1)
    yes, no = random.uniform(0.6, 1, 30), random.uniform(0.1, 0.4, 30)
    setting = choices(evidence(np.concatenate([yes, no]), [1] * 30 + [0] * 30))[0].setting
    assert 0.4 < setting < 0.6


def test_the_sample_moves_a_threshold_off_the_crowd():
    labels = [1] * 20 + [0] * 20
    similarity = np.concatenate([np.linspace(0.55, 0.99, 20), np.linspace(0.02, 0.1, 20)])
    alone = choices(evidence(similarity, labels))[0].setting
    # Hundreds of unlabeled pairs are below .45, and some are among the duplicates.
    others = np.concatenate([np.linspace(0.2, 0.45, 700), np.linspace(0.55, 0.99, 100)])
    crowded = choices(evidence(similarity, labels, others=others))[0].setting
    assert alone < 0.4 < crowded < 0.6


def test_of_equal_recipes_the_first_is_chosen_and_a_better_one_wins():
    random = np.random.default_rng(2)
    labels = np.repeat([True, False], 30)
    good = np.where(labels, random.uniform(0.6, 1, 60), random.uniform(0, 0.4, 60))
    bad = random.uniform(0, 1, 60)
    assert choices(evidence([good, good, bad], labels))[0].candidate == 0
    assert choices(evidence([bad, good, good], labels))[0].candidate == 1
    _, found = choices(evidence([bad, good], labels))
    assert found[0].score < found[1].score


def test_of_recipes_that_are_the_same_in_three_digits_the_first_is_chosen(monkeypatch):
    monkeypatch.setattr(choice, "_plateau", lambda curve: 0)
    found = evidence([[0.9, 0.1]] * 3, [1, 0])
    for scores, chosen in (((0.9996, 0.9999, 1.0), 0), ((0.99, 0.9996, 1.0), 1), ((0.98, 0.97, 1.0), 2)):
        curves = [np.full(97, score) for score in scores]
        monkeypatch.setattr(Evidence, "expected_f1", lambda self, coefficients, curves=curves: curves)
        assert choices(found)[0].candidate == chosen


def test_labels_that_tell_nothing_promise_nothing():
    random = np.random.default_rng(3)
    labels = np.repeat([True, False], 30)
    similarity = random.uniform(0, 1, (12, 60))
    found = cross_validated(evidence(similarity, labels)).measured
    # Some of twelve useless recipes look good on the labels they were chosen by, but not on held-out labels.
    assert found.f1.low < 0.67
    assert found.precision.low < 0.5


def test_each_label_is_judged_by_a_choice_that_was_made_without_it(monkeypatch):
    labels = np.repeat([True, False], 30)
    # Similarities that identify their labels.
    given = evidence(np.arange(60) / 100, labels)
    name_of = {round(row[2], 6): number for number, row in enumerate(given.sample.features(given.similarity))}
    left_out = []

    def fit(sample, features, is_duplicate, *, is_drawn_by_likeness):
        seen = {name_of[round(row[2], 6)] for row in features}
        left_out.append(sorted(set(range(60)) - seen))
        assert is_duplicate.sum() == 24
        assert is_drawn_by_likeness is False
        return np.array([0.0, 2.0, 0.0, 0.0])

    monkeypatch.setattr(choice, "fitted", fit)
    cross_validated(given)
    assert [len(part) for part in left_out] == [12] * 5
    assert sorted(number for part in left_out for number in part) == list(range(60))


def test_what_separates_well_is_held_out_well():
    labels = np.repeat([True, False], 30)
    similarity = np.where(labels, 0.8, 0.2) + np.random.default_rng(4).uniform(-0.1, 0.1, 60)
    found, are_told_apart = cross_validated(evidence(similarity, labels))
    assert are_told_apart
    assert found.f1.value == 1.0
    assert 0.85 < found.f1.low < 1.0


def test_what_is_told_apart_by_chance_is_seldom_said_to_be():
    labels = np.repeat([True, False], 15)
    said = 0
    for seed in range(40):
        similarity = np.random.default_rng(seed).uniform(0, 1, (4, 30))
        said += cross_validated(evidence(similarity, labels)).are_told_apart
    # The test errs once in ten, and slightly more since the parts share labels.
    assert said <= 8
    assert not cross_validated(evidence(np.full(30, 0.4), labels)).are_told_apart


def brute_force_f1(similarity, is_duplicate, setting):
    taken = similarity.astype(np.float32) >= np.float32(setting)
    return 2 * (taken & is_duplicate).sum() / (taken.sum() + is_duplicate.sum())


def labeled_sample(num=400):
    """Return a sample with every pair labeled, with duplicates where no rising curve expects them."""
    random = np.random.default_rng(5)
    similarity = random.uniform(0.05, 0.95, (2, num))
    is_duplicate = (similarity[0] > 0.5) & (random.uniform(0, 1, num) < 0.8) | (similarity[0] > 0.3) & (
        similarity[0] < 0.35
    )
    sample = Sample(list(similarity.astype(np.float32)), [SETTINGS] * 2, num)
    return similarity, is_duplicate, sample


def test_labeled_pairs_of_the_sample_count_as_what_they_are():
    similarity, is_duplicate, sample = labeled_sample()
    numbers = np.arange(len(is_duplicate))
    found = Evidence(similarity, is_duplicate, np.ones(len(numbers)), sample, numbers)
    curves = found.expected_f1(np.zeros(5))
    for own, curve in zip(similarity, curves, strict=True):
        assert curve == pytest.approx([brute_force_f1(own, is_duplicate, setting) for setting in SETTINGS])


def test_pairs_labeled_as_neither_count_for_nothing():
    similarity, is_duplicate, sample = labeled_sample()
    numbers = np.arange(len(is_duplicate))
    rest, neither = numbers[numbers % 3 > 0], numbers[numbers % 3 == 0]
    found = Evidence(similarity[:, rest], is_duplicate[rest], np.ones(len(rest)), sample, rest, neither)
    for own, curve in zip(similarity, found.expected_f1(np.zeros(5)), strict=True):
        assert curve == pytest.approx([brute_force_f1(own[rest], is_duplicate[rest], setting) for setting in SETTINGS])
