"""Parts of texts where they stand, against plain code: the words of any text, and the windows that are equal."""

import random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from likewise import _native
from tests.oracle.xxh3 import xxh3
from tests.repeats import naive

ALPHABET = "aAbB zZ19_.,'\"-\n\t\r\x0b\u2028éßŒﬁ猫カナｶ๐ท\u0301\u200d\U0001f600"
# Marks after spaces, and half-width Katakana, are beyond the plain code.
WORDY = "".join(c for c in ALPHABET if c not in "\u0301\u200dｶ")
TEXTS = st.text(ALPHABET, max_size=200)


def pieces(texts, cut):
    counts, starts, ends = map(np.asarray, cut)
    bounds = np.cumsum([0, *counts])
    for text, low, high in zip(texts, bounds[:-1], bounds[1:], strict=True):
        yield [text.encode()[start:end].decode() for start, end in zip(starts[low:high], ends[low:high], strict=True)]


@given(st.lists(TEXTS, max_size=4))
def test_lines_and_paragraphs(texts):
    for unit, places in (("line", naive.lines), ("paragraph", naive.paragraphs)):
        parts, *cut = _native.cut_parts(_native.Texts.from_list(texts), unit)
        expected = [[text[start:end] for start, end in places(text)] for text in texts]
        assert list(pieces(texts, cut)) == expected
        assert parts.to_list() == [part for of_one in expected for part in of_one]


@given(st.lists(st.text(WORDY, max_size=120), max_size=3))
def test_words(texts):
    for isa in (None, "plain"):
        *cut, hashes = _native.cut_words(_native.Texts.from_list(texts), isa=isa)
        expected = [naive.words(text) for text in texts]
        assert list(pieces(texts, cut)) == [
            [text[a:b] for a, b, _ in of_one] for text, of_one in zip(texts, expected, strict=True)
        ]
        assert np.asarray(hashes).tolist() == [xxh3(w.encode()) for of_one in expected for _, _, w in of_one]


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_windows(num_words, seed):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices("abc", k=rng.randint(0, 40))) for _ in range(4)]
    counts, least, whole = map(
        np.asarray, _native.hash_windows(_native.Texts.from_list(texts), num_words, with_whole=True)
    )
    words = [text.split() for text in texts]
    assert counts.tolist() == list(map(len, words))
    windows = [tuple(w[i : i + num_words]) for w in words for i in range(len(w) - num_words + 1)]
    assert len(least) == len(whole) == len(windows)
    # Equal windows, and no others, have equal hashes, and equal ones choose equally.
    assert (
        len(set(whole.tolist()))
        == len(set(windows))
        == len(set(zip(windows, whole.tolist(), least.tolist(), strict=True)))
    )
