"""A run counts rarity in a sample that depends on the documents alone."""

import gzip
import json
import random

import numpy as np
import pytest

import likewise
from likewise import InvalidInput, Recipe
from likewise.batch.files import dedup_files
from likewise.batch.read import ingest
from likewise.job.reading import FileRun
from likewise.stages import weights as counting
from likewise.stages.weights import Sample, count_weights
from tests.oracle import weights as oracle
from tests.oracle.features import Rules

RECIPE = Recipe.minhash("auto", weights="idf", keep="longest")


def documents():
    draw = random.Random(6)
    texts = []
    for _ in range(150):
        words = [f"w{min(799, int(draw.paretovariate(0.5)))}" for _ in range(draw.randrange(1, 60))]
        texts.append(" ".join(words))
        words[draw.randrange(len(words))] = "other"
        texts.append(" ".join([*words, *draw.choices(words, k=draw.randrange(4))]))
    return [*texts, "", "...", texts[3], "Ça, éà ü"]


@pytest.fixture
def limits(monkeypatch):
    """Set small limits of the sample; jobs are small too."""
    monkeypatch.setattr(ingest, "PIECE_BYTES", 3000)

    def set_limits(most, most_bytes=1 << 20):
        monkeypatch.setattr(counting, "MOST_SAMPLED", most)
        monkeypatch.setattr(counting, "MOST_SAMPLED_BYTES", most_bytes)

    set_limits(60)
    return set_limits


@pytest.fixture
def inputs(tmp_path):
    """Return two files with blank lines, one of them compressed."""
    lines = [json.dumps({"id": f"d{number}", "text": text}) + "\n" for number, text in enumerate(documents())]
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_text("\n".join(lines[:200]))
    (folder / "b.jsonl.gz").write_bytes(gzip.compress("".join(lines[200:]).encode()))
    return folder


def answer(inputs, output, **options):
    summary = dedup_files(inputs, output, RECIPE, run=FileRun(**options))
    files = {file.name: file.read_bytes() for file in sorted(output.rglob("*")) if file.is_file()}
    del files["summary.json"]
    return files, {name: summary[name] for name in ("recipe", "num_kept", "chosen_threshold", "inputs", "num_bad_rows")}


@pytest.mark.parametrize(("most", "most_bytes"), [(60, 1 << 20), (1000, 5000), (1, 1), (1000, 1 << 20)])
def test_the_sample_is_that_of_the_definition(limits, most, most_bytes):
    limits(most, most_bytes)
    texts = documents()
    sample = Sample()
    for start in range(0, len(texts), 40):
        sample.add(likewise._native.Texts.from_list(texts[start : start + 40]))
    table = sample.count(RECIPE, threads=2)
    sampled = oracle.sampled(texts, most, most_bytes)
    assert table.weights_id == count_weights(sampled, RECIPE).weights_id
    expected = oracle.idf_table(sampled, Rules(shingle=2, weights="idf"))
    keys = np.array(sorted(expected), np.uint64)
    assert table.weigh(keys).tolist() == [expected[key] for key in keys.tolist()]
    whole = count_weights(texts, RECIPE)
    assert (table.weights_id == whole.weights_id) == (len(sampled) == len(set(texts)))


def test_a_run_answers_alike_in_any_order_of_work(limits, inputs, tmp_path):
    one = answer(inputs, tmp_path / "one", threads=1)
    assert answer(inputs, tmp_path / "three", threads=3) == one
    assert answer(inputs, tmp_path / "bounded", memory_bytes="256MB")[0] == one[0]
    found = likewise.dedup(documents(), RECIPE)
    assert found.summary["recipe"]["weights_id"] == one[1]["recipe"]["weights_id"]
    assert int(found.kept.sum()) == one[1]["num_kept"]
    limits(1000)
    assert answer(inputs, tmp_path / "all")[1]["recipe"] != one[1]["recipe"]


def test_bad_rows_are_not_sampled(limits, inputs, tmp_path):
    before = answer(inputs, tmp_path / "before")
    with (inputs / "a.jsonl").open("a") as file:
        file.write('\n{"id": "bad"}\n')
    with pytest.raises(InvalidInput, match="text"):
        answer(inputs, tmp_path / "refused")
    after = answer(inputs, tmp_path / "after", on_error="skip")
    assert after[1]["num_bad_rows"] == 1
    assert after[1]["recipe"] == before[1]["recipe"]
