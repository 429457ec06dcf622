"""A recipe is a sum type: its `sketch` has the fields of its own method only."""

import dataclasses
import pickle

import pytest

import likewise
from likewise import InvalidParameter, Recipe
from likewise.recipe.methods import Bloom, Exact, MinHash, Shingles, SimHash, SimHashDistance, SimHashMeasured
from tests.recipes import RECIPES

# The fields of each kind.
OWN = {
    MinHash: {"num_slots", "slot_bits", "scheme", "recall", "bands", "rows", "overflow"},
    SimHashMeasured: {"bits", "within", "recall"},
    SimHashDistance: {"bits", "within", "short_threshold"},
    Bloom: {"filter_bits", "num_hashes", "recall", "bands", "rows"},
    Shingles: set(),
    Exact: set(),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_sketch_has_the_fields_of_its_method_alone(name):
    recipe = RECIPES[name]
    own = {field.name for field in dataclasses.fields(recipe.sketch)}
    assert own == OWN[type(recipe.sketch)]
    flat = recipe.fields
    every = set().union(*OWN.values())
    assert {field: getattr(recipe.sketch, field) for field in own} == {field: flat[field] for field in own}
    assert all(flat[field] is None for field in every - own)
    assert not any(hasattr(recipe, field) for field in every)


@pytest.mark.parametrize("name", RECIPES)
def test_the_flat_fields_make_the_same_recipe(name):
    recipe = RECIPES[name].resolve()
    assert Recipe(**recipe.fields) == recipe
    recipe.fields.clear()
    assert Recipe(**recipe.fields) == recipe
    if recipe.weights == "none":
        # It is kept, and cannot be pickled.
        assert recipe.feature_rules is recipe.feature_rules
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    assert hash(Recipe.from_dict(recipe.to_dict())) == hash(recipe)
    assert {field: value for field, value in recipe.fields.items() if field in recipe.to_dict()} == recipe.to_dict()


def test_the_measure_tells_which_fingerprints_are_meant():
    near = Recipe.simhash(within=3)
    assert type(near.sketch) is SimHashDistance
    assert near.sketch.short_threshold == 0.8
    measured = near.replace(measure="cosine", threshold=0.9, short_threshold=None)
    assert type(measured.sketch) is SimHashMeasured
    assert (measured.sketch.within, measured.sketch.recall) == (3, 0.95)
    with pytest.raises(InvalidParameter, match="short_threshold: applies only to Hamming-only recipes"):
        near.replace(measure="cosine", threshold=0.9)


def test_what_is_yet_to_be_chosen_is_refused_by_name():
    for recipe, ask, name in (
        (Recipe.minhash(), lambda sketch: sketch.banding, "bands"),
        (Recipe.simhash(threshold=0.9), lambda sketch: sketch.radius, "within"),
        (Recipe.bloom(), lambda sketch: sketch.num_bits, "filter_bits"),
    ):
        with pytest.raises(InvalidParameter, match="not chosen yet") as told:
            ask(recipe.sketch)
        assert told.value.name == name
    # 32 bands of 4 rows are in the golden identities.
    assert Recipe.minhash().resolve().sketch.banding == (32, 4)


def test_a_method_that_does_not_act_is_refused():
    assert Recipe.simhash().method_as(SimHash).bits == 128
    with pytest.raises(InvalidParameter, match="minhash by measure jaccard does not apply here"):
        Recipe.minhash().method_as(SimHash)


def test_a_field_of_another_method_is_refused():
    for change in ({"bits": 64}, {"filter_bits": 64}, {"within": 3}):
        with pytest.raises(InvalidParameter, match="does not apply to method minhash"):
            Recipe.minhash().replace(**change)
    with pytest.raises(InvalidParameter, match="not a recipe option"):
        likewise.Recipe.minhash().replace(sketch=None)
