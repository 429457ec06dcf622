"""Hamming search rejects odd input with a Likewise error that names the argument, and changes nothing."""

import datetime
import decimal

import numpy as np
import pyarrow as pa
import pytest

import likewise
from likewise import HammingIndex, InvalidParameter, LikewiseError, Recipe
from likewise.hamming.pairs import hamming_distance, hamming_join, hamming_pairs
from likewise.hamming.plan import bit_frequencies, plan_hamming
from likewise.hamming.stream import hamming_stream
from likewise.stages.weights import count_weights
from likewise.theory.textbook import textbook_searches

CODES = np.array([0, 7, 255, 2**64 - 1], np.uint64)
TEXTS = ["a cat sat on the mat", "dogs bark at night", "", "a cat sat on the mat today"]
SKETCHES = likewise.sketch(TEXTS, Recipe.simhash(bits=64))
OTHER_SEED = likewise.sketch(TEXTS, Recipe.simhash(bits=64, seed=5))
WIDE = likewise.sketch(TEXTS, Recipe.simhash(bits=128))
SIGNATURES = likewise.sketch(TEXTS, Recipe.minhash())
SURROGATE = "\ud800"

# Values that are not a set of fingerprints.
NOT_FINGERPRINTS = {
    "none": None,
    "bool": True,
    "float": 1.5,
    "bytes": b"12345678",
    "set": {1, 2},
    "mapping": {1: 2},
    "object": object(),
    "floats": [1.0, 2.0],
    "a float among them": [1, 2.0],
    "bools": [True, False],
    "below all signed words": [-(2**63) - 1],
    "too large": [2**64],
    "far too large": [2**70000],
    "texts": ["1", "2"],
    "none among them": [1, None],
    "ragged": [[1, 2], [3]],
    "nested and not": [[1], 2],
    "deep": [[[1]]],
    "five words": [[1, 2, 3, 4, 5]],
    "array of floats": np.array([1.5, 2.0]),
    "array of bools": np.array([True, False]),
    "array of int32": np.array([1, 2], np.int32),
    "array of texts": np.array(["1", "2"]),
    "array of objects": np.array([1, None], object),
    "array of dates": np.array(["2020-01-01"], "datetime64[s]"),
    "complex": np.array([1j]),
    "masked": np.ma.array(CODES, mask=[1, 0, 0, 0]),
    "no words": np.zeros((2, 0), np.uint64),
    "three dimensions": np.zeros((2, 2, 2), np.uint64),
    "nan": [float("nan")],
    "decimal": [decimal.Decimal(1)],
    "arrow floats": pa.array([1.0]),
    "arrow texts": pa.array(["a"]),
    "arrow nulls": pa.array([1, None], pa.uint64()),
    "arrow null words": pa.array([[1, None]], pa.list_(pa.int64(), 2)),
    "arrow lists": pa.array([[1], [1, 2]], pa.list_(pa.uint64())),
    "arrow binary": pa.array([b"123"], pa.binary(3)),
    "arrow bools": pa.array([True]),
    "arrow table": pa.table({"a": [1], "b": [2]}),
    "signatures": SIGNATURES,
}
NOT_IDS = {
    "true": True,
    "text": "abcd",
    "bytes": b"abcd",
    "number": 4,
    "mapping": {"a": 1, "b": 2, "c": 3, "d": 4},
    "object": object(),
    "too few": ["a"],
    "floats": [1.0, 2.0, 3.0, 4.0],
    "bools": [True, False, True, False],
    "a bool among them": [1, 2, 3, True],
    "mixed": ["a", 1, "b", 2],
    "none among them": ["a", None, "b", "c"],
    "too large": [1, 2, 3, 2**63],
    "far too large": [1, 2, 3, 2**70],
    "surrogate": ["a", "b", "c", SURROGATE],
    "bytes among them": [b"a", b"b", b"c", b"d"],
    "two dimensions": np.zeros((4, 1), np.int64),
    "array of floats": np.arange(4.0),
    "array of bytes": np.array([b"a", b"b", b"c", b"d"]),
    "dates": [datetime.date(2020, 1, day) for day in range(1, 5)],
    "lists": [[1], [2], [3], [4]],
    "arrow binary": pa.array([b"a", b"b", b"c", b"d"]),
    "arrow floats": pa.array([1.0, 2.0, 3.0, 4.0]),
    "arrow nulls": pa.array(["a", None, "b", "c"]),
    "arrow nothing": pa.nulls(4),
    "arrow large": pa.array([1, 2, 3, 2**64 - 1], pa.uint64()),
    "table": pa.table({"id": ["a", "b", "c", "d"]}),
    "equal texts": ["a", "b", "c", "a"],
    "equal numbers": [1, 2, 1, 3],
}
NOT_NUMBERS = [-1, 65, 2**70, -(2**70), 1.5, "3", True, None, float("nan"), [3], np.array([1, 2]), object()]
NOT_SIZES = [
    "",
    "4 gigabytes",
    "-1GB",
    "1e400",
    "9" * 400,
    -1,
    -(2**70),
    2**70,
    float("nan"),
    float("inf"),
    True,
    [1],
    b"4GB",
]
NOT_THREADS = [0, -1, 10**9, 2**70, 1.5, "2", True]


