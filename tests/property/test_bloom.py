"""Bloom filters against the oracle: bits, measures, pairs, estimates, and bands for many documents."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import likewise
from likewise import _native
from likewise.batch.search import bloom as bloom_search
from likewise.errors import InvalidParameter
from likewise.stages import bloom
from tests.conftest import instruction_sets
from tests.oracle import bloom as oracle
from tests.oracle.features import Rules, features
from tests.strategies import corpora, seeds, weighted_sets, word_texts

WORDS = likewise.Recipe.bloom(shingle=1, filter_bits=128)


def as_int(words):
    return int.from_bytes(np.asarray(words, "<u8").tobytes(), "little")


@given(weighted=weighted_sets, shape=st.sampled_from([(64, 1), (128, 3), (448, 1), (2048, 2)]), seed=seeds)
def test_filters(weighted, shape, seed):
    filter_bits, num_hashes = shape
    weights = {f: min(w, 15) for f, w in weighted.items()}
    arrays = np.array(list(weights), np.uint64), np.array(list(weights.values()), np.uint32)
    found = _native.bloom_features(*arrays, filter_bits=filter_bits, num_hashes=num_hashes, seed=seed)
    assert as_int(found) == oracle.bloom(weights, filter_bits, num_hashes, seed)


@given(text=word_texts)
def test_filters_of_texts(text):
    found = likewise.sketch([text], WORDS)
    assert found.array.shape == (1, 2)
    assert as_int(found.array[0]) == oracle.bloom(features(text, Rules(shingle=1)).weights, 128)


@given(texts=corpora(), threshold=st.sampled_from([0.3, 0.6, 0.9, 1.0]), measure=st.sampled_from(bloom.BIT_MEASURES))
def test_pairs_of_filters(texts, threshold, measure):
    sketches = likewise.sketch(texts, WORDS)
    filters = [as_int(row) for row in sketches.array]
    live = np.flatnonzero(~sketches.is_empty).tolist()
    values = {
        (a, b): oracle.similarity(filters[a], filters[b], 128, measure) for a, b in itertools.combinations(live, 2)
    }
    expected = {pair: value for pair, value in values.items() if value >= threshold}
    found = bloom.filter_pairs(sketches, threshold=threshold, measure=measure, threads=1)
    assert dict(zip(map(tuple, found.pairs.tolist()), found.similarity.tolist(), strict=True)) == expected
    assert list(expected) == list(map(tuple, found.pairs.tolist()))


@given(
    counts=st.tuples(st.integers(0, 512), st.integers(0, 512)),
    measure=st.sampled_from(["jaccard", "cosine", "containment", "dice", "overlap"]),
    threshold=st.sampled_from([0.3, 0.55, 0.8, 1.0]),
    recall=st.sampled_from([0.5, 0.95, 0.99]),
)
def test_how_many_bits_a_pair_must_share(counts, measure, threshold, recall):
    need = oracle.least_shared(*counts, 512, measure, threshold, recall)
    most, least = min(counts), max(0, sum(counts) - 512)
    for shared in sorted({least, need - 2, need + 2, most} & set(range(least, most + 1))):
        a = (1 << counts[0]) - 1
        b = (1 << counts[1]) - 1 << (counts[0] - shared)
        words = [np.frombuffer(x.to_bytes(64, "little"), "<u8") for x in (a, b)]
        order = np.array([0, 1], np.uint32)
        join = _native.BloomJoin(np.concatenate(words), 512, order, measure=measure, threshold=threshold, recall=recall)
        for _ in instruction_sets():
            found = join.searcher().candidates(0, 2, None, 100)
            assert found.end == 2
            assert (len(found.later) == 1) == (shared >= need)


def test_estimates_lie_within_their_errors():
    rng = np.random.default_rng(5)
    errors, size_errors = [], []
    for trial in range(150):
        tokens = [[(f"{trial}-{i}", 1) for i in range(low, high)] for low, high in ((0, 700), (200, 900))]
        recipe = likewise.Recipe.bloom(weights="own", shingle=1, filter_bits=2048, seed=int(rng.integers(2**60)))
        sketches = likewise.sketch(tokens, recipe)
        found = bloom.resemblance(sketches, 0, 1)
        errors.append((found.value - 500 / 900) / found.standard_error)
        size = bloom.set_size(sketches, 0)
        size_errors.append((size.value - 700) / size.standard_error)
    for seen in (errors, size_errors):
        assert abs(np.mean(seen)) < 0.4
        assert 0.8 < np.std(seen) < 1.2


def test_empty_and_full_filters():
    sketches = likewise.sketch(["", " ", "a", " ".join(map(str, range(3000)))], WORDS)
    assert bloom.resemblance(sketches, 0, 1) == (1.0, 0.0, True)
    assert bloom.resemblance(sketches, 0, 2) == (0.0, 0.0, True)
    assert math.isnan(bloom.set_size(sketches, 3).standard_error)
    assert math.isnan(bloom.resemblance(sketches, 2, 3).standard_error)
    with pytest.raises(InvalidParameter, match="rows"):
        bloom.filter_similarities(sketches, np.array([[0, 4]]))
    with pytest.raises(InvalidParameter, match="bloom"):
        bloom.set_size(likewise.sketch(["a"]), 0)


@pytest.mark.parametrize(("size", "expected"), [(0, 512), (256, 512), (257, 1024), (10**6, 65536)])
def test_filters_are_twice_the_largest_set(size, expected):
    assert bloom.propose_filter_bits(size) == expected
    text = " ".join(map(str, range(size))) if size < 1000 else None
    if text is not None:
        for found in (
            likewise.sketch([text, "a b"], likewise.Recipe.bloom(shingle=1)).recipe,
            likewise.sketch(
                [[(word, 1) for word in text.split()]], likewise.Recipe.bloom(shingle=1, weights="own")
            ).recipe,
        ):
            assert found.sketch.filter_bits == expected


def test_a_run_proposes_its_filters_and_says_so(tmp_path):
    text = " ".join(map(str, range(900)))
    path = tmp_path / "in.jsonl"
    path.write_text("\n".join(f'{{"text": "{line}"}}' for line in (text, text + " x", "other words")) + "\n")
    summary = likewise.dedup_files(path, tmp_path / "out", likewise.Recipe.bloom())
    assert summary["recipe"]["filter_bits"] == 2048
    assert summary["recall"] == 0.95
    assert summary["num_removed"] == 1
    result = likewise.dedup([text, text + " x", "other words"], likewise.Recipe.bloom())
    assert result.kept.tolist() == [True, False, True]
    assert result.summary["recipe_id"] == summary["recipe_id"]


def test_many_documents_are_nominated_by_bands(monkeypatch):
    monkeypatch.setattr(bloom_search, "MOST_COMPARED", 3)
    texts = ["a b c d e f", "a b c d e f g", "x y z", "u v w", "a b c d e f g h"]
    events = []
    result = likewise.dedup(texts, likewise.Recipe.bloom(0.5, shingle=1), progress=events.append)
    assert result.kept.tolist() == [True, False, True, True, False]
    assert result.summary["recipe"]["bands"] > 1
    assert result.summary["recall"] >= 0.95
    assert any("bands" in getattr(event, "message", "") for event in events)


def test_sketches_of_filters_are_written_and_read(tmp_path):
    made = likewise.sketch(["a b c d", "", "e f g h"], likewise.Recipe.bloom())
    for name in ("s.npy", "s.parquet"):
        made.write(tmp_path / name)
        again = likewise.Sketches.read(tmp_path / name, made.recipe)
        assert np.array_equal(again.array, made.array)
        assert again.recipe == made.recipe


def test_compare_shows_the_bits():
    found = likewise.compare("a b c d e", "a b c d e f", likewise.Recipe.bloom())
    assert found.measures.filters["hamming"] > 0.9
    assert found.to_dict()["measures"]["filters"] == found.measures.filters
    assert likewise.compare("a", "b").measures.filters is None
