"""Normalization, tokens and features against the oracle, on random texts."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from likewise import _native
from tests.conftest import instruction_sets
from tests.oracle import features as oracle
from tests.oracle.normalize import is_assigned, normalize, scalars
from tests.oracle.segment import tokens
from tests.strategies import seeds, texts, word_texts

KINDS = ("word", "auto", "script", "char")


@given(texts)
@example("カ\u3099キ カ\u309aキ")
@example(" \u0301a \u0e31")
@example("a\u0345\u0301")
def test_normalized_text(text):
    assert _native.normalize(text) == normalize(text)


@given(texts)
def test_normalizing_twice_changes_nothing(text):
    once = _native.normalize(text)
    assert _native.normalize(once) == once


@pytest.mark.parametrize("kind", KINDS)
@given(text=texts)
@example(text="a\u0301'b 1,\u03012 ק\"\u05b0ק")
@example(text="カ\u309aキ カ\u0301\u0301キ カ_キ カ\u30a0キー")
@example(text="a.'b a..b a._b 1.,2 _'_")
def test_tokens(kind, text):
    assert list(_native.tokens(text, kind)) == tokens(text, kind)


rules = st.builds(
    oracle.Rules,
    st.sampled_from(KINDS),
    st.integers(1, 6) | st.just(64),
    st.sampled_from(["none", "count", "log-count"]),
    seeds,
    st.none(),
    st.booleans(),
)


@example(rules=oracle.Rules("word", 3, "none", 5), batch=["...", "!?", "", "a", "\u3001", "a b c d a b c"])
@given(rules=rules, batch=st.lists(texts | word_texts, max_size=6))
def test_features(rules, batch):
    native = _native.FeatureRules(
        *rules[:4], text_rules=_native.TextRules({"fold": None, "only_within": "site" if rules.has_value else None})
    )
    expected = [oracle.features(text, rules) for text in batch]
    for _ in instruction_sets():
        offsets, found, weights = map(np.asarray, _native.features(_native.Texts.from_list(batch), native, threads=2))
        assert offsets.tolist() == np.cumsum([0, *(len(e.weights) for e in expected)]).tolist()
        assert found.tolist() == [f for e in expected for f in e.weights]
        assert (weights.tolist() or [1] * len(found)) == [v for e in expected for v in e.weights.values()]


# The byte class matters at every alignment of a vector: long ASCII with one other character anywhere.
@pytest.mark.parametrize("odd", ["é", "猫", "\u2019", "\0", "\x0b", "\u0301", "\U0001f600", "'", "_", "İ"])
def test_features_at_every_alignment(isa, odd):
    rules = oracle.Rules("word", 3, "log-count", 7)
    base = "It's 3.14 of the_dogs: don't A.B x-y 1,000 " * 4
    batch = [base[:at] + odd + base[at:] for at in range(len(base))]
    offsets, found, weights = map(
        np.asarray,
        _native.features(_native.Texts.from_list(batch), _native.FeatureRules(*rules[:4]), threads=1),
    )
    for i, text in enumerate(batch):
        expected = oracle.features(text, rules).weights
        own = slice(offsets[i], offsets[i + 1])
        assert dict(zip(found[own].tolist(), weights[own].tolist(), strict=True)) == expected, i


@pytest.mark.parametrize("length", [*range(0, 70), 127, 128, 129, 255, 256, 257, 1000])
def test_one_long_word(isa, length):
    rules = oracle.Rules("word", 1)
    batch = ["x" * length + " y", "é" * length, "-" * length + "z"]
    _, found, _ = map(
        np.asarray,
        _native.features(_native.Texts.from_list(batch), _native.FeatureRules(*rules[:4]), threads=1),
    )
    assert found.tolist() == [f for text in batch for f in oracle.features(text, rules).weights]


def _classes_of_all_characters():
    regex = pytest.importorskip("regex")
    names = "CR LF Newline Extend ZWJ Format Katakana Hebrew_Letter ALetter Single_Quote Double_Quote MidNumLet"
    names += " MidLetter MidNum Numeric ExtendNumLet WSegSpace Regional_Indicator"
    patterns = [(name, regex.compile(rf"\p{{WB={name}}}")) for name in names.split()]
    word = regex.compile(r"[\p{Alphabetic}\p{Nd}\p{Nl}\p{No}]")

    def class_of(c):
        return next((name for name, pattern in patterns if pattern.match(c)), "Other")

    return class_of, lambda c: word.match(c) is not None


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_every_character_of_unicode_14():
    """Each assigned character between letters, digits, marks and katakana; classes from another library's tables."""
    class_of, holds = _classes_of_all_characters()
    wrong = []
    for point in [*range(0xD800), *range(0xE000, 0x110000)]:
        c = chr(point)
        if not is_assigned(c) or 0xE000 <= point <= 0xF8FF or point >= 0xF0000:
            continue
        text = f"a{c}b {c} 1{c}2 カ{c}キ {c}\u0301x"
        if _native.normalize(text) != normalize(text):
            wrong.append((hex(point), "normalized"))
        elif list(_native.tokens(text, "word")) != tokens(text, "word", class_of, holds):
            wrong.append((hex(point), "tokens"))
    assert wrong == []


def test_lone_surrogates_count_as_replacement_characters():
    batch = _native.Texts.from_list(["a\ud800b", "\udfff\ud800", "ok"])
    assert batch.to_list() == [scalars(text) for text in ["a\ud800b", "\udfff\ud800", "ok"]]
    assert np.asarray(batch.lengths()).tolist() == [3, 2, 2]


@pytest.mark.slow
def test_a_document_of_50_megabytes(isa):
    text = "The same few words again and again, один и тот же текст. " * 800_000
    rules = _native.FeatureRules("word", 3, "count", 0)
    offsets, found, weights = map(np.asarray, _native.features(_native.Texts.from_list([text]), rules, threads=1))
    small = oracle.features("The same few words again and again, один и тот же текст. " * 3, oracle.Rules("word", 3))
    assert set(found.tolist()) == set(small.weights)
    assert offsets.tolist() == [0, len(found)]
    assert int(weights.sum()) == 800_000 * 12 - 2