def cases(values):
    return [pytest.param(value, id=str(number)) for number, value in enumerate(values)]


def refused(call, *names):
    """Check that the call raises a Likewise error; an invalid parameter must be one of `names`."""
    with pytest.raises(LikewiseError) as error:
        call()
    if isinstance(error.value, InvalidParameter) and names:
        assert error.value.name in names, error.value


@pytest.mark.parametrize("given", NOT_FINGERPRINTS.values(), ids=NOT_FINGERPRINTS)
def test_what_is_no_set_of_fingerprints(given, tmp_path):
    path = tmp_path / "codes"
    CODES.tofile(path)
    index = HammingIndex(CODES)
    if given is not None:
        refused(lambda: HammingIndex(given), "fingerprints", "bits")
    refused(lambda: index.add(given), "fingerprints", "fingerprint")
    refused(lambda: index.query_batch(given), "fingerprints")
    refused(lambda: index.query(given), "fingerprint")
    refused(lambda: index.nearest(given, 1), "fingerprint")
    refused(lambda: hamming_pairs(given, 3), "fingerprints")
    refused(lambda: hamming_pairs(given, 3, memory="64MB"), "fingerprints")
    refused(lambda: hamming_join(given, CODES, 3), "left")
    refused(lambda: hamming_join(CODES, given, 3), "right")
    refused(lambda: hamming_distance(given, CODES), "a", "b")
    refused(lambda: hamming_distance(CODES, given), "b")
    refused(lambda: hamming_stream(given, path, 3), "queries")
    refused(lambda: bit_frequencies(given), "fingerprints")
    assert len(index) == 4
    assert index.query(7)[0].tolist() == [0, 1]


@pytest.mark.parametrize("ids", NOT_IDS.values(), ids=NOT_IDS)
def test_what_are_no_ids(ids, tmp_path):
    refused(lambda: HammingIndex(CODES, ids), "ids")
    for index in (HammingIndex(), HammingIndex(CODES[:0], ids=[]), HammingIndex(CODES[:1], ids=["x"])):
        before = len(index)
        refused(lambda index=index: index.add(CODES, ids), "ids")
        assert len(index) == before
        # As if nothing had been attempted: ids of any kind are accepted, or none if the index has none.
        assert index.add(CODES[:2], ["new", "newer"]).tolist() == [before, before + 1]
    if ids is not True:
        fresh = HammingIndex()
        refused(lambda: fresh.add(CODES, ids), "ids")
        assert fresh.add(CODES).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("within", cases(NOT_NUMBERS))
