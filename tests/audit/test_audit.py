"""Audits against plain sets, of runs as they were and of runs that were tampered with."""

import importlib
import json
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import InvalidInput, InvalidParameter, Recipe, RecipeMismatch, dedup_files
from likewise.audit import audit, read_certificate
from likewise.dedup import FileRun
from tests.audit.corpora import graded, resembling, write
from tests.command import likewise_command
from tests.oracle import measures
from tests.oracle.features import Rules, features
from tests.viewing import runs

# Few bands: much is missed.
SABOTAGED = Recipe.minhash(0.5, bands=4, rows=6)


@pytest.fixture(scope="module")
def texts():
    return graded(240, 3)


def run_of(folder, texts, recipe=SABOTAGED, **options):
    dedup_files(write(folder / "in.jsonl", texts), folder / "out", recipe, **options)
    return folder / "out"


def failed(found):
    return [check.name for check in found.checks if not check.passed]


def test_a_census_counts_what_plain_sets_count(tmp_path, texts):
    found = audit(run_of(tmp_path, texts), num_sampled=1000)
    true = set(resembling(texts, 0.5))
    table = likewise.pairs(texts, SABOTAGED)
    compared = set(zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b")), strict=True))
    assert 0.3 < len(compared & true) / len(true) < 0.9
    assert found.recall.num_pairs == len(true)
    assert found.recall.pairs.value == pytest.approx(len(compared & true) / len(true), abs=1e-12)
    assert found.recall.pairs.is_exact
    listed = {tuple(sorted((pair["row_a"], pair["row_b"]))) for pair in found.certificate["missed_pairs"]}
    # Copies of one text are one in the list.
    assert listed <= true - compared
    assert {(a, b) for a, b in true - compared if a in firsts(texts) and b in firsts(texts)} == listed


def firsts(texts):
    return {texts.index(text) for text in texts}


def test_a_census_counts_the_documents_that_ought_to_go(tmp_path, texts):
    out = run_of(tmp_path, texts)
    removed = set(pq.read_table(out / "removed.parquet").column("row").to_pylist())
    kept = set(range(len(texts))) - removed
    ought = {b for a, b in resembling(texts, 0.5) if a in kept and b in kept}
    found = audit(out, num_sampled=1000)
    assert ought
    assert found.recall.num_overlooked == len(ought)
    assert found.recall.removals.value == pytest.approx(len(removed) / (len(removed) + len(ought)))
    assert found.precision.value == 1.0
    assert found.passed


def test_missed_pairs_name_what_lost_them(tmp_path, texts):
    found = audit(run_of(tmp_path, texts), num_sampled=1000)
    array = likewise.sketch(texts, SABOTAGED).array
    stages = Counter()
    for pair in found.certificate["missed_pairs"]:
        equal = array[pair["row_a"]] == array[pair["row_b"]]
        shares_a_band = equal[:24].reshape(4, 6).all(axis=1).any()
        assert (pair["stage"] == "not a candidate") == (not shares_a_band)
        stages[pair["stage"]] += 1
    assert set(stages) <= {"not a candidate", "estimate below the threshold"}
    assert stages["not a candidate"] > 10


def test_full_buckets_are_told_from_bands_that_differ(tmp_path):
    # One word differs: all share the bands, the last buckets of which are full after 64.
    base = " ".join(f"word{i}" for i in range(200)).split()
    texts = [" ".join([*base[:i], f"other{i}", *base[i + 1 :]]) for i in range(0, 200, 1)]
    recipe = Recipe.minhash(0.9, bands=1, rows=2)
    found = audit(run_of(tmp_path, texts, recipe), num_sampled=1000)
    assert found.certificate["stated_recall"] is not None
    assert found.recall.by_stage["capped"] > 0


@pytest.mark.parametrize("measure", ["jaccard", "dice", "cosine", "containment", "overlap"])
@pytest.mark.parametrize("weights", ["none", "log-count"])
def test_truth_is_that_of_the_oracle_for_every_measure(tmp_path, measure, weights):
    texts = graded(60, 11)
    texts += [text[: len(text) // 3] for text in texts[:10]] + ["a b", "a b", "", " "]
    recipe = Recipe.minhash(0.6, measure=measure, weights=weights, keep="first", bands=2, rows=3)
    sets = [features(text, Rules(shingle=3, weights=weights)) for text in texts]
    found = audit(run_of(tmp_path, texts, recipe), num_sampled=1000)
    # Of containment the later one counts, in the earlier.
    true = [
        (a, b)
        for b in range(len(texts))
        for a in range(b)
        if measures.similarity(sets[b].weights, sets[a].weights, measure) >= 0.6
    ]
    assert found.recall.num_pairs == len(true)
    assert failed(found) == []


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe.simhash(),
        Recipe.simhash(within=3),
        Recipe.simhash(bits=96, within=12, tokens="char", recall=0.6),
        Recipe.simhash(bits=160, within=20, tokens="word"),
    ],
    ids=["default", "within 3", "bands of bits", "wide"],
)
def test_distance_only_runs_are_measured_by_distance(tmp_path, texts, recipe):
    texts = [*texts[:150], "short one", "short one two", "", ""]
    found = audit(run_of(tmp_path, texts, recipe), num_sampled=1000)
    recipe = recipe.resolve()
    rules = Rules(tokens=recipe.tokens, shingle=recipe.shingle)
    array = likewise.sketch(texts, recipe).array
    sets = [set(features(text, rules).weights) for text in texts]
    true = 0
    for b in range(len(texts)):
        for a in range(b):
            if not sets[a] or not sets[b]:
                true += sets[a] == sets[b]
            elif int(likewise.hamming_distance(array[a : a + 1], array[b : b + 1])[0]) <= recipe.within:
                few = min(len(sets[a]), len(sets[b])) < 64
                true += not few or len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= recipe.short_threshold
    assert found.recall.num_pairs == true
    assert failed(found) == []
    table = likewise.pairs(texts, recipe)
    assert found.recall.pairs.value == pytest.approx(table.num_rows / true)
    assert recipe.recall is not None or found.recall.pairs.value == 1.0


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet", "txt"])
@pytest.mark.parametrize("recipe", [Recipe.minhash(0.5), Recipe.simhash(measure="cosine"), Recipe.exact()])
def test_every_format_passes(tmp_path, form, recipe):
    found = audit(runs.make_run(tmp_path, form, recipe))
    assert failed(found) == []
    assert found.passed
    assert found.recall.pairs.is_exact
    assert found.precision.value == 1.0 or recipe.method == "exact"
    assert len(found.checks) == 9


@pytest.mark.parametrize(
    ("recipe", "options"),
    [
        (Recipe.minhash(0.5, weights="idf"), {}),
        (Recipe.minhash(0.5, keep="longest"), {}),
        (Recipe.minhash(0.5, tokens="chinese"), {}),
        (Recipe.minhash(0.5, group="components"), {}),
        (Recipe.minhash(0.5), {"write": "evidence"}),
        (Recipe.shingles(0.5), {}),
        (Recipe.bloom(0.5), {}),
    ],
    ids=["idf", "longest", "chinese", "components", "no copies", "shingles", "bloom"],
)
def test_every_kind_of_run_passes(tmp_path, recipe, options):
    found = audit(runs.make_run(tmp_path, recipe=recipe, **options))
    assert failed(found) == []
    assert found.recall.pairs.value > 0.9


def test_equal_texts_are_counted_where_nothing_else_is(tmp_path):
    found = audit(run_of(tmp_path, ["One text", "one  text", "another", "ONE TEXT", "", " "], Recipe.exact()))
    assert failed(found) == []
    assert found.recall.num_pairs == 4
    assert (found.recall.pairs.value, found.precision.value) == (1.0, 1.0)


def test_chains_of_components_are_no_right_removals(tmp_path):
    words = [f"w{i}" for i in range(90)]
    chain = [" ".join(words[6 * i : 6 * i + 60]) for i in range(5)]
    found = audit(run_of(tmp_path, chain, Recipe.minhash(0.6, group="components", rows=1, bands=128)))
    assert found.passed
    assert 0 < found.precision.value < 1


def test_what_lies_deeper_keeps_its_name(tmp_path):
    (tmp_path / "data" / "deep").mkdir(parents=True)
    rows = "".join(json.dumps({"text": text}) + "\n" for text in graded(30, 1))
    (tmp_path / "data" / "deep" / "one.jsonl").write_text(rows)
    dedup_files(tmp_path / "data", tmp_path / "out", Recipe.minhash(0.5))
    assert failed(audit(tmp_path / "out")) == []
    (tmp_path / "data").rename(tmp_path / "moved")
    with pytest.raises(InvalidInput, match="--inputs"):
        audit(tmp_path / "out")
    assert audit(tmp_path / "out", inputs=tmp_path / "moved").passed


def test_bad_rows_and_bounded_memory_change_nothing(tmp_path, texts):
    path = write(tmp_path / "in.jsonl", texts)
    with path.open("a") as file:
        file.write('{"id": "bad"}\n' + json.dumps({"id": "last", "text": texts[0]}) + "\n")
    dedup_files(path, tmp_path / "out", SABOTAGED, run=FileRun(on_error="keep"))
    one, two = (
        audit(tmp_path / "out", memory=memory, threads=threads) for memory, threads in ((None, 2), ("300MB", 1))
    )
    assert failed(one) == []
    assert [share.to_dict() for share in (one.recall.pairs, one.recall.removals)] == [
        share.to_dict() for share in (two.recall.pairs, two.recall.removals)
    ]
    assert one.certificate["missed_pairs"] == two.certificate["missed_pairs"]


def rewritten(out, change):
    """Write the evidence anew, one column changed by a function of its list."""
    path = out / "removed.parquet"
    table = pq.read_table(path)
    columns = table.to_pydict()
    change(columns)
    pq.write_table(type(table).from_pydict(columns, schema=table.schema), path)


def higher_similarity(columns):
    columns["similarity"][0] = np.nextafter(columns["similarity"][0], 2.0)


def other_kept(columns):
    columns["kept_row"][1], columns["kept_id"][1] = columns["row"][0], columns["doc_id"][0]


def other_id(columns):
    columns["doc_id"][0] = "nobody"


def no_such_row(columns):
    columns["kept_row"][0] = 10**6


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (higher_similarity, {"the similarity measured again is the stated one"}),
        (
            other_kept,
            {
                "what speaks against a removed document stayed",
                "the evidence names the documents of the inputs",
                "the similarity measured again is the stated one",
                "it reaches the threshold, or is marked as below",
            },
        ),
        (other_id, {"the evidence names the documents of the inputs"}),
        (
            no_such_row,
            {
                "what speaks against a removed document stayed",
                "it has a higher priority",
                "the evidence names the documents of the inputs",
                "the similarity measured again is the stated one",
                "it reaches the threshold, or is marked as below",
            },
        ),
    ],
)
def test_evidence_that_was_changed_fails_by_name(tmp_path, texts, change, names):
    out = run_of(tmp_path, texts)
    rewritten(out, change)
    found = audit(out)
    assert set(failed(found)) <= names
    assert failed(found)
    assert not found.passed
    assert all(check.failures for check in found.checks if not check.passed)


