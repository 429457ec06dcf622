"""Texts: lists and every Arrow layout in, the same texts out."""

import sys

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise
from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter

WORDS = ["", "cat", "猫", "naïve", "😀" * 20, "a\0b", "long enough not to be inlined in a view", "x" * 5000]
Texts = _native.Texts


def test_list():
    texts = Texts.from_list(WORDS)
    assert len(texts) == len(WORDS)
    assert texts.to_list() == WORDS
    assert [texts[i] for i in range(-len(WORDS), 0)] == WORDS
    assert texts.num_bytes == sum(len(word.encode()) for word in WORDS)
    assert np.asarray(texts.lengths()).tolist() == [len(word) for word in WORDS]
    assert Texts.from_list([]).to_list() == []
    assert Texts.from_list(iter(WORDS)).to_list() == WORDS
    assert Texts.from_list(tuple(WORDS)).to_list() == WORDS
    with pytest.raises(IndexError):
        texts[len(WORDS)]
    with pytest.raises(IndexError):
        texts[-len(WORDS) - 1]


def test_lone_surrogates_become_replacement_characters():
    given = ["\ud800", "a\udfffb", "\ud83d\ude00", "é\ud800\ud800"]
    assert Texts.from_list(given).to_list() == ["\ufffd", "a\ufffdb", "\ufffd\ufffd", "é\ufffd\ufffd"]
    assert _native.normalize("\ud800 A") == "\ufffd a"


def test_no_copy_stays_inside_a_str():
    text = "é" * 100_000
    before = sys.getsizeof(text)
    Texts.from_list([text])
    _native.normalize(text)
    assert sys.getsizeof(text) == before


def test_wrong_elements_are_named_by_row():
    with pytest.raises(InvalidInput, match="row 2: expected a str, found int") as caught:
        Texts.from_list(["a", "b", 3])
    assert caught.value.row == 2
    with pytest.raises(InvalidInput, match="row 0: expected a str, found bytes"):
        Texts.from_list([b"a"])
    with pytest.raises(InvalidInput, match="one str"):
        Texts.from_list("abc")


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_arrow_layouts(kind):
    array = pa.array(WORDS, kind)
    assert Texts.from_arrow(array).to_list() == WORDS
    assert Texts.from_arrow(array.slice(2, 3)).to_list() == WORDS[2:5]
    assert Texts.from_arrow(array.slice(3, 0)).to_list() == []
    chunked = pa.chunked_array([array.slice(1), array.slice(0, 0), array.slice(0, 2)], kind)
    texts = Texts.from_arrow(chunked)
    assert texts.to_list() == WORDS[1:] + WORDS[:2]
    assert texts.num_bytes == sum(len(word.encode()) for word in WORDS[1:] + WORDS[:2])
    assert Texts.from_arrow(pa.chunked_array([], kind)).to_list() == []
    with pytest.raises(InvalidInput, match="pass one of them"):
        Texts.from_arrow(pa.table({"text": chunked}))


