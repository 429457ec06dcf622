"""The recipe if none is named: from the collection in runs, fixed elsewhere."""

import json
import math
import random

import pytest

import likewise
from likewise import Recipe
from likewise.batch.files import dedup_files
from likewise.batch.pair_files import pair_files
from likewise.batch.read import ingest, resume
from likewise.batch.read.ingest import weighed_files
from likewise.batch.read.resume import known_counts
from likewise.errors import InvalidParameter
from likewise.io.inputs import find_inputs
from likewise.job.reading import FileRun, RunContext
from likewise.recipe.presets import with_base
from tests.command import jsonl, likewise_command
from tests.golden.texts import made_up
from tests.oracle import measures, weights
from tests.oracle.features import Rules, features

DEFAULT = Recipe.minhash("auto", shingle=2, weights="idf", fold="signs", short_margin=1.0, siblings="keep")
ONLINE = Recipe.minhash(0.55, shingle=3, weights="none", short_margin=1.0)


def base(name, **options):
    fields = with_base(name, options)
    return Recipe.from_options(fields.pop("method"), **fields)


# Named options, and the recipes that they give for a run and for an index, each with all fields.
NAMED = [
    ({}, DEFAULT, ONLINE),
    ({"keep": "longest"}, DEFAULT.replace(keep="longest"), ONLINE.replace(keep="longest")),
    ({"shingle": 5}, DEFAULT.replace(shingle=5), Recipe.minhash(0.8, shingle=5)),
    ({"short_margin": 0.5}, DEFAULT.replace(short_margin=0.5), ONLINE.replace(short_margin=0.5)),
    ({"weights": "idf"}, DEFAULT, Recipe.minhash(0.45, shingle=2, weights="idf")),
    ({"tokens": "word"}, DEFAULT.replace(tokens="word"), ONLINE.replace(tokens="word")),
    ({"weights": "none"}, ONLINE, ONLINE),
    ({"threshold": 0.7}, Recipe.minhash(0.7, shingle=3), Recipe.minhash(0.7, shingle=3)),
    ({"threshold": 0.55, "weights": "none"}, Recipe.minhash(0.55, shingle=3), None),
    ({"threshold": 0.6, "weights": "idf"}, Recipe.minhash(0.6, shingle=2, weights="idf"), None),
    ({"threshold": 0.6, "short_margin": 1.0}, ONLINE.replace(threshold=0.6), ONLINE.replace(threshold=0.6)),
    ({"threshold": "auto"}, DEFAULT, Recipe.minhash("auto", shingle=3)),
    ({"method": "shingles"}, Recipe.preset("default", method="shingles"), None),
    ({"method": "simhash"}, Recipe.simhash(), Recipe.simhash()),
    ({"method": "exact"}, Recipe.exact(), Recipe.exact()),
    ({"tokens": "char"}, Recipe.minhash(0.7, tokens="char", shingle=9), None),
    ({"measure": "containment"}, Recipe.shingles(0.8, measure="containment"), None),
    ({"measure": "cosine"}, Recipe.minhash(0.8, measure="cosine"), None),
    ({"bands": 20, "rows": 5}, Recipe.minhash(bands=20, rows=5), Recipe.minhash(bands=20, rows=5)),
    ({"within": 3}, Recipe.simhash(within=3), Recipe.simhash(within=3)),
    ({"num_slots": 64}, DEFAULT.replace(num_slots=64), ONLINE.replace(num_slots=64)),
    ({"hash": "datasketch"}, Recipe.minhash(hash="datasketch"), None),
]  # fmt: skip


@pytest.mark.parametrize(("options", "of_run", "of_index"), NAMED)
def test_options_keep_the_default_or_leave_it(options, of_run, of_index):
    """Options that agree with the preset keep all of it; another threshold or other features keep nothing."""
    assert base("default", **options) == of_run
    if of_index is not None:
        assert base("online", **options) == of_index


