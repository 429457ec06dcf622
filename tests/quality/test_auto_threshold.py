"""Runs that choose their threshold: nominated pairs, the same choice for any kind of run, and reported facts."""

import json
import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.batch.decide import auto_threshold
from likewise.batch.decide.auto_threshold import MOST_PARTNERS
from likewise.batch.files import dedup_files
from likewise.job.reading import FileRun
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.oracle import valley as oracle

LOWEST = 0.26


def pages(num_families=120, seed=7):
    """Return families of four pages that share a third of their words; half of the pages also have a revision."""
    draw = random.Random(seed)
    texts = []
    for family in range(num_families):
        shared = made_up(70, seed * 1000 + family)
        for page in range(4):
            words = f"{shared} {made_up(70, seed * 100_000 + family * 10 + page)}".split()
            texts.append(" ".join(words))
            if page % 2:
                for place in draw.sample(range(len(words)), 4):
                    words[place] = f"other{draw.randrange(1000)}"
                texts.append(" ".join(words))
    draw.shuffle(texts)
    return texts


@pytest.fixture(scope="module")
def texts():
    return pages()


def chosen(texts, recipe=None, **options):
    return likewise.dedup(texts, recipe or Recipe.minhash("auto"), **options).summary["chosen_threshold"]


def test_the_choice_is_that_of_all_pairs(texts):
    """The slow oracle of the rule decides on all pairs from the exact join, each seen from both sides."""
    found = likewise.pairs(texts, Recipe.shingles(LOWEST))
    similarity = found["similarity"].to_pylist()
    sides = [found[name].to_pylist() for name in ("row_a", "row_b")]
    pairs = [(value, row, 1) for rows in sides for value, row in zip(similarity, rows, strict=True)]
    threshold, reason, *_ = oracle.valley(pairs)
    facts = chosen(texts)
    assert (reason, facts["reason"]) == (None, None)
    # Bands find 98.9% of the pairs of the lowest similarity.
    assert abs(facts["threshold"] - threshold) <= 0.01
    assert 0.4 < threshold < 0.7
    assert facts["num_sampled"] == facts["num_documents"] == len(texts)
    assert facts["num_measured"] >= 0.985 * len(pairs)
    above = {row for value, row, _ in pairs if value >= facts["threshold"]}
    assert facts["num_documents_above"] >= 0.99 * len(above)


@pytest.mark.parametrize("method", ["shingles", "bloom"])
def test_every_method_that_measures_the_same_chooses_the_same(texts, method):
    facts = chosen(texts, Recipe.from_options(method, threshold="auto"))
    assert facts == chosen(texts)
    assert facts == chosen(texts, Recipe.minhash("auto", num_slots=64))


@pytest.mark.parametrize("options", [{"weights": "idf"}, {"weights": "idf", "shingle": 1}])
def test_rarity_and_simhash_choose_too(texts, options):
    result = likewise.dedup(texts, Recipe.minhash("auto", **options))
    facts = result.summary["chosen_threshold"]
    assert facts["weights"] == "idf"
    assert result.summary["recipe"]["threshold"] == facts["threshold"]
    by_cosine = likewise.dedup(texts, Recipe.simhash(threshold="auto")).summary
    assert by_cosine["chosen_threshold"]["measure"] == by_cosine["recipe"]["measure"] == "cosine"
    assert by_cosine["recipe"]["within"] > 0


def test_the_run_is_that_of_the_number(texts):
    result = likewise.dedup(texts, Recipe.minhash("auto"))
    given = likewise.dedup(texts, Recipe.minhash(result.summary["chosen_threshold"]["threshold"]))
    assert result.removed.equals(given.removed)
    assert result.summary["recipe_id"] == given.summary["recipe_id"]
    assert result.summary["recipe"] == given.summary["recipe"]
    assert "chosen_threshold" not in given.summary
    found = likewise.pairs(texts, Recipe.minhash("auto"))
    assert json.loads(found.schema.metadata[b"chosen_threshold"]) == result.summary["chosen_threshold"]
    assert found.equals(likewise.pairs(texts, Recipe.minhash(result.summary["recipe"]["threshold"])))


