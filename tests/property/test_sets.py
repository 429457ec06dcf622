"""Method shingles against all pairs; samples of sets against the oracle, their estimates against the truth."""

import math
import statistics

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise import sets
from likewise.text import as_texts
from likewise.weights import with_counted
from tests.oracle import decide
from tests.oracle import sets as oracle
from tests.oracle.features import Rules, features
from tests.oracle.weights import idf_table
from tests.recipes import oracle_recipe, verdicts
from tests.strategies import corpora, word_texts

MEASURES = ("jaccard", "containment", "cosine", "dice", "overlap")


@given(
    texts=corpora(max_size=40),
    measure=st.sampled_from(MEASURES),
    weights=st.sampled_from(["none", "count", "log-count"]),
    shingle=st.integers(1, 3),
    threshold=st.sampled_from([0.05, 0.3, 0.5, 0.6, 2 / 3, 0.75, 0.8, 1.0]),
)
@settings(max_examples=60)
def test_pairs_are_all_that_match(texts, measure, weights, shingle, threshold):
    recipe = likewise.Recipe.shingles(threshold, measure=measure, weights=weights, shingle=shingle)
    own = [features(text, Rules("auto", shingle, weights)).weights for text in texts]
    table = likewise.pairs(texts, recipe, threads=2)
    rows = zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True)
    assert {(a, b): similarity for a, b, similarity in rows} == oracle.all_pairs(own, measure, threshold)


@given(
    texts=corpora(max_size=40),
    measure=st.sampled_from(MEASURES),
    weights=st.sampled_from(["idf", "log-count-idf"]),
    shingle=st.integers(1, 3),
    threshold=st.sampled_from([0.05, 0.3, 0.45, 2 / 3, 0.8, 1.0]),
)
@settings(max_examples=40)
def test_pairs_by_rarity_are_all_that_match(texts, measure, weights, shingle, threshold):
    recipe = likewise.Recipe.shingles(threshold, measure=measure, weights=weights, shingle=shingle)
    rules = Rules("auto", shingle, weights)
    rules = rules._replace(table=idf_table(texts, rules))
    own = [features(text, rules).weights for text in texts]
    table = likewise.pairs(texts, recipe, threads=2)
    rows = zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True)
    assert {(a, b): similarity for a, b, similarity in rows} == oracle.all_pairs(own, measure, threshold)


@given(texts=corpora(), measure=st.sampled_from(MEASURES))
@settings(max_examples=10)
def test_removals_by_rarity_are_those_of_the_online_rule(texts, measure):
    recipe = likewise.Recipe.shingles(0.5, shingle=1, weights="idf", measure=measure, keep="first")
    assert verdicts(likewise.dedup(texts, recipe, threads=2)) == decide.dedup(texts, oracle_recipe(recipe))


def test_a_table_weighs_shingles_and_samples():
    texts = ["one fine day in may", "one fine day in june", "one dull day in may"]
    counted = likewise.Recipe.shingles(weights="idf")
    table = with_counted(counted, [as_texts(texts)], threads=1).table
    recipe = likewise.Recipe.shingles(weights=table)
    assert (recipe.weights, recipe.shingle, recipe.weights_id) == ("idf", 2, table.weights_id)
    assert likewise.pairs(texts, recipe.replace(threshold=0.01)).num_rows == 3
    for kind in sets.KINDS:
        found, again = (sets.sample(texts, some, kind=kind) for some in (recipe, counted))
        assert found.recipe.weights_id == again.recipe.weights_id == table.weights_id
        assert (found.hashes == again.hashes).all()
    with pytest.raises(likewise.RecipeMismatch, match="weights_id"):
        sets.sample(texts, counted).resemblance(0, 0, sets.sample(texts[:2], counted))
    with pytest.raises(likewise.InvalidInput, match="lists of"):
        likewise.pairs(texts, likewise.Recipe.shingles(weights="own"))


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
    assert found.resemblance(0, 1) == (60 / 280, 0.0, True)
    assert found.containment(0, 1) == (0.6, 0.0, True)
    assert found.containment(1, 0) == (0.25, 0.0, True)


@pytest.mark.parametrize("kind", sets.KINDS)
def test_empty_texts_are_alike_and_like_nothing_else(kind):
    found = sets.sample(["", " ", "a b c d"], kind=kind)
    for estimate in (found.resemblance, found.containment):
        assert estimate(0, 1)[0] == 1.0
        assert estimate(0, 2)[0] == estimate(2, 0)[0] == 0.0


def test_estimates_follow_the_formulas():
    texts = pair_of_texts(300, 600, 900)
    recipe = likewise.Recipe.shingles(shingle=1)
    a, b = (features(text, Rules("auto", 1, "none")).weights for text in texts)
    found = sets.sample(texts, recipe, kind="min-s", size=128)
    expected = oracle.min_s_resemblance(oracle.min_s(a, 128), oracle.min_s(b, 128), 128)
    value, error, is_exact = found.resemblance(0, 1)
    assert (value, is_exact) == (float(expected), False)
    assert error == pytest.approx(oracle.drawn_error(value, 128, 1500 / (1 + value)))
    found = sets.sample(texts, recipe, kind="mod-m", size=10)
    value, error, _ = found.containment(0, 1)
    in_both = oracle.mod_m(a, 10), oracle.mod_m(b, 10)
    assert value == pytest.approx(oracle.mod_m_containment(*in_both, 10, 600))
    assert error == pytest.approx(oracle.drawn_error(value, len(in_both[0]), 600))


