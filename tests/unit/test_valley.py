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


def found(pairs, measure="jaccard", few=None):
    similarity, document, many = (np.array(column) for column in zip(*pairs, strict=True)) if pairs else ([],) * 3
    return find_valley(
        np.asarray(similarity, np.float64),
        np.asarray(document, np.int64),
        np.asarray(many, np.int64),
        measure=measure,
        of_few_documents=few,
    )


def told(choice):
    return choice.threshold, choice.reason, choice.clarity, choice.halves, choice.is_stable


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
)
@settings(max_examples=40)
def test_any_pairs_have_the_threshold_of_the_oracle(pairs, measure):
    choice = found(pairs, measure)
    assert told(choice) == oracle.valley(pairs, measure)


def test_no_pairs_and_few_give_the_cautious_threshold():
    assert (found([]).threshold, found([]).reason) == (0.8, "few pairs")
    assert found([], "cosine").threshold == 0.89
    few = [(0.9, document, 1) for document in range(19)] + [(0.9, 0, 1)] * 50
    assert (found(few).threshold, found(few).reason) == (0.8, "few pairs")
    enough = [*few, (0.9, 19, 1)]
    assert (found(enough).threshold, found(enough).reason) == (0.5, None)


@pytest.mark.parametrize("measure", ["jaccard", "cosine"])
def test_too_few_documents_have_the_threshold_that_is_given(measure):
    pairs = mixture(1)
    choice = found(pairs, measure, few=0.55)
    assert told(choice) == oracle.valley(pairs, measure, 0.55)
    assert (choice.threshold, choice.reason) == (0.55, "few documents")
    assert choice.num_documents_above == len({document for similarity, document, _ in pairs if similarity >= 0.55})


def test_a_density_that_only_falls_has_no_valley():
    falling = [(0.3 + 0.69 * (number / 3000) ** 3, number, 1) for number in range(3000)]
    assert (found(falling).threshold, found(falling).reason) == (0.65, "no valley")
    flat = [(0.26 + 0.74 * number / 3000, number, 1) for number in range(3000)]
    assert found(flat).reason == "no valley"


@pytest.mark.parametrize(
    ("pairs", "few", "reason"),
    [
        ([], None, "few pairs"),
        ([(0.9, 0, 1)], None, "few pairs"),
        ([(0.26 + 0.74 * number / 3000, number, 1) for number in range(3000)], None, "no valley"),
        ([(0.9, number, 1) for number in range(50)], 0.55, "few documents"),
    ],
)
def test_where_no_valley_decides_nothing_is_said_of_one(pairs, few, reason):
    facts = found(pairs, few=few).to_dict()
    assert facts["reason"] == reason
    assert [facts[name] for name in ("clarity", "halves", "is_stable")] == [None] * 3


def test_duplicates_alone_are_cut_in_the_empty_middle():
    choice = found([(0.85 + 0.001 * (number % 100), number, 1) for number in range(300)])
    assert (choice.threshold, choice.reason, choice.is_stable) == (0.5, None, True)
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


@pytest.mark.parametrize(("weights", "advice"), [("none", "Try --weights idf, give"), ("idf", "Give a threshold or")])
def test_the_advice_is_what_the_run_did_not_do(weights, advice):
    choice = found([(0.26 + 0.74 * number / 3000, number, 1) for number in range(3000)])
    facts = choice.to_dict() | {
        "measure": "jaccard", "weights": weights, "num_sampled": 3000, "num_documents": 9000
    }  # fmt: skip
    assert advice in choice_lines(facts)[0]
    assert "of 3,000 distinct sampled documents" in choice_lines(facts)[0]


def test_the_ends_of_the_range_are_on_the_scale_of_the_measure():
    assert (lowest_similarity("jaccard"), lowest_threshold("jaccard")) == (0.26, 0.3)
    assert (lowest_similarity("cosine"), lowest_threshold("cosine")) == (0.41, 0.46)


def test_the_density_counts_pairs_in_a_hundredth():
    choice = found([(0.6, number, 2) for number in range(40)])
    density = dict(choice.curve)
    assert density[0.6] == pytest.approx(80 * 10 / 40)
    # The kernel's weights add up to all pairs.
    assert sum(density.values()) == pytest.approx(80)
    assert density[0.64] == 0


def test_the_arithmetic_of_the_caller_changes_nothing():
    pairs = mixture(3)
    wanted = found(pairs)
    valley._pull.cache_clear()
    with decimal.localcontext(decimal.Context(prec=2)):
        assert found(pairs) == wanted
