"""Which marks are removed with a span: closing ones with the word before them, opening ones with the word after."""

import json
import random
import unicodedata

import numpy as np
import pytest

from likewise import _native
from likewise.batch.parts import PartRules, dedup_parts
from tests.batch.parts import naive
from tests.command import jsonl

# Text left when the words between the bars are removed; bars are at word boundaries and not part of the text.
CASES = {
    # Chinese dialogue.
    "|很好|。「下一句」": "「下一句」",
    "|很好|。“下一句”": "“下一句”",
    "他说：「|你好|。」她走了": "他说：她走了",
    "他说：「|你好|。下一句」": "他说：「下一句」",
    "「|很好|。」「下一句」": "「下一句」",
    "他说「|你好|」就走了": "他说就走了",
    "|很好|。（下一句）": "（下一句）",
    "|很好|……——下一句": "下一句",
    "第一\u3000|很好|。\u3000『下一句』": "第一\u3000『下一句』",
    "一（「|二|」）三": "一三",
    "一（「|二|」三）四": "一（三）四",
    # Japanese brackets.
    "|東京|です。【大阪】": "です。【大阪】",
    "テスト「|東京|」テスト": "テストテスト",
    "|東京|。〈大阪〉『京都』": "〈大阪〉『京都』",
    # Spanish.
    "¿|Qué tal|? ¡Bien!": "¡Bien!",
    "|Hola|.¿Qué tal?": "¿Qué tal?",
    "|Hola|!¡Bien!": "¡Bien!",
    "Dijo: ¿|qué| tal?": "Dijo: ¿tal?",
    # French, with no-break spaces and with ordinary ones.
    "Il dit\u202f: «\u00a0|Bonjour|.\u00a0» Puis": "Il dit\u202f: Puis",
    "Il dit : «\u00a0|Bonjour|\u00a0! Puis\u00a0»": "Il dit : «\u00a0Puis\u00a0»",
    # The narrow no-break space is part of words.
    "Il dit\u202f: «|\u202fBonjour\u202f|» Puis": "Il dit\u202f: Puis",
    "|Quoi|\u00a0? «\u00a0Rien\u00a0»": "«\u00a0Rien\u00a0»",
    "|Quoi|.\u00a0«\u00a0Rien\u00a0»": "«\u00a0Rien\u00a0»",
    "|Quoi|\u00a0\u00a0\u2028 — rien": "— rien",
    "l’«\u00a0|Union|\u00a0» rit": "l’«\u00a0rit",
    # German and Swedish reverse the marks.
    "„|Hallo|.“ Dann": "Dann",
    "Er: „|Hallo|“, sagte": "Er: sagte",
    "Er: »|Hallo|.« Dann": "Er: Dann",
    "Han: ”|hej|.” Sedan": "Han: Sedan",
    "|Hallo|. „Dann“": "„Dann“",
    "|Hallo|. »Dann«": "»Dann«",
    "Sie: „|Hallo| Welt“": "Sie: „Welt“",
    # Markdown.
    "see **|bold|** here": "see here",
    "see **|bold| text** here": "see **text** here",
    "|see| **bold** here": "**bold** here",
    "[|link|](target) here": "(target) here",
    "- |item|\n- item": "- - item",
    # Code.
    "|foo|(bar); baz": "(bar); baz",
    "foo(|bar|); baz": "foo(baz",
    "foo (|bar|); baz": "foo baz",
    "x = [(|a|, b)]": "x = [(b)]",
    "x = [(|a, b|)]; c": "x = c",
    "a.(|b|) c": "a.(c",
    "a('(|b|) c": "a('(c",
    "if (|a|) {\r\n  b": "if {\r\n  b",
    # ASCII quotes look the same at both ends.
    'he said "|yes|." Then': "he said Then",
    'he said "|yes| and" then': 'he said "and" then',
    '|yes|."no" then': "no\" then",
    "(|one| two)": "(two)",
    "(|one|) two": "two",
    # Emoji, their joiners and line ends are never cut.
    "|yes|👩\u200d👧\ufe0f(no)": "(no)",
    "|yes|! 👩\u200d👧 no": "👩\u200d👧 no",
    "one.\r\n|yes|.\r\n\r\n(no)": "one.\r\n(no)",
    "one \u2028|yes|.\u2029\u0085\u3000“no”": "one \u2028“no”",
    # Marks that no word follows open nothing.
    "one |yes|.「": "one ",
    "|yes|(😀) ": "",
    "(|yes|": "(",
}  # fmt: skip


