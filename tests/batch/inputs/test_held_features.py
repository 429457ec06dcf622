"""Keeping features between the two passes of a run with rarity weights does not change the answer."""

import gzip
import json
import random

import pytest

import likewise
from likewise import InvalidInput, Recipe
from likewise.batch.files import dedup_files
from likewise.batch.read import ingest
from likewise.batch.read.sketched import HeldDocuments
from likewise.job.options import FileRun

RECIPE = Recipe.minhash("auto", weights="idf", keep="longest")


def documents():
    draw = random.Random(6)
    texts = []
    for _ in range(150):
        words = [f"w{draw.randrange(800)}" for _ in range(draw.randrange(1, 60))]
        texts.append(" ".join(words))
        words[draw.randrange(len(words))] = "other"
        texts.append(" ".join([*words, *draw.choices(words, k=draw.randrange(4))]))
    return [*texts, "", "...", texts[3]]


@pytest.fixture
def inputs(tmp_path):
    """Return two files with blank lines, one of them compressed."""
    lines = [json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(documents())]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(lines[:200]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[200:]).encode()))
    return folder


@pytest.fixture
def held(monkeypatch):
    """Count the jobs whose features are held, under an adjustable bound; jobs are small."""
    monkeypatch.setattr(ingest, "PIECE_BYTES", 3000)
    told = {"bound": 10**9, "jobs": 0}
    take = HeldDocuments.take

    def counting(self, source, job):
        pieces = take(self, source, job)
        told["jobs"] += pieces is not None
        return pieces

    monkeypatch.setattr(HeldDocuments, "take", counting)
    for module in ("opening", "texts"):
        monkeypatch.setattr(f"likewise.batch.{module}.HeldDocuments", lambda *_: HeldDocuments(told["bound"]))
    return told


def answer(inputs, output, **options):
    summary = dedup_files(inputs, output, RECIPE, run=FileRun(**options))
    files = {file.name: file.read_bytes() for file in sorted(output.rglob("*")) if file.is_file()}
    del files["summary.json"]
    return files, {name: summary[name] for name in ("recipe", "num_kept", "chosen_threshold", "inputs", "num_bad_rows")}


def test_a_run_answers_alike_however_much_is_held(inputs, held, tmp_path):
    held["bound"] = 0
    without = answer(inputs, tmp_path / "without", threads=1)
    assert held["jobs"] == 0
    held["bound"] = 30_000
    assert answer(inputs, tmp_path / "some", threads=1) == without
    some = held["jobs"]
    held["bound"] = 10**9
    for threads in (1, 3):
        held["jobs"] = 0
        assert answer(inputs, tmp_path / f"all{threads}", threads=threads) == without
        assert held["jobs"] > some > 2


def test_bad_rows_are_what_they_are_without_holding(inputs, held, tmp_path):
    with (inputs / "a.jsonl").open("a") as file:
        file.write('\n{"id": "bad"}\n')
    with pytest.raises(InvalidInput, match="text"):
        answer(inputs, tmp_path / "refused")
    with_held = answer(inputs, tmp_path / "held", on_error="skip")
    assert with_held[1]["num_bad_rows"] == 1
    assert held["jobs"] > 2
    held["bound"] = 0
    assert answer(inputs, tmp_path / "without", on_error="skip") == with_held


def test_a_run_in_bounded_memory_holds_nothing_and_answers_alike(inputs, monkeypatch, tmp_path):
    with_held = answer(inputs, tmp_path / "held")
    bounds = []
    begin = HeldDocuments.begin

    def recording(self, recipe, **options):
        bounds.append(begin(self, recipe, **options))
        return bounds[-1]

    monkeypatch.setattr(HeldDocuments, "begin", recording)
    assert answer(inputs, tmp_path / "bounded", memory_bytes="256MB")[0] == with_held[0]
    assert bounds == [False]


def test_texts_in_memory_are_held_too(held):
    found = likewise.dedup(documents(), RECIPE)
    assert held["jobs"] > 0
    held["bound"], held["jobs"] = 0, 0
    again = likewise.dedup(documents(), RECIPE)
    assert held["jobs"] == 0
    assert found.kept.tolist() == again.kept.tolist()
    assert found.removed.equals(again.removed)


def test_features_of_few_documents_are_held_too(held):
    assert likewise.dedup(documents()[:40], RECIPE).summary["recipe"]["weights"] == "idf"
    assert held["jobs"] > 0
