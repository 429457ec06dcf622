"""Audits of sound and tampered runs, against plain sets."""

import json
import math
import shutil
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import likewise
from likewise import InvalidInput, Recipe, dedup_files
from likewise._native import RarestFeatures, Texts
from likewise.cli import group
from likewise.job.reading import FileRun
from likewise.recipe.word_lists import WordList
from likewise.runs.audit import audit
from likewise.runs.audit.certificate import read_certificate
from likewise.runs.audit.truth import matches as truth
from tests.command import likewise_command
from tests.oracle import measures, siblings
from tests.oracle.features import Rules, features
from tests.runs.audit.corpora import SABOTAGED, failed, graded, resembling, run_of, write
from tests.runs.viewing import runs


@pytest.fixture(scope="module")
def texts():
    return graded(240, 3)


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
    # One word differs: all share the bands, whose first buckets are full after 64 documents.
    base = " ".join(f"word{i}" for i in range(200)).split()
    texts = [" ".join([*base[:i], f"other{i}", *base[i + 1 :]]) for i in range(0, 200, 1)]
    recipe = Recipe.minhash(0.9, bands=1, rows=2, overflow="levels")
    (tmp_path / "many").mkdir()
    found = audit(run_of(tmp_path / "many", texts, recipe), num_sampled=1000)
    assert found.certificate["stated_recall"] is not None
    assert found.recall.by_stage["full bucket"] > 0
    # If no last bucket was full, the run counts no document as capped, and neither does the audit.
    (tmp_path / "few").mkdir()
    run = run_of(tmp_path / "few", texts[:110], recipe)
    found = audit(run, num_sampled=1000)
    assert json.loads((run / "summary.json").read_bytes())["num_capped"] == 0
    assert found.recall.by_stage["full bucket"] > 0
    assert "capped" not in found.recall.by_stage
    # An exact join of the documents that come to full buckets misses none of their pairs.
    (tmp_path / "joined").mkdir()
    found = audit(run_of(tmp_path / "joined", texts, recipe.replace(overflow="exact")), num_sampled=1000)
    assert found.recall.by_stage.get("full bucket", 0) == 0


def test_a_run_with_lists_of_words_is_audited_with_them(tmp_path):
    stop, more = tmp_path / "stop.txt", tmp_path / "more.txt"
    stop.write_text("word1\nword2\n")
    more.write_text("猫狗兔\n")
    lists = {"stop_words": WordList.read_stop_words(stop), "dictionary": WordList.read_dictionary(more)}
    texts = [*graded(40, 5), "猫狗兔在这里 word1 吃饭", "猫狗兔在这里吃饭"]
    run = run_of(tmp_path, texts, Recipe.minhash(0.6, tokens="chinese", **lists))
    assert likewise_command("audit", run).status == 0
    # Without the lists that the run stored, they must be given.
    shutil.rmtree(run / "recipe")
    for given in ([], ["--stop-words", stop], ["--dictionary", more]):
        ran = likewise_command("audit", run, *given)
        assert (ran.status, ran.out) == (2, b"")
        assert "the run used a word list" in ran.err
    ran = likewise_command("audit", run, "--stop-words", stop, "--dictionary", more)
    assert ran.status == 0, ran.out
    stop.write_text("word3\n")
    assert likewise_command("audit", run, "--stop-words", stop, "--dictionary", more).status == 2
    (tmp_path / "plain").mkdir()
    plain = run_of(tmp_path / "plain", texts, Recipe.minhash(0.6))
    assert "did not use a word list" in likewise_command("audit", plain, "--stop-words", stop).err


def test_a_run_with_a_lexicon_is_audited_with_it(tmp_path):
    stop, terms = tmp_path / "stop.txt", tmp_path / "terms.tsv"
    stop.write_text("word1\n")
    terms.write_text("word3 word4\t9\nword5\t0\n")
    given = ["--weights", terms, "--stop-words", stop]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in graded(40, 5)))
    assert likewise_command("dedup", "in.jsonl", "-o", "out", *given, cwd=tmp_path).status == 0
    assert likewise_command("audit", tmp_path / "out").status == 0
    shutil.rmtree(tmp_path / "out" / "recipe")
    ran = likewise_command("audit", tmp_path / "out", "--stop-words", stop)
    assert (ran.status, "the run used a lexicon; give its file" in ran.err) == (2, True)
    ran = likewise_command("audit", tmp_path / "out", *given)
    assert ran.status == 0, ran.err
    terms.write_text("word3 word4\t8\n")
    assert likewise_command("audit", tmp_path / "out", *given).status == 2


