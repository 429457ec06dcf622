"""The same cases through every entry point: lists and Arrow in the library, JSON Lines and Parquet in the command."""

import functools
import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from tests.command import jsonl, likewise_command
from tests.recipes import RECIPES

# Texts, and which of them are kept.
CASES = {
    "cat dog cat": (["cat", "dog", "cat"], [True, True, False]),
    "chinese": (["猫", "狗", "猫"], [True, True, False]),
    "two empty": (["", " \n"], [True, False]),
    "empty among others": (["a b c", "", "d e f", "\u3000", "A  b c"], [True, True, True, False, False]),
    "punctuation": (["...", "!!!", "..."], [True, True, False]),
    "folding": (["Straße №1 ＡＢＣ", "STRASSE no1 abc", "weg no2"], [True, False, True]),
    "controls": (["one\0two three", "one\0two three", "one two three four"], [True, False, True]),
    "thai": (["แมวดำ", "แมวดำ", "หมาแดงตัวใหญ่"], [True, False, True]),
    "emoji": (["\U0001f600 \U0001f601", "\U0001f600 \U0001f601", "\U0001f47b"], [True, False, True]),
    "one": (["alone"], [True]),
    "none": ([], []),
}
METHODS = {
    "minhash": ["--method", "minhash", "--threshold", "0.55"],
    "simhash": ["--method", "simhash"],
    "simhash by threshold": ["--method", "simhash", "--threshold", "0.9"],
    "shingles": ["--method", "shingles", "--threshold", "0.8"],
    "exact": ["--method", "exact"],
    "bloom": ["--method", "bloom", "--threshold", "0.8", "--filter-bits", "1024"],
    "hash": ["--hash", "md5", "--threshold", "0.8"],
}
# One method that keeps the features of all texts, and one that examines only short texts again.
EVERY_DOOR = ("minhash", "simhash")
METHOD_RECIPES = {
    "minhash": likewise.Recipe.minhash(),
    "simhash": likewise.Recipe.simhash(),
    "simhash by threshold": likewise.Recipe.simhash(threshold=0.9),
    "shingles": likewise.Recipe.shingles(0.8),
    "exact": likewise.Recipe.exact(),
    "bloom": likewise.Recipe.bloom(0.8, filter_bits=1024),
    "hash": likewise.Recipe.minhash(0.8, hash="md5"),
}


@functools.cache
def duckdb_connection():
    import duckdb

    return duckdb.connect()


def library_doors(texts):
    """Return the texts in every form that the library accepts."""
    import pandas as pd
    import polars as pl

    strings = pa.array(texts, pa.string())
    table = pa.table({"n": np.arange(len(texts)), "text": strings})
    connection = duckdb_connection()
    connection.register("source", table)
    yield "list", texts
    yield "tuple", tuple(texts)
    yield "iterator", iter(texts)
    yield "array", strings
    yield "large", strings.cast(pa.large_string())
    yield "view", strings.cast(pa.string_view())
    yield "dictionary", strings.dictionary_encode()
    yield "slice", pa.array(["before", *texts, "after"], pa.string())[1:-1]
    yield "chunks", pa.chunked_array([strings[:1], strings[1:1], strings[1:]], pa.string())
    yield "table", table
    yield "batches", pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=1))
    yield "polars series", pl.Series("text", texts, pl.String)
    yield "polars categories", pl.Series("text", texts, pl.Categorical)
    yield "polars frame", pl.DataFrame({"text": pl.Series(texts, dtype=pl.String)})
    yield "pandas series", pd.Series(texts, dtype="string")
    yield "pandas frame", pd.DataFrame({"text": pd.Series(texts, dtype="string")})
    yield "duckdb", connection.sql("select text from source order by n")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", CASES)
def test_library(case, method):
    texts, stays = CASES[case]
    first = None
    doors = library_doors(texts) if method in EVERY_DOOR else [("list", texts), ("array", pa.array(texts, pa.string()))]
    for door, data in doors:
        result = likewise.dedup(data, METHOD_RECIPES[method])
        assert result.kept.tolist() == stays, door
        first = first or result
        assert result.removed.equals(first.removed), door
        assert result.summary["num_kept"] == sum(stays)


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
@pytest.mark.parametrize("case", ["cat dog cat", "chinese", "two empty"])
def test_every_recipe_keeps_two_cats(case, recipe):
    texts, stays = CASES[case]
    assert likewise.dedup(texts, recipe.replace(keep="first")).kept.tolist() == stays