@pytest.mark.parametrize("seed", range(3))
def test_order_and_threads_change_no_choice(texts, seed):
    mixed = list(texts)
    random.Random(seed).shuffle(mixed)
    assert chosen(mixed, threads=1 + seed) == chosen(texts)


def test_parts_of_any_size_and_copies_change_no_choice(texts, monkeypatch):
    facts = chosen(texts)
    # Copies count as one document, and empty texts are not counted.
    more = [*texts, *texts[:50], "", "", texts[0]]
    different = ("num_documents",)
    assert {**chosen(more), "num_documents": 0} == {**facts, "num_documents": 0}
    for name, value in (("_AT_ONCE", 7), ("_PAIRS_AT_ONCE", 3)):
        monkeypatch.setattr(auto_threshold, name, value)
    assert {key: value for key, value in chosen(texts).items() if key not in different} == {
        key: value for key, value in facts.items() if key not in different
    }


def test_files_memory_and_other_splits_change_no_choice(texts, tmp_path):
    half = len(texts) // 3
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(jsonl(texts[:half]))
    pq.write_table(pa.table({"text": texts[half:]}), tmp_path / "in" / "b.parquet", row_group_size=50)
    facts = chosen(texts)
    for name, run in (("plain", FileRun()), ("bounded", FileRun(memory_bytes="300MB", threads=1))):
        summary = dedup_files(tmp_path / "in", tmp_path / name, Recipe.minhash("auto"), run=run)
        assert summary["chosen_threshold"] == facts
        assert summary["recipe"]["threshold"] == facts["threshold"]
    evidence = [pq.read_table(tmp_path / name / "removed.parquet") for name in ("plain", "bounded")]
    assert evidence[0].equals(evidence[1])
    assert evidence[0].num_rows > 100


def test_a_sample_says_what_all_documents_say(texts, monkeypatch):
    whole = chosen(texts)
    monkeypatch.setattr(auto_threshold, "MOST_SAMPLED", 256)
    facts = chosen(texts)
    assert facts["num_sampled"] == 256
    assert abs(facts["threshold"] - whole["threshold"]) <= 0.05


def test_a_family_says_no_more_than_its_documents_do(texts, monkeypatch):
    """Many near-copies of one page do not dominate: each is compared with few of them; other pairs are still found."""
    frame = made_up(120, 99).split()
    copies = [" ".join([*frame[:at], f"edit{at}x{i}", *frame[at:]]) for i in range(30) for at in range(0, 120, 3)]
    facts = chosen([*texts, *copies])
    assert facts["reason"] is None
    assert facts["num_measured"] <= MOST_PARTNERS * facts["num_sampled"]
    assert abs(facts["threshold"] - chosen(texts)["threshold"]) <= 0.03
    monkeypatch.setattr(auto_threshold, "_MOST_OF_ESTIMATE", 100)
    thinned = chosen([*texts, *copies])
    assert thinned["num_measured"] <= 2 * 100 * 128
    assert thinned["num_measured"] < facts["num_measured"] / 3
    assert abs(thinned["threshold"] - facts["threshold"]) <= 0.03
    # Pairs left out are represented by others.
    totals = [sum(pairs for _, pairs in one["density"]) for one in (thinned, facts)]
    assert totals[0] == pytest.approx(totals[1], rel=0.05)


def test_collections_without_duplicates_have_few_pairs():
    different = [made_up(60, number) for number in range(600)]
    assert (chosen(different)["threshold"], chosen(different)["reason"]) == (0.5, "few pairs")
    assert chosen([""])["num_sampled"] == 0


def test_duplicates_alone_have_a_threshold():
    facts = chosen([text for number in range(100) for text in (f"{made_up(80, number)} {i}" for i in range(3))])
    assert (facts["threshold"], facts["reason"]) == (0.44, None)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"measure": "containment"}, "threshold"),
        ({"bands": 20, "rows": 5}, "bands"),
        ({"method": "simhash", "within": 3}, "within"),
        ({"method": "simhash", "measure": "hamming"}, "threshold"),
    ],
)
def test_what_does_not_go_with_it_is_refused(options, field):
    with pytest.raises(likewise.InvalidParameter, match=field):
        Recipe.from_options(options.pop("method", "minhash"), threshold="auto", **options)


