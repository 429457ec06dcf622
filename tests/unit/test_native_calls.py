"""Every function of the native module once, and how calls end: errors, threads, Ctrl-C, fork."""

import itertools
import multiprocessing
import os
import signal
import threading
import time
from functools import partial

import numpy as np
import pytest

from likewise import _native
from likewise.errors import InvalidParameter, LikewiseError
from tests.waiting import LIMIT_S

TEXTS = ["the cat sat on the mat", "the cat sat on a mat", "the cat sat on the mat", "", "猫が座った", "cat"]
Texts = _native.Texts


def u32(*values):
    return np.array(values, np.uint32)


@pytest.fixture
def texts():
    return Texts.from_list(TEXTS)


@pytest.fixture
def rules():
    return _native.FeatureRules("word", 2, "none", 0)


@pytest.mark.parametrize("weights", ["none", "count", "log-count"])
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
def test_simhash_of_texts_is_simhash_of_their_features(texts, bits, weights):
    rules = _native.FeatureRules("auto", 2, weights, 5)
    batch = _native.sketch_simhash(texts, rules, bits=bits)
    offsets, features, values = (np.asarray(a) for a in _native.features(texts, rules))
    each = [
        np.asarray(_native.simhash_features(features[a:b].copy(), values[a:b].copy(), bits=bits))
        for a, b in itertools.pairwise(offsets)
    ]
    assert np.array_equal(np.asarray(batch.sketches), np.concatenate(each))
    assert np.array_equal(np.asarray(batch.num_features), np.diff(offsets))
    assert np.asarray(batch.shapes).tolist() == [0, 0, 0, 2, 0, 1]
    digests = np.asarray(batch.digests).reshape(-1, 2)
    assert (digests[0] == digests[2]).all()
    assert (digests[0] != digests[1]).any()
    without = _native.sketch_simhash(texts, rules, bits=bits, sets=False, threads=2)
    assert np.array_equal(np.asarray(without.sketches), np.asarray(batch.sketches))
    assert len(without.digests) == 0


@pytest.mark.parametrize("scheme", ["bucket", "classical"])
@pytest.mark.parametrize("slot_bits", [8, 16, 32])
@pytest.mark.parametrize("weights", ["none", "log-count"])
def test_minhash_of_texts_is_minhash_of_their_features(texts, scheme, slot_bits, weights):
    rules = _native.FeatureRules("word", 2, weights, 7)
    shape = {"num_slots": 64, "slot_bits": slot_bits, "scheme": scheme}
    batch = _native.sketch_minhash(texts, rules, **shape)
    offsets, features, values = _native.features(texts, rules)
    again = _native.minhash_features(offsets, features, values, **shape, seed=7, threads=2)
    rows = np.asarray(batch.sketches).reshape(len(TEXTS), -1)
    assert rows.shape[1] == 64 * slot_bits // 8
    assert np.array_equal(rows.ravel(), np.asarray(again))
    assert (rows[3] == 255).all()
    without = _native.sketch_minhash(texts, rules, **shape, sets=False)
    assert np.array_equal(np.asarray(without.sketches), rows.ravel())
    wide = np.asarray(_native.sketch_minhash(texts, rules, num_slots=64, slot_bits=32, scheme=scheme).sketches)
    assert np.array_equal(wide.view("<u4").astype(f"<u{slot_bits // 8}"), rows.ravel().view(f"<u{slot_bits // 8}"))


def test_instruction_sets_and_threads_change_nothing(isa):
    texts = Texts.from_list([f"{word} {i} {i * i} und so weiter " * 9 for i in range(3000) for word in ("a", "é")])
    rules = _native.FeatureRules("auto", 3, "log-count", 1)
    simhash = []
    for threads, name in [(1, "plain"), (2, isa), (5, isa)]:
        _native.use_isa(name)
        simhash.append(np.asarray(_native.sketch_simhash(texts, rules, bits=64, threads=threads).sketches))
    assert all(np.array_equal(simhash[0], other) for other in simhash)


