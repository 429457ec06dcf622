"""Method shingles against all pairs; method exact; recipes of both."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.stages import sets
from likewise.stages.text import as_texts
from likewise.stages.weights import with_counted
from tests.oracle import decide
from tests.oracle import sets as oracle
from tests.oracle.features import Rules, features
from tests.oracle.weights import idf_table
from tests.recipes import oracle_recipe, verdicts
from tests.strategies import corpora

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


def test_methods_without_sketches_say_so():
    for recipe in (likewise.Recipe.shingles(), likewise.Recipe.exact()):
        with pytest.raises(likewise.InvalidParameter, match="has no sketches"):
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


def test_exact_means_equal_normalized_texts():
    texts = ["One  fine\tday", "one fine day", "one fine day!", "", " ", "ﬁne", "fine", "!!!", "???"]
    result = likewise.dedup(texts, likewise.Recipe.exact())
    assert result.kept.tolist() == [True, False, True, True, False, True, False, True, True]
    assert result.removed.column("measure").to_pylist() == ["equality"] * 3
    assert "equal normalized texts" in result.summary["verification"]
    found = likewise.pairs(texts, likewise.Recipe.exact())
    assert list(zip(found["row_a"].to_pylist(), found["row_b"].to_pylist(), strict=True)) == [(0, 1), (3, 4), (5, 6)]
    assert likewise.compare("a  B", "A b", likewise.Recipe.exact()).matches
    assert not likewise.compare("a b!", "a b", likewise.Recipe.exact()).matches
