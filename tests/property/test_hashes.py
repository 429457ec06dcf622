"""Named hashes and the sketches of packages, against the oracle."""

import hashlib
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import _native
from likewise.errors import InvalidParameter
from likewise.stages.features import features
from likewise.stages.text import tokens
from tests.conftest import ROOT, instruction_sets
from tests.oracle import hashes
from tests.oracle.features import mix, polynomial
from tests.strategies import texts, word_texts

# Characters that Unicode 14 and Likewise treat alike: sigmas, dotted I, marks, numbers, ideographs, other planes.
LETTERS = list("abcXYZ019_ -'.,İıΑΣςσéÉßﬁⅧ½²٣妈妈喊你，カ\u0301\u00ad\u1e9e𝔸😀ǅ\n")
odd_texts = st.text(st.sampled_from(LETTERS), max_size=40)


@given(text=texts | word_texts, name=st.sampled_from(list(hashes.BY_NAME)), width=st.sampled_from([1, 3]))
@pytest.mark.parametrize("kind", ["word", "char"])
def test_tokens_are_hashed_by_the_name(text, name, width, kind):
    of = hashes.BY_NAME[name]
    found = [of(token) for token in tokens(text, kind)]
    if not found:
        return
    if width > 1:
        count = min(width, len(found))
        found = [mix(polynomial(found[i : i + count])) for i in range(len(found) - count + 1)]
    rules = _native.FeatureRules(kind, width, "none", 7, None, name)
    for _ in instruction_sets():
        offsets, values, _ = _native.features(_native.Texts.from_list([text]), rules)
        assert np.asarray(values).tolist() == list(dict.fromkeys(found))
        assert np.asarray(offsets).tolist() == [0, len(set(found))]


@pytest.mark.parametrize("name", hashes.BY_NAME)
def test_own_tokens_are_hashed_by_the_name(name):
    own = [("ab", 3), ("😀妈", 1), ("", 2)]
    found = features([own], likewise.Recipe.minhash(weights="own", shingle=1, hash=name))
    assert found.features.tolist() == [hashes.BY_NAME[name](token) for token, _ in own]


def test_the_multiplicative_hash_of_nothing_is_zero():
    assert hashes.multiplicative("") == 0


@given(text=odd_texts)
@pytest.mark.parametrize("bits", [32, 64])
def test_fingerprints_of_the_simhash_package(text, bits):
    recipe = likewise.Recipe.simhash(hash="simhash-1e0ng", bits=bits)
    found = likewise.sketch([text], recipe)
    assert found.array.tolist() == [hashes.simhash_package(text, bits)]
    assert found.is_empty.tolist() == [not likewise.sketch([text]).num_features[0]]


@given(text=word_texts | odd_texts, seed=st.sampled_from([0, 1, 42, 2**32 - 1]), width=st.sampled_from([1, 2]))
@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
@pytest.mark.parametrize("kind", ["word", "char"])
def test_signatures_of_datasketch(text, seed, width, scheme, kind):
    recipe = likewise.Recipe.minhash(
        hash="datasketch", scheme=scheme, seed=seed, shingle=width, tokens=kind, num_slots=20
    )
    cut = tokens(text, kind)
    if not cut:
        cut = [normal] if (normal := likewise.stages.text.normalize(text)) else []
    count = min(width, len(cut))
    joined = [(" " if kind == "word" else "").join(cut[i : i + count]) for i in range(len(cut) - count + 1) if count]
    found = likewise.sketch([text], recipe)
    assert found.array.tolist() == [hashes.datasketch(joined, 20, seed, scheme)]


@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
def test_a_token_that_comes_twice_counts_once_as_in_datasketch(scheme):
    documents = [["is", "a", "sketch", "is", "a"], ["a"]]
    recipe = likewise.Recipe.minhash(
        hash="datasketch", scheme=scheme, tokens="user", tokenizer="mine 1", shingle=1, num_slots=33
    )
    found = likewise.sketch(documents, recipe)
    assert found.array.tolist() == [hashes.datasketch(document, 33, 1, scheme) for document in documents]