@pytest.mark.parametrize("keys", [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64()], ids=str)
@pytest.mark.parametrize("values", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_dictionaries(keys, values):
    array = pa.DictionaryArray.from_arrays(pa.array([2, 0, 1, 2], keys), pa.array(["a", "猫", "c"], values))
    assert Texts.from_arrow(array).to_list() == ["c", "a", "猫", "c"]
    assert Texts.from_arrow(array.slice(1, 2)).to_list() == ["a", "猫"]
    unused_null = pa.DictionaryArray.from_arrays(pa.array([2, 0], keys), pa.array(["a", None, "c"], values))
    assert Texts.from_arrow(unused_null).to_list() == ["c", "a"]
    null_key = pa.DictionaryArray.from_arrays(pa.array([2, None], keys), pa.array(["a", "b", "c"], values))
    null_value = pa.DictionaryArray.from_arrays(pa.array([2, 1], keys), pa.array(["a", None, "c"], values))
    for array in (null_key, null_value):
        with pytest.raises(InvalidInput, match="row 1: the text is null"):
            Texts.from_arrow(array)


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_nulls_are_named_by_row(kind):
    array = pa.array(["a", "b", None, "c", None], kind)
    with pytest.raises(InvalidInput, match="row 2: the text is null") as caught:
        Texts.from_arrow(array)
    assert caught.value.row == 2
    assert Texts.from_arrow(array.slice(3, 1)).to_list() == ["c"]
    with pytest.raises(InvalidInput, match="row 4"):
        Texts.from_arrow(pa.chunked_array([array.slice(0, 2), array.slice(0, 2), array.slice(2, 1)]))
    with pytest.raises(InvalidInput, match="row 0: the text is null"):
        Texts.from_arrow(pa.nulls(2))


def test_other_libraries():
    series = pl.Series("text", WORDS)
    assert Texts.from_arrow(series).to_list() == WORDS
    assert Texts.from_arrow(series.slice(2, 4)).to_list() == WORDS[2:6]
    assert Texts.from_arrow(pl.concat([series, series], rechunk=False)).to_list() == WORDS * 2
    assert Texts.from_arrow(series.cast(pl.Categorical)).to_list() == WORDS
    frame = pd.DataFrame({"text": WORDS})
    if hasattr(frame["text"], "__arrow_c_stream__"):  # since pandas 3
        assert Texts.from_arrow(frame["text"]).to_list() == WORDS
    with pytest.raises(InvalidInput, match="columns text; pass one of them"):
        Texts.from_arrow(frame)
    relation = duckdb.sql("select unnest(['a', '猫', '']) as text")
    assert Texts.from_arrow(relation.to_arrow_table().column("text")).to_list() == ["a", "猫", ""]


def test_wrong_arrow_objects_are_named():
    with pytest.raises(InvalidInput, match="expected a column of strings, found Int64"):
        Texts.from_arrow(pa.array([1]))
    for table, columns in (({"a": ["x"], "b": ["y"]}, "a, b"), ({"a": ["x"]}, "a")):
        with pytest.raises(InvalidInput, match=f"found a struct or table of the columns {columns}; pass one of them"):
            Texts.from_arrow(pa.table(table))
    with pytest.raises(InvalidInput, match="found a struct or table of the columns a; pass one of them"):
        Texts.from_arrow(pa.array([{"a": "x"}]))
    with pytest.raises(InvalidInput, match="found object"):
        Texts.from_arrow(object())

    class Broken:
        def __arrow_c_array__(self, requested_schema=None):
            return (1, 2)

    with pytest.raises(InvalidInput, match="PyCapsule"):
        Texts.from_arrow(Broken())
    schema, array = pa.array(["a"]).__arrow_c_array__()

    class Twice:
        def __arrow_c_array__(self, requested_schema=None):
            return schema, array

    assert Texts.from_arrow(Twice()).to_list() == ["a"]
    with pytest.raises(InvalidInput):
        Texts.from_arrow(Twice())


def damaged(offsets, text, kind):
    """Return an invalid array of two texts; PyArrow checks its input, so it is damaged afterwards."""
    offsets = np.array(offsets, np.int64 if kind == pa.large_string() else np.int32)
    held_offsets, held_text = np.array([0, 1, 2], offsets.dtype), np.zeros(2, np.uint8)
    array = pa.Array.from_buffers(kind, 2, [None, pa.py_buffer(held_offsets), pa.py_buffer(held_text)])
    held_offsets[:], held_text[:] = offsets, np.frombuffer(text, np.uint8)
    return array


@pytest.mark.parametrize(
    "array",
    [
        damaged([0, 9, 2], b"ab", pa.string()),
        damaged([0, 1, 2], b"a\xff", pa.string()),
        damaged([0, 1, 2], "é".encode(), pa.string()),
        damaged([0, -1, 2], b"ab", pa.large_string()),
        pa.DictionaryArray.from_arrays(pa.array([0, 5], pa.int8()), pa.array(["a"]), safe=False),
    ],
    ids=["falling offsets", "bad UTF-8", "cut character", "negative offset", "key beyond the end"],
)
def test_damaged_arrow_data_is_refused(array):
    with pytest.raises(InvalidInput, match="damaged"):
        Texts.from_arrow(array)


def test_a_stream_that_fails_gives_its_reason():
    def batches():
        yield pa.record_batch({"text": ["a"]})
        raise RuntimeError("the disk is on fire")

    reader = pa.RecordBatchReader.from_batches(pa.schema([("text", pa.string())]), batches())
    with pytest.raises(RuntimeError, match="the disk is on fire"):
        likewise.dedup(reader)


def test_arrow_data_outlives_its_producer():
    texts = Texts.from_arrow(pa.array([word * 100 for word in WORDS]))
    assert texts.to_list() == [word * 100 for word in WORDS]


def test_take_and_concat():
    texts = Texts.from_list(WORDS)
    rows = np.array([7, 0, 2, 2], np.uint32)
    assert texts.take(rows).to_list() == [WORDS[row] for row in rows]
    assert texts.take(rows.astype(np.int64)).to_list() == [WORDS[row] for row in rows]
    assert texts.take(rows).take(np.array([3, 0], np.int64)).to_list() == ["猫", WORDS[7]]
    joined = Texts.concat([texts, texts.take(rows), Texts.from_list([]), Texts.from_arrow(pl.Series(["z"]))])
    expected = WORDS + [WORDS[row] for row in rows] + ["z"]
    assert joined.to_list() == expected
    assert [joined[i] for i in range(len(joined))] == expected
    assert joined.num_bytes == sum(len(text.encode()) for text in expected)
    assert joined.take(np.array([12, 8], np.uint32)).to_list() == ["z", WORDS[7]]
    assert Texts.concat([]).to_list() == []
    for wrong in (len(WORDS), -1):
        with pytest.raises(InvalidParameter, match="rows"):
            texts.take(np.array([wrong], np.int64))


@pytest.mark.parametrize("source", ["list", "taken", "view", "chunks"])
def test_arrow_export(source):
    texts = {
        "list": Texts.from_list(WORDS),
        "taken": Texts.from_list(WORDS).take(np.arange(len(WORDS), dtype=np.uint32)),
        "view": Texts.from_arrow(pa.array(WORDS, pa.string_view())),
        "chunks": Texts.concat([Texts.from_list(WORDS[:3]), Texts.from_list(WORDS[3:])]),
    }[source]
    array = pa.array(texts)
    assert array.type == pa.large_string()
    array.validate(full=True)
    assert array.to_pylist() == WORDS
    assert Texts.from_arrow(texts).to_list() == WORDS


def test_hashes_are_xxh3():
    # Published test vectors of XXH3-64 without a seed: the empty input.
    assert np.asarray(Texts.from_list([""]).hashes()).tolist() == [0x2D06800538D394C2]
    first, second = (np.asarray(Texts.from_list(["cat", "猫"]).hashes(seed)) for seed in (0, 1))
    assert (first != second).all()
