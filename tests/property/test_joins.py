"""Joins of fingerprints list the pairs that NumPy finds by comparing all, for every kind of input."""

import json

import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import _native
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from tests.property.test_candidates import fingerprints


def near(left, right, within):
    """Return sorted rows and distances of all pairs of a left and a right fingerprint."""
    apart = np.bitwise_count(left[:, None, :] ^ right[None, :, :]).sum(axis=2, dtype=np.int64)
    rows = np.argwhere(apart <= within)
    return rows, apart[rows[:, 0], rows[:, 1]]


def same(found, expected):
    assert found[0].dtype == np.int64
    assert found[1].dtype == np.uint16
    assert np.array_equal(found[0], expected[0])
    assert np.array_equal(found[1], expected[1])


def among(words, within):
    rows, apart = near(words, words, within)
    keep = rows[:, 0] < rows[:, 1]
    return rows[keep], apart[keep]


@pytest.mark.parametrize("kind", ["uniform", "clusters", "skewed"])
@given(
    seed=st.integers(0, 10**6),
    num=st.integers(0, 300),
    num_words=st.integers(1, 4),
    within=st.integers(0, 16) | st.just(32),
)
def test_pairs_and_joins_are_exact(kind, seed, num, num_words, within):
    rng = np.random.default_rng(seed)
    words = fingerprints(rng, num, 64 * num_words, kind)
    other = np.concatenate([words[: num // 3], fingerprints(rng, num // 2, 64 * num_words, kind)])
    given_words, given_other = (words[:, 0], other[:, 0]) if num_words == 1 else (words, other)
    same(likewise.hamming_pairs(given_words, within), among(words, within))
    same(likewise.hamming_join(given_words, given_other, within), near(words, other, within))


@pytest.mark.parametrize(("bits", "within"), [(64, 3), (64, 8), (128, 32), (32, 2)])
def test_thousands_on_every_instruction_set(isa, bits, within):
    rng = np.random.default_rng(bits + within)
    words = np.concatenate([fingerprints(rng, 1200, bits, "clusters"), fingerprints(rng, 1200, bits, "uniform")])
    rows, apart = _native.join_fingerprints(
        (words.reshape(-1), None), None, bits, within=within, max_pairs=10**9, threads=2
    )
    expected, distances = among(words, within)
    assert np.array_equal(np.asarray(rows).reshape(-1, 2), expected)
    assert np.array_equal(np.asarray(apart), distances)


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(3)
    pages = [" ".join(rng.choice(["one", "two", "three", "four", "five", "six"], 30)) for _ in range(60)]
    return [*pages, "", *[page.replace("six", "seven", 1) for page in pages], "", " "]


def words_of(sketches):
    return sketches.array.reshape(len(sketches), -1)


def with_empties(found, sketches):
    """Return `found`, computed from fingerprints alone, corrected for empty texts."""
    rows, apart = found
    is_empty = sketches.is_empty
    keep = is_empty[rows[:, 0]] == is_empty[rows[:, 1]]
    return rows[keep], apart[keep]


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_every_kind_of_input_gives_the_same(texts, tmp_path, bits):
    recipe = likewise.Recipe.simhash(bits=bits)
    sketches = likewise.sketch(texts, recipe)
    expected = with_empties(among(words_of(sketches), 4), sketches)
    assert sum(sketches.is_empty[expected[0][:, 0]]) == 3
    same(likewise.hamming_pairs(sketches, 4), expected)
    for name in ("s.npy", "s.parquet"):
        sketches.write(tmp_path / name)
        same(likewise.hamming_pairs(tmp_path / name, 4), expected)
        same(likewise.hamming_pairs(str(tmp_path / name), 4, memory=16 << 20), expected)
        found = likewise.hamming_join(tmp_path / name, sketches, 4, memory=16 << 20)
        same(found, with_empties(near(words_of(sketches), words_of(sketches), 4), sketches))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["s.npy", "s.npy.recipe.json", "s.parquet"]


def test_arrow_and_mapped_arrays(tmp_path):
    rng = np.random.default_rng(8)
    one, two = fingerprints(rng, 200, 64, "clusters"), fingerprints(rng, 200, 128, "clusters")
    flat = pa.array(one[:, 0])
    table = pa.table({"row": np.arange(200), "sketch": flat})
    signed = pa.chunked_array([one[:90, 0].view(np.int64), one[90:, 0].view(np.int64)])
    for data in (flat, signed, table, polars.Series(one[:, 0]), pa.array(one[:, 0]).slice(0)):
        same(likewise.hamming_pairs(data, 3), among(one, 3))
    lists = pa.FixedSizeListArray.from_arrays(pa.array(two.reshape(-1)), 2)
    binary = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), 200, [None, pa.py_buffer(two)])
    for data in (lists, binary, lists.slice(50), binary.slice(50)):
        same(likewise.hamming_pairs(data, 9), among(two[200 - len(data) :], 9))
    two.tofile(tmp_path / "flat")
    mapped = np.memmap(tmp_path / "flat", np.uint64, "r", 16, (199, 2))
    for memory in (None, 16 << 20):
        same(likewise.hamming_pairs(mapped, 9, memory=memory), among(two[1:], 9))


def test_written_pairs_are_those_found(texts, tmp_path):
    sketches = likewise.sketch(texts, likewise.Recipe.simhash())
    pairs, distances = likewise.hamming_pairs(sketches, 5)
    summary = likewise.hamming_pairs(sketches, 5, out=tmp_path / "p.parquet")
    assert (summary.num_pairs, summary.num_left, summary.within) == (len(pairs), len(texts), 5)
    table = pq.read_table(summary.path).sort_by([("row_a", "ascending"), ("row_b", "ascending")])
    assert table.column_names == ["row_a", "row_b", "distance"]
    assert np.array_equal(np.stack([table["row_a"], table["row_b"]], axis=1), pairs)
    assert table["distance"].to_pylist() == distances.tolist()
    ids = tuple(f"t{i}" for i in range(len(texts)))
    named = likewise.Sketches(sketches.array, sketches.recipe, sketches.is_empty, sketches.num_features, ids)
    likewise.hamming_join(named, named, 0, out=tmp_path / "q.parquet")
    table = pq.read_table(tmp_path / "q.parquet")
    assert table["doc_id_a"].to_pylist() == [f"t{row}" for row in table["row_a"].to_pylist()]
    assert table["doc_id_b"].to_pylist() == [f"t{row}" for row in table["row_b"].to_pylist()]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["p.parquet", "q.parquet"]


@pytest.mark.slow
@pytest.mark.parametrize("join", [False, True])
def test_little_memory_spreads_files_and_finds_the_same(tmp_path, join):
    rng = np.random.default_rng(11)
    words = fingerprints(rng, 1_500_000, 64, "uniform")[:, 0]
    words[rng.integers(0, len(words), 3000)] = words[:3000] ^ np.uint64(0b1000010000)
    np.save(tmp_path / "codes.npy", words)
    call = likewise.hamming_join if join else likewise.hamming_pairs
    inputs = [tmp_path / "codes.npy", words[:100_000]] if join else [tmp_path / "codes.npy"]
    expected = call(*(words if i == 0 else x for i, x in enumerate(inputs)), 3)
    assert len(expected[0]) > 2000
    same(call(*inputs, 3, memory=16 << 20), expected)
    call(*inputs, 3, memory=16 << 20, out=tmp_path / "p.parquet")
    table = pq.read_table(tmp_path / "p.parquet").sort_by([("row_a", "ascending"), ("row_b", "ascending")])
    assert np.array_equal(np.stack([table["row_a"], table["row_b"]], axis=1), expected[0])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["codes.npy", "p.parquet"]


def test_misfits_are_refused(texts, tmp_path):
    words = np.arange(50, dtype=np.uint64)
    sketches = likewise.sketch(texts, likewise.Recipe.simhash())
    other = likewise.sketch(texts, likewise.Recipe.simhash(tokens="char", shingle=4))
    with pytest.raises(RecipeMismatch, match="shingle"):
        likewise.hamming_join(sketches, other, 3)
    with pytest.raises(InvalidParameter, match="128 bits, but the left ones have 64"):
        likewise.hamming_join(words, words.reshape(-1, 2), 3)
    with pytest.raises(InvalidParameter, match="within"):
        likewise.hamming_pairs(words, 65)
    with pytest.raises(InvalidParameter, match="uint64"):
        likewise.hamming_pairs(words.astype(np.int32), 3)
    with pytest.raises(InvalidParameter, match="null"):
        likewise.hamming_pairs(pa.array([1, None, 3], pa.uint64()), 3)
    with pytest.raises(InvalidParameter, match="band_pairs"):
        likewise.hamming_pairs(likewise.sketch(texts), 3)
    with pytest.raises(InvalidParameter, match="memory"):
        likewise.hamming_pairs(words, 3, memory=1000)
    with pytest.raises(InvalidInput, match="parquet"):
        likewise.hamming_pairs(words, 3, out=tmp_path / "pairs.txt")
    with pytest.raises(InvalidInput, match=r"\.npy"):
        likewise.hamming_pairs(tmp_path / "pairs.txt", 3)
    with pytest.raises(FileNotFoundError):
        likewise.hamming_pairs(tmp_path / "absent.npy", 3)
    np.save(tmp_path / "floats.npy", np.zeros(5))
    with pytest.raises(InvalidInput, match="float64"):
        likewise.hamming_pairs(tmp_path / "floats.npy", 3)
    sketches.write(tmp_path / "s.npy")
    beside = tmp_path / "s.npy.recipe.json"
    beside.write_text(json.dumps({"recipe": 3}))
    with pytest.raises(InvalidInput, match="recipe"):
        likewise.hamming_pairs(tmp_path / "s.npy", 3)


def test_pairs_that_memory_does_not_hold_are_refused_or_written(tmp_path):
    words = np.zeros(1200, np.uint64)
    with pytest.raises(InvalidParameter, match="out="):
        likewise.hamming_pairs(words, 0, memory=16 << 20)
    summary = likewise.hamming_pairs(words, 0, memory=16 << 20, out=tmp_path / "p.parquet")
    assert summary.num_pairs == 1200 * 1199 // 2


def test_an_error_while_writing_comes_through_and_leaves_no_file(tmp_path, monkeypatch):
    from likewise.io.fingerprints.resumable_parquet import RowPairWriter

    def fail(self, *batch):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RowPairWriter, "write", fail)
    with pytest.raises(OSError, match="No space"):
        likewise.hamming_pairs(np.zeros(500, np.uint64), 3, out=tmp_path / "p.parquet")
    assert not list(tmp_path.iterdir())
