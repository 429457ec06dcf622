"""A recipe is given as a Recipe, a preset's name, or fields; never two of these, except for `keep`."""

import json

import pytest

import likewise
from likewise import Recipe
from likewise.batch.files import dedup_files
from likewise.batch.pair_files import pair_files
from likewise.errors import InvalidParameter
from likewise.measures import measure, similarity
from likewise.recipe.fields import RecipeOptions
from likewise.recipe.recipe import as_recipe
from likewise.stages.features import features
from tests.command import jsonl, likewise_command

TEXTS = [
    "one fine day in may by the sea and far from home",
    "One fine day in May, by the sea and far from home!",
    "one fine day in may by the sea and near to home",
    "a rainy night in june by the lake",
]
# Fields by name, and the equivalent recipe.
SAID = [
    ({"threshold": 0.5}, Recipe.minhash(0.5, shingle=3)),
    ({"method": "simhash"}, Recipe.simhash()),
    ({"within": 3}, Recipe.simhash(within=3)),
    ({"threshold": 0.3, "weights": "idf"}, Recipe.minhash(0.3, shingle=2, weights="idf")),
    ({"measure": "containment"}, Recipe.shingles(0.8, measure="containment")),
    ({"measure": "cosine"}, Recipe.minhash(0.8, measure="cosine")),
    ({"tokens": "char", "shingle": 5}, Recipe.minhash(0.8, tokens="char", shingle=5)),
    ({"method": "exact", "fold": "punctuation"}, Recipe.exact(fold="punctuation")),
]


def options_of(fields):
    return [part for name, value in fields.items() for part in (f"--{name}", str(value))]


@pytest.mark.parametrize(("fields", "recipe"), SAID)
def test_fields_make_the_recipe_that_options_make(fields, recipe, tmp_path):
    (tmp_path / "t.jsonl").write_bytes(jsonl(TEXTS))
    result = likewise.dedup(TEXTS, **fields)
    assert result.removed.equals(likewise.dedup(TEXTS, recipe).removed)
    assert result.summary["recipe_id"] == likewise.dedup(TEXTS, recipe).summary["recipe_id"]
    assert likewise.pairs(TEXTS, **fields).equals(likewise.pairs(TEXTS, recipe))
    done = likewise_command("dedup", tmp_path / "t.jsonl", "-o", tmp_path / "out", "--json", *options_of(fields))
    assert done.status == 0, done.err
    summary = dedup_files(tmp_path / "t.jsonl", tmp_path / "python", **fields)
    assert summary["recipe_id"] == json.loads(done.out)["recipe_id"] == result.summary["recipe_id"]
    assert pair_files(tmp_path / "t.jsonl", tmp_path / "p.tsv", **fields)["recipe_id"] == summary["recipe_id"]


def test_every_function_takes_a_name():
    strict = Recipe.preset("strict")
    assert likewise.sketch(TEXTS, "strict").recipe == strict
    assert likewise.sketch(TEXTS, within=3).recipe == Recipe.simhash(within=3)
    assert likewise.compare(*TEXTS[:2], "strict").recipe == strict.resolve()
    assert likewise.compare(*TEXTS[:2], threshold=0.9).recipe.threshold == 0.9
    assert measure(*TEXTS[:2], "code") == measure(*TEXTS[:2], Recipe.preset("code"))
    assert similarity(TEXTS[0], TEXTS[2], "jaccard", recipe="code") < 1
    assert features(TEXTS, "strict").features.tolist() == features(TEXTS, strict).features.tolist()


def test_an_index_keeps_the_first_and_knows_its_own(tmp_path):
    with likewise.Index(tmp_path / "seen", method="minhash", measure="containment") as seen:
        assert (seen.recipe.measure, seen.recipe.keep, seen.recipe.threshold) == ("containment", "first", 0.8)
    with pytest.raises(likewise.RecipeMismatch):
        likewise.Index(tmp_path / "seen", threshold=0.9)
    with pytest.raises(InvalidParameter, match="keep"):
        likewise.Index(tmp_path / "other", keep="longest")


def test_keep_alone_stands_beside_a_recipe():
    assert as_recipe("strict", {"keep": "longest"}) == Recipe.preset("strict").replace(keep="longest")
    assert as_recipe(Recipe.simhash(), {"keep": "longest"}) == Recipe.simhash(keep="longest")
    longest = likewise.dedup(TEXTS, "strict", keep="longest")
    assert longest.summary["recipe"]["keep"] == "longest"
    assert likewise.dedup(TEXTS, keep="longest").summary["recipe"]["keep"] == "longest"


def test_two_ways_at_once_are_an_error_that_names_both():
    with pytest.raises(InvalidParameter) as said:
        likewise.dedup(TEXTS, "strict", threshold=0.9)
    assert str(said.value) == (
        "threshold: cannot be combined with the preset 'strict'; pass Recipe.preset('strict', threshold=0.9) instead"
    )
    with pytest.raises(InvalidParameter) as said:
        likewise.pairs(TEXTS, Recipe.minhash(), within=3)
    assert str(said.value) == "within: cannot be combined with the recipe; pass recipe.replace(within=3) instead"
    for name, hint in (
        ("treshold", "; did you mean threshold?"),
        ("id_field", "; did you mean ids?"),
        ("on_error", "; did you mean nulls?"),
        ("num_perm", "; did you mean num_slots?"),
        ("preset", ""),
    ):
        with pytest.raises(InvalidParameter) as said:
            likewise.dedup(TEXTS, **{name: "strict"})
        assert str(said.value) == f"{name}: neither an argument of this function nor a field of a recipe{hint}"
    for wrong in ("no such", 0.8, {"method": "exact"}):
        with pytest.raises(InvalidParameter, match=r"is not a recipe such as .*, nor a preset such as strict"):
            likewise.dedup(TEXTS, wrong)
    with pytest.raises(InvalidParameter, match="num_slots does not apply to method simhash"):
        likewise.dedup(TEXTS, method="simhash", num_slots=64)


def test_the_typed_fields_are_those_of_recipes():
    """A type checker allows the fields that the functions take."""
    from likewise.recipe.fields import OPTION_NAMES, RecipeFields

    assert set(RecipeFields.__annotations__) | {"tokenizer"} == set(OPTION_NAMES) - {"libraries"}
    assert set(RecipeOptions.__annotations__) - {"tokenizer"} <= set(RecipeFields.__annotations__)
