"""The rule that chooses a threshold agrees with its oracle, and gives a reason if it cannot choose."""

import decimal
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.recipe import valley
from likewise.recipe.valley import choice_lines, find_valley, lowest_similarity, lowest_threshold
from tests.oracle import valley as oracle


def found(pairs, measure="jaccard", margin=0.0):
    similarity, document, many = (np.array(column) for column in zip(*pairs, strict=True)) if pairs else ([],) * 3
    return find_valley(
        np.asarray(similarity, np.float64),
        np.asarray(document, np.int64),
        np.asarray(many, np.int64),
        measure=measure,
        margin=margin,
    )


def told(choice):
    return choice.threshold, choice.reason, choice.clarity, choice.halves, choice.is_stable


# Similarities of all sizes, the fewer the higher.
FALLING = [(0.3 + 0.69 * (number / 3000) ** 3, number, 1) for number in range(3000)]


def mixture(seed, measure="jaccard"):
    """Return a falling background, duplicates above it, and rounded values on the edges of bins."""
    draw = random.Random(seed)
    pairs = [(min(1.0, 0.26 + draw.expovariate(draw.choice([8, 15, 30]))), draw.randrange(400), 1) for _ in range(600)]
    pairs += [(min(1.0, max(0.3, draw.gauss(0.8, 0.1))), draw.randrange(400), draw.randint(1, 4)) for _ in range(300)]
    return [
        (round(similarity, 3) if number % 3 else similarity, document, many)
        for number, (similarity, document, many) in enumerate(pairs)
    ]


@pytest.mark.parametrize("measure", ["jaccard", "cosine"])
@pytest.mark.parametrize("seed", range(6))
def test_mixtures_have_the_threshold_of_the_oracle(seed, measure):
    pairs = mixture(seed)
    choice = found(pairs, measure)
    assert told(choice) == oracle.valley(pairs, measure)
    assert told(found(pairs, measure, 0.2)) == oracle.valley(pairs, measure, 0.2)
    random.Random(seed).shuffle(pairs)
    assert found(pairs, measure) == choice
    # A pair that stands for several equals several pairs.
    assert (
        found([(similarity, document, 1) for similarity, document, many in pairs for _ in range(many)], measure)
        == choice
    )


@given(
    st.lists(st.tuples(st.floats(0.2, 1.0), st.integers(0, 60), st.integers(1, 50)), max_size=80),
    st.sampled_from(["jaccard", "cosine"]),
    st.sampled_from([0.0, 0.12, 0.5]),
)
@settings(max_examples=40)
def test_any_pairs_have_the_threshold_of_the_oracle(pairs, measure, margin):
    assert told(found(pairs, measure, margin)) == oracle.valley(pairs, measure, margin)


def test_if_few_documents_are_similar_the_threshold_is_fixed():
    assert (found([]).threshold, found([]).reason) == (0.5, "few pairs")
    assert found([], "cosine").threshold == 0.67
    few = [(0.9, document, 1) for document in range(19)] + [(0.9, 0, 1)] * 50
    assert (found(few).threshold, found(few).reason) == (0.5, "few pairs")
    below = [(0.35, document, 1) for document in range(100)]
    assert found(few + below).reason == "few pairs"
    assert (found([*few, (0.9, 19, 1)]).threshold, found([*few, (0.9, 19, 1)]).reason) == (0.44, None)


def test_bins_that_changed_documents_cannot_reach_are_no_valley():
    """Copies of 50 words with some replaced have similarities of up to 1 - margin; the bins above are empty."""
    copies = [(0.5 + 0.002 * (number % 100), number, 1) for number in range(1000)]
    background = [(0.26 + 0.001 * (number % 60), number, 9) for number in range(1000)]
    choice = found(copies + background, margin=0.14)
    assert choice.reason is None
    assert 0.38 <= choice.threshold <= 0.5
    assert choice.num_documents_above > 900


def test_without_a_background_no_valley_is_needed():
    """Copies of all similarities and nothing below: the threshold is not raised above them."""
    flat = [(0.3 + 0.5 * number / 3000, number, 1) for number in range(3000)]
    choice = found(flat)
    assert (choice.threshold, choice.reason, choice.is_stable) == (0.44, None, True)
    facts = choice.to_dict() | {
        "measure": "jaccard", "weights": "idf", "num_sampled": 3000, "num_documents": 3000
    }  # fmt: skip
    assert "about as rare below it as at it" in choice_lines(facts)[0]


def test_a_density_that_only_falls_has_no_valley():
    assert (found(FALLING).threshold, found(FALLING).reason) == (0.55, "no valley")
    # Short documents: the usual one needs 0.65.
    assert [found(FALLING, margin=margin).threshold for margin in (0.05, 0.12, 0.16, 0.5)] == [0.55, 0.53, 0.49, 0.44]


@pytest.mark.parametrize(
    ("pairs", "reason"),
    [
        ([], "few pairs"),
        ([(0.9, 0, 1)], "few pairs"),
        (FALLING, "no valley"),
    ],
)
def test_only_a_valley_has_a_clarity(pairs, reason):
    facts = found(pairs).to_dict()
    assert (facts["reason"], facts["clarity"]) == (reason, None)
    assert facts["halves"] == [facts["threshold"]] * 2
    assert facts["is_stable"] is True


