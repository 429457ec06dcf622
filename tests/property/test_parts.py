"""Parts of texts and their positions, against plain code: the words of any text, and equal windows."""

import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise import _native
from likewise.errors import InvalidParameter
from tests.batch.parts import naive
from tests.conftest import instruction_sets
from tests.oracle.xxh3 import xxh3

ALPHABET = "aAbB zZ19_.,'\"-\n\t\r\x0b\u2028éßŒﬁ猫カナｶ๐ท\u0301\u200d\U0001f600"
# The plain code does not handle marks after spaces and half-width Katakana.
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
    for _ in instruction_sets():
        *cut, hashes = _native.cut_words(_native.Texts.from_list(texts))
        expected = [naive.words(text) for text in texts]
        assert list(pieces(texts, cut)) == [
            [text[a:b] for a, b, _ in of_one] for text, of_one in zip(texts, expected, strict=True)
        ]
        assert np.asarray(hashes).tolist() == [xxh3(w.encode()) for of_one in expected for _, _, w in of_one]


@given(st.integers(2, 12), st.integers(0, 2**32))
def test_windows(num_words, seed):
    rng = random.Random(seed)
    texts = [" ".join(rng.choices("abc", k=rng.randint(0, 40))) for _ in range(4)]
    words = [text.split() for text in texts]
    batch = _native.Texts.from_list(texts)
    seen = _native.SeenTwice(num_words, 10)
    assert np.asarray(seen.count(batch)).tolist() == list(map(len, words))
    starts = np.cumsum([0, *map(len, words)])
    with tempfile.TemporaryDirectory() as folder:
        windows = _native.RepeatedWindows(folder, num_words, int(starts[-1]), memory_bytes=rng.choice([0, 1 << 20]))
        windows.add(batch, seen, 0)
        places, firsts, counts = map(np.asarray, windows.stretches(starts, threads=2))
        del windows
        assert not list(Path(folder).iterdir())
    goes = np.zeros(starts[-1], bool)
    every = [word for of_text in words for word in of_text]
    for place, first, count in zip(places.tolist(), firsts.tolist(), counts.tolist(), strict=True):
        length = count + num_words - 1
        goes[place : place + length] = True
        assert every[place : place + length] == every[first : first + length]
    assert goes.tolist() == [flag for of_text in naive.words_that_go(texts, num_words) for flag in of_text]


def test_doors_of_windows_refuse_what_does_not_fit(tmp_path):
    texts = _native.Texts.from_list(["one two three"])
    with pytest.raises(InvalidParameter, match="under 2"):
        _native.SeenTwice(1, 10)
    windows = _native.RepeatedWindows(tmp_path, 2, 3, memory_bytes=0)
    with pytest.raises(InvalidParameter, match="doc_starts"):
        windows.stretches(np.array([0, 2], np.int64))
    one, flag = np.array([0], np.uint32), np.array([0], np.uint8)
    with pytest.raises(InvalidParameter, match="kept_owners"):
        _native.equal_stretches(texts, (one, one), (one + 1, one), one + 2, flag, one)
    with pytest.raises(InvalidParameter, match="begins"):
        _native.equal_stretches(texts, (one, one[:0]), (one, one), one + 2, flag, one)
    # The texts have fewer words.
    assert len(_native.equal_stretches(texts, (one, one), (one, one + 2), one + 2, flag, one)[0]) == 0
    assert [
        np.asarray(c).tolist()
        for c in _native.equal_stretches(texts, (one, one + 1), (one, one + 1), one + 1, flag, one)
    ] == [
        [0],
        [4],
        [8],
        [4],
        [7],
    ]
