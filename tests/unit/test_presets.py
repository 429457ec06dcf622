"""Presets are only fields: by name, with options replacing single ones, in Python and in commands."""

import json
from typing import get_args

import pytest

import likewise
from likewise import Recipe
from likewise.batch.files import dedup_files
from likewise.batch.pair_files import pair_files
from likewise.errors import InvalidParameter
from likewise.recipe.presets import PRESETS, Preset
from tests.command import jsonl, likewise_command

# The fields of each preset, repeated independently.
MEANT = {
    "default": Recipe.minhash("auto", shingle=2, weights="idf", fold="signs", short_margin=1.0, siblings="keep"),
    "online": Recipe.minhash(0.55, shingle=3, weights="none", short_margin=1.0),
    "strict": Recipe.minhash(0.8, shingle=3),
    "templates": Recipe.minhash(0.5, shingle=2, weights="idf"),
    "titles": Recipe.minhash(
        0.55, tokens="char", shingle=2, fold="accents,punctuation", identifiers="numbers", num_slots=256, recall=0.9
    ),
    "names": Recipe.shingles(
        0.9, tokens="char", shingle=2, weights="log-count", fold="accents,punctuation", measure="overlap"
    ),
    "ocr": Recipe.minhash(0.43, tokens="char", shingle=4, fold="confusables,accents,punctuation", num_slots=256),
    "threads": Recipe.shingles(0.8, shingle=3, measure="containment", keep="longest"),
    "classic-simhash": Recipe.simhash(within=3),
    "code": Recipe.minhash(0.6, tokens="char", shingle=2, weights="log-count"),
}
TEXTS = ["one fine day in may by the sea", "One fine day in May, by the sea!", "one fine day in june by the lake"]


def test_each_is_the_recipe_that_it_is_meant_to_be():
    assert tuple(PRESETS) == get_args(Preset) == tuple(MEANT)
    for name, recipe in MEANT.items():
        assert Recipe.preset(name) == recipe
        assert Recipe.preset(name).recipe_id == recipe.recipe_id
        assert "preset" not in recipe.to_json()


def test_options_replace_single_fields():
    assert Recipe.preset("code", threshold=0.7) == MEANT["code"].replace(threshold=0.7)
    assert Recipe.preset("strict", method="shingles") == Recipe.shingles(0.8, shingle=3)
    with pytest.raises(InvalidParameter, match="within"):
        Recipe.preset("strict", within=3)
    with pytest.raises(InvalidParameter, match="is not one of default, online, strict"):
        Recipe.preset("unknown")


def test_functions_take_a_name_or_a_recipe(tmp_path):
    for name, recipe in MEANT.items():
        assert likewise.dedup(TEXTS, name).removed.equals(likewise.dedup(TEXTS, recipe).removed)
        assert likewise.pairs(TEXTS, name).equals(likewise.pairs(TEXTS, recipe))
    (tmp_path / "t.jsonl").write_bytes(jsonl(TEXTS))
    summary = dedup_files(tmp_path / "t.jsonl", tmp_path / "out", "strict")
    assert summary["recipe_id"] == MEANT["strict"].recipe_id
    assert pair_files(tmp_path / "t.jsonl", tmp_path / "p.tsv", "code")["recipe_id"] == MEANT["code"].recipe_id
    with likewise.Index(tmp_path / "seen", "classic-simhash") as seen:
        assert seen.recipe.recipe_id == MEANT["classic-simhash"].recipe_id
    with likewise.Index(tmp_path / "seen", "classic-simhash", read_only=True) as seen:
        assert len(seen) == 0
    with pytest.raises(likewise.RecipeMismatch):
        likewise.Index(tmp_path / "seen", "strict")


def planned(*options):
    done = likewise_command("plan", *options, "--json")
    assert done.status == 0, done.err
    return json.loads(done.out)["recipe"]


def test_the_command_line_shows_them_and_lets_options_go_first(tmp_path):
    for name, recipe in MEANT.items():
        assert planned("--preset", name) == json.loads(json.dumps(recipe.resolve().to_dict()))
    assert planned("--preset", "code", "--threshold", "0.7")["threshold"] == 0.7
    assert planned("--preset", "strict", "--method", "shingles")["method"] == "shingles"
    (tmp_path / "r.json").write_text(Recipe.minhash().to_json())
    done = likewise_command("plan", "--preset", "strict", "--recipe", tmp_path / "r.json")
    assert done.status == 2
    assert "--preset: cannot be combined with --recipe" in done.err
    (tmp_path / "t.jsonl").write_bytes(jsonl(TEXTS))
    run = ["dedup", tmp_path / "t.jsonl", "-o", tmp_path / "out", "--preset", "titles", "--json"]
    done = likewise_command(*run)
    assert done.status == 0, done.err
    assert json.loads(done.out)["recipe_id"] == MEANT["titles"].recipe_id
    done = likewise_command("index", "create", tmp_path / "seen", "--preset", "templates")
    assert done.status == 2
    assert "likewise weights" in done.err
    weights = ["weights", tmp_path / "t.jsonl", "-o", tmp_path / "w", "--preset", "templates"]
    assert likewise_command(*weights).status == 0
    done = likewise_command("index", "create", tmp_path / "seen", "--preset", "templates", "--weights", tmp_path / "w")
    assert done.status == 0, done.err