def test_a_removal_that_is_hidden_is_seen(tmp_path, texts):
    out = run_of(tmp_path, texts)

    def drop_last(columns):
        for column in columns.values():
            column.pop()

    rewritten(out, drop_last)
    assert "the counts of the summary are right" in failed(audit(out))


def test_kept_files_that_were_changed_fail(tmp_path, texts):
    out = run_of(tmp_path, texts)
    name = "the kept files hold the texts that stayed, and no others"
    kept = out / "kept" / "in.jsonl"
    lines = kept.read_text().splitlines(keepends=True)
    for changed in (lines[:-1], lines[1:], [*lines, lines[0]], [lines[1], lines[0], *lines[2:]]):
        kept.write_text("".join(changed))
        assert failed(audit(out)) == [name]
    kept.unlink()
    assert failed(audit(out)) == [name]


def test_inputs_that_changed_fail(tmp_path, texts):
    out = run_of(tmp_path, texts)
    path = tmp_path / "in.jsonl"
    path.write_text(path.read_text().replace("otherword", "x") + json.dumps({"text": "new"}) + "\n")
    assert "the inputs are those of the run" in failed(audit(out))


def test_a_run_that_did_less_than_its_recipe_says_fails(tmp_path, texts, monkeypatch):
    candidates = importlib.import_module("likewise.dedup.candidates")
    honest = candidates.open_buckets

    def fewer_bands(documents, recipe, order, *, threads):
        return honest(documents, recipe.replace(bands=2), order, threads=threads)

    with monkeypatch.context() as patched:
        patched.setattr(candidates, "open_buckets", fewer_bands)
        out = run_of(tmp_path, texts, Recipe.minhash(0.5))
    found = audit(out)
    assert failed(found) == ["the run acted on every match of the sample that its search finds"]
    assert found.recall.by_stage["found and not acted on"] > 0
    assert found.recall.removals.value < 0.9


