"""Weights of the core against the oracle: rarity, log count x rarity, lexicons, the user's own pairs."""

import numpy as np
import pytest

import likewise
from likewise import _native
from likewise.stages.features import features, tokens
from likewise.stages.weights import count_weights
from tests.golden.texts import TEXTS
from tests.oracle import features as oracle
from tests.oracle import sketches, weights
from tests.oracle.features import Rules
from tests.recipes import oracle_recipe

WORDS = ["CSDN", "博客", "结构", "之", "法", "算法", "之", "道", "的", "作者", "July"]
SENTENCE = list(zip(WORDS, [4, 5, 3, 1, 2, 3, 1, 2, 1, 5, 5], strict=True))


def collection():
    rng = np.random.default_rng(3)
    words = [f"w{i}" for i in range(200)]
    # Zipf: some words in nearly all documents, most in few.
    texts = [" ".join(words[min(199, int(rng.zipf(1.4)))] for _ in range(30)) for _ in range(40)]
    return [*texts, *texts[:10], texts[0].upper(), *TEXTS.values()]


@pytest.mark.parametrize("num_documents", [1, 2, 3, 9, 16, 100, 1000, 4096, 10_000])
def test_idf(num_documents):
    """Features in one document or in all, and halves: at df = sqrt(n) the value is 7.5."""
    dfs = sorted({1, 2, 3, 7, round(num_documents**0.5), num_documents // 3, num_documents - 1, num_documents})
    dfs = [df for df in dfs if 1 <= df <= num_documents]
    texts = [" ".join([f"own{i}", *(f"df{df}" for df in dfs if i < df)]) for i in range(min(num_documents, 1000))]
    if num_documents > 1000:
        texts += [f"own{i}" for i in range(1000, num_documents)]
        dfs = [df for df in dfs if df <= 1000]
    table = count_weights(texts, likewise.Recipe.minhash(tokens="word", shingle=1, weights="idf"))
    keys = np.array([oracle.xxh3(f"df{df}".encode(), 0) for df in dfs], np.uint64)
    assert table.num_documents == num_documents
    assert table.weigh(keys).tolist() == [weights.idf(num_documents, df) for df in dfs]


@pytest.mark.parametrize("rule", ["idf", "log-count-idf"])
@pytest.mark.parametrize("shingle", [1, 2])
def test_features(rule, shingle):
    texts = collection()
    recipe = likewise.Recipe.minhash(shingle=shingle, weights=rule)
    offsets, found, weighed = features(texts, recipe)
    rules = Rules(shingle=shingle, weights=rule)
    rules = rules._replace(table=weights.idf_table(texts, rules))
    assert len(set(weighed.tolist())) > 5
    for i, text in enumerate(texts):
        own = slice(offsets[i], offsets[i + 1])
        assert (
            dict(zip(found[own].tolist(), weighed[own].tolist(), strict=True)) == oracle.features(text, rules).weights
        )


@pytest.mark.parametrize("shingle", [1, 2, 3])
def test_lexicon(shingle):
    terms = {"w0": 0, "w1": 5, "w2": 15, "w3": 0, "w4": 2}
    if shingle > 1:
        terms |= {"w1 w0": 9, "w5 w1": 7}
    table = likewise.Weights.from_terms(terms)
    texts = [*collection(), "w0", "w0 w3 w0", "w1 w0", "w9"]
    recipe = likewise.Recipe.simhash(weights=table, shingle=shingle, within=3)
    offsets, found, weighed = features(texts, recipe)
    rules = Rules(shingle=shingle, weights="lexicon", table={tuple(term.split()): w for term, w in terms.items()})
    for i, text in enumerate(texts):
        own = slice(offsets[i], offsets[i + 1])
        assert (
            dict(zip(found[own].tolist(), weighed[own].tolist(), strict=True)) == oracle.features(text, rules).weights
        )


@pytest.mark.parametrize(
    "options",
    [
        {"fold": ("traditional", "accents", "digits")},
        {"stop_words": ["The", "of"]},
        {"markup": "html"},
        {"hash": "md5"},
        {"hash": "1000003", "fold": "punctuation"},
        {"fold": ("accents", "punctuation"), "stop_words": ["a", "the", "of"], "markup": "html", "seed": 7},
        {"tokens": "chinese", "dictionary": ["回家罗"], "fold": "traditional", "stop_words": ["不"]},
    ],
    ids=lambda options: "+".join(options),
)
@pytest.mark.parametrize("shingle", [1, 2])
def test_lexicon_beside_other_rules(options, shingle):
    """Terms are cut like texts, except for markup, and apply to the tokens that remain."""
    terms = {"café": 5, "Don't": 4, "the": 0, "國": 7, "1999": 3, "回家罗": 9, "<p>": 2}
    if shingle > 1:
        terms |= {"crème of brûlée": 11, "house of the rising": 12} if "stop_words" in options else {"crème brûlée": 11}
    texts = [
        "<p>The café of crème of brûlée</p>",
        "Don't eat crème brûlée in the house of the Rising p",
        "國 1999 p 2024 the the",
        "<p>the</p> <b>不</b> 妈妈喊你回家吃饭哦，回家罗不回家罗",
    ]
    recipe = likewise.Recipe.simhash(**{"tokens": "auto", **options}, weights="log-count", shingle=shingle, within=3)
    stopped = {word.casefold() for word in options.get("stop_words", ())}
    plain = recipe.replace(markup=None) if recipe.markup else recipe

    def cut(text, of):
        found = tokens(text, of)
        return [token for token in found if token not in stopped] or found

    terms = {term: weight for term, weight in terms.items() if len(cut(term, plain)) <= shingle}
    of_term = {tuple(cut(term, plain)): weight for term, weight in terms.items()}
    named = {name: value for name, value in options.items() if name != "markup"}
    table = likewise.Weights.from_terms(terms, **named)
    recipe = recipe.replace(weights="lexicon", table=table)
    assert recipe == likewise.Recipe.from_json(recipe.to_json()).replace(
        table=table, **{name: options[name] for name in ("stop_words", "dictionary") if name in options}
    )
    weighed = features(texts, recipe)
    for row, text in enumerate(texts):
        words = cut(text, recipe)
        expected = weights.lexicon_weights(words, shingle, of_term)
        own = slice(weighed.offsets[row], weighed.offsets[row + 1])
        distinct = {tuple(words[i : i + shingle]): weight for i, weight in enumerate(expected)}
        assert weighed.weights[own].tolist() == [weight for weight in distinct.values() if weight]


@pytest.mark.parametrize("name", ["minhash", "simhash"])
def test_sketches_of_weighted_texts(name):
    texts = collection()
    recipe = likewise.Recipe.from_options(name, weights="log-count-idf", shingle=1)
    array = likewise.sketch(texts, recipe).array
    model = oracle_recipe(recipe)
    rules = model.rules._replace(table=weights.idf_table(texts, model.rules))
    for text, sketch in zip(texts, array, strict=True):
        weighted = oracle.features(text, rules).weights
        if name == "simhash":
            assert sum(int(word) << 64 * i for i, word in enumerate(sketch)) == sketches.simhash(weighted, model.bits)
        else:
            assert sketch.tolist() == sketches.minhash(weighted, model.num_slots, model.slot_bits)


def test_two_hashes_of_the_textbook():
    """Hash 100101 of weight 4 and 101011 of weight 5: sums 9 -9 1 -1 1 9, fingerprint 101011."""
    hashes, weighed = [0b100101, 0b101011], [4, 5]
    sums = [sum(w if h >> bit & 1 else -w for h, w in zip(hashes, weighed, strict=True)) for bit in range(5, -1, -1)]
    assert sums == [9, -9, 1, -1, 1, 9]
    found = _native.simhash_features(np.array(hashes, np.uint64), np.array(weighed, np.uint32), bits=64)
    assert np.asarray(found).tolist() == [0b101011]


@pytest.mark.parametrize("shingle", [1, 2, 20])
def test_the_weighted_sentence(shingle):
    simhash = likewise.Recipe.simhash(weights="own", shingle=shingle, within=3)
    minhash = likewise.Recipe.minhash(weights="own", shingle=shingle)
    expected = weights.own_pairs(SENTENCE, shingle)
    offsets, found, weighed = features([SENTENCE, []], simhash)
    assert offsets.tolist() == [0, len(expected), len(expected)]
    assert dict(zip(found.tolist(), weighed.tolist(), strict=True)) == expected
    if shingle == 1:
        assert sorted(weighed.tolist()) == [1, 2, 2, 2, 3, 3, 4, 5, 5, 5]
    fingerprints = likewise.sketch([SENTENCE, [], [("之", 0)]], simhash)
    assert fingerprints.array[0] == sketches.simhash(expected, 64)
    assert fingerprints.is_empty.tolist() == [False, True, False]
    signatures = likewise.sketch([SENTENCE, []], minhash).array
    assert signatures[0].tolist() == sketches.minhash(expected, 128, 16)


def test_the_sentence_without_light_words_is_near():
    """Dropping the three lightest words moves the fingerprint less than dropping the three heaviest."""
    recipe = likewise.Recipe.simhash(weights="own", shingle=1, within=3)
    light = [pair for pair in SENTENCE if pair[1] > 1]
    heavy = [pair for pair in SENTENCE if pair[1] < 5]
    whole, without_light, without_heavy = likewise.sketch([SENTENCE, light, heavy], recipe).array
    near, far = likewise.hamming_distance([whole, whole], [without_light, without_heavy]).tolist()
    assert near < far
