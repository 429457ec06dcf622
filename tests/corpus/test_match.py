"""``likewise match`` equals scoring every reference by itself, from memory and from files, in any order of work."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.corpus import match_files
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.stages.weights import count_weights
from tests import command
from tests.command import likewise_command
from tests.oracle import features as oracle
from tests.oracle.match import best
from tests.oracle.weights import idf_table

SENTENCE = "may copy this map by hand for any ship and voyage if the name of harbor office stays on it"
WORDS = SENTENCE.split()
COLUMNS = ["row", "doc_id", "rank", "reference_row", "reference_id", "score", "reference_share", "query_share"]


def made_up(seed):
    """Return references, several of them variants of one another, and queries that contain, truncate or miss them."""
    rng = random.Random(seed)

    def text(low, high):
        return " ".join(rng.choice(WORDS) for _ in range(rng.randint(low, high)))

    references = [text(5, 40) for _ in range(12)]
    references += [f"{reference} {text(1, 4)}" for reference in references[:6]] + [references[0], "x", ""]
    queries = [f"{text(0, 60)} {rng.choice(references)} {text(0, 60)}" for _ in range(25)]
    return references, [*queries, "", "!!!", "nothing like it at all", references[3]]


def features(texts, rules):
    return [oracle.features(text, rules).weights for text in texts]


def expected(queries, references, top, min_score):
    """Return the answer rows for queries, all given as their features."""
    rows = []
    for row, query in enumerate(queries):
        answers = best(query, references, top, min_score)
        rows += [(row, rank, *answer) for rank, answer in enumerate(answers, 1)] or [(row, *[None] * 5)]
    return rows


def found(table):
    names = ("row", "rank", "reference_row", "score", "reference_share", "query_share")
    return list(zip(*(table.column(name).to_pylist() for name in names), strict=True))


@pytest.mark.parametrize(("weights", "shingle"), [("none", 1), ("none", 3), ("log-count", 2), ("idf", 2)])
def test_answers_are_those_of_scoring_every_reference(weights, shingle):
    for seed in range(2):
        references, queries = made_up(seed)
        rules = oracle.Rules(shingle=shingle, weights=weights)
        if weights == "idf":
            rules = rules._replace(table=idf_table(references, rules))
        recipe = likewise.Recipe.shingles(0.5, shingle=shingle, weights=weights)
        sets = features(queries, rules), features(references, rules)
        for top, min_score in ((1, 0.05), (3, 0.4), (100, 0.0), (2, 1.0)):
            table = likewise.match(queries, references, recipe, top=top, min_score=min_score)
            assert found(table) == expected(*sets, top, min_score)


def test_word_pairs_by_rarity_among_the_references_are_the_default():
    references, queries = made_up(9)
    rules = oracle.Rules(shingle=2, weights="idf")
    rules = rules._replace(table=idf_table(references, rules))
    table = likewise.match(queries, references, top=4)
    assert table.column_names == COLUMNS
    assert found(table) == expected(features(queries, rules), features(references, rules), 4, 0.05)
    # Other queries change nothing.
    alone = likewise.match(queries[5:6], references, top=4)
    assert [row[1:] for row in found(alone)] == [row[1:] for row in found(table) if row[0] == 5]


def test_ids_and_references_of_any_kind():
    references = pa.table({"id": ["a", "b"], "text": ["one fine day in may", "another fine day in june"]})
    table = likewise.match(["It was one fine day in May."], references, ids=[17])
    assert table.to_pylist()[0]["reference_id"] == "a"
    assert table.column("doc_id").to_pylist() == [17]
    tokens = likewise.Recipe.shingles(0.5, tokens="user", shingle=1, weights="none", tokenizer="mine")
    table = likewise.match([["x", "y"]], [["z"], ["y", "x"]], tokens)
    assert (table.column("reference_row").to_pylist(), table.column("score").to_pylist()) == ([1], [1.0])


def test_a_table_of_weights_counts_as_it_is():
    references, queries = made_up(4)
    recipe = likewise.Recipe.shingles(weights="idf")
    counted = recipe.with_table(count_weights(references, recipe))
    assert likewise.match(queries, references, counted).equals(likewise.match(queries, references, recipe))
    other = recipe.with_table(count_weights(queries, recipe))
    assert not likewise.match(queries, references, other).equals(likewise.match(queries, references, recipe))


@pytest.fixture
def files(tmp_path):
    references, queries = made_up(2)
    (tmp_path / "references.jsonl").write_bytes(command.jsonl(references))
    half = len(queries) // 2
    for name, some in (("a.jsonl", queries[:half]), ("b.jsonl", queries[half:])):
        (tmp_path / name).write_bytes(command.jsonl(some))
    return tmp_path, references, queries


def test_the_summary_names_every_field_of_the_features(files):
    recipe = likewise.Recipe.shingles(weights="count", identifiers="numbers")
    summary = match_files(files[0] / "a.jsonl", files[0] / "references.jsonl", files[0] / "out.jsonl", recipe)
    assert summary["features"] == {
        "tokens": "auto", "shingle": 3, "weights": "count", "seed": 0, "identifiers": "numbers", "hash": "xxh3",
        "text_version": recipe.text_version,
    }  # fmt: skip


@pytest.mark.parametrize("threads", [1, 3])
def test_files_give_what_memory_gives(files, threads, monkeypatch):
    folder, references, queries = files
    monkeypatch.setattr("likewise.job.reading._PIECE_BYTES", 900)
    out = folder / "out.parquet"
    inputs = [folder / "a.jsonl", folder / "b.jsonl"]
    run = FileRun(threads=threads, duplicate_ids="allow")
    summary = match_files(inputs, folder / "references.jsonl", out, top=2, run=run)
    table, memory = pq.read_table(out), likewise.match(queries, references, top=2)
    for name in ("row", "rank", "reference_row", "score", "reference_share", "query_share"):
        assert table.column(name).to_pylist() == memory.column(name).to_pylist()
    assert summary["num_queries"] == len(queries)
    assert summary["num_matched"] == len(set(memory.filter(memory["rank"].is_valid())["row"].to_pylist()))
    assert summary["num_references"] == len(references)
    for row in table.to_pylist():
        for side, name in (("", row["file"]), ("reference_", row["reference_file"])):
            if name is not None:
                line = (folder / name).read_bytes()[row[f"{side}offset"] :][: row[f"{side}length"]]
                text = (queries if not side else references)[row["row"] if not side else row["reference_row"]]
                assert json.loads(line)["text"] == text


def test_the_command_writes_every_format_and_says_what_it_did(files):
    folder, references, _ = files
    arguments = ["match", folder / "a.jsonl", "--in", folder / "references.jsonl", "--min-score", "0.3"]
    done = likewise_command(*arguments)
    assert done.status == 0, done.err
    header, *lines = done.out.decode().splitlines()
    assert header.split("\t") == ["doc_id", "rank", "reference_id", "score", "reference_share", "query_share"]
    assert f"documents matched one of {len(references)} references (0 bad rows)" in done.err
    assert likewise_command(*arguments, "-o", folder / "m.jsonl", "--json").status == 0
    rows = [json.loads(line) for line in (folder / "m.jsonl").read_text().splitlines()]
    assert [[row["doc_id"], row["reference_id"] or ""] for row in rows] == [line.split("\t")[::2][:2] for line in lines]
    assert any(row["reference_id"] is None and row["score"] is None for row in rows)
    assert {"file", "offset", "length", "reference_file", "reference_offset", "reference_length"} < set(rows[0])


def test_what_cannot_be_matched_is_refused(tmp_path):
    with pytest.raises(InvalidInput, match="no reference documents"):
        likewise.match(["a"], [])
    with pytest.raises(InvalidInput, match="'x' is already used by row 0"):
        likewise.match(["a"], ["b", "c"], reference_ids=["x", "x"])
    with pytest.raises(InvalidParameter, match="method exact"):
        likewise.match(["a"], ["b"], likewise.Recipe.exact())
    for options in ({"top": 0}, {"min_score": 1.5}, {"min_score": float("nan")}, {"min_score": True}):
        with pytest.raises(InvalidParameter):
            likewise.match(["a"], ["b"], **options)
    (tmp_path / "q.jsonl").write_text('{"text": "a b c"}\n{"no": 1}\n')
    (tmp_path / "r.jsonl").write_text('{"id": 1, "text": "a b"}\n{"id": 1, "text": "b c"}\n')
    done = likewise_command("match", tmp_path / "q.jsonl", "--in", tmp_path / "r.jsonl")
    assert done.status == 2
    assert "r.jsonl:2" in done.err
    done = likewise_command("match", tmp_path / "q.jsonl", "--in", tmp_path / "r.jsonl", "--id-field", "none")
    assert done.status == 2
    assert "q.jsonl:2" in done.err
    skipping = ["--id-field", "none", "--on-error", "skip"]
    done = likewise_command("match", tmp_path / "q.jsonl", "--in", tmp_path / "r.jsonl", *skipping)
    assert done.status == 0, done.err
    assert done.out.decode().splitlines()[1].startswith("q.jsonl:1\t1\tr.jsonl:1\t")
