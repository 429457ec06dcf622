"""Stored pairs: all are stored, verdicts are unchanged, and deciding on them again gives the run's own answer."""

import itertools
import json
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidParameter, Recipe, dedup_files
from likewise.io.output.evidence import read_facts
from likewise.measures import measure
from likewise.runs.viewing.thresholds import Thresholds
from likewise.stages.groups import choose_leaders
from tests.command import jsonl, likewise_command
from tests.unit.test_siblings import forms
from tests.unit.test_siblings import recipe as named_recipe

TALE = "the quick brown fox jumps over a lazy dog while seven gray ravens watch from that old stone bridge"
WORDS = TALE.split()


def corpus(seed, num_texts=140):
    """Return families of texts at many distances, with copies, short and empty texts."""
    draw = random.Random(seed)
    texts = ["", "  ", "one", "One!"]
    while len(texts) < num_texts:
        base = draw.choices(WORDS, k=draw.choice([12, 60, 90]))
        for _ in range(draw.randint(1, 6)):
            words = list(base)
            for _ in range(draw.randint(0, 8)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            texts.append(" ".join(words))
    draw.shuffle(texts)
    return texts[:num_texts]


RECIPES = {
    "minhash": (Recipe.minhash(0.6), 0.3),
    "longest": (Recipe.minhash(0.6, keep="longest"), 0.4),
    "components": (Recipe.minhash(0.7, group="components"), 0.5),
    "containment": (Recipe.minhash(0.8, measure="containment"), 0.5),
    "idf": (Recipe.minhash(weights="idf"), 0.2),
    "shingles": (Recipe.shingles(0.6), 0.3),
    "cosine": (Recipe.simhash(threshold=0.8), 0.5),
    "distance": (Recipe.simhash(within=8), 0.7),
    "margin": (Recipe.minhash(0.5, short_margin=0.9), 0.3),
    "margin, components": (Recipe.shingles(0.5, short_margin=0.9, group="components"), 0.3),
    "siblings": (named_recipe(), 0.2),
}


@pytest.mark.parametrize("name", RECIPES)
def test_decided_again_at_the_threshold_they_give_the_answer_of_the_run(tmp_path, name):
    recipe, floor = RECIPES[name]
    (tmp_path / "in.jsonl").write_bytes(jsonl(corpus(7) if name != "siblings" else forms(7, 140)))
    plain = dedup_files(tmp_path / "in.jsonl", tmp_path / "plain", recipe)
    stored = dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, store_pairs=floor)
    assert pq.read_table(tmp_path / "out/removed.parquet").equals(pq.read_table(tmp_path / "plain/removed.parquet"))
    assert stored["num_kept"] == plain["num_kept"]

    path = tmp_path / "out/pairs.parquet"
    facts, pairs = read_facts(path), pq.read_table(path)
    assert facts.floor == floor
    assert len(pairs) == stored["stored_pairs"]["num_pairs"] > 0
    similarity = pairs["similarity"].to_numpy()
    assert similarity.min() >= floor
    threshold = recipe.threshold or 1 - recipe.sketch.within / recipe.sketch.bits
    required = np.minimum(threshold + (recipe.short_margin or 0) / np.sqrt(pairs["num_features"].to_numpy()), 1.0)
    required = np.minimum(required + pairs["penalty"].to_numpy(), 1.0)
    assert (similarity < required).any()
    assert pairs["penalty"].to_numpy().any() == (recipe.siblings is not None)
    assert Thresholds(path, recipe.resolve(), stored["num_kept"]).kept_at(threshold) == stored["num_kept"]
    if recipe.group == "leaders":
        ranks = np.stack([pairs["rank_a"].to_numpy(), pairs["rank_b"].to_numpy()], 1)[similarity >= required]
        decided = choose_leaders(facts.num_distinct, ranks, similarity[similarity >= required])
        assert facts.num_distinct - (~decided.kept).sum() == stored["num_kept"]


def test_they_are_all_the_pairs_there_are(tmp_path):
    """Against a plain measurement of all pairs, with a search that misses none."""
    texts = list(dict.fromkeys(text for text in corpus(3, 60) if text.strip()))
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    recipe = Recipe.shingles(0.7)
    dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, store_pairs=0.25)
    rows = pq.read_table(tmp_path / "out/pairs.parquet").to_pylist()
    found = {(row["row_b"], row["row_a"]): row["similarity"] for row in rows}
    expected = {}
    for a, b in itertools.combinations(range(len(texts)), 2):
        value = measure(texts[a], texts[b], recipe).jaccard
        if value >= 0.25:
            expected[a, b] = value
    same = {pair for pair, value in expected.items() if value == 1.0}
    assert found == {pair: value for pair, value in expected.items() if pair not in same}
    row = rows[0]
    line = (tmp_path / "in.jsonl").read_bytes()[row["offset_a"] : row["offset_a"] + row["length_a"]]
    assert json.loads(line)["text"] == texts[row["row_a"]]


def test_what_cannot_be_stored_is_refused(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(["a b c", "a b d"]))
    for recipe, floor in (
        (Recipe.minhash(0.6), 0.61),
        (Recipe.minhash(0.6), 0.0),
        (Recipe.minhash(0.6), float("nan")),
        (Recipe.simhash(within=3), 0.99),
        (Recipe.exact(), 0.5),
    ):
        with pytest.raises(InvalidParameter, match="store_pairs"):
            dedup_files(tmp_path / "in.jsonl", tmp_path / "out", recipe, store_pairs=floor)
    assert not (tmp_path / "out").exists()
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", "-", "--store-pairs", "0.3")
    assert ran.status == 2
    assert "--store-pairs" in ran.err


def test_a_run_that_replaces_one_takes_its_pairs_away_and_leaves_the_labels(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(corpus(1)))
    out = tmp_path / "out"
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", out, "--store-pairs", "0.3")
    assert ran.status == 0
    assert "in pairs.parquet" in ran.err
    (out / "review.csv").write_text("doc_id_a,doc_id_b,label\n")
    (out / "report.html").write_text("old")
    assert likewise_command("dedup", tmp_path / "in.jsonl", "-o", out, "--overwrite").status == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "kept",
        "recipe",
        "removed.parquet",
        "review.csv",
        "summary.json",
    ]


def test_what_the_run_did_not_compare_is_left_out_from_its_threshold_on(tmp_path, monkeypatch):
    """A pair above the threshold whose estimate is far below it was never measured, so it decides nothing."""
    from likewise.batch import pair_files as near_pairs

    texts = corpus(9)
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    recipe = Recipe.minhash(0.5)
    dedup_files(tmp_path / "in.jsonl", tmp_path / "all", recipe, store_pairs=0.3)
    monkeypatch.setattr(near_pairs, "min_equal_slots", lambda _: 90)
    dedup_files(tmp_path / "in.jsonl", tmp_path / "some", recipe, store_pairs=0.3)
    slots = likewise.sketch(texts, recipe).array
    every, some = (pq.read_table(tmp_path / name / "pairs.parquet").to_pylist() for name in ("all", "some"))
    expected = [
        row for row in every if row["similarity"] < 0.5 or (slots[row["row_a"]] == slots[row["row_b"]]).sum() >= 90
    ]
    assert some == expected
    assert len(some) < len(every)
