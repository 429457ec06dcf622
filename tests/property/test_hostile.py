"""Functions that read untrusted input return an answer or raise a Likewise error, never another exception."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import likewise
from likewise.errors import LikewiseError

RECIPES = [
    likewise.Recipe.minhash(0.7),
    likewise.Recipe.simhash(within=3),
    likewise.Recipe.simhash(threshold=0.8, weights="count"),
    likewise.Recipe.shingles(0.5),
    likewise.Recipe.bloom(0.6),
    likewise.Recipe.exact(),
    likewise.Recipe.minhash(0.5, tokens="chinese"),
]
NAMES = sorted({name for recipe in RECIPES for name in json.loads(recipe.to_json())})
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["minhash", "simhash", "idf", "jaccard", "auto", "char", "first", "", "\ud800", "1" * 400])
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)
anything = (
    st.text()
    | st.binary()
    | st.none()
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.lists(st.integers(), max_size=2)
)


@settings(deadline=None, max_examples=60)
@given(st.sampled_from(RECIPES), st.dictionaries(st.sampled_from([*NAMES, "other"]), values, min_size=1, max_size=3))
def test_a_recipe_with_any_fields_is_refused_or_comes_back_the_same(recipe, changes):
    fields = json.loads(recipe.to_json()) | changes
    try:
        made = likewise.Recipe.from_json(json.dumps(fields))
    except LikewiseError:
        return
    again = likewise.Recipe.from_json(made.to_json())
    assert (again, again.recipe_id) == (made, made.recipe_id)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=60) | st.binary(max_size=60).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_any_text_as_a_recipe_is_refused_by_name(text):
    with pytest.raises(LikewiseError):
        likewise.Recipe.from_json(text)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, '{"a":' * 100_000, '{"method":' + "9" * 5000 + "}", '{"threshold":NaN}']
)
def test_deep_and_endless_recipes_are_refused(text):
    with pytest.raises(LikewiseError):
        likewise.Recipe.from_json(text)


@settings(deadline=None, max_examples=60)
@given(st.lists(anything, max_size=6), st.sampled_from(RECIPES))
def test_lists_of_anything_are_decided_or_refused(texts, recipe):
    try:
        result = likewise.dedup(texts, recipe)
    except (LikewiseError, TypeError):
        assert not all(isinstance(text, str) for text in texts)
        return
    assert len(result.kept) == len(texts)
    assert result.kept.sum() + result.removed.num_rows == len(texts)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_two_texts_are_compared(a, b):
    compared = likewise.compare(a, b)
    similarity = compared.measures.jaccard
    assert math.isnan(similarity) or 0 <= similarity <= 1


def test_fields_of_another_kind_beside_libraries_are_named():
    fields = json.loads(likewise.Recipe.minhash(0.5, tokens="chinese").to_json())
    for name, value in [("tokens", {"a": 1}), ("fold", 5), ("markup", []), ("chunking", 1)]:
        with pytest.raises(LikewiseError, match=name):
            likewise.Recipe.from_dict(fields | {name: value})
