"""Null texts: one error for every kind of data, or rows that are kept or dropped without a comparison."""

import json
import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise
from likewise.batch.files import dedup_files
from likewise.errors import InvalidInput, InvalidParameter
from likewise.job.reading import FileRun
from likewise.stages.features import features
from tests.command import likewise_command

A, B, C = "one fine day in may by the sea", "One fine day in May, by the sea!", "another text of which nobody knows"
TEXTS = [None, A, None, None, C, B, None]
WITHOUT = [A, C, B]
ROWS = [1, 4, 5]
RECIPE = likewise.Recipe.minhash(0.8)
TABLE = pa.table({"id": list("abcdefg"), "n": [7, 6, 5, 4, 3, 2, 9], "text": TEXTS})
KINDS = {
    "list": lambda: TEXTS,
    "NaN": lambda: [math.nan if text is None else text for text in TEXTS],
    "NA": lambda: pd.Series(TEXTS, dtype="string"),
    "iterator": lambda: iter(TEXTS),
    "pandas series": lambda: pd.Series(TEXTS),
    "pandas": lambda: pd.DataFrame({"text": TEXTS}),
    "polars series": lambda: pl.Series(TEXTS),
    "categories": lambda: pl.Series(TEXTS, dtype=pl.Categorical),
    "polars": lambda: pl.DataFrame({"text": TEXTS}),
    "array": lambda: pa.array(TEXTS),
    "views": lambda: pa.array(TEXTS, pa.string_view()),
    "chunks": lambda: pa.chunked_array([TEXTS[:2], TEXTS[2:]], pa.string()),
    "table": lambda: pa.table({"text": TEXTS}),
    "reader": lambda: pa.table({"text": TEXTS}).to_reader(3),
    "duckdb": lambda: duckdb.from_arrow(pa.table({"text": TEXTS})),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_data(kind):
    """Expect the same error text; with `nulls`, the verdicts of the other texts alone, at the rows of the input."""
    for call in (likewise.dedup, likewise.pairs):
        with pytest.raises(InvalidInput) as said:
            call(KINDS[kind](), RECIPE)
        assert str(said.value) == (
            'row 0: the text is null; leave such rows out or fill them, or set nulls="keep" or nulls="drop"'
        )
    expected = likewise.dedup(WITHOUT, RECIPE)
    assert expected.kept.tolist() == [True, True, False]
    for nulls in ("keep", "drop"):
        result = likewise.dedup(KINDS[kind](), RECIPE, nulls=nulls)
        assert result.kept.tolist() == [
            nulls == "keep",
            True,
            nulls == "keep",
            nulls == "keep",
            True,
            False,
            nulls == "keep",
        ]
        (row,) = result.removed.to_pylist()
        assert (row["row"], row["kept_row"], row["doc_id"], row["kept_id"]) == (5, 1, 5, 1)
        assert row["similarity"] == expected.removed.to_pylist()[0]["similarity"]
        assert [result.summary[name] for name in ("num_documents", "num_kept", "num_removed", "num_bad_rows")] == [
            3,
            2,
            1,
            4,
        ]
        (pair,) = likewise.pairs(KINDS[kind](), RECIPE, nulls=nulls).to_pylist()
        assert (pair["row_a"], pair["row_b"], pair["doc_id_a"], pair["doc_id_b"]) == (1, 5, 1, 5)


@pytest.mark.parametrize("as_stream", [False, True])
def test_ids_and_fields_are_those_of_their_rows(as_stream):
    data = TABLE.to_reader(2) if as_stream else TABLE
    result = likewise.dedup(data, RECIPE, keep="min:n", nulls="drop")
    assert result.kept.tolist() == [False, False, False, False, True, True, False]
    (row,) = result.removed.to_pylist()
    assert (row["row"], row["kept_row"], row["doc_id"], row["kept_id"]) == (1, 5, "b", "f")
    if not as_stream:
        given = likewise.dedup(TEXTS, RECIPE, ids=list("abcdefg"), nulls="keep").removed.to_pylist()
        assert (given[0]["doc_id"], given[0]["kept_id"]) == ("f", "b")
        with pytest.raises(InvalidInput, match="3 ids for 7 texts"):
            likewise.dedup(TEXTS, RECIPE, ids=["x", "y", "z"], nulls="keep")


def test_nothing_but_nulls_and_many_pieces(monkeypatch):
    for nulls in ("keep", "drop"):
        assert likewise.dedup([None, None], RECIPE, nulls=nulls).kept.tolist() == [nulls == "keep"] * 2
        assert likewise.dedup(pa.nulls(2), RECIPE, nulls=nulls).kept.tolist() == [nulls == "keep"] * 2
    from likewise.batch.read import ingest

    monkeypatch.setattr(ingest, "PIECE_BYTES", 40)
    texts = [None if number % 3 == 0 else f"text {number % 5} of some words" for number in range(50)]
    result = likewise.dedup(texts, "online", nulls="drop")
    alone = [row for row in range(50) if row % 3]
    expected = likewise.dedup([texts[row] for row in alone], "online")
    assert [row for row in range(50) if result.kept[row]] == [
        alone[row] for row in range(len(alone)) if expected.kept[row]
    ]
    for name in ("row", "kept_row"):
        ours, theirs = result.removed.column(name).to_pylist(), expected.removed.column(name).to_pylist()
        assert ours == [alone[row] for row in theirs]
    weighed = likewise.dedup(texts, "default", nulls="drop", keep="longest")
    assert weighed.kept.sum() == likewise.dedup([texts[row] for row in alone], "default", keep="longest").kept.sum()


def test_tokens_of_ones_own():
    own = likewise.Recipe.minhash(0.8, tokens="user", tokenizer="split 1")
    cut = likewise.dedup(TEXTS, own, tokenizer=str.split, nulls="drop")
    lists = likewise.dedup([None if text is None else text.split() for text in TEXTS], own, nulls="drop")
    assert cut.kept.tolist() == lists.kept.tolist() == [False, True, False, False, True, True, False]


def test_other_bad_rows_of_a_stream_are_errors_still():
    bad = pa.Array.from_buffers(
        pa.string(), 1, [None, pa.array([0, 1], pa.int32()).buffers()[1], pa.py_buffer(b"\xff")]
    )
    data = pa.table({"text": pa.chunked_array([pa.array([A, None]), bad])})
    with pytest.raises(InvalidInput, match=r"row 2: text is not valid UTF-8$"):
        likewise.dedup(data.to_reader(1), RECIPE, nulls="drop")
    with pytest.raises(InvalidParameter, match="nulls: 'skip' is not one of fail, keep, drop"):
        likewise.dedup(TEXTS, RECIPE, nulls="skip")
    with pytest.raises(InvalidInput, match=r"row 1: the text is null; leave such rows out or fill them$"):
        features([A, None])


def test_the_command_line_says_the_same_in_its_own_words(tmp_path):
    (tmp_path / "t.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in TEXTS))
    for nulls, on_error in (("keep", "keep"), ("drop", "skip")):
        done = likewise_command("dedup", tmp_path / "t.jsonl", "-o", "-", "--on-error", on_error, "--threshold", "0.8",
                                "--max-bad-rows", "100%")  # fmt: skip
        assert done.status == 0, done.err
        mask = likewise.dedup(TEXTS, RECIPE, nulls=nulls).kept
        assert [json.loads(line)["text"] for line in done.out.splitlines()] == [
            text for text, stays in zip(TEXTS, mask, strict=True) if stays
        ]


def test_text_of_several_columns(tmp_path):
    titles, bodies = ["T", "T", "U", None], ["one fine day", "one fine day", "one fine day", "one fine day"]
    table = pa.table({"title": titles, "text": bodies})
    recipe = likewise.Recipe.exact()
    joined = likewise.dedup([f"{t}\n{b}" for t, b in zip(titles[:3], bodies[:3], strict=True)], recipe)
    for data in (table, pl.from_arrow(table), pd.DataFrame({"title": titles, "text": bodies}), table.to_reader(2)):
        result = likewise.dedup(data, recipe, text_field=["title", "text"], nulls="drop")
        assert result.kept.tolist() == [*joined.kept.tolist(), False] == [True, False, True, False]
    sketches = likewise.sketch(table.slice(0, 3), text_field=("title", "text"))
    assert (
        sketches.array == likewise.sketch([f"{t}\n{b}" for t, b in zip(titles[:3], bodies[:3], strict=True)]).array
    ).all()
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in table.slice(0, 3).to_pylist()))
    summary = dedup_files(tmp_path / "t.jsonl", tmp_path / "out", recipe, run=FileRun(("title", "text")))
    assert summary["num_kept"] == 2
    with pytest.raises(InvalidInput, match="no column 'body' in the table"):
        likewise.dedup(table, recipe, text_field=["title", "body"])
    with pytest.raises(InvalidInput, match="the column 'n' has type int64, not text"):
        likewise.dedup(TABLE, recipe, text_field=["id", "n"])
    with pytest.raises(InvalidParameter, match="text_field"):
        likewise.dedup(table, recipe, text_field=[])
