"""Columns of tables and of Arrow and Parquet files: dictionaries, structs, equal names, and types that Arrow lacks."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun

RECIPE = likewise.Recipe.minhash(0.8)
TEXTS = [
    "one two three four five six seven",
    "another text of which nobody knows",
    "ONE two, three four five six seven!",
]
IDS = ["a", "b", "c"]
CATEGORIES = [pl.Categorical, pl.Enum(sorted({*TEXTS, *IDS}))]
WRITERS = {"in.arrow": "write_ipc", "stream.arrow": "write_ipc_stream", "in.parquet": "write_parquet"}


def evidence(out):
    found = pq.read_table(out / "removed.parquet")
    return dict(zip(found["doc_id"].to_pylist(), found["kept_id"].to_pylist(), strict=True))


@pytest.mark.parametrize("kind", CATEGORIES, ids=["categorical", "enum"])
@pytest.mark.parametrize("column", ["id", "text", "both"])
@pytest.mark.parametrize("name", WRITERS)
def test_categories_in_files(tmp_path, kind, column, name):
    frame = pl.DataFrame({"id": IDS, "text": TEXTS, "title": TEXTS})
    frame = frame.with_columns(pl.col(["id", "text"] if column == "both" else column).cast(kind))
    getattr(frame, WRITERS[name])(tmp_path / name)
    for fields, max_document in ((("text",), 10_000), (("text", "title"), 10_000), (("text",), 34)):
        run = FileRun(text_fields=fields, max_document_bytes=max_document, on_error="skip", max_bad_rows="100%")
        summary = dedup_files(tmp_path / name, tmp_path / "out", RECIPE, run=run, overwrite=True)
        if max_document == 34:
            assert summary["num_bad_rows"] == 1
            continue
        assert evidence(tmp_path / "out") == {"c": "a"}
        kept = pl.read_parquet if name.endswith("parquet") else pl.read_ipc_stream if "stream" in name else pl.read_ipc
        assert kept(tmp_path / "out" / "kept" / name)["id"].cast(pl.String).to_list() == ["a", "b"]


@pytest.mark.parametrize("kind", CATEGORIES, ids=["categorical", "enum"])
def test_categories_in_tables(tmp_path, kind):
    frame = pl.DataFrame({"id": IDS, "text": TEXTS}).with_columns(pl.all().cast(kind))
    with_null = frame.with_columns(id=pl.when(pl.col("id") != "b").then("id"))
    for given in (frame, frame.to_arrow(), frame.to_arrow().to_reader()):
        result = likewise.dedup(given, RECIPE)
        assert result.removed["doc_id"].to_pylist() == ["c"]
        assert likewise.pairs(given if given is frame else frame.to_arrow(), RECIPE)["doc_id_a"].to_pylist() == ["a"]
    assert likewise.dedup(with_null, RECIPE).table()["id"].to_pylist() == ["a", "1", "c"]
    assert likewise.dedup(frame["text"], RECIPE, ids=frame["id"]).removed["kept_id"].to_pylist() == ["a"]
    assert likewise.dedup(frame, RECIPE, text_field=["id", "text"]).kept.all()
    assert likewise.dedup(frame, RECIPE, nulls="keep").kept.tolist() == [True, True, False]
    with likewise.Index(tmp_path / "seen.lw", RECIPE) as index:
        assert index.check_and_add_batch(frame["id"], frame["text"]).is_new.tolist() == [True, True, False]
    index = likewise.HammingIndex(np.array([1, 2, 3], np.uint64), within=0, ids=frame["id"])
    assert index.query(2)[0].tolist() == [IDS[1]]


TWO = pa.table([pa.array(IDS), pa.array(TEXTS), pa.array(TEXTS)], names=["id", "text", "text"])
TWO_IDS = pa.table([pa.array(IDS), pa.array(IDS), pa.array(TEXTS)], names=["id", "id", "text"])


@pytest.mark.parametrize(("table", "name"), [(TWO, "text"), (TWO_IDS, "id")])
def test_two_columns_of_one_name_are_named(tmp_path, table, name):
    message = rf"2 columns are named '{name}'; rename all but one"
    rows = [list(row) for row in zip(*(column.to_pylist() for column in table.columns), strict=True)]
    frame = pd.DataFrame(rows, columns=table.column_names)
    for given in (table, table.to_reader(), frame):
        with pytest.raises(InvalidInput, match=message):
            likewise.dedup(given, RECIPE)
        with pytest.raises(InvalidInput, match=message):
            likewise.pairs(table, RECIPE)
    with pytest.raises(InvalidInput, match="2 columns are named 'text'"):
        likewise.sketch(TWO, RECIPE)
    pq.write_table(table, tmp_path / "in.parquet")
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as writer:
        writer.write_table(table)
    for file in ("in.parquet", "in.arrow"):
        with pytest.raises(InvalidInput, match=f"{file}: {message}"):
            dedup_files(tmp_path / file, tmp_path / "out", RECIPE)


@pytest.mark.parametrize("name", ["in.parquet", "in.arrow"])
def test_other_columns_may_have_one_name(tmp_path, name):
    table = pa.table([pa.array(IDS), pa.array(TEXTS), pa.array(IDS), pa.array(IDS)], names=["id", "text", "x", "x"])
    if name == "in.parquet":
        pq.write_table(table, tmp_path / name)
    else:
        with pa.ipc.new_file(tmp_path / name, table.schema) as writer:
            writer.write_table(table)
    dedup_files(tmp_path / name, tmp_path / "out", RECIPE)
    assert evidence(tmp_path / "out") == {"c": "a"}
    assert likewise.dedup(table, RECIPE).kept.tolist() == [True, True, False]


@pytest.mark.parametrize("name", WRITERS)
def test_integers_of_128_bits_are_refused_with_the_way(tmp_path, name):
    frame = pl.DataFrame({"id": pl.Series([1, 2, 3], dtype=pl.Int128), "text": TEXTS})
    getattr(frame, WRITERS[name])(tmp_path / name)
    with pytest.raises(InvalidInput, match=f"{name}: .*128-bit integers to text"):
        dedup_files(tmp_path / name, tmp_path / "out", RECIPE)
    with pytest.raises(InvalidInput, match="128-bit integers to text"):
        likewise.dedup(frame, RECIPE)
    # Other columns are not read.
    other = frame.rename({"id": "number"})
    assert likewise.dedup(other, RECIPE).kept.tolist() == [True, True, False]
    getattr(other, WRITERS[name])(tmp_path / name)
    if name.endswith(".parquet"):
        dedup_files(tmp_path / name, tmp_path / "out", RECIPE)
        assert pl.read_parquet(tmp_path / "out" / "kept" / name).equals(other[:2])
        assert pl.read_parquet_schema(tmp_path / "out" / "kept" / name)["number"] == pl.Int128
        with pytest.raises(InvalidInput, match=f"{name}: .*128-bit integers to text"):
            dedup_files(tmp_path / name, tmp_path / "annotated", RECIPE, write="annotated")
    else:
        with pytest.raises(InvalidInput, match=f"{name}: .*128-bit integers to text"):
            dedup_files(tmp_path / name, tmp_path / "out", RECIPE)


def test_what_is_no_text_column_is_named_with_the_argument_that_mends_it(tmp_path):
    table = pa.table({"body": ["one two"], "site": [1]})
    remedies = {
        "set text_field to the text column": {},
        r"choose one of these": {"text_field": "body", "only_within": "absent"},
        "choose one of these$": {"text_field": "body", "ids": "absent"},
        "neither a column nor a list of columns": {"text_field": 5},
    }
    for remedy, options in remedies.items():
        with pytest.raises((InvalidInput, InvalidParameter), match=remedy):
            likewise.dedup(table, **options)
    for ask in (likewise.dedup, likewise.pairs, likewise.sketch):
        with pytest.raises(InvalidInput, match=r"row 1: expected a str, found dict; .*\.from_pylist\(rows\)"):
            ask(["one", {"text": "two"}])
    for name, inputs in {"text_field": "a", "id_field": "a", "inputs": 5}.items():
        with pytest.raises(InvalidParameter, match=f"{name}: 5 is "):
            likewise.dedup_files(inputs, tmp_path / "out", **({} if name == "inputs" else {name: 5}))


def test_structs_are_not_texts():
    rows = [{"body": text} for text in TEXTS]
    for extra in ({}, {"title": "a"}):
        column = pa.array([{**row, **extra} for row in rows])
        for given in (
            pa.table({"text": column}),
            pa.table({"text": column}).to_reader(),
            pl.DataFrame({"text": column}),
            pd.DataFrame({"text": [{**row, **extra} for row in rows]}),
        ):
            with pytest.raises(
                InvalidInput, match=r"column 'text' has type struct.*not text; .*, such as 'text\.body'"
            ):
                likewise.dedup(given, RECIPE)
        for given in (column, pa.chunked_array([column]), pl.Series(column)):
            with pytest.raises(InvalidInput, match="expected a column of strings, found a struct or table"):
                likewise.dedup(given, RECIPE)


def test_lists_of_numbers_are_not_texts():
    table = pa.table({"text": [[1], [2]], "data": [b"a", b"b"]})
    told = r"column 'text' has type (large_)?list<.*, not text; .*(tokens=.user.|--text-field)"
    for given in (table, table.to_reader(), pl.DataFrame(table)):
        with pytest.raises(InvalidInput, match=told):
            likewise.dedup(given)
    for call in (likewise.pairs, likewise.sketch):
        with pytest.raises(InvalidInput, match=told):
            call(table)
    with pytest.raises(InvalidInput, match="the column 'data' has type binary, not text"):
        likewise.dedup(table, text_field="data")


def test_nested_fields_of_tables(tmp_path):
    rows = [
        {"meta": {"id": name, "score": score}, "page": {"head": {"title": "a"}, "body": text}}
        for name, text, score in zip(IDS, TEXTS, (1, 2, 3), strict=True)
    ]
    table = pa.Table.from_pylist(rows)
    pq.write_table(table, tmp_path / "in.parquet")
    for given in (table, pl.DataFrame(table), pd.DataFrame(rows)):
        result = likewise.dedup(given, RECIPE, text_field="page.body", ids="meta.id")
        assert result.removed["doc_id"].to_pylist() == ["c"]
        kept = likewise.dedup(given, likewise.Recipe.minhash(0.8, keep="max:meta.score"), text_field="page.body").kept
        assert kept.tolist() == [False, True, True]
        assert likewise.sketch(given, RECIPE, text_field=["page.head.title", "page.body"]).array.shape[0] == 3
    result = likewise.dedup(table.to_reader(), RECIPE, text_field="page.body", ids="meta.id")
    assert result.removed["kept_id"].to_pylist() == ["a"]
    run = FileRun(text_fields=("page.body",), id_field="meta.id")
    dedup_files(tmp_path / "in.parquet", tmp_path / "out", RECIPE, run=run)
    assert evidence(tmp_path / "out") == {"c": "a"}
    for name in ("page.foot", "page.body.x", "foot.body"):
        with pytest.raises(InvalidInput, match=f"no column '{name}'"):
            likewise.dedup(table, RECIPE, text_field=name)
