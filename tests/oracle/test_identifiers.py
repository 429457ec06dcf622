"""Numbers, model numbers and sizes: features and verdicts of the core against the oracle, and of an index."""

import random
import re

import numpy as np
import pytest

import likewise
from likewise.stages.features import features
from likewise.stages.verify import matching_pairs, verify_pairs
from tests.oracle import identifiers
from tests.oracle.cut import fold

RECIPE = likewise.Recipe.preset("titles")
PARTS = (
    *("HP", "ink", "304", "305", "304XL", "XL", "KX-TG9344T", "kxtg9344t", "size", "M", "(L)", "WD40EFRX", "wd40efzx"),
    *("1,000", "10,50", "6.0", "6", "22-inch", "22", "in", "500GB", "500", "gb", "pack", "of", "2-pack", "Mark", "II"),
    *(
        "III",
        "é",
        "0",
        "007",
        "v1.2.3",
        "a/b",
        "12/24",
        "-",
        "...",
        "星河X20手机",
        "½",
        "inch",
        "cartridge",
        "1.",
        "x.1",
    ),
)


def titles(num, seed=4):
    rng = random.Random(seed)
    return [" ".join(rng.choices(PARTS, k=rng.randint(1, 9))) for _ in range(num)]


def normalized(text):
    # The oracle reads scripts with spaces.
    return re.sub("[一-龥]", " ", fold(text, ("accents",)))


@pytest.mark.parametrize("seed", [0, 7])
def test_features(seed):
    with_them, without = (
        likewise.Recipe.minhash(tokens="char", shingle=2, fold="accents", identifiers=name, seed=seed)
        for name in ("numbers", None)
    )
    for text in titles(400):
        plain = {identifiers.unmarked(feature) for feature in features([text], without).features.tolist()}
        found = set(features([text], with_them).features.tolist())
        assert found == plain | identifiers.features(normalized(text), seed), text


@pytest.mark.rounds
def test_verdicts():
    texts = titles(120)
    pairs = np.array([(a, b) for a in range(len(texts)) for b in range(a)])
    recipe = RECIPE.replace(threshold=0.2)
    found = matching_pairs(texts, pairs, recipe)
    similarity = verify_pairs(texts, pairs, recipe)
    num_disagreeing = 0
    for (a, b), matching, value in zip(pairs.tolist(), found.tolist(), similarity.tolist(), strict=True):
        disagree = identifiers.disagree(normalized(texts[a]), normalized(texts[b]))
        num_disagreeing += disagree and value >= 0.2
        assert (matching == value) == (value >= 0.2 and not disagree), (texts[a], texts[b])
        assert likewise.compare(texts[a], texts[b], recipe).matches == (matching == value)
    assert num_disagreeing > 100


def test_an_index_and_a_run_agree(tmp_path):
    texts = titles(300)
    recipe = RECIPE.for_index()
    run = likewise.dedup(texts, recipe)
    with likewise.Index(tmp_path / "seen", recipe) as seen:
        answers = [seen.add(str(row), text) for row, text in enumerate(texts)]
    assert [answer.is_new for answer in answers] == run.kept.tolist()
    assert not run.kept.all()
    listed = {(row["row_a"], row["row_b"]) for row in likewise.pairs(texts, RECIPE).to_pylist()}
    assert {(int(a), int(b)) for a, b in zip(run.removed["kept_row"], run.removed["row"], strict=True)} <= listed


def test_products_that_differ_in_a_number_are_kept():
    texts = ["HP 304 XL ink cartridge black", "HP 305 XL ink cartridge black", "Ink cartridge HP 304XL, black"]
    assert likewise.dedup(texts, "titles").kept.tolist() == [True, True, False]
    assert likewise.compare(texts[0], texts[1], "titles").matches is False


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"identifiers": "names"}, "numbers"),
        ({"identifiers": "numbers", "tokens": "bytes"}, "does not apply"),
        ({"identifiers": "numbers", "fold": "digits"}, "which change numbers"),
        ({"identifiers": "numbers", "only_within": "site"}, "only_within"),
        ({"identifiers": "numbers", "method": "simhash", "within": 3}, "give a threshold"),
    ],
)
def test_recipes_without_it(fields, message):
    with pytest.raises(likewise.InvalidParameter, match=message):
        likewise.Recipe.from_options(**{"method": "minhash", **fields})
