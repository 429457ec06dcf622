"""Spark gives the results of a local run, continues interrupted runs, and rejects unsupported calls."""

import gzip
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise import Recipe
from likewise.batch.against.index import IndexUse
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.job.reading import FileRun
from likewise.runs.diff import run_differences
from tests.structure.pages import blocks

# Java starts slowly on a busy machine, and its sockets are closed only when it ends.
pytestmark = [pytest.mark.timeout(900), pytest.mark.filterwarnings("ignore")]

OWN_TOKENS = Recipe.minhash(tokens="user", tokenizer="spaces 1")
FEW_BANDS = Recipe.minhash(0.7, bands=4, rows=1)
STRINGS = pa.schema({"id": pa.string(), "text": pa.string()})
LABELED_SETS = ["en-cpp-errors", "zh-docs-tidb", "edits-controlled"]
RECIPES = {
    "longest": Recipe.minhash(keep="longest"),
    "containment": Recipe.minhash(measure="containment"),
    "components": Recipe.minhash(0.6, group="components"),
    "cosine": Recipe.simhash(threshold=0.8),
    "margin": Recipe.minhash(0.4, short_margin=1.0),
    "margin-components": Recipe.minhash(0.4, short_margin=1.0, group="components"),
    "cosine-components": Recipe.simhash(threshold=0.8, group="components"),
    "exact": Recipe.exact(),
}


def check_same(found, local):
    assert found.removed.toArrow().to_pylist() == local.removed.to_pylist()
    assert [row.row for row in found.kept.collect()] == local.kept.nonzero()[0].tolist()
    for name, count in local.summary.items():
        if name.startswith("num_") and name not in ("num_measured", "num_blank_lines", "num_bad_rows", "num_bad_lines"):
            assert found.summary[name] == count, name


# test_workers.py also tests the levels of full buckets, without Spark.
@pytest.mark.parametrize(
    ("recipe", "stage"),
    [
        # Full buckets add stages.
        (Recipe.minhash(0.7, bands=2, rows=16), None),
        pytest.param(FEW_BANDS, "crowd", marks=pytest.mark.slow),
        pytest.param(FEW_BANDS.replace(overflow="levels"), "buckets-1", marks=pytest.mark.slow),
    ],
    ids=["room", "full", "full-levels"],
)
def test_minhash_goes_on_where_it_stopped(spark, frame, table, tmp_path, monkeypatch, recipe, stage):
    from likewise.batch.spark import run
    from likewise.spark import dedup

    local = likewise.dedup(table, recipe)

    def broken(*_, **__):
        raise RuntimeError("killed")

    with monkeypatch.context() as context:
        context.setattr(run, "removed_ranks", broken)
        with pytest.raises(RuntimeError):
            dedup(frame, recipe, checkpoint_dir=str(tmp_path))
    assert (tmp_path / "edges.done").exists()
    for name in ("crowd", "buckets-1"):
        assert (tmp_path / f"{name}.done").exists() == (name == stage)
    assert (local.summary["num_crowded"] > 0) == (stage is not None)
    assert not (tmp_path / "verdicts.done").exists()
    found = dedup(frame, recipe, checkpoint_dir=str(tmp_path))
    assert found.summary["num_stages_made"] == 3
    check_same(found, local)
    # A changed document, another recipe, and another order are rejected.
    changed = table.set_column(1, "text", pa.array([*table.column("text").to_pylist()[:-1], "changed"]))
    with pytest.raises(InvalidInput, match="made from other documents"):
        dedup(spark.createDataFrame(changed), recipe, checkpoint_dir=str(tmp_path))
    with pytest.raises(RecipeMismatch, match="threshold"):
        dedup(frame, recipe.replace(threshold=0.8), checkpoint_dir=str(tmp_path))
    with pytest.raises(RecipeMismatch, match="order"):
        dedup(frame, recipe, order="place", checkpoint_dir=str(tmp_path))


@pytest.mark.parametrize("fields", [{}, {"unsure": "keep"}, {"keep_new": 6, "group": "components"}])
def test_siblings_are_kept_as_in_a_local_run(spark, fields):
    from likewise.spark import dedup
    from likewise.stages.weights import count_weights
    from tests.unit.test_siblings import forms, recipe

    texts = forms(5, 150)
    texts += [text.upper() for text in texts[:4]]
    table = pa.table({"id": [f"{row:04d}" for row in range(len(texts))], "text": texts})
    asked = recipe(weights=count_weights(texts, recipe()), **fields)
    local = likewise.dedup(table, asked)
    if fields != {"unsure": "keep"}:
        assert local.summary["num_unsure"] > 0
    found = dedup(spark.createDataFrame(table.to_pylist()), asked)
    check_same(found, local)
    assert found.summary["differences"] == local.summary["differences"]


@pytest.mark.slow
def test_only_within(spark, table):
    from likewise.spark import dedup

    sites = pa.array([f"site {row % 3}" for row in range(table.num_rows)])
    valued = table.select(["id", "text"]).append_column("site", sites)
    recipe = Recipe.minhash(0.7, only_within="site")
    check_same(dedup(spark.createDataFrame(valued.to_pylist()), recipe), likewise.dedup(valued, recipe))


