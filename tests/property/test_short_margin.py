"""Short documents need a higher similarity: all entry points apply the defined margin, and the evidence states it."""

import math
import random

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidParameter, Recipe
from tests.command import jsonl, likewise_command
from tests.oracle import measures
from tests.oracle.decide import Online
from tests.oracle.features import Rules, features
from tests.oracle.valley import valley as oracle_valley
from tests.recipes import RECIPES, oracle_recipe, verdicts

RECIPE = Recipe.shingles(0.4, shingle=1, short_margin=1.1)
WORDS = [f"word{number}" for number in range(60)]


def required(a, b, threshold=0.4, margin=1.1):
    """Return the required similarity by its definition."""
    return min(1.0, threshold + margin / math.sqrt(max(1, min(len(a), len(b)))))


@pytest.fixture(scope="module")
def texts():
    """Return families of short texts with words changed, so that sizes decide many pairs."""
    draw = random.Random(5)
    found = ["", "one", "One!"]
    while len(found) < 250:
        base = draw.choices(WORDS, k=draw.choice([4, 8, 20, 60]))
        for _ in range(4):
            words = list(base)
            for _ in range(draw.randint(0, len(base) // 3)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
            found.append(" ".join(words))
    draw.shuffle(found)
    return found


@pytest.fixture(scope="module")
def sets(texts):
    return [features(text, Rules(shingle=1)).weights for text in texts]


def test_pairs_are_those_of_the_definition(texts, sets):
    expected, spared = {}, 0
    for b in range(len(texts)):
        for a in range(b):
            value = measures.similarity(sets[a], sets[b], "jaccard")
            if value >= required(sets[a], sets[b]):
                expected[a, b] = value
            spared += 0.4 <= value < required(sets[a], sets[b])
    assert spared > 10
    table = likewise.pairs(texts, RECIPE)
    rows = zip(table["row_a"].to_pylist(), table["row_b"].to_pylist(), strict=True)
    assert dict(zip(rows, table["similarity"].to_pylist(), strict=True)) == expected


@pytest.mark.parametrize(
    "recipe",
    [Recipe.minhash(0.4, shingle=1, short_margin=1.1), Recipe.simhash(threshold=0.5, shingle=1, short_margin=1.1)],
    ids=["minhash", "simhash"],
)
def test_an_index_decides_as_a_run(tmp_path, texts, recipe):
    removed = likewise.dedup(texts, recipe, ids=[str(row) for row in range(len(texts))]).removed.to_pylist()
    without = likewise.dedup(texts, recipe.replace(short_margin=None)).removed
    assert len(removed) < len(without) - 10
    with likewise.Index(tmp_path / "seen.lw", recipe) as index:
        verdicts = [index.check_and_add(str(row), text) for row, text in enumerate(texts[:80])]
        verdicts += index.check_and_add_batch([str(row) for row in range(80, len(texts))], texts[80:])
    found = {one.doc_id: (one.kept_id, one.similarity) for one in verdicts if not one.is_new}
    assert found == {row["doc_id"]: (row["kept_id"], row["similarity"]) for row in removed}


def test_the_evidence_states_what_each_pair_had_to_reach(texts, sets):
    removed = likewise.dedup(texts, RECIPE).removed.to_pylist()
    assert len({row["required"] for row in removed}) > 3
    for row in removed:
        assert row["required"] == required(sets[row["row"]], sets[row["kept_row"]])
        assert row["similarity"] >= row["required"]
    assert "required" not in likewise.dedup(texts, RECIPE.replace(short_margin=None)).removed.column_names


def test_a_comparison_is_decided_by_the_same_rule(texts, sets):
    for b in range(1, len(texts), 7):
        found = likewise.compare(texts[b - 1], texts[b], RECIPE)
        if sets[b - 1] and sets[b]:
            assert found.matches == (found.measures.jaccard >= required(sets[b - 1], sets[b]))


def test_documents_of_an_index_have_no_known_size(tmp_path, texts):
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts[:200]))
    recipe = Recipe.minhash(0.4, shingle=1, short_margin=1.1)
    (tmp_path / "recipe.json").write_text(recipe.to_json())
    with likewise.Index(tmp_path / "seen.lw", recipe) as index:
        index.check_and_add_batch([f"old-{i}" for i in range(100)], texts[:100])
    given = ("--recipe", "recipe.json", "--against", "seen.lw")
    assert likewise_command("dedup", "in.jsonl", "-o", "out", *given, cwd=tmp_path).status == 0
    removed = pq.read_table(tmp_path / "out/removed.parquet").to_pylist()
    assert {row["kept_source"] for row in removed} == {"against", "input"}
    assert all((row["required"] is None) == (row["kept_source"] == "against") for row in removed)


def test_the_command_takes_it_and_says_it(tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(["one two three four five", "one two three four six", "seven"]))
    given = ("--threshold", "0.5", "--shingle", "1", "--method", "shingles")
    plain = likewise_command("dedup", "in.jsonl", "-o", "plain", *given, cwd=tmp_path)
    asked = likewise_command("dedup", "in.jsonl", "-o", "out", *given, "--short-margin", "0.75", cwd=tmp_path)
    assert (plain.status, asked.status) == (0, 0), asked.err
    assert pq.read_metadata(tmp_path / "plain/removed.parquet").num_rows == 1
    assert pq.read_metadata(tmp_path / "out/removed.parquet").num_rows == 0
    assert "0.5 + 0.75 / sqrt" in (tmp_path / "out/summary.json").read_text()