def test_explicit_recipes_have_no_part_in_it():
    assert Recipe.minhash() == Recipe.minhash(0.55, shingle=3, weights="none")
    assert Recipe.minhash().short_margin is None
    assert Recipe.preset("default", threshold=0.7) == DEFAULT.replace(threshold=0.7)


def collection(num_documents, length, num_changed, seed=5):
    """Return documents of random words; the last copies the first with `num_changed` words changed."""
    draw = random.Random(seed)
    texts = [made_up(length, seed * 1000 + number) for number in range(num_documents - 1)]
    words = texts[0].split()
    for place in draw.sample(range(length), num_changed):
        words[place] = f"changed{place}"
    return [*texts, " ".join(words)]


@pytest.mark.parametrize("num_documents", [2, 3, 10, 99, 100])
@pytest.mark.parametrize(("length", "num_changed"), [(12, 0), (12, 1), (100, 1), (100, 5), (100, 20)])
def test_few_documents_match_by_rarity_too(num_documents, length, num_changed):
    """Few pairs: the threshold is 0.5 plus a margin for short documents, by rarity with at least 20 documents."""
    texts = collection(num_documents, length, num_changed)
    rules = Rules(shingle=2, weights="idf")
    rules = rules._replace(table=weights.idf_table(texts, rules))
    first, last = (features(text, rules).weights for text in (texts[0], texts[-1]))
    required = min(1.0, 0.5 + 1 / math.sqrt(min(len(first), len(last))))
    is_match = measures.similarity(first, last, "jaccard") >= required
    result = likewise.dedup(texts)
    assert result.kept.tolist() == [True] * (num_documents - 1) + [not is_match]
    assert is_match == (num_changed == 0 or (length == 100 and num_changed <= 5))
    recipe = result.summary["recipe"]
    assert (recipe["weights"], recipe["shingle"], recipe["threshold"]) == ("idf", 2, 0.5)
    assert result.summary["chosen_threshold"]["reason"] == "few pairs"
    assert likewise.pairs(texts).num_rows == is_match


def test_named_features_are_kept_in_small_collections():
    texts = collection(9, 60, 2)
    few = likewise.dedup(texts, Recipe.preset("default", shingle=5)).summary["recipe"]
    assert (few["shingle"], few["weights"], few["threshold"]) == (5, "idf", 0.5)
    few = likewise.dedup(texts, Recipe.preset("default", threshold=0.7)).summary["recipe"]
    assert (few["weights"], few["threshold"]) == ("idf", 0.7)
    cosine = Recipe.simhash(threshold="auto", weights="log-count-idf", tokens="auto")
    few = likewise.dedup(texts, cosine).summary["recipe"]
    assert (few["shingle"], few["weights"], few["threshold"]) == (1, "log-count-idf", 0.67)


def test_files_streams_and_memory_give_one_answer(tmp_path):
    for num in (20, 300):
        texts = collection(num, 80, 1, seed=7)
        path = tmp_path / f"{num}.jsonl"
        path.write_bytes(jsonl(texts))
        expected = likewise.dedup(texts).summary["recipe_id"]
        assert dedup_files(path, tmp_path / f"out{num}")["recipe_id"] == expected
        assert pair_files(path, tmp_path / f"p{num}.tsv")["recipe_id"] == expected
        done = likewise_command("dedup", "-", "-o", "-", stdin=path.read_bytes())
        assert done.status == 0, done.err
        assert len(done.out.splitlines()) == num - 1
        assert "recipe:" not in done.err


@pytest.mark.parametrize("num_documents", [20, 300])
def test_a_continued_run_knows_what_was_counted(num_documents, tmp_path, monkeypatch):
    monkeypatch.setattr(resume, "PART_BYTES", 0)
    (tmp_path / "in.jsonl").write_bytes(jsonl(collection(num_documents, 60, 1)))
    run = FileRun()

    def weighed():
        files = find_inputs([tmp_path / "in.jsonl"], run.read_rules(DEFAULT)).files
        parts, context = tmp_path / "parts", RunContext(run.run_rules())
        return known_counts(parts, DEFAULT) or weighed_files(files, DEFAULT, context, parts)

    counted = weighed()
    assert counted.weights == "idf"
    monkeypatch.setattr(ingest, "count_sources", None)
    assert weighed() == counted