def test_distance_alone(frame, table):
    from likewise.spark import dedup

    recipe = Recipe.simhash(keep="newest:when,longest")
    found, local = dedup(frame, recipe), likewise.dedup(table, recipe)
    check_same(found, local)
    num_without = sum(when is None for when in table.column("when").to_pylist())
    assert found.summary["num_without_field"] == local.summary["num_without_field"] == {"when": num_without}


def test_what_cannot_be_done_is_refused_at_once(spark, frame, table):
    from likewise.spark import SparkEngine, dedup, pairs, sketch

    for recipe in (Recipe.shingles(), Recipe.bloom(), Recipe.minhash(weights="idf"), OWN_TOKENS):
        for call in (dedup, pairs, sketch):
            with pytest.raises(InvalidParameter):
                call(frame, recipe)
    for options, name in (
        ({"text_field": "texts"}, "text_field"),
        ({"text_field": "place"}, "text_field"),
        ({"id_field": "nothing"}, "id_field"),
        ({"order": "nothing"}, "order"),
        ({"keep": "max:nothing"}, "keep"),
        ({"driver_memory": "much"}, "driver_memory"),
    ):
        with pytest.raises(InvalidParameter) as caught:
            dedup(frame, **options)
        assert caught.value.name == name
    with pytest.raises(InvalidParameter, match="binary"):
        dedup(frame, Recipe.minhash(tokens="bytes"))
    with pytest.raises(InvalidParameter, match="index"):
        likewise.dedup_files([], "out", engine=SparkEngine("local[2]"), index=IndexUse(create="new.lw"))
    for broken, message in (
        ([("a", None), ("b", "text")], "no text, such as id 'a'"),
        ([("a", "one"), ("a", "two")], "1 id occurs more than once, such as 'a'"),
        ([(None, "one")], "1 row has no id"),
    ):
        with pytest.raises(InvalidInput, match=message):
            dedup(spark.createDataFrame(broken, "id string, text string"))


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe(frame, table, name):
    from likewise.spark import dedup

    check_same(dedup(frame, RECIPES[name]), likewise.dedup(table, RECIPES[name]))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["containment", "cosine", "exact"])
def test_pairs(frame, table, name):
    from likewise.spark import pairs

    assert pairs(frame, RECIPES[name]).toArrow().to_pylist() == likewise.pairs(table, RECIPES[name]).to_pylist()


@pytest.mark.slow
def test_order_and_numeric_ids(spark, table):
    from likewise.spark import dedup

    # Three documents per place; integer ids are ordered by their digits.
    places = [number // 3 for number in range(len(table))]
    numbers = list(range(len(table)))
    given = pa.table({"key": numbers, "body": table.column("text"), "place": places})
    rows = sorted(numbers, key=lambda number: (places[number], str(number)))
    in_order = given.take(rows)
    local = likewise.dedup(in_order.column("body"), FEW_BANDS, ids=in_order.column("key"))
    found = dedup(
        spark.createDataFrame(given), FEW_BANDS, order="place", text_field="body", id_field="key", keep="first"
    )
    check_same(found, local)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [Recipe.minhash(), Recipe.simhash(bits=64), Recipe.simhash(bits=128)])
def test_sketches(frame, table, recipe, tmp_path):
    from likewise.spark import sketch

    likewise.sketch(table, recipe).write(tmp_path / "local.parquet")
    local = pq.read_table(tmp_path / "local.parquet").select(["sketch", "is_empty", "num_features"]).to_pylist()
    found = sketch(frame, recipe).orderBy("doc_id").toArrow()
    # Without sets, repeated features may be counted repeatedly, on both sides.
    assert found.column("doc_id").to_pylist() == table.column("id").to_pylist()
    assert found.select(["sketch", "is_empty", "num_features"]).to_pylist() == local