@pytest.mark.parametrize("scheme", ["affine32", "legacy"])
def test_own_tokens_for_datasketch_are_taken_as_they_are(scheme):
    documents = [["A b", "c", ""], [], ["x" * 1000]]
    recipe = likewise.Recipe.minhash(hash="datasketch", scheme=scheme, weights="own", num_slots=33)
    found = likewise.sketch([[(token, 1) for token in document] for document in documents], recipe)
    assert found.array.dtype == np.uint32
    assert found.array.tolist() == [hashes.datasketch(document, 33, 1, scheme) for document in documents]


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("minhash", {"hash": "sha256"}),
        ("minhash", {"hash": "simhash-1e0ng"}),
        ("simhash", {"hash": "datasketch"}),
        ("bloom", {"hash": "datasketch"}),
        ("exact", {"hash": "md5"}),
        ("simhash", {"hash": "simhash-1e0ng", "shingle": 3}),
        ("simhash", {"hash": "simhash-1e0ng", "bits": 128}),
        ("simhash", {"hash": "simhash-1e0ng", "seed": 1}),
        ("minhash", {"scheme": "affine32"}),
        ("minhash", {"hash": "datasketch", "scheme": "bucket"}),
        ("minhash", {"hash": "datasketch", "seed": 2**32}),
        ("minhash", {"hash": "datasketch", "weights": "count"}),
        ("minhash", {"hash": "datasketch", "weights": "own", "shingle": 2}),
        ("minhash", {"hash": "datasketch", "weights": likewise.Weights.from_terms({"a": 2})}),
    ],
    ids=str,
)
def test_what_a_package_leaves_no_choice_in(method, options):
    with pytest.raises(InvalidParameter):
        likewise.Recipe.from_options(method, **options)


def test_default_hash_stays_out_of_ids_and_tables():
    assert likewise.Recipe.minhash(hash="xxh3").recipe_id == likewise.Recipe.minhash().recipe_id
    table = likewise.stages.weights.count_weights(["a b c", "a b d"], likewise.Recipe.minhash(weights="idf"))
    assert "hash" not in table.rules
    other = likewise.stages.weights.count_weights(
        ["a b c", "a b d"], likewise.Recipe.minhash(weights="idf", hash="md5")
    )
    assert other.rules["hash"] == "md5"
    with pytest.raises(likewise.RecipeMismatch):
        likewise.Recipe.minhash(weights=other)
    likewise.Recipe.minhash(weights=other, hash="md5")


def test_fingerprints_whose_bits_are_1_where_a_sum_is_0_differ():
    """As on the page for users of simhash; the sums are those of plain Python."""
    chance = random.Random(1)
    recipe = likewise.Recipe.simhash(hash="md5", bits=64, tokens="user", tokenizer="mine 1", weights="count", shingle=1)
    told = []
    for sizes in ((2, 4, 6, 8, 10), (200,)):
        lists = [[f"word{n}" for n in chance.sample(range(100_000), chance.choice(sizes))] for _ in range(500)]
        num_zero = []
        for words, fingerprint in zip(lists, likewise.sketch(lists, recipe).array.tolist(), strict=True):
            bits = [int.from_bytes(hashlib.md5(word.encode()).digest()[-8:], "big") for word in words]
            sums = [sum(1 if one >> bit & 1 else -1 for one in bits) for bit in range(64)]
            assert fingerprint == sum(1 << bit for bit in range(64) if sums[bit] > 0)
            num_zero.append(sums.count(0))
        told += [sum(num > 0 for num in num_zero), sum(num > 3 for num in num_zero)]
    assert told == [500, 500, 489, 257]
    page = (ROOT / "docs" / "howto" / "from-simhash.md").read_text(encoding="utf-8")
    assert "all of 500 lists of 2 to 10 distinct tokens, each by more than 3 bits, and 489 of 500" in page
    assert "257 of them by more than 3 bits" in page