def test_the_recipe_is_shown_once_where_features_were_named(tmp_path):
    (tmp_path / "t.jsonl").write_bytes(jsonl(collection(20, 60, 1)))
    for command, out in (("dedup", "out"), ("pairs", "p.tsv")):
        run = [command, tmp_path / "t.jsonl", "-o", tmp_path / out]
        done = likewise_command(*run, "--threshold", "0.7")
        assert done.status == 0, done.err
        shown = [line for line in done.err.splitlines() if line.startswith("recipe: ")]
        assert shown == [
            "recipe: method minhash, tokens auto, shingle 3, weights none, threshold 0.7, measure jaccard, "
            "short margin 0.0"
        ]
        again = ["--overwrite"] if command == "dedup" else []
        for options in (["--keep", "first"] if again else [], ["--threshold", "0.7", "--quiet"]):
            assert "recipe: " not in likewise_command(*run, *again, *options).err


def test_commands_that_keep_a_threshold_show_what_a_shingle_made_of_it(tmp_path):
    """Features of two words have a threshold of their own, which nobody named."""
    (tmp_path / "t.jsonl").write_bytes(jsonl(["one fine day in may by the sea"]))
    for run in (
        ["index", "create", tmp_path / "seen", "--shingle", "2"],
        ["repeats", tmp_path / "t.jsonl", "-o", tmp_path / "out", "--unit", "line", "--method", "minhash"],
    ):
        done = likewise_command(*run, *([] if "--shingle" in run else ["--shingle", "2"]))
        assert done.status == 0, done.err
        shown = [line for line in done.err.splitlines() if line.startswith("recipe: ")]
        assert len(shown) == 1
        assert "shingle 2, weights none, threshold 0.8, measure jaccard" in shown[0]


def test_an_index_a_comparison_and_a_service_need_no_collection(tmp_path):
    with likewise.Index(tmp_path / "seen") as index:
        assert index.recipe.recipe_id == ONLINE.replace(overflow="levels").recipe_id
    done = likewise_command("index", "create", tmp_path / "made")
    assert done.status == 0, done.err
    with likewise.Index(tmp_path / "made", read_only=True) as index:
        assert index.recipe.recipe_id == ONLINE.replace(overflow="levels").recipe_id
    assert likewise.sketch(["a b c d"]).recipe.sketch_id == ONLINE.sketch_id
    with pytest.raises(InvalidParameter, match=r"choose a threshold|weight table"):
        likewise.Index(tmp_path / "none", "default")


def test_later_runs_take_the_recipe_of_the_run_that_they_are_held_against(tmp_path):
    """With its threshold and its counted weights, which every run stores."""
    texts = collection(300, 80, 1)
    for name, some in (("old", texts), ("new", [*texts[:20], *collection(5, 80, 80, seed=9)])):
        (tmp_path / f"{name}.jsonl").write_bytes(jsonl(some))
    for options in ([], ["--keep-sketches"]):
        run = tmp_path / f"run{len(options)}"
        assert likewise_command("dedup", tmp_path / "old.jsonl", "-o", run, *options).status == 0
        ours = json.loads((run / "summary.json").read_text())["recipe"]
        done = likewise_command("dedup", tmp_path / "new.jsonl", "-o", f"{run}-new", "--against", run, "--json")
        assert done.status == 0, done.err
        summary = json.loads(done.out)
        assert summary["num_removed"] == 20
        assert summary["recipe"] == ours
        python = dedup_files(tmp_path / "new.jsonl", f"{run}-python", against=[run])
        assert python["recipe_id"] == summary["recipe_id"]