def by_command(*cases):
    """Parametrize the first case by all methods, the others by two: results of a method are equal everywhere."""
    return pytest.mark.parametrize(
        ("case", "method"),
        [(case, method) for case in cases for method in METHODS if case == cases[0] or method in EVERY_DOOR],
    )


@by_command("empty among others", "cat dog cat", "chinese", "two empty", "controls")
def test_command_with_json_lines(tmp_path, case, method):
    texts, stays = CASES[case]
    data = jsonl(texts)
    ran = likewise_command("dedup", "-", "-o", tmp_path / "out", *METHODS[method], stdin=data)
    assert ran.status == 0, ran.err
    kept = b"".join(line for line, keep in zip(data.splitlines(keepends=True), stays, strict=True) if keep)
    (written,) = (tmp_path / "out" / "kept").iterdir()
    assert written.read_bytes() == kept
    evidence = pq.read_table(tmp_path / "out" / "removed.parquet")
    # Files hold ids as text.
    in_memory = likewise.dedup(texts, METHOD_RECIPES[method], ids=[str(i) for i in range(len(texts))]).removed
    assert evidence.column_names == in_memory.column_names
    places = ["file", "offset", "length", "kept_file", "kept_offset"]
    assert evidence.drop(places).equals(in_memory.drop(places))


@by_command("cat dog cat", "chinese", "two empty")
def test_command_with_parquet(tmp_path, case, method):
    texts, stays = CASES[case]
    table = pa.table({"id": pa.array(range(len(texts)), pa.int64()), "text": texts, "other": [[1]] * len(texts)})
    pq.write_table(table, tmp_path / "in.parquet")
    ran = likewise_command("dedup", tmp_path / "in.parquet", "-o", tmp_path / "out", *METHODS[method])
    assert ran.status == 0, ran.err
    assert pq.read_table(tmp_path / "out" / "kept" / "in.parquet").equals(table.filter(pa.array(stays)))
    evidence = pq.read_table(tmp_path / "out" / "removed.parquet")
    assert evidence.column("doc_id").to_pylist() == [str(i) for i, keep in enumerate(stays) if not keep]


def test_no_texts_at_all(tmp_path):
    (tmp_path / "none.jsonl").write_bytes(b"")
    ran = likewise_command("dedup", tmp_path / "none.jsonl", "-o", tmp_path / "out")
    assert ran.status == 0, ran.err
    assert json.loads((tmp_path / "out" / "summary.json").read_text())["num_documents"] == 0
    assert (tmp_path / "out" / "kept" / "none.jsonl").read_bytes() == b""


@pytest.mark.parametrize(
    "data",
    [["a", None], [1], ["a", b"b"], pa.array(["a", None]), pa.array([1, 2])],
    ids=["none", "number", "bytes", "null", "numbers"],
)
def test_what_is_no_text_is_refused_with_its_row(data):
    with pytest.raises((likewise.InvalidInput, likewise.InvalidParameter)) as error:
        likewise.dedup(data)
    assert isinstance(error.value, ValueError)


def test_lone_surrogates_pass_through_lists():
    assert likewise.dedup(["a \ud800 b", "a \ufffd b", "other"]).kept.tolist() == [True, False, True]


def test_sketch_and_compare_agree_with_dedup():
    texts = ["one two three four five six", "one two three four five seven"]
    recipe = likewise.Recipe.simhash(threshold=0.5, within=64, shingle=1, weights="none")
    comparison = likewise.compare(*texts)
    assert 0 < comparison.measures.jaccard < 1
    sketches = likewise.sketch(texts, recipe)
    (distance,) = likewise.hamming_distance(sketches.array[:1], sketches.array[1:])
    (row,) = likewise.dedup(texts, recipe).removed.to_pylist()
    assert row["distance"] == distance
