"""Own tokens with real weights by Hamming distance: expected verdicts, in an index and in a run."""

import numpy as np
import pytest

import likewise
from likewise.errors import InvalidInput, InvalidParameter
from tests.index.classic import RECIPE, SCALE, check_verdicts, documents, replayed


@pytest.mark.parametrize("store", ["sketch", "shingles", "text"])
def test_a_hundred_worked_verdicts(tmp_path, store):
    with likewise.Index(tmp_path / "i", RECIPE, store=store) as index:
        check_verdicts(index)
    with likewise.Index(tmp_path / "i") as again:
        pages = documents()
        assert again.check(pages[0]).kept_id == "page-0"
        again.remove("page-0")
        assert again.verify(full=True) == []


def test_a_run_removes_the_same():
    pages = documents()
    expected = replayed(pages)
    result = likewise.dedup(pages, RECIPE)
    assert np.flatnonzero(~result.kept).tolist() == [i for i, verdict in enumerate(expected) if verdict is not None]


def test_a_lexicon_decides_by_distance_too(tmp_path):
    table = likewise.Weights.from_terms({"breaking": 0, "news": 0, "storm": 9, "coast": 9}, tokens="word")
    recipe = likewise.Recipe.simhash(weights=table, within=3, tokens="word", shingle=1)
    texts = ["Breaking news: a storm reaches the coast", "A storm reaches the coast", "breaking news", "breaking"]
    with likewise.Index(tmp_path / "i", recipe) as index:
        verdicts = index.add_batch(list("abcd"), texts)
    assert verdicts.kept_ids == [None, "a", None, None]
    assert likewise.dedup(texts, recipe).kept.tolist() == [True, False, True, True]


def test_scaled_weights_are_close_to_the_real_ones():
    rng = np.random.default_rng(4)
    words = [f"word{i}" for i in range(300)]
    pages = []
    for _ in range(30):
        chosen = rng.choice(300, 120, replace=False)
        page = dict(zip([words[i] for i in chosen], rng.gamma(1.5, 1.0, 120), strict=True))
        kept = rng.choice(120, rng.integers(60, 120), replace=False)
        pages += [page, {word: weight for i, (word, weight) in enumerate(page.items()) if i in kept}]
    scale = 255 / max(weight for page in pages for weight in page.values())
    recipe = likewise.Recipe.own(
        "words 1", weighted=True, method="shingles", measure="cosine", threshold=0.01, weight_scale=scale
    )
    found = likewise.pairs([list(page.items()) for page in pages], recipe)
    assert found.num_rows > 1000
    num_similar = 0
    for a, b, similarity in zip(*(found.column(i).to_pylist() for i in ("row_a", "row_b", "similarity")), strict=True):
        both = pages[a].keys() & pages[b].keys()
        dot = sum(pages[a][word] * pages[b][word] for word in both)
        norms = [np.sqrt(sum(weight**2 for weight in page.values())) for page in (pages[a], pages[b])]
        exact = dot / norms[0] / norms[1]
        assert similarity == pytest.approx(exact, abs=0.0025)
        if exact >= 0.5:
            num_similar += 1
            assert similarity == pytest.approx(exact, rel=0.005)
    assert num_similar >= 30


@pytest.mark.parametrize("weight", [-0.1, float("nan"), float("inf"), "1", None, True, 255.6 / SCALE])
def test_no_weight(weight):
    with pytest.raises(InvalidInput, match="weight of 'a'") as refused:
        likewise.sketch([[("b", 1.0)], [("a", weight)]], RECIPE)
    assert refused.value.row == 1


def test_scales_and_rounding():
    features = likewise.sketch([[("a", 0.02), ("b", 1.0)], [("b", 2.0)]], RECIPE)
    # Weights that round to 0 are left out.
    assert features.num_features.tolist() == [1, 1]
    assert features.array[0] == features.array[1]
    with pytest.raises(InvalidInput, match="set weight_scale"):
        likewise.sketch([[("a", 0.5)]], likewise.Recipe.own("x", weighted=True))
    for scale in (0, -1, float("nan"), float("inf"), "2", True):
        with pytest.raises(InvalidParameter, match="weight_scale"):
            likewise.Recipe.own("x", weighted=True, weight_scale=scale)
    with pytest.raises(InvalidParameter, match="weight_scale"):
        likewise.Recipe.minhash(weight_scale=2.0)
    recipe = likewise.Recipe.own("x", weighted=True, weight_scale=2)
    assert likewise.Recipe.from_json(recipe.to_json()) == recipe
    assert recipe.recipe_id != likewise.Recipe.own("x", weighted=True).recipe_id


@pytest.mark.parametrize("method", ["minhash", "bloom", "shingles"])
def test_own_tokens_of_each_method(method):
    recipe = likewise.Recipe.own("words 1", method=method)
    assert (recipe.tokens, recipe.tokenizer, recipe.weights, recipe.shingle) == ("user", "words 1", "none", 1)
    pages = [[f"w{i}" for i in range(90)], [f"w{i}" for i in range(88)], [f"v{i}" for i in range(90)]]
    assert likewise.dedup(pages, recipe).kept.tolist() == [True, False, True]
    with pytest.raises(InvalidParameter, match="method"):
        likewise.Recipe.own("words 1", method="exact")