def word_starts(text):
    """Return the byte offsets at which the words begin."""
    return np.asarray(_native.cut_words(_native.Texts.from_list([text]))[1]).tolist()


def without(text, first, last):
    """Return a text without words `first` up to `last`, by the function that measures stretches."""
    one = np.zeros(1, np.uint32)
    begin, count = one + first, one + last - first
    texts = _native.Texts.from_list([text])
    found = _native.equal_stretches(texts, (one, begin), (one, begin), count, one.astype(np.uint8), count)
    ((start,), (end,)) = (np.asarray(column).tolist() for column in found[1:3])
    data = text.encode()
    return (data[:start] + data[end:]).decode()


@pytest.mark.parametrize("case", CASES)
def test_no_mark_is_left_alone(case):
    before, going, _ = (part.encode() for part in case.split("|"))
    text = case.replace("|", "")
    starts = word_starts(text)
    first = starts.index(len(before))
    last = first + sum(len(before) <= start < len(before + going) for start in starts)
    assert without(text, first, last) == CASES[case]


def test_marks_of_all_scripts():
    """Compare with the categories of Python's own tables."""
    marks = [chr(c) for c in range(0x11000) if unicodedata.category(chr(c))[0] in "PSZ"]
    marks = [c for c in marks if word_starts(f"one.{c}two") == [0, len(f"one.{c}".encode())]]
    assert len(marks) > 1000
    assert sum(map(naive.opens, marks)) == 93
    for c in marks:
        assert without(f"one.{c}two", 0, 1) == (f"{c}two" if naive.opens(c) else "two"), hex(ord(c))
        space = " " if naive.WHITE.match(c) else ""
        assert without(f"one{c}.two", 0, 1) == (f"{c}.two" if naive.opens(c) else ".two" if space else "two")


def test_each_mark_has_its_partner():
    """Check marks and partners whose names say left and right."""
    num_pairs = 0
    for mark in (chr(c) for c in range(0x11000) if naive.opens(chr(c))):
        name = unicodedata.name(mark)
        try:
            close = unicodedata.lookup(
                name.replace("RIGHT" if mark == "\ufd3f" else "LEFT", "LEFT" if mark == "\ufd3f" else "RIGHT")
            )
        except KeyError:
            continue
        if close != mark:
            num_pairs += 1
            assert without(f"one {mark}two{close} three", 1, 2) == "one three", name
            assert without(f"one {mark}two{mark}{close} three", 1, 2) != "one three", name
    assert num_pairs > 75


BETWEEN = [" ", " ", " ", "\u3000", "\u00a0", "\r\n", "\u2028", ". ", "。", "，", "！", ", ", "：「", ": "]
BETWEEN += [
    "「",
    "」",
    "（",
    "）",
    "『",
    "』",
    "“",
    "”",
    "„",
    "«",
    "»",
    "«\u00a0",
    "\u00a0»",
    "\u202f!",
    "¿",
    "? ",
    "¡",
    "!",
]
BETWEEN += [
    " (",
    ") ",
    "(",
    ")",
    "[",
    "]",
    ' "',
    '" ',
    '"',
    " **",
    "** ",
    " `",
    "` ",
    "😀",
    "👩\u200d👧",
    " — ",
    "、",
    "‚",
    "’ ",
    " ’",
]


