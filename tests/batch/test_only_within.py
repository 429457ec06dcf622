"""Documents compared only within the values of a field: one run as the oracle decides it, for every kind of input."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.stages.features import features as text_features
from likewise.stages.weights import count_weights
from tests.batch.labels import grouped_texts
from tests.command import likewise_command
from tests.io import files
from tests.oracle import decide
from tests.oracle.features import features
from tests.recipes import RECIPES, oracle_recipe, verdicts

SITES = ["a.example", "b.example", "", "ß\u2028猫"]
RECIPE = likewise.Recipe.minhash(threshold=0.6, only_within="site")
NAMES = (
    *("minhash", "minhash-log-count", "minhash-containment", "shingles-weighted", "exact", "bloom-bands"),
    *("simhash", "simhash-wide", "simhash-cosine"),
)


def documents(num_groups=25, seed=3):
    """Return copies and near-copies on the same and on different sites, including short and empty texts."""
    chance = random.Random(seed)
    texts = [
        *grouped_texts(num_groups, seed),
        "",
        "",
        "",
        "cat",
        "cat",
        "cat",
        "...",
        "...",
        "two\nlines",
        "two\nlines",
    ]
    return [(chance.choice(SITES), text) for text in texts]


DOCUMENTS = documents()
ROWS = [{"id": f"d{number}", "site": site, "text": text, "n": "0"} for number, (site, text) in enumerate(DOCUMENTS)]


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_are_those_of_the_oracle(name):
    recipe = RECIPES[name].replace(only_within="site")
    found = verdicts(likewise.dedup(DOCUMENTS, recipe, threads=2))
    lines = [f"{site}\n{text}" for site, text in DOCUMENTS]
    assert found == decide.dedup(lines, oracle_recipe(recipe), recipe.keep)
    removed = [(row, verdict[1]) for row, verdict in enumerate(found) if not verdict.kept]
    assert removed
    assert all(DOCUMENTS[row][0] == DOCUMENTS[kept][0] for row, kept in removed)
    assert len(removed) < sum(not verdict.kept for verdict in verdicts(likewise.dedup(_texts(), RECIPES[name])))


@pytest.mark.parametrize("weights", ["idf", "log-count-idf"])
@pytest.mark.parametrize("method", ["minhash", "shingles"])
def test_rarity_is_counted_over_all_values(method, weights):
    recipe = likewise.Recipe.from_options(method, threshold=0.5, weights=weights, only_within="site")
    lines = [f"{site}\n{text}" for site, text in DOCUMENTS]
    found = verdicts(likewise.dedup(DOCUMENTS, recipe))
    assert found == decide.dedup(lines, oracle_recipe(recipe), recipe.keep)
    some = [one for one in DOCUMENTS if one[1]]
    table = count_weights([text for _, text in some], recipe.across_values)
    with_table = likewise.dedup(some, recipe.replace(table=table))
    assert verdicts(with_table) == verdicts(likewise.dedup(some, recipe))


def test_features_are_those_of_the_text_told_apart():
    recipe = likewise.Recipe.minhash(shingle=2, weights="count", only_within="lang")
    found = text_features([("de", "one fine day one fine"), ("", "one fine day one fine")], recipe)
    rules = oracle_recipe(recipe).rules
    for row, value in enumerate(["de", ""]):
        part = slice(found.offsets[row], found.offsets[row + 1])
        expected = features(f"{value}\none fine day one fine", rules).weights
        assert dict(zip(found.features[part].tolist(), found.weights[part].tolist(), strict=True)) == expected


def _texts():
    return [text for _, text in DOCUMENTS]


def _kept(result):
    return result.kept.tolist()


def test_every_input_gives_the_same_verdicts(tmp_path):
    expected = _kept(likewise.dedup(DOCUMENTS, RECIPE))
    table = pa.table({name: [row[name] for row in ROWS] for name in ("id", "site", "text")})
    assert _kept(likewise.dedup(table, RECIPE)) == expected
    assert _kept(likewise.dedup(table, threshold=0.6, only_within="site")) == expected
    assert _kept(likewise.dedup(table.to_reader(max_chunksize=7), RECIPE)) == expected
    kept = [row["id"] for row, is_kept in zip(ROWS, expected, strict=True) if is_kept]
    assert 0 < len(kept) < len(ROWS)
    (tmp_path / "a.jsonl").write_bytes(files.jsonl(ROWS))
    (tmp_path / "a.csv").write_bytes(files.csv_bytes(ROWS))
    pq.write_table(table, tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.csv", "a.parquet"):
        out = tmp_path / f"out-{name}"
        likewise.dedup_files(tmp_path / name, out, RECIPE, run=FileRun(memory_bytes="300MB"))
        ids = pq.read_table(out / "removed.parquet").column("doc_id").to_pylist()
        assert sorted({row["id"] for row in ROWS} - set(ids)) == sorted(kept), name


@pytest.mark.parametrize("store", ["shingles", "text"])
def test_an_index_decides_as_a_run(store, tmp_path):
    expected = [None if kept else "" for kept in _kept(likewise.dedup(DOCUMENTS, RECIPE))]
    ids = [row["id"] for row in ROWS]
    with likewise.Index(tmp_path / "seen", RECIPE, store=store) as index:
        found = index.add_batch(ids, DOCUMENTS)
        assert [None if kept is None else "" for kept in found.kept_ids] == expected
        assert index.check_and_add(ids[0], DOCUMENTS[0]).added is False
        assert index.check(("no.example", DOCUMENTS[0][1])).is_new
        near = index.neighbors(DOCUMENTS[0], k=3)
        assert near[0].similarity == 1.0
        with pytest.raises(InvalidInput, match=r"only within 'site'.*\(value, text\) pairs"):
            index.check("no value")
    with likewise.Index(tmp_path / "seen") as index:
        assert index.recipe.only_within == "site"
        assert not index.check(DOCUMENTS[0]).is_new


def test_a_run_against_a_run_compares_within_values(tmp_path):
    (tmp_path / "old.jsonl").write_bytes(files.jsonl(ROWS[:60]))
    (tmp_path / "new.jsonl").write_bytes(files.jsonl(ROWS[60:]))
    likewise.dedup_files(tmp_path / "old.jsonl", tmp_path / "first", RECIPE)
    summary = likewise.dedup_files(tmp_path / "new.jsonl", tmp_path / "second", RECIPE, against=[tmp_path / "first"])
    assert summary["num_kept"] == sum(_kept(likewise.dedup(DOCUMENTS, RECIPE))[60:])


def test_the_command_and_what_it_shows(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(files.jsonl(ROWS))
    args = ["dedup", "a.jsonl", "-o", "out", "--threshold", "0.6", "--only-within", "site"]
    assert likewise_command(*args, cwd=tmp_path).status == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["recipe"]["only_within"] == "site"
    assert summary["num_kept"] == sum(_kept(likewise.dedup(DOCUMENTS, RECIPE)))
    rows = [{**row, "site": None} if number == 3 else row for number, row in enumerate(ROWS)]
    (tmp_path / "a.jsonl").write_bytes(files.jsonl(rows))
    failed = likewise_command(*args, "--overwrite", cwd=tmp_path)
    assert failed.status == 2
    assert 'field "site" is null' in failed.err
    (tmp_path / "a.jsonl").write_bytes(files.jsonl([{"text": "a"}, {"text": "b"}]))
    failed = likewise_command(*args, "--overwrite", cwd=tmp_path)
    assert 'no field "site" (found: text); choose a field with --only-within' in failed.err
    (tmp_path / "a.txt").write_text("one\ntwo")
    failed = likewise_command(*args[:1], "a.txt", *args[2:], "--overwrite", cwd=tmp_path)
    assert "text files have no field 'site' to compare within" in failed.err


def test_pairs_and_comparisons():
    found = likewise.pairs(DOCUMENTS, RECIPE).to_pylist()
    assert found
    assert all(DOCUMENTS[one["row_a"]][0] == DOCUMENTS[one["row_b"]][0] for one in found)
    # Texts given without values are compared whatever their first lines are.
    text = "x\none fine day in spring"
    assert likewise.compare(text, text, RECIPE).matches
    assert likewise.compare(text, "y\none fine day in spring", RECIPE).measures.jaccard < 1


def test_what_is_refused():
    with pytest.raises(InvalidParameter, match="only_within does not apply to tokens bytes"):
        likewise.Recipe.minhash(tokens="bytes", only_within="site")
    with pytest.raises(InvalidParameter, match="empty"):
        likewise.Recipe.minhash(only_within="")
    with pytest.raises(InvalidParameter, match="hash datasketch"):
        likewise.Recipe.minhash(hash="datasketch", only_within="site")
    with pytest.raises(InvalidInput, match=r"row 1: .*pairs"):
        likewise.dedup([("a", "text"), "text"], RECIPE)
    with pytest.raises(InvalidInput, match="several lines"):
        likewise.dedup([("a\nb", "text")], RECIPE)
    with pytest.raises(InvalidInput, match="no column 'site'"):
        likewise.dedup(pa.table({"text": ["a"]}), RECIPE)


def test_the_field_is_part_of_the_recipe():
    assert likewise.Recipe.from_json(RECIPE.to_json()) == RECIPE
    assert len({RECIPE.recipe_id, RECIPE.across_values.recipe_id, RECIPE.replace(only_within="lang").recipe_id}) == 3
    assert RECIPE.across_values == likewise.Recipe.minhash(threshold=0.6)


def test_an_export_tells_the_value_from_the_text(tmp_path):
    with likewise.Index(tmp_path / "seen", RECIPE, store="text") as index:
        index.add_batch(["a", "b"], [("x", 'one\n"two"'), ("", "")])
        index.export(tmp_path / "all.jsonl")
    found = [json.loads(line) for line in (tmp_path / "all.jsonl").read_text().splitlines()]
    assert [(one["value"], one["text"]) for one in found] == [("x", 'one\n"two"'), ("", "")]
    recipe = likewise.Recipe.own("words", threshold=0.5, shingle=1)
    with likewise.Index(tmp_path / "own", recipe, store="text") as index:
        index.add("a", ["one", "two"])
        index.export(tmp_path / "all.jsonl")
    assert json.loads((tmp_path / "all.jsonl").read_text())["text"] == "one two"