def test_what_is_no_radius(within, tmp_path):
    path = tmp_path / "codes"
    CODES.tofile(path)
    index = HammingIndex(CODES)
    refused(lambda: HammingIndex(CODES, within=within), "within")
    if within is not None:
        refused(lambda: index.query(0, within), "within")
        refused(lambda: index.query_batch(CODES, within), "within")
        refused(lambda: index.join(CODES, within), "within")
        refused(lambda: textbook_searches(100, within=within), "within")
    refused(lambda: hamming_pairs(CODES, within), "within")
    refused(lambda: hamming_pairs(CODES, within, memory="64MB"), "within")
    refused(lambda: hamming_join(CODES, CODES, within), "within")
    refused(lambda: hamming_stream(CODES, path, within), "within")
    refused(lambda: plan_hamming(100, within=within), "within")


@pytest.mark.parametrize("bits", cases([0, 1, 33, 65, 288, -64, 2**70, 64.0, "64", True, [64]]))
def test_what_is_no_width(bits, tmp_path):
    path = tmp_path / "codes"
    CODES.tofile(path)
    refused(lambda: HammingIndex(CODES, bits=bits), "bits")
    refused(lambda: HammingIndex(bits=bits), "bits")
    refused(lambda: hamming_stream(CODES, path, 3, bits=bits), "bits")
    refused(lambda: plan_hamming(100, bits=bits), "bits")
    refused(lambda: bit_frequencies(CODES, bits=bits), "bits")


@pytest.mark.parametrize("memory", cases(NOT_SIZES))
def test_what_is_no_size(memory):
    refused(lambda: HammingIndex(CODES, memory=memory), "memory")
    refused(lambda: hamming_pairs(CODES, 3, memory=memory), "memory")
    refused(lambda: hamming_join(CODES, CODES, 3, memory=memory), "memory")
    refused(lambda: plan_hamming(100, memory_bytes=memory), "memory_bytes")
    refused(lambda: count_weights(TEXTS, memory_bytes=memory), "memory_bytes")


@pytest.mark.parametrize("threads", cases(NOT_THREADS))
def test_what_is_no_number_of_threads(threads, tmp_path):
    path = tmp_path / "codes"
    CODES.tofile(path)
    refused(lambda: HammingIndex(CODES, threads=threads), "threads")
    refused(lambda: hamming_pairs(CODES, 3, threads=threads), "threads")
    refused(lambda: hamming_join(CODES, CODES, 3, threads=threads), "threads")
    refused(lambda: hamming_stream(CODES, path, 3, threads=threads), "threads")
    HammingIndex(CODES).save(tmp_path / "index")
    refused(lambda: HammingIndex.open(tmp_path / "index", threads=threads), "threads")


@pytest.mark.parametrize("num", cases([0, -1, 2**70, 1.0, "1", None, True]))
def test_what_is_no_number_of_neighbors(num):
    refused(lambda: HammingIndex(CODES).nearest(0, num), "k")


@pytest.mark.parametrize(
    "query_ids",
    cases(["abcd", 4, True, b"abcd", [1.0] * 4, ["a"], [None] * 4, ["a", 1, 2, 3], [SURROGATE] * 4, object()]),
)
def test_what_are_no_ids_of_queries(query_ids, tmp_path):
    path = tmp_path / "codes"
    CODES.tofile(path)
    refused(lambda: hamming_stream(CODES, path, 3, query_ids=query_ids, out=tmp_path / "out.parquet"), "query_ids")
    assert not (tmp_path / "out.parquet").exists()


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("n", -1),
        ("n", 2**70),
        ("n", 1e9),
        ("n", "100"),
        ("n", None),
        ("bit_frequencies", "x"),
        ("bit_frequencies", [0.5]),
        ("bit_frequencies", [2.0] * 64),
        ("bit_frequencies", [float("nan")] * 64),
        ("bit_frequencies", [None] * 64),
        ("bit_frequencies", [[0.5] * 64]),
        ("bit_frequencies", 0.5),
    ],
)
def test_what_cannot_be_planned(name, given):
    refused(lambda: plan_hamming(**{"n": 100, name: given}), name)