@pytest.mark.parametrize("measure", ["jaccard", "dice", "cosine", "containment", "overlap"])
@pytest.mark.parametrize("weights", ["none", "log-count"])
def test_truth_is_that_of_the_oracle_for_every_measure(tmp_path, measure, weights):
    texts = graded(60, 11)
    texts += [text[: len(text) // 3] for text in texts[:10]] + ["a b", "a b", "", " "]
    recipe = Recipe.minhash(0.6, measure=measure, weights=weights, keep="first", bands=2, rows=3)
    sets = [features(text, Rules(shingle=3, weights=weights)) for text in texts]
    found = audit(run_of(tmp_path, texts, recipe), num_sampled=1000)
    # For containment, the later document is contained in the earlier.
    true = [
        (a, b)
        for b in range(len(texts))
        for a in range(b)
        if measures.similarity(sets[b].weights, sets[a].weights, measure) >= 0.6
    ]
    assert found.recall.num_pairs == len(true)
    assert failed(found) == []


def test_truth_is_that_of_the_oracle_where_short_documents_need_more(tmp_path):
    texts = graded(60, 11) + [f"word{i} word{i + 1} word{i + 2} word{i // 2}" for i in range(20)]
    recipe = Recipe.minhash(0.4, shingle=1, short_margin=1.2, bands=2, rows=3)
    sets = [features(text, Rules(shingle=1)).weights for text in texts]
    found = audit(run_of(tmp_path, texts, recipe), num_sampled=1000)
    pairs = [(sets[a], sets[b]) for b in range(len(texts)) for a in range(b)]
    alike = [(a, b) for a, b in pairs if measures.similarity(b, a, "jaccard") >= 0.4]
    true = [
        (a, b)
        for a, b in alike
        if measures.similarity(b, a, "jaccard") >= min(1, 0.4 + 1.2 / math.sqrt(min(len(a), len(b))))
    ]
    assert 0 < len(true) < len(alike)
    assert found.recall.num_pairs == len(true)
    assert failed(found) == []


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe.simhash(),
        Recipe.simhash(within=3),
        Recipe.simhash(bits=96, within=12, tokens="char"),
        Recipe.simhash(bits=160, within=20, tokens="word"),
    ],
    ids=["default", "within 3", "96 bits", "wide"],
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
            elif int(likewise.hamming_distance(array[a : a + 1], array[b : b + 1])[0]) <= recipe.sketch.within:
                few = min(len(sets[a]), len(sets[b])) < 64
                true += not few or len(sets[a] & sets[b]) / len(sets[a] | sets[b]) >= recipe.sketch.short_threshold
    assert found.recall.num_pairs == true
    assert failed(found) == []
    table = likewise.pairs(texts, recipe)
    assert table.num_rows == true
    assert found.recall.pairs.value == 1.0


@pytest.mark.parametrize("form", ["jsonl", "jsonl.gz", "csv", "parquet", "txt"])
@pytest.mark.parametrize("recipe", [Recipe.minhash(0.5), Recipe.simhash(measure="cosine"), Recipe.exact()])
def test_every_format_passes(tmp_path, form, recipe):
    found = audit(runs.make_run(tmp_path, form, recipe))
    assert failed(found) == []
    assert found.passed
    assert found.recall.pairs.is_exact
    assert found.precision.value == 1.0 or recipe.method == "exact"
    assert len(found.checks) == 10


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
        (Recipe.minhash(0.4, short_margin=0.8), {}),
        (Recipe.minhash(0.4, short_margin=0.8, group="components"), {}),
    ],
    ids=["idf", "longest", "chinese", "components", "no copies", "shingles", "bloom", "margin", "margin, components"],
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


@pytest.mark.parametrize(
    ("measure", "similarity"), [("jaccard", 14 / 20), ("dice", 28 / 34), ("cosine", (14 / 20) ** 0.5)]
)
def test_what_a_document_shares_with_everybody_still_finds_its_match(measure, similarity):
    # The match shares only common features; omitting one more feature would hide it.
    common = [f"common{i}" for i in range(14)]
    whole = " ".join([*common, *(f"rare{i}" for i in range(6))])
    texts = Texts.from_list([whole, *(" ".join([*common, f"of{i}"]) for i in range(5))])
    rules = Recipe.minhash(shingle=1).feature_rules
    part = Texts.from_list([" ".join(common)])
    for threshold, is_found in ((similarity - 1e-9, True), (0.5, True), (similarity + 0.2, False)):
        rarest = RarestFeatures(texts, rules, measure=measure, threshold=min(threshold, 1.0))
        assert (0 in np.asarray(rarest.may_match(part)[1])) == is_found