@pytest.mark.parametrize("seed", range(3))
def test_as_by_hand(tmp_path, seed):
    rng = random.Random(seed)
    vocabulary = ["alpha", "beta", "gamma", "delta", "猫", "犬", "山", "テスト", "カナ", "é"]
    stock = [[rng.choice(vocabulary) for _ in range(rng.randint(6, 20))] for _ in range(12)]
    texts = []
    for _ in range(80):
        words = [
            w
            for _ in range(rng.randint(1, 5))
            for w in (rng.choice(stock) if rng.random() < 0.7 else rng.choices(vocabulary, k=3))
        ]
        between = ["".join(rng.choices(BETWEEN, k=rng.randint(1, 4))) for _ in words]
        texts.append(rng.choice(["", "「", "(", "« ", '"']) + "".join(map("".join, zip(words, between, strict=True))))
    (tmp_path / "in.jsonl").write_bytes(jsonl(texts))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("span", 8))
    rows = map(json.loads, (tmp_path / "out" / "kept" / "in.jsonl").read_text(encoding="utf-8").splitlines())
    left = {int(row["id"]): row["text"] for row in rows}
    expected = naive.without_spans(texts, 8, naive.words)
    assert left == {i: text for i, text in enumerate(expected) if text.strip() or text == texts[i]}
    assert sum(left.get(i) != text for i, text in enumerate(texts)) > 30


def test_documents_that_go_one_after_the_other(tmp_path):
    """The end of one document does not affect marks before the first word of the next."""
    text = "（「one two three four five six seven eight。」）"
    (tmp_path / "in.jsonl").write_bytes(jsonl([text, text, f"{text}nine", text[:-1]]))
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("span", 8))
    rows = map(json.loads, (tmp_path / "out" / "kept" / "in.jsonl").read_text(encoding="utf-8").splitlines())
    assert {int(row["id"]): row["text"] for row in rows} == {0: text, 2: "nine", 3: "（"}


# The text around a span -> what is left.
APART = {
    "section3|4": "section3 4",
    "section3| 4": "section3 4",
    "section3 |4": "section3 4",
    "alpha|beta": "alpha beta",
    "alpha_|_beta": "alpha_ _beta",
    "don’|t": "don’ t",
    "3.|4": "3. 4",
    "é|é": "é é",
    "한|국": "한 국",
    "3.|猫": "3.猫",
    "猫|4": "猫4",
    "猫|犬": "猫犬",
    "カ|ナ": "カナ",
    "alpha. |beta": "alpha. beta",
    "!|alpha": "!alpha",
    "|alpha": "alpha",
    "alpha|": "alpha",
    "😀|alpha": "😀alpha",
}


@pytest.mark.parametrize("is_escaped", [False, True])
def test_words_around_a_span_do_not_join(tmp_path, is_escaped):
    # Each case has its own span, so that no window repeats another case.
    spans = ["".join(map(chr, range(0x4E00 + 16 * i, 0x4E08 + 16 * i))) for i in range(len(APART))]
    texts = [*spans, *(around.replace("|", span) for around, span in zip(APART, spans, strict=True))]
    rows = (json.dumps({"id": str(i), "text": text}, ensure_ascii=is_escaped) for i, text in enumerate(texts))
    written = "\n".join(rows)
    if is_escaped:
        written = written.replace("section3", "section\\u0033").replace("alpha", "alph\\u0061")
    (tmp_path / "in.jsonl").write_text(written, encoding="utf-8")
    dedup_parts(tmp_path / "in.jsonl", tmp_path / "out", PartRules("span", 8))
    kept = map(json.loads, (tmp_path / "out" / "kept" / "in.jsonl").read_text(encoding="utf-8").splitlines())
    expected = [*spans, *APART.values()]
    assert [row["text"] for row in kept] == expected
    assert naive.without_spans(texts, 8, naive.words) == expected