def test_text_doors():
    assert _native.normalize("  Ｃat\tCAT ") == "cat cat"
    assert _native.tokens("The cat, 猫座", "auto") == ["the", "cat", "猫", "座"]
    assert _native.tokens("ab", "char") == ["a", "b"]
    rules = _native.FeatureRules("word", 3, seed=9)
    assert (rules.tokens, rules.shingle, rules.weights, rules.seed) == ("word", 3, "none", 9)
    assert _native.TEXT_VERSION == "1/unicode-17.0.0"
    assert _native.SKETCH_VERSION == 1
    assert _native.ISA in ("plain", "avx2", "avx512", "neon")


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: _native.FeatureRules("words", 1), "tokens"),
        (lambda: _native.FeatureRules("word", 0), "shingle"),
        (lambda: _native.FeatureRules("word", 65), "shingle"),
        (lambda: _native.FeatureRules("word", 1, "tf"), "weights"),
        (lambda: _native.tokens("a", "w"), "tokens"),
        (lambda: _native.plan_bands(0, 0.5, 0.9), "num_slots"),
        (lambda: _native.radius_for(63, 0.5, 0.9), "bits"),
        (lambda: _native.radius_for(64, float("nan"), 0.9), "threshold"),
        (lambda: _native.Leaders(2).decide(1, 3, u32(), u32(), np.zeros(0)), "hi"),
        (lambda: _native.Leaders(2).decide(2, 1, u32(), u32(), np.zeros(0)), "hi"),
        (
            lambda: _native.minhash_features(
                np.array([0, 2]), np.zeros(1, np.uint64), None, num_slots=4, slot_bits=8, scheme="bucket", seed=0
            ),
            "offsets",
        ),
        (lambda: _native.distances(np.zeros(2, np.uint64), 64, u32(2), u32(0)), "a"),
        (lambda: _native.search_bands(np.zeros(7, np.uint8), 4, 1, u32(), bands=1, rows=4), "signatures"),
    ],
    ids=map(str, range(13)),
)
def test_mistakes_are_named(call, name):
    with pytest.raises(InvalidParameter) as caught:
        call()
    assert caught.value.name == name
    assert isinstance(caught.value, LikewiseError)
    assert isinstance(caught.value, ValueError)


def test_band_candidates(texts, rules):
    batch = _native.sketch_minhash(texts, rules, num_slots=32, slot_bits=8, scheme="bucket")
    order = u32(0, 1, 2, 4, 5)
    bands, rows, recall = _native.plan_bands(32, 0.4, 0.95)
    assert recall >= 0.95
    assert recall == _native.s_curve(0.4, bands, rows)
    buckets = _native.search_bands(batch.sketches, 32, 1, order, bands=bands, rows=rows)
    found = buckets.candidates(0, 5, min_equal=_native.min_equal_slots(32, 0.4))
    pairs = list(zip(np.asarray(found.later).tolist(), np.asarray(found.earlier).tolist(), strict=True))
    assert (2, 0) in pairs
    assert pairs == sorted(pairs)
    assert found.num_considered >= len(pairs)
    assert buckets.num_capped == 0
    states = np.array([2, 0, 0, 0, 0], np.uint8)
    assert 0 not in np.asarray(buckets.candidates(2, 3, states).earlier).tolist()
    with pytest.raises(InvalidParameter, match="states"):
        buckets.candidates(0, 5, states[:1].copy())
    equal = _native.num_equal(batch.sketches, 32, 1, u32(0, 0), u32(2, 0))
    assert np.asarray(equal).tolist() == [32, 32]


def test_joins_of_fingerprints():
    words = np.array([0b0, 0b1, 0b111, 1 << 63], np.uint64)
    join = partial(_native.join_fingerprints, bits=64, within=2)
    rows, distances = (np.asarray(found) for found in join((words, None), None, max_pairs=4))
    assert rows.reshape(-1, 2).tolist() == [[0, 1], [0, 3], [1, 2], [1, 3]]
    assert distances.tolist() == [1, 1, 2, 2]
    assert join((words, None), None, max_pairs=3) is None
    sides = (words[2:].copy(), None), (words[:2].copy(), None)
    rows, distances = (np.asarray(found) for found in join(*sides, max_pairs=9, threads=2))
    assert rows.reshape(-1, 2).tolist() == [[0, 1], [1, 0], [1, 1]]
    assert distances.tolist() == [2, 1, 2]
    assert _native.predicted_join_seconds(words, 64, within=2, num=10**6) > 0
    assert np.asarray(_native.distances(words, 64, u32(0, 2), u32(3, 3))).tolist() == [1, 4]
    radius, recall = _native.radius_for(64, 0.99, 0.95)
    assert 0 < radius < 32
    assert recall >= 0.95


