"""What goes and what stays, in plain words: every part against all before it."""

import functools
import re

from tests.oracle.normalize import normalize
from tests.oracle.segment import OutsideOracle, holds_word, segments, word_class

LINE = re.compile("[^\n\v\f\r\x85\u2028\u2029]*(?:\r\n|[\n\v\f\r\x85\u2028\u2029]|$)")
SOLID = re.compile(r"\S+")
WORD = re.compile("[A-Za-z]+")


def lines(text):
    """(start, end) of the lines that are not blank, with what ends them."""
    return [found.span() for found in LINE.finditer(text) if found.group().strip()]


def paragraphs(text):
    """(start, end) of the paragraphs, each up to the next."""
    starts, was_blank = [], True
    for found in LINE.finditer(text):
        is_blank = not found.group().strip()
        if not is_blank and was_blank:
            starts.append(found.start())
        was_blank = is_blank
    return list(zip(starts, [*starts[1:], len(text)], strict=False))


def without_units(texts, places_of):
    """The texts without the parts whose normalised form came before, and (text, start, end, kept text, kept start)."""
    first, left, gone = {}, [], []
    for row, text in enumerate(texts):
        kept, at = [], 0
        for start, end in places_of(text):
            seen = first.setdefault(normalize(text[start:end]), (row, start))
            if seen != (row, start):
                gone.append((row, start, end, *seen))
                kept.append(text[at:start])
                at = end
        left.append("".join([*kept, text[at:]]))
    return left, gone


def ascii_words(text):
    """(start, end) of words of plain letters, and each in lower case."""
    return [(*found.span(), found.group().lower()) for found in WORD.finditer(text)]


def class_of(c):
    """The class of a character that need not be normalised; of letters that the oracle has not, that of letters."""
    try:
        return word_class(c.lower())
    except (OutsideOracle, TypeError):
        return "ALetter" if c.isalpha() else "Other"


@functools.lru_cache(1_000_000)
def _segments(text):
    pieces = segments(text, class_of, part_katakana=True)
    return [(piece, normalize(piece), any(map(holds_word, piece))) for piece in pieces]


def words(text):
    """(start, end) of the words of any text, and each normalised. Texts where marks follow spaces are not for it."""
    found = []
    for part in SOLID.finditer(text):
        at = part.start()
        for piece, normal, is_word in _segments(part.group()):
            if is_word:
                found.append((at, at + len(piece), normal))
            at += len(piece)
    return found


def words_that_go(texts, num_words, words_of=ascii_words):
    """For each text, which words stand in a window that repeats one that is earlier and does not overlap."""
    first, gone = {}, []
    for row, text in enumerate(texts):
        words = [word for _, _, word in words_of(text)]
        goes = [False] * len(words)
        for i in range(len(words) - num_words + 1):
            window = tuple(words[i : i + num_words])
            other, place = first.setdefault(window, (row, i))
            if other < row or place + num_words <= i:
                goes[i : i + num_words] = [True] * num_words
        gone.append(goes)
    return gone


def without_spans(texts, num_words, words_of=ascii_words):
    """The texts without the words that go, and what touches them and the spaces behind."""
    left = []
    for text, goes in zip(texts, words_that_go(texts, num_words, words_of), strict=True):
        places = [(start, end) for start, end, _ in words_of(text)]
        kept, at = [], 0
        for number, ((start, end), flag) in enumerate(zip(places, goes, strict=True)):
            if not flag:
                continue
            is_last = number + 1 == len(places) or not goes[number + 1]
            following = places[number + 1][0] if number + 1 < len(places) else len(text)
            stop = re.compile(r"\S*\s*").match(text, end, following).end() if is_last else following
            kept.append(text[at:start])
            at = stop
        left.append("".join([*kept, text[at:]]))
    return left
