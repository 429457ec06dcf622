"""Indexes of stored signatures: input forms, verdicts by Hamming distance, rejected input."""

import numpy as np
import pytest

import likewise
from likewise import HammingIndex, hamming_distance
from likewise.errors import InvalidInput, InvalidParameter
from likewise.measures import sketch_similarities

RECIPE = likewise.Recipe.simhash(hash="md5", weights="own", shingle=1, within=3)


def stored(num=300):
    chance = np.random.default_rng(8)
    bases = chance.integers(0, 2**64, 60, np.uint64, endpoint=False)
    picked = bases[chance.integers(0, 60, num)]
    for _ in range(2):
        picked ^= np.uint64(1) << chance.integers(0, 64, num, np.uint64)
    return picked


def kept_ids(codes, within):
    kept, found = [], []
    for row, code in enumerate(codes.tolist()):
        near = [((code ^ other).bit_count(), number) for number, other in kept if (code ^ other).bit_count() <= within]
        found.append(str(min(near)[1]) if near else None)
        if not near:
            kept.append((row, code))
    return found


@pytest.mark.parametrize("form", ["array", "signed", "list", "sketches", "path"])
def test_verdicts_are_those_of_distances(tmp_path, form):
    codes = stored()
    expected = kept_ids(codes, 3)
    assert 40 < sum(one is not None for one in expected) < 250
    given = {
        "signed": codes.view(np.int64),
        "list": codes.tolist(),
        "sketches": likewise.Sketches.from_signatures(codes, RECIPE),
    }.get(form, codes)
    path = tmp_path / "index" if form == "path" else None
    with likewise.Index.from_signatures(given, RECIPE, range(300), path=path) as index:
        assert [index.get(doc_id).kept_id for doc_id in index.ids()] == expected
    if path is not None:
        with likewise.Index(path) as again:
            assert len(again) == 300


def test_signatures_of_minhash_are_sketches_and_no_index():
    recipe = likewise.Recipe.minhash(0.8, hash="datasketch", tokens="user", tokenizer="mine 1", shingle=1)
    made = likewise.sketch([["a", "b"], ["a", "c"]], recipe)
    old = likewise.Sketches.from_signatures(made.array, recipe)
    assert (old.array == made.array).all()
    assert old.array.dtype == made.array.dtype
    with pytest.raises(InvalidParameter, match="measures similarity on features"):
        likewise.Index.from_signatures(made.array, recipe, ["a", "b"])


def test_slots_of_64_bits_need_the_scheme_that_made_them():
    """The slots of a, b, c by 8 permutations of datasketch 1.6; version 2 has others, of 32 bits."""
    slots = [297616339, 739114274, 2013617805, 1974455217, 943679155, 113437101, 405869538, 306660385]
    legacy = likewise.Recipe.minhash(
        0.8, hash="datasketch", scheme="legacy", tokens="user", tokenizer="mine 1", shingle=1, num_slots=8
    )
    made = likewise.sketch([["a", "b", "c"]], legacy)
    assert made.array.tolist() == [slots]
    newer = legacy.replace(scheme="affine32")
    for kind in (np.uint64, np.int64, object):
        both = likewise.Sketches.concatenate([likewise.Sketches.from_signatures(np.array([slots], kind), legacy), made])
        assert sketch_similarities(both, np.array([[0, 1]]), measure="jaccard").tolist() == [1.0]
        with pytest.raises(InvalidParameter, match=r'before version 2: set scheme="legacy"'):
            likewise.Sketches.from_signatures(np.array([slots], kind), newer)
    assert likewise.Sketches.from_signatures(np.array([slots], np.uint32), newer).array.tolist() == [slots]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.5], "not an array of uint64"),
        (["a"], "not an array of uint64"),
        ([2**64], "not an array of uint64"),
        ([-(2**63) - 1], "not an array of uint64"),
        ([-1, 2**64], "not an array of uint64"),
        ([[1, 2]], "shape"),
        ([[1, 2], [3]], "the rows differ in length"),
        (np.zeros(3), "float64"),
        (np.array(5, np.uint64), "shape"),
        (np.array([-1], np.int32), "does not fit"),
    ],
)
def test_what_is_no_fingerprint(given, message):
    with pytest.raises(InvalidParameter, match=message):
        likewise.Sketches.from_signatures(given, RECIPE)


def test_signed_words_of_a_list_are_those_of_an_array():
    """DuckDB and Polars hand out 64-bit fingerprints as signed integers."""
    for words in ([-1, 2**63, -(2**63), 5, 2**64 - 1], [[-1, 5], [-6, 2**63]]):
        recipe = likewise.Recipe.simhash(within=3, bits=64 if words[0] == -1 else 128)
        made = likewise.Sketches.from_signatures(words, recipe)
        assert made.array.tolist() == (np.array(words, object) % 2**64).tolist()
        signed = np.array([[-1, 5], [-6, -5]])
        assert hamming_distance(signed.tolist(), [[0, 5], [5, 4]]).tolist() == [64, 128]
        assert hamming_distance(signed, signed.tolist()).tolist() == [0, 0]
    for a, b, distance in ((-1, 0, 64), (-1, 2**64 - 1, 0), (-6, 5, 64), (-(2**63), 2**63, 0), (np.int64(-1), -2, 1)):
        assert hamming_distance(a, b) == hamming_distance([b], [a])[0] == distance
    for word in (-(2**63) - 1, 2**64):
        with pytest.raises(InvalidParameter, match=r"position 0 is out of range; .* from 0 to 2\^64 - 1 or signed"):
            hamming_distance(word, 0)
    with HammingIndex([-1, 5], within=3) as index:
        assert index.query([2**64 - 2])[0].tolist() == [0]


def test_ids_and_signatures_are_paired():
    with pytest.raises(InvalidInput, match="2 ids for 3"):
        likewise.Index.from_signatures([1, 2, 3], RECIPE, ["a", "b"])