def test_the_certificate_names_what_was_audited_and_tells_a_change(tmp_path, texts):
    import hashlib

    out = run_of(tmp_path, texts)
    done = likewise_command("audit", out, "--sample", 100, "--seed", 4)
    assert done.status == 0, done.err
    path = out / "audit.json"
    certificate = read_certificate(path)
    assert certificate["seed"] == 4
    assert sum(stratum["num_sampled"] for stratum in certificate["sample"]) in range(95, 101)
    assert certificate["inputs"] == [
        {
            "path": "in.jsonl",
            "num_bytes": (tmp_path / "in.jsonl").stat().st_size,
            "sha256": hashlib.sha256((tmp_path / "in.jsonl").read_bytes()).hexdigest(),
        }
    ]
    assert [file["path"] for file in certificate["outputs"]] == ["summary.json", "removed.parquet", "kept/in.jsonl"]
    path.write_text(path.read_text().replace('"passed": true', '"passed": false', 1))
    with pytest.raises(InvalidInput, match="changed"):
        read_certificate(path)
    # What is told of a run goes with it.
    dedup_files(tmp_path / "in.jsonl", out, SABOTAGED, overwrite=True)
    assert not path.exists()


def test_the_same_seed_gives_the_same_audit(tmp_path, texts):
    out = run_of(tmp_path, texts)
    one, two, other = (audit(out, num_sampled=60, seed=seed).certificate for seed in (1, 1, 2))
    for certificate in (one, two):
        del certificate["made_at"], certificate["seal"]
    assert one == two
    assert one["missed_pairs"] != other["missed_pairs"]


