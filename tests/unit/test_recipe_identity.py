"""A recipe's identity: the hash given in the definition, which every field that affects answers changes."""

import hashlib

import pytest

import likewise
from likewise.recipe.fields import FIELD_NAMES, METHODS

# Written by hand: fields at their first default (tokens, shingle, seed, num_slots, ...) are always left out.
SPELLED = (
    '{"bands":18,"measure":"jaccard","method":"minhash","overflow":"exact","rows":7,"sketch_version":1,'
    '"text_version":"1/unicode-17.0.0","threshold":0.8,"weights":"none"}'
)
SPELLED_SKETCH = (
    '{"method":"simhash","sketch_version":1,"text_version":"1/unicode-17.0.0","tokens":"char","weights":"log-count"}'
)


def spelled(text):
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def test_ids_are_hashes_of_what_is_not_at_its_first_default():
    assert likewise.Recipe.minhash(0.8).recipe_id == spelled(SPELLED)
    assert likewise.Recipe.simhash(within=7, tokens="char", shingle=3).sketch_id == spelled(SPELLED_SKETCH)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": "char"},
        {"shingle": 4},
        {"weights": "count"},
        {"seed": 1},
        {"num_slots": 256},
        {"slot_bits": 8},
        {"scheme": "classical"},
        {"hash": "sha1"},
        {"threshold": 0.81},
        {"short_margin": 0.5},
        {"measure": "cosine"},
        {"bands": 9, "rows": 7},
        {"bands": 18, "rows": 6},
        {"keep": "longest"},
        {"group": "components"},
        {"overflow": "levels"},
    ],
    ids=str,
)
def test_every_field_that_decides_changes_the_id(change):
    recipe = likewise.Recipe.minhash(0.8).resolve()
    changed = recipe.replace(**change)
    assert changed.recipe_id != recipe.recipe_id
    of_sketch = {"tokens", "shingle", "weights", "seed", "num_slots", "slot_bits", "scheme", "hash"}
    assert (changed.sketch_id != recipe.sketch_id) == (not of_sketch.isdisjoint(change))


@pytest.mark.parametrize(
    "change",
    [{"filter_bits": 2048}, {"num_hashes": 2}, {"recall": 0.9}, {"bands": 20, "rows": 5}, {"hash": "md5"}, {"seed": 3}],
    ids=str,
)
def test_every_field_of_filters_changes_the_id(change):
    recipe = likewise.Recipe.bloom(0.8, filter_bits=1024)
    changed = recipe.replace(**change)
    assert changed.recipe_id != recipe.recipe_id
    of_sketch = {"filter_bits", "num_hashes", "hash", "seed"}
    assert (changed.sketch_id != recipe.sketch_id) == (not of_sketch.isdisjoint(change))


def test_recall_counts_only_by_the_bands_it_chose():
    recipe = likewise.Recipe.minhash(0.8)
    assert recipe.recipe_id == likewise.Recipe.minhash(0.8, bands=18, rows=7, recall=0.5).recipe_id
    assert recipe.recipe_id != likewise.Recipe.minhash(0.8, recall=0.99).recipe_id


def test_every_field_is_an_attribute_of_a_recipe_or_of_its_method():
    made = [getattr(likewise.Recipe, method)() for method in METHODS]
    attributes = {name for recipe in made for name in (*vars(recipe), *vars(recipe.sketch))}
    assert {*FIELD_NAMES} - attributes == {"method"}
