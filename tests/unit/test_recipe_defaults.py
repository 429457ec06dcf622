"""The defaults of a recipe; stating them explicitly changes nothing."""

import pytest

import likewise
from likewise.recipe.fields import TOKENS

Minhash, Simhash = likewise.Recipe.minhash, likewise.Recipe.simhash
SPELLED = {
    "minhash": (Minhash(), Minhash(0.55, tokens="auto", shingle=3, weights="none", num_slots=128, recall=0.95)),
    "minhash, words": (Minhash(tokens="word"), Minhash(0.55, tokens="word", shingle=3, weights="none")),
    "minhash, characters": (Minhash(tokens="char"), Minhash(0.7, tokens="char", shingle=9, weights="none")),
    "minhash by threshold": (Minhash(threshold=0.8), Minhash(0.8, shingle=3, weights="none")),
    "distance": (
        Simhash(),
        Simhash(within=20, bits=128, tokens="char", shingle=5, weights="log-count", short_threshold=0.8),
    ),
    "distance, 64 bits": (Simhash(bits=64), Simhash(within=3, bits=64, tokens="char", shingle=5, weights="log-count")),
    "distance, 256 bits": (Simhash(bits=256), Simhash(within=40, bits=256, tokens="char", shingle=5)),
    "distance, words": (
        Simhash(tokens="word"),
        Simhash(within=24, bits=128, tokens="word", shingle=2, weights="log-count"),
    ),
    "distance, a shingle": (Simhash(shingle=2), Simhash(within=24, bits=128, tokens="auto", shingle=2)),
    "textbook": (Simhash(within=3), Simhash(within=3, bits=64, tokens="auto", shingle=2, weights="log-count")),
    "textbook, widest": (Simhash(within=10), Simhash(within=10, bits=64, tokens="auto", shingle=2)),
    "wider": (Simhash(within=11), Simhash(within=11, bits=128, tokens="char", shingle=5)),
    "distance, by rarity": (
        Simhash(weights="log-count-idf"),
        Simhash(within=24, bits=128, tokens="script", shingle=1, weights="log-count-idf"),
    ),
    "textbook, by rarity": (
        Simhash(within=3, weights="log-count-idf"),
        Simhash(within=3, bits=64, tokens="script", shingle=1, weights="log-count-idf"),
    ),
    "distance, by rarity, tokens named": (
        Simhash(weights="log-count-idf", tokens="auto"),
        Simhash(within=24, bits=128, tokens="auto", shingle=1, weights="log-count-idf"),
    ),
    "distance, by rarity, a shingle named": (
        Simhash(weights="log-count-idf", shingle=2),
        Simhash(within=3 * 128 // 64, bits=128, tokens="auto", shingle=2, weights="log-count-idf"),
    ),
    "verified, by rarity": (
        Simhash(measure="cosine", weights="log-count-idf"),
        Simhash(threshold=0.7, bits=128, tokens="script", shingle=1, weights="log-count-idf"),
    ),
    "verified": (
        Simhash(measure="cosine"),
        Simhash(threshold=0.8, bits=128, tokens="auto", shingle=2, weights="log-count", recall=0.95),
    ),
    "verified, characters": (
        Simhash(measure="cosine", tokens="char"),
        Simhash(threshold=0.85, tokens="char", shingle=5),
    ),
}


@pytest.mark.parametrize("name", SPELLED)
def test_the_defaults_spelled_out_are_the_same_recipe(name):
    untouched, spelled = SPELLED[name]
    assert untouched == spelled
    assert untouched.recipe_id == spelled.recipe_id
    assert likewise.Recipe.from_json(untouched.to_json()) == untouched


@pytest.mark.parametrize("tokens", TOKENS)
@pytest.mark.parametrize("method", ["minhash", "shingles", "bloom", "simhash"])
def test_every_method_has_defaults_for_every_kind_of_token_and_runs(method, tokens):
    options = {"tokenizer": "words"} if tokens == "user" else {}
    recipe = likewise.Recipe.from_options(method, tokens=tokens, **options)
    texts = ["你好世界 a b c d e f g h", "你好世界 a b c d e f g h", "another text altogether"]
    documents = [text.encode() for text in texts] if tokens in ("bytes", "chunks") else texts
    tokenizer = str.split if tokens == "user" else None
    kept = likewise.dedup(documents, recipe, tokenizer=tokenizer).kept.tolist()
    assert kept == [True, False, True]
    if method != "simhash":
        plain = likewise.Recipe.from_options("minhash", tokens=tokens, **options)
        assert (recipe.shingle, recipe.weights, recipe.threshold) == (plain.shingle, plain.weights, plain.threshold)


def test_other_features_get_the_strict_threshold_and_radius():
    assert Minhash(shingle=2).threshold == Minhash(weights="count").threshold == 0.8
    assert Minhash(measure="containment").threshold == Minhash(measure="cosine").threshold == 0.8
    assert Simhash(measure="cosine", shingle=3).threshold == 0.8
    assert (Simhash(shingle=1).tokens, Simhash(shingle=1).sketch.bits, Simhash(shingle=1).sketch.within) == (
        "auto",
        128,
        6,
    )
    assert Simhash(weights="none", bits=64).sketch.within == 3
    assert Simhash(shingle=3, bits=32).sketch.within == 1


@pytest.mark.parametrize(
    "options",
    [
        {"tokens": "syllable"},
        {"bits": 48},
        {"bits": "64"},
        {"within": -1},
        {"within": 2.5},
        {"shingle": "3"},
        {"weights": 1},
    ],
    ids=str,
)
def test_wrong_values_are_refused_by_name(options):
    with pytest.raises(likewise.InvalidParameter, match=repr(next(iter(options.values())))) as refused:
        Simhash(**options)
    assert refused.value.name == next(iter(options))


@pytest.mark.parametrize(
    "tokens", ["auto", "word", "char", "chinese", "sentence", "line", "paragraph", "bytes", "chunks"]
)
@pytest.mark.parametrize("method", ["minhash", "simhash", "shingles", "bloom"])
def test_every_method_takes_every_token(method, tokens):
    recipe = likewise.Recipe.from_options(method, tokens=tokens)
    assert recipe.tokens == tokens
    texts = ["One line, of some length. Its end.\n\nAnother paragraph 你好世界"] * 2 + ["nothing of the kind"]
    assert likewise.dedup(texts, recipe).kept.tolist() == [True, False, True]


@pytest.mark.parametrize("options", [{"fold": "accents"}, {"markup": "html"}, {"stop_words": ["a"]}], ids=str)
def test_own_weights_go_with_nothing_that_cuts_texts(options):
    with pytest.raises(likewise.InvalidParameter, match=next(iter(options))):
        Minhash(weights="own", **options)