def test_what_needs_a_number_says_so(texts, tmp_path):
    recipe = Recipe.minhash("auto")
    assert Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.stated_recall is None
    with pytest.raises(likewise.InvalidParameter, match="--like"):
        likewise.Index(tmp_path / "index", recipe)
    for call in (lambda: recipe.similarity_threshold, lambda: likewise.compare("a", "b", recipe)):
        with pytest.raises(likewise.InvalidParameter, match="auto is not a number"):
            call()


def test_the_command_says_what_it_chose_and_an_index_takes_it(texts, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    out = tmp_path / "out"
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", out)
    summary = json.loads((out / "summary.json").read_text())
    facts = summary["chosen_threshold"]
    assert f"threshold {facts['threshold']:g} (auto): jaccard similarities are rare there" in ran.err
    assert summary["recipe"]["weights"] == "idf"
    listed = likewise_command("pairs", tmp_path / "in.jsonl", "-o", "-", "--threshold", "auto")
    assert f"threshold {facts['threshold']:g} (auto)" in listed.err
    made = likewise_command("report", out, "-o", tmp_path / "report.html")
    assert made.status == 0, made.err
    html = (tmp_path / "report.html").read_text()
    assert "How the threshold was chosen" in html
    assert f"threshold {facts['threshold']:g}</text>" in html
    (out / "recipe").rename(tmp_path / "stored")
    lost = likewise_command("index", "create", tmp_path / "seen.lw", "--like", out)
    assert lost.status == 2
    assert "its directory recipe, which stores them, is missing; repeat the run" in lost.err
    ran = likewise_command("dedup", tmp_path / "in.jsonl", "-o", out, "--overwrite")
    assert ran.status == 0, ran.err
    assert likewise_command("index", "create", tmp_path / "seen.lw", "--like", out).status == 0
    with likewise.Index(tmp_path / "seen.lw") as index:
        assert index.recipe == Recipe.from_dict(summary["recipe"]).for_index()
    refused = likewise_command("index", "create", tmp_path / "new.lw", "--like", out, "--threshold", "0.5")
    assert refused.status == 2
    assert "--like" in refused.err
    parts = ["repeats", tmp_path / "in.jsonl", "-o", tmp_path / "parts", "--unit", "line", "--method", "minhash"]
    assert likewise_command(*parts, "--threshold", "auto").status == 2
    assert likewise_command(*parts).status == 0
    shown = likewise_command("plan", "--threshold", "auto")
    assert shown.status == 0
    assert "each run chooses its threshold" in shown.out.decode()
    planned = json.loads(likewise_command("plan", "--preset", "default", "--json").out)
    assert (planned["recipe"]["threshold"], planned["recall"], planned["curve"]) == ("auto", None, [])
    assert "neither a number nor auto" in likewise_command("plan", "--threshold", "high").err


def test_pairs_are_stored_from_a_floor_that_any_choice_allows(texts, tmp_path):
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    with pytest.raises(likewise.InvalidParameter, match="lowest threshold that auto chooses"):
        dedup_files(tmp_path / "in.jsonl", tmp_path / "out", Recipe.minhash("auto"), store_pairs=0.37)
    summary = dedup_files(tmp_path / "in.jsonl", tmp_path / "out", Recipe.minhash("auto"), store_pairs=0.36)
    assert summary["stored_pairs"]["num_pairs"] > 0


def test_reference_documents_are_compared_and_not_sampled(texts, tmp_path):
    (tmp_path / "old.jsonl").write_bytes(jsonl(texts[:300]))
    (tmp_path / "new.jsonl").write_bytes(jsonl(texts[300:]))
    summary = dedup_files(
        tmp_path / "new.jsonl", tmp_path / "out", Recipe.minhash("auto"), against=[tmp_path / "old.jsonl"]
    )
    assert summary["chosen_threshold"]["num_sampled"] == len(texts) - 300
    assert summary["against"]["num_removed"] > 0
