"""P3: an index without removals gives the verdicts and the evidence of `dedup`, for any division into batches."""

import itertools
import random

import pytest

import likewise
from tests.index.store.conformance import SIMHASH, VERIFIED
from tests.quality.test_promises import planted
from tests.recipes import RECIPES

SETS = ["en-cpp-errors", "zh-docs-tidb", "html-kafka-javadoc", "edits-controlled"]
NUM_ORDERS = 20
DEFAULTS = {
    "minhash": likewise.Recipe.minhash(),
    "simhash": likewise.Recipe.simhash(),
    "simhash-near": likewise.Recipe.simhash(within=3),
    "simhash-cosine": likewise.Recipe.simhash(threshold=0.8),
}


def batch_verdicts(ids, texts, recipe):
    """Return kept id, similarity and distance by the id of each removed document."""
    removed = likewise.dedup(texts, recipe, ids=ids, threads=2).removed
    names = ("kept_id", "similarity", "distance")
    return {row["doc_id"]: tuple(row[name] for name in names) for row in removed.to_pylist()}


def online_verdicts(path, ids, texts, recipe, batch_sizes):
    """Return the same from a new index, filled batch by batch. Size 0 means a single document."""
    found, start = {}, 0
    with likewise.Index(path, recipe) as index:
        for size in itertools.cycle(batch_sizes):
            if start >= len(ids):
                break
            if size == 0:
                verdicts, size = [index.check_and_add(ids[start], texts[start])], 1
            else:
                verdicts = index.check_and_add_batch(ids[start : start + size], texts[start : start + size])
            for number, verdict in enumerate(verdicts, start):
                assert (verdict.doc_id, verdict.seq, verdict.added) == (ids[number], number + 1, True)
                if not verdict.is_new:
                    assert verdict.measure == recipe.resolve().measure
                    found[verdict.doc_id] = (verdict.kept_id, verdict.similarity, verdict.distance)
            start += size
        assert len(index) == len(ids)
        # The stored verdicts are those that were returned.
        for doc_id in ids[:: max(1, len(ids) // 50)]:
            stored = index.get(doc_id)
            evidence = None if stored.is_new else (stored.kept_id, stored.similarity, stored.distance)
            assert evidence == found.get(doc_id)
    return found


@pytest.mark.parametrize("name", [*SIMHASH, *VERIFIED])
def test_batch_is_online_on_a_planted_corpus(tmp_path, name):
    recipe, texts = RECIPES[name].replace(keep="first"), planted()
    ids = [f"doc-{row}" for row in range(len(texts))]
    expected = batch_verdicts(ids, texts, recipe)
    assert expected
    assert online_verdicts(tmp_path / "a", ids, texts, recipe, [1, 0, 17, 100]) == expected
    assert online_verdicts(tmp_path / "b", ids, texts, recipe, [len(texts)]) == expected


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("recipe_name", DEFAULTS)
def test_batch_is_online_on_development_sets(tmp_path, labeled, recipe_name, name):
    ids, texts, _ = labeled(name)
    rows = list(range(len(ids)))
    for seed in range(NUM_ORDERS):
        chance = random.Random(seed)
        chance.shuffle(rows)
        order = [ids[row] for row in rows], [texts[row] for row in rows], DEFAULTS[recipe_name]
        sizes = [chance.choice([0, 1, 7, 100, 1000]) for _ in range(9)]
        assert online_verdicts(tmp_path / str(seed), *order, sizes) == batch_verdicts(*order)