def test_the_command_says_what_was_missed_and_fails_where_recall_is_not_proved(tmp_path, texts):
    out = run_of(tmp_path, texts)
    done = likewise_command("audit", out, "-o", tmp_path / "mine.json")
    assert done.status == 0
    text = done.out.decode()
    assert text.count("ok  ") == 9
    assert "not a candidate, both stayed" in text
    assert not (out / "audit.json").exists()
    low = json.loads((tmp_path / "mine.json").read_text())["pair_recall"]["low"]
    done = likewise_command("audit", out, "--least-recall", low + 0.01, "--json", "-q")
    assert done.status == 1
    assert "was asked for" in done.err
    assert json.loads(done.out)["pair_recall"]["low"] == low
    rewritten(out, higher_similarity)
    done = likewise_command("audit", out)
    assert done.status == 1
    assert "FAIL the similarity measured again" in done.out.decode()


def test_control_characters_do_not_reach_the_terminal(tmp_path):
    words = graded(1, 1)[0].split()
    rows = [{"id": f"a\x1b[31m{i}", "text": " ".join([*words[: 30 - i * 4], f"n{i}"])} for i in range(5)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup_files(tmp_path / "in.jsonl", tmp_path / "out", Recipe.minhash(0.5, bands=1, rows=128))
    done = likewise_command("audit", tmp_path / "out")
    assert b"\\x1b[31m" in done.out
    assert b"\x1b" not in done.out


def test_what_cannot_be_audited_is_refused_by_name(tmp_path, texts):
    with pytest.raises(InvalidInput, match="no finished run"):
        audit(tmp_path)
    out = run_of(tmp_path, texts)
    for options in ({"num_sampled": 1}, {"seed": -1}, {"num_sampled": 2.5}):
        with pytest.raises(InvalidParameter):
            audit(out, **options)
    dedup_files(tmp_path / "in.jsonl", tmp_path / "second", SABOTAGED, against=[out])
    with pytest.raises(InvalidInput, match="--against"):
        audit(tmp_path / "second")
    for name in ("removed.parquet", "summary.json"):
        whole = (out / name).read_bytes()
        (out / name).write_bytes(whole[: len(whole) // 2])
        with pytest.raises(InvalidInput):
            audit(out)
        (out / name).write_bytes(whole)
    assert likewise_command("audit", tmp_path / "nothing").status == 2


def test_weights_of_another_collection_are_asked_for(tmp_path, texts):
    other = write(tmp_path / "other.jsonl", graded(50, 8))
    table = tmp_path / "table.lww"
    assert likewise_command("weights", other, "-o", table).status == 0
    path = write(tmp_path / "in.jsonl", texts)
    assert likewise_command("dedup", path, "-o", tmp_path / "out", "--weights", table).status == 0
    with pytest.raises(RecipeMismatch, match="--weights"):
        audit(tmp_path / "out")
    assert audit(tmp_path / "out", weights=table).passed


@pytest.mark.parametrize("texts", [[], ["one"], ["", "", ""], ["a", "a", "b"]], ids=["none", "one", "empty", "tiny"])
def test_tiny_runs_are_audited(tmp_path, texts):
    found = audit(run_of(tmp_path, texts, Recipe.minhash()))
    assert found.passed
    assert failed(found) == []
