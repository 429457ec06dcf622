"""Ids, rows and numbers in calls of Hamming search: what exactly is accepted and rejected."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import likewise
from likewise import HammingIndex, InvalidParameter, Recipe, RecipeMismatch
from likewise.hamming.ids import IdLookup, first_double, id_keys
from likewise.hamming.pairs import hamming_distance, hamming_join, hamming_pairs
from likewise.hamming.plan import plan_hamming
from likewise.hamming.stream import hamming_stream

CODES = np.array([0, 7, 255, 2**64 - 1], np.uint64)
TEXTS = ["a cat sat on the mat", "dogs bark at night", ""]


def numbered(values):
    return [pytest.param(value, id=str(number)) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    "rows",
    numbered(
        [
            np.array([True, False, False, True]),
            [True],
            True,
            np.bool_(True),
            [1.0],
            np.array([1.9]),
            1.5,
            "1",
            ["1"],
            np.array(["1"]),
            None,
            b"1",
            [None],
            {1: 2},
            np.array([[0, 1]]),
            pa.array([True, False]),
            pa.array([1.0]),
            pa.table({"row": [1]}),
            2**70,
            [0, 2**70],
        ]
    ),
)
def test_rows_to_remove_are_whole_numbers(rows):
    index = HammingIndex(CODES)
    with pytest.raises(InvalidParameter) as error:
        index.remove(rows)
    assert error.value.name == "rows"
    assert len(index) == 4
    named = HammingIndex(CODES, ids=[10, 11, 12, 13])
    with pytest.raises(InvalidParameter) as error:
        named.remove(rows)
    assert error.value.name == "rows"
    assert len(named) == 4


@pytest.mark.parametrize(
    "rows",
    numbered(
        [
            [1, 3],
            (1, 3),
            {1, 3},
            range(1, 4, 2),
            iter([1, 3]),
            np.array([1, 3]),
            np.array([1, 3], np.uint8),
            np.flatnonzero([False, True, False, True]),
            pa.array([1, 3], pa.uint64()),
            pd.Series([1, 3]),
            pl.Series([1, 3]),
            [np.int8(1), 3, 3, 99, -1],
        ]
    ),
)
def test_rows_of_any_kind_are_removed(rows):
    index = HammingIndex(CODES)
    assert index.remove(rows) == 2
    assert index.query_batch(CODES, 0).rows.tolist() == [0, 2]
    assert index.remove([]) == index.remove(np.array([], np.int64)) == index.remove(1) == 0


def test_ids_to_remove_are_of_the_kind_of_the_index():
    named = HammingIndex(CODES, ids=["0", "1", "2", "3"])
    for rows in (1, [1], np.array([1]), [1.0], True):
        with pytest.raises(InvalidParameter, match="rows"):
            named.remove(rows)
    assert named.remove("1") == named.remove(np.str_("2")) == named.remove(["3", "4"]) == 1
    assert named.remove([]) == 0
    assert len(named) == 1


@pytest.mark.parametrize(
    "ids",
    numbered(
        [
            pa.array(["a", "b", "a b", "é"], pa.string()),
            pa.array(["a", "b", "a b", "é"], pa.large_string()),
            pa.array(["a", "b", "a b", "é"], pa.string_view()),
            pa.array(["a", "b", "a b", "é"]).dictionary_encode(),
            pa.array(["a", "b", "a b", "é"], pa.dictionary(pa.int8(), pa.large_string())),
            pa.chunked_array([["a", "b"], [], ["a b", "é"]], pa.string_view()),
            pa.chunked_array([pa.array(["a", "b"]).dictionary_encode(), pa.array(["a b", "é"]).dictionary_encode()]),
            pl.Series(["a", "b", "a b", "é"]),
            pl.Series(["a", "b", "a b", "é"], dtype=pl.Categorical),
            pd.Series(["a", "b", "a b", "é"]),
            pd.Series(["a", "b", "a b", "é"], dtype="category"),
            np.array(["a", "b", "a b", "é"]),
            np.array(["a", "b", "a b", "é"], object),
            ("a", "b", "a b", "é"),
            {"a": 1, "b": 1, "a b": 1, "é": 1}.keys(),
        ]
    ),
)
def test_text_of_any_kind_is_an_id(ids):
    index = HammingIndex(CODES, ids)
    assert index.query_batch(CODES, 0).rows.tolist() == ["a", "b", "a b", "é"]
    more = HammingIndex()
    more.add(CODES, ids)
    assert more.query_batch(CODES, 0).rows.tolist() == ["a", "b", "a b", "é"]
    assert more.remove(ids) == 4


def test_numbers_of_any_kind_are_ids():
    for ids in (
        [5, -(2**63), 2**63 - 1, 0],
        np.array([5, 4, 3, 2], np.uint8),
        pa.array([5, 4, 3, 2], pa.uint64()),
        pa.array([5, 4, 3, 2]).dictionary_encode(),
        pl.Series([5, 4, 3, 2], dtype=pl.UInt32),
        [np.int64(5), 4, 3, 2],
    ):
        expected = [int(value.as_py()) if isinstance(value, pa.Scalar) else int(value) for value in ids]
        index = HammingIndex(CODES, ids)
        assert index.query_batch(CODES, 0).rows.tolist() == expected
        assert index.remove(ids) == 4


def test_an_index_without_rows_takes_the_kind_of_its_first_ids():
    for empty in ([], np.array([], np.int64), pa.array([], pa.int64()), pa.array([], pa.string()), pl.Series([])):
        for ids in (["x"], [1]):
            index = HammingIndex(CODES[:0], ids=empty)
            assert index.add(CODES[:0], ids=empty).tolist() == []
            assert index.add(CODES[:1], ids=ids).tolist() == [0]
            assert index.query(0)[0].tolist() == ids
    index = HammingIndex()
    index.add(CODES[:0], ids=[])
    assert index.add(CODES).tolist() == [0, 1, 2, 3]


def test_an_error_changes_nothing(tmp_path):
    index = HammingIndex()
    recipe = Recipe.simhash(bits=64)
    for fingerprints, ids in [
        (CODES, ["a"]),
        (CODES, ["a", "b", "c", "c"]),
        (np.zeros((2, 2), np.uint64), ["a", "b"]),
        ([1.5], ["a"]),
        (likewise.sketch(TEXTS, recipe), ["a", "a", "b"]),
        (likewise.sketch(TEXTS, recipe), [1, 2]),
    ]:
        with pytest.raises(InvalidParameter):
            index.add(fingerprints, ids)
        assert (len(index), index.recipe, index.stats["next_row"]) == (0, None, 0)
        index.save(tmp_path / "index")
        assert HammingIndex.open(tmp_path / "index").add(CODES).tolist() == [0, 1, 2, 3]
    assert index.add(likewise.sketch(TEXTS, Recipe.simhash(bits=64, seed=3)), [1, 2, 3]).tolist() == [0, 1, 2]


def test_no_id_stands_twice(tmp_path):
    with pytest.raises(InvalidParameter, match="'b' appears twice, at positions 1 and 2") as error:
        HammingIndex(CODES, ids=["a", "b", "b", "a"])
    assert error.value.name == "ids"
    index = HammingIndex(CODES, ids=["a", "b", "c", "d"])
    for ids, message in [
        (["e", "c", "a"], "'c', at position 1, is already in the index, at row 2"),
        (["e", "f", "e"], "'e' appears twice, at positions 0 and 2"),
    ]:
        with pytest.raises(InvalidParameter, match=message):
            index.add(CODES[:3], ids)
        assert len(index) == 4
    assert index.remove("c") == 1
    assert index.add(5, ["c"]).tolist() == [4]
    with pytest.raises(InvalidParameter, match="at row 4"):
        index.add(6, ["c"])
    assert index.remove(["c"]) == 1
    assert index.remove(["c"]) == 0
    index.save(tmp_path / "index")
    opened = HammingIndex.open(tmp_path / "index")
    with pytest.raises(InvalidParameter, match="'b', at position 0"):
        opened.add(5, ["b"])
    assert opened.add(5, ["c"]).tolist() == [5]
    assert opened.query(5, 0)[0].tolist() == ["c"]


def test_ids_of_empty_texts_are_known_too():
    sketches = likewise.sketch(["", "a cat", " "], Recipe.simhash(bits=64))
    index = HammingIndex(sketches, ids=[1, 2, 3])
    for taken in (1, 2, 3):
        with pytest.raises(InvalidParameter, match="already in the index"):
            index.add(9, [taken])
    assert index.remove([1, 3]) == 2
    assert index.add(sketches[:1], [3]).tolist() == [3]
    with pytest.raises(InvalidParameter, match="at row 3"):
        index.add(9, [3])


@pytest.mark.parametrize("is_text", [False, True])
def test_ids_against_a_dictionary(is_text):
    random = np.random.default_rng(4)
    index, held = HammingIndex(within=0, ids=[]), {}
    next_row = 0
    for _ in range(400):
        numbers = random.integers(0, 300, random.integers(0, 9)).tolist()
        ids = [f"é{number}" for number in numbers] if is_text else numbers
        if random.random() < 0.5:
            is_good = len(set(ids)) == len(ids) and not set(ids) & set(held)
            if is_good:
                index.add(np.arange(len(ids), dtype=np.uint64), ids)
                held |= {value: next_row + i for i, value in enumerate(ids)}
                next_row += len(ids)
            else:
                with pytest.raises(InvalidParameter, match="ids"):
                    index.add(np.arange(len(ids), dtype=np.uint64), ids)
        else:
            assert index.remove(ids) == len(set(ids) & set(held))
            held = {value: row for value, row in held.items() if value not in ids}
        assert len(index) == len(held)
    found = index.query_batch(np.arange(9, dtype=np.uint64))
    assert sorted(found.rows.tolist()) == sorted(held)


def test_unequal_ids_of_one_key():
    texts = pa.array(["a", "b", "a", "c"], pa.large_string())
    same = np.zeros(4, np.uint64)
    assert first_double(texts, same) == (2, 0)
    assert first_double(texts[:2], same[:2]) is None
    lookup = IdLookup()
    for row in range(50):
        lookup.add(np.array([row % 7], np.uint64), row)
    for keys in ([3], [3, 9, 0]):
        positions, rows = lookup.candidates(np.array(keys, np.uint64))
        expected = [(i, row) for i, key in enumerate(keys) for row in range(50) if row % 7 == key]
        assert sorted(zip(positions.tolist(), rows.tolist(), strict=True)) == expected
    assert len(np.unique(id_keys(pa.array([f"{i}" for i in range(1000)], pa.large_string())))) == 1000


def test_lists_of_numbers_are_fingerprints_bit_by_bit(tmp_path):
    largest = 2**64 - 1
    for given, expected in [
        ([1, 2, 3], [1, 2, 3]),
        ([largest, 0], [largest, 0]),
        ([largest, 2**63 + 1, 2**53 + 1], [largest, 2**63 + 1, 2**53 + 1]),
        ([], []),
        ((np.uint64(largest), np.int8(1)), [largest, 1]),
        (np.array([largest, 1], object), [largest, 1]),
        (np.array([-1, 1]), [largest, 1]),
    ]:
        words = np.array(expected, np.uint64)
        index = HammingIndex(given, ids=False)
        assert index.query_batch(given, 0).rows.tolist() == expected
        assert hamming_distance(given, words).tolist() == [0] * len(expected)
        assert hamming_join(given, words, 0)[0].tolist() == [[i, i] for i in range(len(expected))]
        words.tofile(tmp_path / "codes")
        assert hamming_stream(given, tmp_path / "codes", 0)[1].tolist() == list(range(len(expected)))
        added = HammingIndex()
        assert added.add(given).tolist() == list(range(len(expected)))
    unaligned = np.frombuffer(b"x" + CODES.tobytes(), np.uint8)[1:].view(np.uint64)
    for given in (CODES.astype(">u8"), CODES.view(np.int64).astype(">i8"), unaligned, np.ma.array(CODES)):
        assert HammingIndex(given, ids=False).query_batch(CODES, 0).rows.tolist() == CODES.tolist()
        assert hamming_distance(given, CODES).tolist() == [0] * 4
    wide = [[1, largest], [0, 2**63]]
    index = HammingIndex(wide)
    assert index.bits == 128
    assert index.query([0, 2**63], 0)[0].tolist() == index.query(2**127, 0)[0].tolist() == [1]
    assert index.add([]).tolist() == []
    assert index.add(wide[:1]).tolist() == [2]
    index = HammingIndex()
    assert index.add(np.uint64(largest)).tolist() == index.query(np.uint64(largest))[0].tolist() == [0]
    assert index.add(largest).tolist() == [1]
    assert hamming_distance(largest, [0, 1, largest]).tolist() == [64, 63, 0]
    assert int(hamming_distance(3, 0)) == 2


def test_distances_of_unlike_things_are_refused():
    a = likewise.sketch(TEXTS, Recipe.simhash(bits=64))
    for other, field in [(Recipe.simhash(bits=64, seed=2), "seed"), (Recipe.simhash(bits=128), "bits")]:
        with pytest.raises(RecipeMismatch, match=field):
            hamming_distance(a, likewise.sketch(TEXTS, other))
        with pytest.raises(RecipeMismatch, match=field):
            HammingIndex(a).query_batch(likewise.sketch(TEXTS, other))
        with pytest.raises(RecipeMismatch, match=field):
            HammingIndex(a).query(likewise.sketch(TEXTS[:1], other))
        with pytest.raises(RecipeMismatch, match=field):
            hamming_join(a, likewise.sketch(TEXTS, other), 3)
    assert hamming_distance(a, a).tolist() == [0, 0, 0]
    assert hamming_distance(a, a.array[:1])[0] == 0
    wide = np.zeros((3, 2), np.uint64)
    assert hamming_distance(wide, np.array([1, 3], np.uint64)).tolist() == [3, 3, 3]
    assert hamming_distance(wide[:, :1], CODES[:3]).tolist() == [0, 3, 8]
    for left, right in [(wide, CODES[:3]), (wide, 5), (CODES[:3], CODES[:2]), (wide, wide[:2])]:
        with pytest.raises(InvalidParameter, match="are incompatible"):
            hamming_distance(left, right)


def test_sizes_are_understood_as_text():
    codes = np.random.default_rng(1).integers(0, 2**64, 2000, np.uint64)
    assert HammingIndex(codes, memory="4GB").query(codes[5])[0].tolist() == [5]
    for memory in ("64MB", "0.1 gb", 64e6, 64_000_000, np.int64(64_000_000)):
        assert hamming_pairs(codes, 3, memory=memory)[0].tolist() == []
    assert plan_hamming(10**9, memory_bytes="16GB").memory_bytes == 16 * 10**9