def test_a_margin_of_nothing_is_no_margin_and_others_are_checked():
    assert Recipe.minhash(0.5, short_margin=0) == Recipe.minhash(0.5)
    assert Recipe.from_json(RECIPE.to_json()) == RECIPE
    for wrong in (-0.1, "much", float("nan"), float("inf"), True):
        with pytest.raises(InvalidParameter, match="short_margin"):
            Recipe.minhash(0.5, short_margin=wrong)
    with pytest.raises(InvalidParameter, match="short_threshold"):
        Recipe.simhash(within=3, short_margin=0.5)
    with pytest.raises(InvalidParameter, match="short_margin"):
        Recipe.exact().replace(short_margin=0.5)


def test_python_and_core_require_the_same_to_the_bit():
    """Each size at exactly the similarity that it requires, and one unit in the last place higher."""
    sizes = np.arange(1, 400)
    for margin in (0.1, 0.75, 1.0):
        recipe = Recipe.shingles(0.3, shingle=1, short_margin=margin)
        values = recipe.required_similarity(sizes)
        assert values.tolist() == [min(1.0, 0.3 + margin / math.sqrt(size)) for size in sizes.tolist()]


def test_components_mark_what_is_below_what_was_required(texts, sets):
    found = likewise.dedup(texts, RECIPE.replace(group="components")).removed.to_pylist()
    # Some reach the threshold, but not the similarity that short documents need.
    assert any(row["below_threshold"] and row["similarity"] >= 0.4 for row in found)
    for row in found:
        assert row["below_threshold"] == (row["similarity"] < required(sets[row["row"]], sets[row["kept_row"]]))


@pytest.mark.parametrize(
    "name", ["minhash-margin", "minhash-margin-containment", "shingles-margin", "bloom-margin", "simhash-margin"]
)
def test_runs_are_the_decision_rule_fed_one_by_one(texts, name):
    recipe = RECIPES[name].replace(keep="first")
    oracle = Online(oracle_recipe(recipe))
    assert verdicts(likewise.dedup(texts, recipe)) == [oracle.add(row, text) for row, text in enumerate(texts)]


def forms(num_families=80):
    """Return forms of 40 words, half of them shared by a family, and a copy of each with eight words changed."""
    draw = random.Random(3)
    vocabulary = [f"term{number}" for number in range(3000)]
    found = []
    for _ in range(num_families):
        shared = draw.sample(vocabulary, 20)
        for _ in range(3):
            words = shared + draw.sample(vocabulary, 20)
            found.append(" ".join(words))
            words[-8:] = draw.sample(vocabulary, 8)
            found.append(" ".join(words))
    draw.shuffle(found)
    return found


def test_a_threshold_is_chosen_where_long_documents_would_match():
    """The slow oracle decides on all pairs, with the margins for their sizes subtracted."""
    texts = forms()
    sizes = [len(features(text, Rules(shingle=1)).weights) for text in texts]
    found = likewise.pairs(texts, Recipe.shingles(0.26, shingle=1))
    columns = [found[name].to_pylist() for name in ("row_a", "row_b", "similarity")]
    chosen = {}
    for margin in (0.0, 1.0):
        pairs = []
        for a, b, value in zip(*columns, strict=True):
            lowered = 1.0 if value >= 1 else max(0.0, value - margin / math.sqrt(min(sizes[a], sizes[b])))
            pairs += [(lowered, row, 1) for row in (a, b)]
        expected, reason, *_ = oracle_valley(pairs)
        facts = likewise.dedup(texts, Recipe.minhash("auto", shingle=1, short_margin=margin)).summary
        chosen[margin] = facts["chosen_threshold"]["threshold"]
        assert (reason, facts["chosen_threshold"]["reason"]) == (None, None)
        # Bands miss few pairs of the lowest similarity.
        assert abs(chosen[margin] - expected) <= 0.01
    assert chosen[1.0] < chosen[0.0] - 0.03


def versions(num_bases=60):
    """Return texts of 30 words, each with up to 20 words changed, so that similarities have no gap."""
    draw = random.Random(4)
    vocabulary = [f"term{number}" for number in range(3000)]
    found = []
    for _ in range(num_bases):
        base = draw.sample(vocabulary, 30)
        for _ in range(8):
            words = list(base)
            for place in draw.sample(range(30), draw.randint(0, 20)):
                words[place] = draw.choice(vocabulary)
            found.append(" ".join(words))
    return found


@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_without_a_gap_the_threshold_fits_the_usual_document(margin):
    """The slow oracle decides on all pairs; documents with several relatives each need more than 0.8."""
    texts = versions()
    sizes = [len(features(text, Rules(shingle=1)).weights) for text in texts]
    usual = margin / math.sqrt(sorted(sizes)[len(sizes) // 2])
    found = likewise.pairs(texts, Recipe.shingles(0.26, shingle=1))
    pairs = []
    for a, b, value in zip(*(found[name].to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True):
        lowered = 1.0 if value >= 1 else max(0.0, value - margin / math.sqrt(min(sizes[a], sizes[b])))
        pairs += [(lowered, row, 1) for row in (a, b)]
    expected, reason, *_ = oracle_valley(pairs, margin=usual)
    facts = likewise.dedup(texts, Recipe.minhash("auto", shingle=1, short_margin=margin)).summary["chosen_threshold"]
    assert (facts["threshold"], facts["reason"]) == (expected, reason) == (0.84 if margin else 0.92, "one form")
