"""Pairs between two collections equal the pairs of their union, minus the pairs within one side."""

import json

import pytest

import likewise
from likewise import Recipe
from likewise.batch.pair_files import pair_files
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up

# Texts that are equal within and across sides, empty texts, and texts that differ in a few words.
BASE = [made_up(30, number) for number in range(12)]
A = [
    *(BASE[0], BASE[0], BASE[2] + " other words", "", BASE[1] + " more", BASE[2]),
    *("short", BASE[3], BASE[9], "", BASE[4] + " " + BASE[5]),
]
B = [BASE[0], "", BASE[1], BASE[1], BASE[2] + " other words", "short", "Short", BASE[8], BASE[4], BASE[0]]
RECIPES = {
    "minhash": Recipe.minhash(0.5),
    "levels": Recipe.minhash(0.5, overflow="levels"),
    "shingles": Recipe.shingles(0.5),
    "containment": Recipe.shingles(0.5, measure="containment"),
    "bloom": Recipe.bloom(0.5, filter_bits=512),
    "simhash": Recipe.simhash(within=12),
    "cosine": Recipe.simhash(threshold=0.6),
    "exact": Recipe.exact(),
}


def expected(recipe):
    """Return the pairs across sides among the pairs of the union, a from A and b from B."""
    both = likewise.pairs([*B, *A], recipe).to_pylist()
    found = set()
    for pair in both:
        a, b = pair["row_a"], pair["row_b"]
        if recipe.measure != "containment" and a < b:
            a, b = b, a
        if a >= len(B) > b:
            found.add((a - len(B), b, pair["similarity"], pair["distance"]))
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_pairs_across_are_those_of_both_together(name, tmp_path):
    recipe = RECIPES[name]
    wanted = expected(recipe)
    assert len(wanted) >= (8 if name != "exact" else 6)
    found = likewise.pairs(A, recipe, ids=[f"a{row}" for row in range(len(A))], against=B)
    rows = [(pair["row_a"], pair["row_b"], pair["similarity"], pair["distance"]) for pair in found.to_pylist()]
    assert set(rows) == wanted
    assert rows == sorted(rows, key=lambda row: row[:2])
    assert len(rows) == len(wanted)
    assert found.column("doc_id_a").to_pylist() == [f"a{row[0]}" for row in rows]
    assert found.column("doc_id_b").to_pylist() == [row[1] for row in rows]
    for side, texts in (("a", A), ("b", B)):
        (tmp_path / f"{side}.jsonl").write_bytes(jsonl(texts))
    summary = pair_files(tmp_path / "a.jsonl", tmp_path / "p.jsonl", recipe, against=[tmp_path / "b.jsonl"])
    lines = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    by_line = {(str(a), str(b), similarity) for a, b, similarity, _ in wanted}
    assert {(line["doc_id_a"], line["doc_id_b"], line["similarity"]) for line in lines} == by_line
    assert (summary["num_documents"], summary["against"]["num_documents"]) == (len(A), len(B))


def test_nothing_is_listed_twice_or_beyond_the_limit():
    with pytest.raises(likewise.InvalidParameter, match="max_pairs"):
        likewise.pairs(["a text"] * 10, "strict", against=["a text"] * 10, max_pairs=99)
    # 100,000 copies on one side must not give billions of pairs.
    found = likewise.pairs(
        ["a text of words"] * 100_000, "strict", against=["a text of words", "other words, not those"]
    )
    assert found.num_rows == 100_000


def test_nulls_ids_and_the_default():
    found = likewise.pairs(
        [None, *A], nulls="drop", against=[None, *B], against_ids=[f"b{row}" for row in range(len(B) + 1)]
    )
    assert (1, 1, 1, "b1") in [
        (pair["row_a"], pair["row_b"], pair["doc_id_a"], pair["doc_id_b"]) for pair in found.to_pylist()
    ]
    assert likewise.pairs(A, against=[]).num_rows == likewise.pairs([], against=B).num_rows == 0


def test_the_command_takes_files_and_finished_runs(tmp_path):
    for side, texts in (("a", A), ("b", B)):
        (tmp_path / f"{side}.jsonl").write_bytes(jsonl(texts))
    done = likewise_command(
        "pairs", tmp_path / "a.jsonl", "-o", "-", "--against", tmp_path / "b.jsonl", "--threshold", "0.5"
    )
    assert done.status == 0, done.err
    assert "recipe: method minhash" in done.err
    assert f"among {len(A)} documents and {len(B)} of --against" in done.err
    rows = [line.split("\t") for line in done.out.decode().splitlines()[1:]]
    assert {(row[0], row[1]) for row in rows} == {(str(a), str(b)) for a, b, *_ in expected(Recipe.minhash(0.5))}
    run = tmp_path / "run"
    assert likewise_command("dedup", tmp_path / "b.jsonl", "-o", run, "--threshold", "0.4").status == 0
    num_kept = json.loads((run / "summary.json").read_text())["num_kept"]
    done = likewise_command("pairs", tmp_path / "a.jsonl", "-o", tmp_path / "p.tsv", "--against", run, "--json")
    assert done.status == 0, done.err
    summary = json.loads(done.out)
    assert summary["against"]["num_documents"] == num_kept
    assert summary["recipe"]["threshold"] == 0.4
