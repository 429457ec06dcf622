"""Rarity weights: one unchanged recipe for four sets, and the gain for SimHash."""

import numpy as np
import pytest

import likewise
from likewise import _native
from likewise.stages.features import features
from tests.quality.test_recipes import SETS, found_by, naive, scored

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

MOST_LOST = 0.01
# On these pages, made from templates, text shared by half of them is no evidence: plain sets reach at most .949.
LEAST_ON_TEMPLATES = 0.99
# Features and radius of the best 128-bit fingerprints, by Hamming distance.
BEST_FINGERPRINTS = {
    "en-cpp-errors": ("auto", 1, 25),
    "zh-docs-tidb": ("char", 3, 35),
    "html-kafka-javadoc": ("auto", 1, 26),
}
LEAST_OF_FINGERPRINTS = 0.98


@pytest.mark.parametrize("name", SETS)
def test_one_untouched_recipe_serves_every_set(labeled, tmp_path, name):
    ids, texts, folder = labeled(name)
    f1 = scored(tmp_path, ids, folder, found_by(texts, likewise.Recipe.minhash(weights="idf")))
    exact, _ = naive(folder)
    print(f"{name}: F1 {f1:.4f}; plain exact Jaccard at its best {exact:.4f}")
    assert f1 >= exact - MOST_LOST
    if name == "html-kafka-javadoc":
        assert f1 >= LEAST_ON_TEMPLATES


@pytest.mark.parametrize("name", BEST_FINGERPRINTS)
def test_fingerprints_by_log_count_and_rarity(labeled, tmp_path, name):
    ids, texts, folder = labeled(name)
    tokens, shingle, within = BEST_FINGERPRINTS[name]
    recipe = likewise.Recipe.simhash(
        bits=128, tokens=tokens, shingle=shingle, weights="log-count-idf", within=within, short_threshold=0.0
    )
    f1 = scored(tmp_path, ids, folder, found_by(texts, recipe))
    print(f"{name}: F1 {f1:.4f} within {within}")
    assert f1 >= LEAST_OF_FINGERPRINTS


@pytest.mark.parametrize("name", ["en-cpp-errors"])
def test_integer_weights_lose_little_against_logarithms(labeled, tmp_path, name):
    """log(1 + count) * log(n / df), in thousandths, against the weights 1 to 15, both at their best radius."""
    ids, texts, folder = labeled(name)
    options = {"bits": 128, "tokens": "auto", "shingle": 1, "within": 25, "short_threshold": 0.0}
    counts = features(texts, likewise.Recipe.simhash(**options, weights="count"))
    rows = np.repeat(np.arange(len(texts)), np.diff(counts.offsets))
    sets = {}
    for row in range(len(texts)):
        sets.setdefault(frozenset(counts.features[counts.offsets[row] : counts.offsets[row + 1]].tolist()), row)
    is_counted = np.isin(rows, list(sets.values()))
    _, inverse = np.unique(counts.features, return_inverse=True)
    df = np.maximum(np.bincount(inverse[is_counted], minlength=inverse.max() + 1), 1)[inverse]
    real = np.log1p(counts.weights) * np.log(len(sets) / df)
    weights = np.maximum(1, np.round(1000 * real)).astype(np.uint32)
    words = [
        np.asarray(_native.simhash_features(counts.features[low:high].copy(), weights[low:high].copy(), bits=128))
        for low, high in zip(counts.offsets[:-1], counts.offsets[1:], strict=True)
    ]
    real_pairs, distances = likewise.hamming_pairs(np.array(words), within=30)
    best = max(
        scored(tmp_path, ids, folder, [(a, b, 0) for a, b in real_pairs[distances <= k].tolist()])
        for k in range(18, 31)
    )
    ours = scored(tmp_path, ids, folder, found_by(texts, likewise.Recipe.simhash(**options, weights="log-count-idf")))
    print(f"{name}: logarithms {best:.4f}, integers {ours:.4f}")
    assert ours >= best - 0.005
