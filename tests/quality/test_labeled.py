"""Labeled sets and planted corpora: bounds on the loss of sketches against exact measures, no pair below threshold."""

import csv
import itertools
import json

import numpy as np
import pytest

import likewise
from tests.golden.texts import made_up
from tests.oracle import measures
from tests.oracle.features import Rules, features

# Name of the set -> its best Jaccard row, and the features of that row.
SETS = {
    "en-cpp-errors": ("jaccard-word3", "word", 3),
    "zh-docs-tidb": ("jaccard-char3", "char", 3),
    "html-kafka-javadoc": ("jaccard-word3", "word", 3),
}


def best_f1(found, ids, folder):
    """Return the best F1 over all thresholds; closed world, ignoring pairs of label -1 and pairs inside clusters."""
    labels = {}
    with (folder / "pairs.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            labels[frozenset((row["id1"], row["id2"]))] = int(row["label"])
    cluster = {}
    with (folder / "clusters.tsv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines, delimiter="\t"):
            cluster[row["id"]] = row["cluster"]
    num_positives = sum(label == 1 for label in labels.values())
    scored = []
    for a, b, similarity in found:
        label = labels.get(frozenset((ids[a], ids[b])))
        if label is None:
            inside = cluster.get(ids[a]) is not None and cluster.get(ids[a]) == cluster.get(ids[b])
            label = -1 if inside else 0
        if label >= 0:
            scored.append((similarity, label))
    scored.sort(reverse=True)
    hits = np.cumsum([label for _, label in scored])
    scores = 2 * hits / (np.arange(1, len(scored) + 1) + num_positives)
    # A threshold includes all pairs of equal similarity.
    last = [i == len(scored) - 1 or scored[i][0] != scored[i + 1][0] for i in range(len(scored))]
    best = int(np.argmax(np.where(last, scores, 0)))
    return float(scores[best]), scored[best][0]


def pairs_of(texts, recipe):
    table = likewise.pairs(texts, recipe)
    return list(zip(*(table.column(name).to_pylist() for name in ("row_a", "row_b", "similarity")), strict=True))


@pytest.mark.parametrize("name", SETS)
def test_verified_pairs_reach_the_exact_f1(labeled, name):
    ids, texts, folder = labeled(name)
    row, tokens, shingle = SETS[name]
    baseline = json.loads((folder / "baseline.json").read_text())[row]
    threshold = baseline["thr"] - 0.03
    recipe = likewise.Recipe.minhash(threshold, tokens=tokens, shingle=shingle, recall=0.99)
    f1, at = best_f1(pairs_of(texts, recipe), ids, folder)
    print(f"{name}: F1 {f1:.4f} at {at:.4f}; exact {baseline['f1']} at {baseline['thr']}")
    assert f1 >= baseline["f1"] - 0.01


def corpus(num_documents, seed=1):
    """Return made-up texts, half of them graded edits of others: many pairs are just above and below .8."""
    rng = np.random.default_rng(seed)
    texts = []
    for i in range(num_documents):
        if i % 2 == 0 or not texts:
            texts.append(made_up(int(rng.integers(40, 160)), seed * 10**6 + i).split())
            continue
        words = list(texts[rng.integers(0, len(texts))])
        rate = rng.choice([0.0, 0.01, 0.02, 0.03, 0.04, 0.06, 0.1, 0.2])
        for at in np.flatnonzero(rng.random(len(words)) < rate):
            words[at] = f"e{i}x{at}"
        texts.append(words)
    return [" ".join(words) for words in texts]


def exact_pairs(texts, rules, threshold):
    """Return all pairs at or above the threshold, by the oracle's features and an inverted index."""
    own = [features(text, rules).weights for text in texts]
    holders = {}
    for row, weights in enumerate(own):
        for feature in weights:
            holders.setdefault(feature, []).append(row)
    shared = {}
    for rows in holders.values():
        for pair in itertools.combinations(rows, 2):
            shared[pair] = shared.get(pair, 0) + 1
    found = {}
    for (a, b), count in shared.items():
        similarity = count / (len(own[a]) + len(own[b]) - count)
        if similarity >= threshold:
            found[a, b] = similarity
    return found


def check_against_exact(texts, recall, least):
    """Check that no pair below the threshold is listed, and at least `least` of those in [t, t + .05] are found."""
    threshold, rules = 0.8, Rules("word", 3)
    recipe = likewise.Recipe.minhash(threshold, tokens="word", shingle=3, recall=recall)
    expected = exact_pairs(texts, rules, threshold)
    found = {(a, b): similarity for a, b, similarity in pairs_of(texts, recipe)}
    for pair, similarity in found.items():
        assert expected[pair] == similarity >= threshold
    near = [pair for pair, similarity in expected.items() if similarity <= threshold + 0.05]
    share = sum(pair in found for pair in near) / len(near)
    print(f"{len(near)} pairs near the threshold, found {share:.4f}; {len(found)} of {len(expected)} pairs")
    assert len(near) > 50
    assert share >= least


def test_recall_and_precision_on_a_planted_corpus():
    check_against_exact(corpus(700), 0.99, 0.97)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_recall_and_precision_on_five_thousand_documents():
    check_against_exact(corpus(5000, seed=2), 0.99, 0.97)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SETS)
def test_recall_near_the_threshold_on_real_texts(labeled, name):
    _, texts, _ = labeled(name)
    rules = Rules("char", 3) if name.startswith("zh") else Rules("word", 3)
    recipe = likewise.Recipe.minhash(0.8, tokens=rules.tokens, shingle=3, recall=0.99)
    native = recipe.feature_rules
    offsets, found, _ = map(np.asarray, likewise._native.features(likewise._native.Texts.from_list(texts), native))
    sets = [set(found[a:b].tolist()) for a, b in itertools.pairwise(offsets)]
    sizes = np.diff(offsets)
    listed = {(a, b) for a, b, _ in pairs_of(texts, recipe)}
    near = seen = 0
    for a, b in itertools.combinations(range(len(texts)), 2):
        if min(sizes[a], sizes[b]) >= 0.8 * max(sizes[a], sizes[b]):
            shared = len(sets[a] & sets[b])
            similarity = shared / (sizes[a] + sizes[b] - shared)
            assert similarity >= 0.8 or (a, b) not in listed
            if 0.8 <= similarity <= 0.85:
                near += 1
                seen += (a, b) in listed
    print(f"{name}: {seen} of {near} pairs in [.8, .85]")
    # A small set may fall below .97 by chance: three deviations of a binomial at .99.
    assert seen >= near * 0.97 - 3 * (near * 0.0099) ** 0.5


def test_templates_are_capped_and_their_documents_kept():
    """Distinct pages of one template fill the buckets: their work is bounded, they are counted, and all are kept."""
    frame = made_up(320, 1).split()
    pages = []
    for i in range(1500):
        content = made_up(80, 1000 + i)
        pages.append(" ".join([*frame[:60], content, *frame[60:]]))
    a, b = (features(text, Rules("auto", 3)).weights for text in pages[:2])
    assert 0.55 < measures.similarity(a, b, "jaccard") < 0.75
    result = likewise.dedup(pages, likewise.Recipe.minhash(0.8))
    assert result.kept.all()
    assert result.summary["num_candidates"] <= len(pages) * result.summary["recipe"]["bands"] * 192
    for overflow in ("exact", "levels"):
        low = likewise.dedup(pages, likewise.Recipe.minhash(0.8, bands=64, rows=1, overflow=overflow))
        assert low.kept.all()
        assert low.summary["num_crowded"] > 1000
        assert (low.summary["num_capped"] > 0) == (overflow == "levels")