def test_duplicates_alone_are_cut_in_the_empty_middle():
    choice = found([(0.85 + 0.001 * (number % 100), number, 1) for number in range(300)])
    assert (choice.threshold, choice.reason, choice.is_stable) == (0.44, None, True)
    assert (choice.num_documents_below, choice.num_documents_above) == (0, 300)


def test_halves_that_disagree_are_reported():
    even = [(value, 2 * number, 1) for number in range(100) for value in (0.3, 0.9)]
    odd = [(value, 2 * number + 1, 1) for number in range(100) for value in (0.5, 0.9)]
    choice = found(even + odd)
    assert not choice.is_stable
    facts = choice.to_dict() | {
        "measure": "jaccard", "weights": "none", "num_sampled": 200, "num_documents": 200
    }  # fmt: skip
    assert "uncertain" in choice_lines(facts)[1]


def test_a_gap_that_half_of_the_documents_does_not_have_is_uncertain():
    """Halves decide by the same rule, with its reasons: a valley in one half only is no certain valley."""
    even = [(0.4 + 0.6 * (number / 500) ** 4, 2 * number, 1) for number in range(500)]
    odd = [(value, 2 * number + 1, 1) for number in range(100) for value in (0.28, 0.9)]
    choice = found(even + odd)
    assert choice.halves[0] <= 0.5 < choice.halves[1]
    assert not choice.is_stable


def test_the_sentence_counts_what_it_names():
    pairs = [(0.9, number, 1) for number in range(15)] + [(0.3, number, 1) for number in range(50)]
    facts = found(pairs).to_dict() | {
        "measure": "jaccard", "weights": "idf", "num_sampled": 60, "num_documents": 60
    }  # fmt: skip
    (line,) = choice_lines(facts)
    assert "; fewer than 20 have a similar one at or above 0.36, too few" in line
    assert "of 60 distinct documents, 15 have a similar one at or above it, 50 below it down to 0.26" in line


@pytest.mark.parametrize(("weights", "advice"), [("none", "Try --weights idf, give"), ("idf", "Give a threshold or")])
def test_the_advice_is_what_the_run_did_not_do(weights, advice):
    choice = found(FALLING)
    facts = choice.to_dict() | {
        "measure": "jaccard", "weights": weights, "num_sampled": 3000, "num_documents": 9000
    }  # fmt: skip
    assert advice in choice_lines(facts)[0]
    assert "of 3,000 distinct sampled documents" in choice_lines(facts)[0]


def test_the_ends_of_the_range_are_on_the_scale_of_the_measure():
    assert (lowest_similarity("jaccard"), lowest_threshold("jaccard")) == (0.26, 0.36)
    assert (lowest_similarity("cosine"), lowest_threshold("cosine")) == (0.41, 0.53)


def test_the_density_counts_pairs_in_a_hundredth():
    choice = found([(0.6, number, 2) for number in range(40)])
    density = dict(choice.curve)
    assert density[0.6] == pytest.approx(80 * 10 / 100)
    # The kernel's weights add up to all pairs.
    assert sum(density.values()) == pytest.approx(80)
    assert density[0.7] == 0


def test_the_arithmetic_of_the_caller_changes_nothing():
    pairs = mixture(3)
    wanted = found(pairs)
    valley._pull.cache_clear()
    with decimal.localcontext(decimal.Context(prec=2)):
        assert found(pairs) == wanted


def form(relatives):
    """Return a background that falls steeply, in which each document has so many similar ones on average."""
    draw = random.Random(3)
    return [
        (min(0.99, 0.27 + draw.expovariate(9)), document, 1)
        for document in range(3000)
        for _ in range(int(relatives) + (draw.random() < relatives % 1))
    ]


def test_documents_of_one_form_need_more_the_more_of_them_have_several_relatives():
    numbers = (1.0, 1.08, 1.13, 1.15, 1.17, 1.5, 5.0)
    choices = [found(form(relatives)) for relatives in numbers]
    assert [choice.reason for choice in choices] == ["no valley"] * 2 + ["one form"] * 5
    thresholds = [choice.threshold for choice in choices]
    assert thresholds == sorted(thresholds)
    assert (thresholds[:2], thresholds[5:]) == ([0.55, 0.55], [0.92, 0.92])
    assert all(0.55 < threshold < 0.92 for threshold in thresholds[2:5])
    assert [told(choice) for choice in choices] == [oracle.valley(form(n)) for n in numbers]
    # In doubt, documents stay: no half of the sample is stricter.
    assert all(choice.threshold >= choice.halves[1] for choice in choices[2:])
    facts = choices[5].to_dict() | {
        "measure": "jaccard", "weights": "idf", "num_sampled": 3000, "num_documents": 3000
    }  # fmt: skip
    assert "of one form" in choice_lines(facts)[0]


def test_few_documents_with_many_relatives_are_not_a_collection_of_one_form():
    # As copies of a notice: on average, a document has more than two.
    pairs = form(1.0) + [(0.3, document, 40) for document in range(100)]
    assert found(pairs).reason == "no valley"
    assert told(found(pairs)) == oracle.valley(pairs)