@pytest.fixture
def inputs(table, tmp_path):
    """Two files, one of them compressed, with blank lines, a bad row and documents without ids."""
    lines = [json.dumps({"text": row["text"], "when": row["when"]}) for row in table.to_pylist()]
    (tmp_path / "one.jsonl").write_text("\n".join([*lines[:200], "", "no json", *lines[200:250]]) + "\n")
    with gzip.open(tmp_path / "two.jsonl.gz", "wt") as file:
        file.write("\n".join([*lines[250:], ""]))
    return [tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"]


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [FEW_BANDS, Recipe.simhash(keep="newest:when")], ids=["minhash", "simhash"])
def test_the_command_gives_the_same_run(spark, inputs, tmp_path, recipe):
    from likewise.spark import SparkEngine

    run = FileRun(on_error="skip")
    local = likewise.dedup_files(inputs, tmp_path / "local", recipe, run=run)
    engine = SparkEngine("local[2]", checkpoint_dir=str(tmp_path / "stages"))
    found = likewise.dedup_files(inputs, tmp_path / "spark", recipe, run=run, engine=engine)
    assert run_differences(tmp_path / "local", tmp_path / "spark")[0] == []
    evidence = [pq.read_table(tmp_path / name / "removed.parquet") for name in ("local", "spark")]
    assert evidence[0].equals(evidence[1])
    assert (tmp_path / "local/errors.jsonl").read_text() == (tmp_path / "spark/errors.jsonl").read_text()
    assert all(len(file["content"]) == 32 for file in found["inputs"])
    assert {**local, "timings": 0, "num_measured": 0} == {**found, "timings": 0, "num_measured": 0}
    with pytest.raises(InvalidInput, match=r"one\.jsonl:202"):
        likewise.dedup_files(inputs, tmp_path / "other", recipe, engine=SparkEngine("local[2]"))
    misspelt = recipe.replace(keep="newest:wen")
    for engine in (None, SparkEngine("local[2]")):
        with pytest.raises(InvalidInput, match=r"the field 'wen' used by keep \(found in the first: text, when\)"):
            likewise.dedup_files(inputs, tmp_path / "other", misspelt, run=run, engine=engine)


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [Recipe.minhash(), Recipe.simhash()], ids=["minhash", "simhash"])
@pytest.mark.parametrize("name", LABELED_SETS)
def test_labeled_sets(spark, labeled, name, recipe):
    from likewise.spark import dedup

    ids, texts, _ = labeled(name)
    rows = sorted(range(len(ids)), key=lambda row: ids[row].encode())
    in_order = pa.table({"id": [ids[row] for row in rows], "text": [texts[row] for row in rows]})
    check_same(dedup(spark.createDataFrame(in_order), recipe), likewise.dedup(in_order, recipe))


@pytest.mark.slow
@pytest.mark.parametrize("recipe", [FEW_BANDS, Recipe.simhash(), Recipe.exact()], ids=lambda recipe: recipe.method)
def test_nothing_and_one(spark, recipe):
    from likewise.spark import dedup

    for rows in ([], [("a", "one text")], [("a", ""), ("b", " ")]):
        table = pa.table({"id": [row[0] for row in rows], "text": [row[1] for row in rows]}, STRINGS)
        check_same(dedup(spark.createDataFrame(table), recipe), likewise.dedup(table, recipe))


CONNECT = """
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
import likewise
from likewise.spark import dedup, hamming_join, hamming_pairs
spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
texts = [f"the words of this text are always the same but for {i // 2} {i // 2 * 7}" for i in range(40)]
table = pa.table({"id": [f"{i:03d}" for i in range(40)], "text": texts})
for recipe in (likewise.Recipe.minhash(0.9), likewise.Recipe.simhash()):
    found = dedup(spark.createDataFrame(table), recipe, checkpoint_dir="CHECKPOINTS/" + recipe.method)
    assert found.removed.toArrow().to_pylist() == likewise.dedup(table, recipe).removed.to_pylist()
    assert found.summary["num_removed"] >= 20
words = np.concatenate([np.arange(40) << 32, (np.arange(40) << 32) + 7, [0, 0]]).astype(np.int64)
frame = spark.createDataFrame(pa.table({"doc_id": np.arange(82), "sketch": words}))
pairs, distances = likewise.hamming_pairs(words, 3)
local = sorted(zip(*pairs.T.tolist(), distances.tolist()))
assert len(local) > 100 and set(distances.tolist()) == {0, 1, 2, 3}
for plan in ("slabs", "splitting"):
    found = hamming_pairs(frame, 3, plan=plan, checkpoint_dir="CHECKPOINTS/" + plan).expanded()
    assert sorted(tuple(row.values()) for row in found.toArrow().to_pylist()) == local
small = frame.where("doc_id < 10")
found = hamming_join(small, frame, 3, checkpoint_dir="CHECKPOINTS/join").toArrow()
pairs, distances = likewise.hamming_join(words[:10], words, 3)
assert sorted(tuple(row.values()) for row in found.to_pylist()) == sorted(zip(*pairs.T.tolist(), distances.tolist()))
print("the same by Connect")
"""


@pytest.mark.slow
def test_by_connect(spark, tmp_path):
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    program = CONNECT.replace("CHECKPOINTS", str(tmp_path))
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment)
    assert "the same by Connect" in done.stdout, done.stderr[-3000:]


@pytest.mark.slow
def test_the_page_runs(spark, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(table, "crawl.parquet")
    block = blocks("docs/howto/spark.md", "python")[0]
    # Spark resolves paths from the directory in which it was started.
    for name in ("crawl.parquet", "checkpoints/crawl", "crawl-unique.parquet"):
        block = block.replace(f'"{name}"', f'"{tmp_path}/{name}"')
    names = {"spark": spark}
    exec(compile(block, "page", "exec"), names)
    local = likewise.dedup(table, Recipe.minhash(0.8, keep="longest"))
    assert spark.read.parquet(f"{tmp_path}/crawl-unique.parquet").count() == local.summary["num_kept"]
    pairs = likewise.pairs(table, Recipe.minhash(0.8, keep="longest"))
    assert names["found"].toArrow().to_pylist() == pairs.to_pylist()
    assert names["sketches"].count() == table.num_rows
