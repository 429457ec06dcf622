"""Which parts are removed and kept, in plain Python: every part is compared with all earlier ones."""

import functools
import itertools
import re
import unicodedata

from tests.oracle.normalize import normalize
from tests.oracle.segment import OutsideOracle, holds_word, segments, word_class

LINE = re.compile("[^\n\v\f\r\x85\u2028\u2029]*(?:\r\n|[\n\v\f\r\x85\u2028\u2029]|$)")
SOLID = re.compile(r"\S+")
WORD = re.compile("[A-Za-z]+")


def lines(text):
    """Return (start, end) of the lines that are not blank, including their line ends."""
    return [found.span() for found in LINE.finditer(text) if found.group().strip()]


def paragraphs(text):
    """Return (start, end) of the paragraphs, each extending to the next."""
    starts, was_blank = [], True
    for found in LINE.finditer(text):
        is_blank = not found.group().strip()
        if not is_blank and was_blank:
            starts.append(found.start())
        was_blank = is_blank
    return list(zip(starts, [*starts[1:], len(text)], strict=False))


def without_units(texts, places_of):
    """Return texts without parts whose normalized form came before, and (text, start, end, kept text, kept start)."""
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
    """Return (start, end, lowercased word) of each word of ASCII letters."""
    return [(*found.span(), found.group().lower()) for found in WORD.finditer(text)]


def class_of(c):
    """Return the class of a character that is already normalized; letters unknown to the oracle count as letters."""
    try:
        return word_class(c.lower())
    except (OutsideOracle, TypeError):
        return "ALetter" if c.isalpha() else "Other"


@functools.lru_cache(1_000_000)
def _segments(text):
    pieces = segments(text, class_of, part_katakana=True)
    return [(piece, normalize(piece), any(map(holds_word, piece))) for piece in pieces]


def words(text):
    """Return (start, end, normalized word) of the words of a text. Texts with marks after spaces are not supported."""
    found = []
    for part in SOLID.finditer(text):
        at = part.start()
        for piece, normal, is_word in _segments(part.group()):
            if is_word:
                found.append((at, at + len(piece), normal))
            at += len(piece)
    return found


def words_that_go(texts, num_words, words_of=ascii_words):
    """Return for each text which words are in a window that repeats an earlier, non-overlapping one."""
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


WHITE = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
NO_BREAK = "\xa0\u202f"
# Closing partners of opening marks; loose marks open only if whitespace precedes the characters that touch the word.
PARTNERS = dict(zip("([{«‹“‘「『（【〈《〔¿¡", ")]}»›”’」』）】〉》〕?!", strict=True)) | {
    "„": "”“",
    "‚": "’‘",
    "〝": "〞〟",
}
LOOSE_PARTNERS = dict(zip("\"'*`»›”’", "\"'*`«‹”’", strict=True))


def opens(c):
    return unicodedata.category(c) in ("Ps", "Pi") or c in "¿¡"


def belongs_to_word_before(gap, is_last):
    """Return how much of the gap after a word is removed with it."""
    for at, c in enumerate(gap):
        if WHITE.match(c):
            following = gap[at + 1 : at + 2]
            if c in NO_BREAK and following and (unicodedata.category(following) in ("Pe", "Pf") or following in "!?:;"):
                continue
            return at + len(gap[at:]) - len(re.sub(f"^{WHITE.pattern}+", "", gap[at:]))
        is_turned = unicodedata.category(c) == "Pi" and any(WHITE.match(d) and d not in NO_BREAK for d in gap[at:])
        if opens(c) and not is_last and not is_turned:
            return at
    return len(gap)


def joins_words(c):
    """Return whether a character is part of words in scripts with spaces."""
    return class_of(unicodedata.normalize("NFKC", c)) not in ("Other", "Katakana")


def belongs_to_word_behind(gap, word_before, what_goes):
    """Return where in the gap before a removed word its own marks begin; `what_goes` are the marks removed after it."""
    touching = len(gap)
    while touching and (
        not WHITE.match(gap[touching - 1])
        or (
            gap[touching - 1] in NO_BREAK
            and touching > 1
            and (opens(gap[touching - 2]) or gap[touching - 2] in LOOSE_PARTNERS)
        )
    ):
        touching -= 1
    is_free = touching > 0 or not word_before
    for at in range(touching, len(gap)):
        mark = gap[at]
        if not is_free and joins_words(word_before[-1]) and joins_words((word_before + gap[:at])[-1]):
            continue
        if is_free and mark in LOOSE_PARTNERS and LOOSE_PARTNERS[mark] in what_goes:
            return at
        depth = 1
        for c in gap[at + 1 :] + what_goes:
            if mark in PARTNERS and c in PARTNERS[mark]:
                depth -= 1
            elif mark in PARTNERS and c == mark:
                depth += 1
            if depth == 0:
                return at
    return len(gap)


INSIDE = ("ALetter", "Hebrew_Letter", "Numeric", "ExtendNumLet", "Extend", "Format", "ZWJ")
BETWEEN = ("Single_Quote", "MidNumLet", "MidLetter", "MidNum")


def is_one_word(left, right):
    """Return whether a word continues from one text to the next."""
    if not left or not right:
        return False
    last, first = class_of(left[-1]), class_of(right[0])
    if last in INSIDE:
        return first in (*INSIDE, *BETWEEN)
    return last in BETWEEN and class_of(left[-2:-1]) in INSIDE and first in INSIDE


def without_words(text, places, goes):
    """Return a text without the words marked in `goes`, the marks that belong to them, and the whitespace after."""
    bounds = [(0, 0), *places, (len(text), len(text))]
    # Before each word, and after the last one.
    gaps = [text[end:start] for (_, end), (start, _) in itertools.pairwise(bounds)]
    kept, at = [], 0
    for is_going, run in itertools.groupby(range(len(goes)), goes.__getitem__):
        run = list(run)
        first, behind = run[0], run[-1] + 1
        if not is_going:
            continue
        tail = belongs_to_word_before(gaps[behind], behind == len(places))
        what_goes = "".join(gaps[first + 1 : behind]) + gaps[behind][:tail]
        word_before = text[slice(*places[first - 1])] if first else ""
        lead = len(gaps[first]) - belongs_to_word_behind(gaps[first], word_before, what_goes)
        kept.append(text[at : places[first][0] - lead])
        at = places[behind - 1][1] + tail
    whole = ""
    for part in [*kept, text[at:]]:
        whole += " " * is_one_word(whole, part) + part
    return whole


def without_spans(texts, num_words, words_of=ascii_words):
    """Return the texts without repeated words."""
    return [
        without_words(text, [(start, end) for start, end, _ in words_of(text)], goes)
        for text, goes in zip(texts, words_that_go(texts, num_words, words_of), strict=True)
    ]