@pytest.mark.parametrize("kind", sets.KINDS)
def test_estimates_are_unbiased_with_the_error_that_they_state(kind):
    """300 independent pairs of sets: J = 1/3, A's containment in B 2/3; the mean within 4 standard errors."""
    recipe = likewise.Recipe.shingles(shingle=1)
    texts = [text for i in range(300) for text in pair_of_texts(200, 300, 500, f"{i}x")]
    found = sets.sample(texts, recipe, kind=kind, size={"min-s": 64, "mod-m": 8, "min-wise": 64}[kind])
    for estimate, truth in ((found.resemblance, 200 / 600), (found.containment, 200 / 300)):
        made = [estimate(2 * i, 2 * i + 1) for i in range(300)]
        values = [value for value, _, _ in made]
        spread = statistics.stdev(values)
        assert abs(statistics.fmean(values) - truth) < 4 * spread / math.sqrt(300)
        stated = math.sqrt(statistics.fmean(error * error for _, error, _ in made))
        assert 0.8 < stated / spread < 1.25
        within = sum(abs(value - truth) <= 2 * error for value, error, _ in made)
        assert within >= 270


def test_mod_m_of_few_features_is_corrected():
    """Sets of 12 features, one hash in 8: one sample in five would be empty, and counts as none found."""
    recipe = likewise.Recipe.shingles(shingle=1)
    texts = [text for i in range(3000) for text in pair_of_texts(6, 12, 60, f"{i}x")]
    found = sets.sample(texts, recipe, kind="mod-m", size=8)
    values = []
    for i in range(3000):
        a, b = found[2 * i].tolist(), found[2 * i + 1].tolist()
        # It may exceed 1 where few hashes are kept; the mean over all is that of the theorem.
        values.append(oracle.mod_m_containment(a, b, 8, 12))
        estimate = found.containment(2 * i, 2 * i + 1)
        is_whole = found.is_whole[2 * i] and found.is_whole[2 * i + 1]
        assert estimate.value == (0.5 if is_whole else pytest.approx(min(1.0, values[-1])))
        assert math.isnan(estimate.standard_error) == (found.is_whole[2 * i] and not is_whole)
    assert abs(statistics.fmean(values) - 0.5) < 4 * statistics.stdev(values) / math.sqrt(3000)


def test_samples_made_in_different_ways_are_not_compared():
    a, b = sets.sample(["a b c"]), sets.sample(["a b c"], likewise.Recipe.shingles(shingle=2))
    with pytest.raises(likewise.RecipeMismatch, match="shingle"):
        a.resemblance(0, 0, b)
    with pytest.raises(likewise.RecipeMismatch, match="size"):
        a.containment(0, 0, sets.sample(["a b c"], size=3))
    assert a.resemblance(0, 0, sets.sample(["A b c"])).value == 1.0
    with pytest.raises(likewise.InvalidParameter, match="kind"):
        sets.sample(["a"], kind="other")
    with pytest.raises(likewise.InvalidParameter, match="size"):
        sets.sample(["a"], size=0)
    with pytest.raises(likewise.InvalidParameter, match="recipe"):
        sets.sample(["a"], likewise.Recipe.exact())


def test_methods_without_sketches_say_so():
    for recipe in (likewise.Recipe.shingles(), likewise.Recipe.exact()):
        with pytest.raises(likewise.InvalidParameter, match="makes no sketches"):
            likewise.sketch(["a"], recipe)


def test_recipes_of_sets():
    assert likewise.Recipe.from_json(likewise.Recipe.exact().to_json()) == likewise.Recipe.exact()
    recipe = likewise.Recipe.shingles(0.7, measure="containment")
    assert recipe.keep == "longest"
    assert recipe.stated_recall == 1.0
    assert likewise.Recipe.from_json(recipe.to_json()) == recipe
    for wrong in ({"measure": "hamming"}, {"measure": "equality"}, {"recall": 0.9}, {"bands": 3}, {"threshold": 0.0}):
        with pytest.raises(likewise.InvalidParameter):
            recipe.replace(**wrong)
    with pytest.raises(likewise.InvalidParameter, match="threshold"):
        likewise.Recipe.exact().replace(threshold=0.5)
    with pytest.raises(likewise.InvalidParameter, match="shingle"):
        likewise.Recipe.from_options("exact", shingle=2)


def test_exact_means_equal_normalised_texts():
    texts = ["One  fine\tday", "one fine day", "one fine day!", "", " ", "ﬁne", "fine", "!!!", "???"]
    result = likewise.dedup(texts, likewise.Recipe.exact())
    assert result.kept.tolist() == [True, False, True, True, False, True, False, True, True]
    assert result.removed.column("measure").to_pylist() == ["equality"] * 3
    assert "equal normalised texts" in result.summary["verification"]
    found = likewise.pairs(texts, likewise.Recipe.exact())
    assert list(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True)) == [(0, 1), (3, 4), (5, 6)]
    assert likewise.compare("a  B", "A b", likewise.Recipe.exact()).matches
    assert not likewise.compare("a b!", "a b", likewise.Recipe.exact()).matches