@pytest.mark.parametrize("weights", ["none", "count"])
@pytest.mark.parametrize(
    ("measure", "threshold"), [("jaccard", 0.5), ("dice", 0.6), ("cosine", 0.7), ("containment", 0.7), ("overlap", 0.7)]
)
def test_no_pair_of_a_template_that_matches_is_skipped(texts, weights, measure, threshold):
    menu = " ".join(f"menu{i}" for i in range(45))
    pages = [f"{menu} {text} {text[: len(text) // 4]}" for text in texts[:120]]
    recipe = Recipe.minhash(0.5, weights=weights)
    given = Texts.from_list(pages)
    rarest = RarestFeatures(given.take(np.arange(50)), recipe.feature_rules, measure=measure, threshold=threshold)
    near, mine, num_entries = rarest.may_match(given, threads=2)
    found = list(zip(np.asarray(near).tolist(), np.asarray(mine).tolist(), strict=True))
    assert len(found) == len(set(found)) <= num_entries
    rules = Rules("auto", recipe.shingle, weights, recipe.seed)
    sets = [features(page, rules).weights for page in pages]
    true = {
        (a, b) for a in range(120) for b in range(50) if measures.similarity(sets[a], sets[b], measure) >= threshold
    }
    assert 50 < len(true) < 3000
    assert true <= set(found)
    # Sums of products have no bound.
    assert measure == "cosine" or len(found) < 5000


def test_where_all_pages_share_a_template_fewer_are_compared(tmp_path, texts, monkeypatch):
    menu = " ".join(f"menu{i}" for i in range(130))
    run = run_of(tmp_path, [f"{menu} {text}" for text in texts])
    assert sum(map(len, audit(run, num_sampled=100).strata)) >= 99
    monkeypatch.setattr(truth, "_MEASURED_EACH", 35)
    monkeypatch.setattr(truth, "_FEW_PAIRS", 1)
    few = audit(run, num_sampled=100)
    assert 24 <= sum(map(len, few.strata)) <= 36
    assert failed(few) == []
    # All documents are compared on request, up to a bound.
    assert sum(map(len, audit(run, num_sampled=len(texts)).strata)) == len(texts)
    with monkeypatch.context() as patched:
        patched.setattr(truth, "_CENSUS_PAIRS", 1)
        assert sum(map(len, audit(run, num_sampled=len(texts)).strata)) <= 36
    # Without a template, few pairs must be measured.
    (tmp_path / "plain").mkdir()
    assert sum(map(len, audit(run_of(tmp_path / "plain", texts), num_sampled=100).strata)) >= 99


def test_a_run_that_may_only_be_read_is_audited(tmp_path, texts, monkeypatch):
    out = run_of(tmp_path, texts)
    before = sorted(path.name for path in out.iterdir())
    monkeypatch.setattr("os.access", lambda path, mode: path != out)
    done = CliRunner().invoke(group, ["audit", str(out)])
    assert done.exit_code == 0, done.output
    assert f"no right to write {out}/audit.json; -o FILE writes the results" in done.output
    assert sorted(path.name for path in out.iterdir()) == before
    done = CliRunner().invoke(group, ["audit", str(out), "-o", str(tmp_path / "own.json")])
    assert done.exit_code == 0, done.output
    assert read_certificate(tmp_path / "own.json")["seal"]


def test_of_equal_feature_sets_the_first_is_measured(tmp_path):
    text = "the harbor library lends maps and books to all members of the town every day of the week until noon"
    kept = f"{text} red oak red oak"
    # Both have the same pairs of words, but only the second repeats a word of its own and a word pair.
    copies = [f"{text} pine quay rope pine", f"{text} pine quay rope pine quay rope"]
    recipe = Recipe.shingles(0.6, shingle=2, siblings="keep")
    for number, some in enumerate((copies, copies[::-1])):
        (tmp_path / str(number)).mkdir()
        run = run_of(tmp_path / str(number), [kept, *some], recipe)
        # Without a table, the whole penalty is that of the swap, of the first one.
        penalty = siblings.Names([]).of_swap(kept.split(), some[0].split())
        removed = pq.read_table(run / "removed.parquet").to_pylist()
        assert [row["row"] for row in removed] == ([1, 2] if penalty == 0.0 else [2])
        assert [row["penalty"] for row in removed] == [0.0] * len(removed)
        found = audit(run)
        assert found.passed
        assert found.precision.value == 1.0