def test_feature_sets_and_leaders(texts, rules):
    sets = _native.FeatureSets(10, rules)
    assert np.asarray(sets.missing(u32(5, 3, 5))).tolist() == [3, 5]
    sets.add(u32(0, 1, 2, 3, 4, 5), texts, threads=2)
    assert np.asarray(sets.missing(u32(6, 3, 5))).tolist() == [6]
    held = sets.num_bytes
    # Two-word shingles: 5 each, of which 3 are shared.
    similarity = np.asarray(sets.verify(u32(1, 2, 5), u32(0, 0, 0), measure="jaccard", threshold=0.4)[0])
    assert similarity[0] == 3 / 7
    assert similarity[1] == 1.0
    assert np.isnan(similarity[2])
    with pytest.raises(InvalidParameter, match="measure"):
        sets.verify(u32(1), u32(0), measure="edit", threshold=0.4)
    with pytest.raises(InvalidParameter):
        sets.verify(u32(9), u32(0), measure="jaccard", threshold=0.4)
    with pytest.raises(InvalidParameter, match="positions"):
        sets.add(u32(10), texts.take(u32(0)))
    # Documents 0 to 2 with sets at 1, 5 and 0; the second is removed and needs no set.
    states = np.array([1, 2, 1], np.uint8)
    documents = partial(sets.verify, measure="jaccard", threshold=0.4)
    values, num_measured = documents(u32(2, 2), u32(0, 1), u32(1, 5, 0), states, threads=2)
    assert np.asarray(values)[0] == 3 / 7
    assert np.isnan(np.asarray(values)[1])
    assert num_measured == 1
    values, num_measured = documents(u32(2, 2), u32(0, 1), u32(1, 5, 0))
    assert num_measured == 2
    assert documents(u32(2), u32(1), u32(1, 9, 0), states)[1] == 0
    for later, earlier, places, some_states in (
        (u32(2), u32(1), u32(1, 9, 0), None),
        (u32(2), u32(1), None, states),
        (u32(2), u32(3), u32(1, 5, 0), states),
        (u32(2), u32(0), u32(1, 5, 0), states[:2]),
        (u32(2), u32(0, 1), u32(1, 5, 0), states),
        (u32(2), u32(0).astype(np.uint64), u32(1, 5, 0), states),
    ):
        with pytest.raises(InvalidParameter):
            documents(later, earlier, places, some_states)
    assert np.asarray(_native.distinct_documents(u32(7, 7, 70), u32(0, 8, 7), 70)).tolist() == [0, 7, 8]
    sets.discard(u32(0, 9))
    assert sets.num_bytes < held
    leaders = _native.Leaders(4)
    leaders.decide(0, 2, u32(1), u32(0), np.array([0.9]))
    leaders.decide(2, 4, u32(2, 2, 3), u32(0, 1, 2), np.array([np.nan, 0.8, 0.7]), u32(1, 2, 3))
    assert np.asarray(leaders.states).tolist() == [1, 2, 1, 2]
    assert np.asarray(leaders.best_earlier).tolist() == [2**32 - 1, 0, 2**32 - 1, 2]
    assert np.asarray(leaders.best_similarity)[[1, 3]].tolist() == [0.9, 0.7]
    assert np.asarray(leaders.best_distance)[3] == 3


def test_aligned_diff():
    a, b = list("abcd"), list("axycde")
    assert _native.aligned_diff(a, b) == [(1, 2, 1, 3), (4, 4, 5, 6)]
    assert _native.aligned_diff(a, a) == []
    assert _native.aligned_diff(["\ud800", "é"], ["\ufffd", "é"]) == []


@pytest.fixture(scope="module")
def many():
    """Return about 100 MB of texts: seconds of work."""
    words = " ".join(f"word{i}" for i in range(3000))
    return Texts.concat([Texts.from_list([f"{i} {words}" for i in range(100)])] * 40)


def test_ctrl_c_ends_a_long_call(many, rules):
    options = {"num_slots": 256, "slot_bits": 8, "scheme": "classical", "threads": 2}
    part = Texts.from_list([f"{i} {' '.join(f'word{i}' for i in range(3000))}" for i in range(100)])
    began = time.process_time()
    _native.sketch_minhash(part, rules, **options)
    of_a_part = time.process_time() - began
    heavy = Texts.concat([many] * 100)
    began = time.process_time()
    timer = threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT))

    def interrupted():
        timer.start()
        _native.sketch_minhash(heavy, rules, **options)

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    # Processor time, independent of other processes: less than half of 4,000 such parts was done.
    assert time.process_time() - began < 2000 * of_a_part


def test_other_threads_run_during_a_call(many, rules):
    ticks = []
    done = threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.monotonic())
            time.sleep(0.005)

    thread = threading.Thread(target=tick)
    thread.start()
    num_during = 0
    try:
        # As often as a busy machine needs; a call that holds the lock would fail every time.
        for _ in range(50):
            start = time.monotonic()
            _native.sketch_simhash(many, rules, bits=64)
            end = time.monotonic()
            num_during += sum(start < moment < end for moment in list(ticks))
            if num_during > 5:
                break
    finally:
        done.set()
        thread.join()
    assert num_during > 5


def _sketch_in_child(queue):
    texts = Texts.from_list(TEXTS * 100_000)
    batch = _native.sketch_simhash(texts, _native.FeatureRules("word", 1), bits=64, threads=2)
    queue.put(np.asarray(batch.sketches)[:6].tolist())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_works():
    texts = Texts.from_list(TEXTS * 100_000)
    batch = _native.sketch_simhash(texts, _native.FeatureRules("word", 1), bits=64, threads=2)
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_sketch_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=LIMIT_S) == np.asarray(batch.sketches)[:6].tolist()
    finally:
        child.join(LIMIT_S)
        child.kill()


def test_objects_are_not_pickled(texts):
    import pickle

    with pytest.raises(TypeError):
        pickle.dumps(texts)
