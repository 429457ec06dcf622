"""Drawings: no text becomes markup, hidden characters are shown, every word of both sides is present."""

import random
import re
from html.parser import HTMLParser

import pytest

from likewise.io.html import element, escaped, visible
from likewise.measures.comparison import compare, inline, side_by_side
from likewise.runs.drawing.charts import bars, curve, density, fingerprints, histogram, steps

HOSTILE = '<script>alert(1)</script><img src=x onerror="alert(2)">\'"&amp;</td>'


class Parsed(HTMLParser):
    """Tags and text of markup; fails unless well nested."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.text = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.open.append(tag)
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.text[tag] = self.text.get(tag, "") + data


def test_no_text_becomes_markup():
    assert set(Parsed(element("p", [HOSTILE, element("b", HOSTILE, title=HOSTILE)])).tags) == {"p", "b"}
    assert Parsed(element("p", HOSTILE)).text["p"] == HOSTILE
    alignment = compare(HOSTILE + " one two", HOSTILE + " one three").alignment
    for drawn in (side_by_side(alignment, (HOSTILE, HOSTILE)), inline(alignment)):
        assert not {"script", "img"} & set(Parsed(drawn).tags)


@pytest.mark.parametrize("code", [0x202E, 0x2066, 0x200B, 0, 7, 0x1B, 0x85, 0xFEFF, 0xE0041, 0x2028, 0xD800, 0xE000])
def test_what_is_hidden_is_spelled_out(code):
    assert visible(f"a{chr(code)}b") == f"a⟨U+{code:04X}⟩b"
    escaped(f"a{chr(code)}b").encode()


@pytest.mark.parametrize("text", ["Grüße", "你好", "สวัสดี", "क्षत्रिय", "👩‍👩‍👧", "می‌خواهم", "a\n\tb", "é"])
def test_honest_text_stays_as_it_is(text):
    assert visible(text) == text


def test_both_sides_show_every_word():
    draw = random.Random(1)
    for _ in range(60):
        a = "".join(
            draw.choice(["one ", "two ", "three. ", "four\n", "五", "<b>"]) for _ in range(draw.randint(0, 400))
        )
        b = "".join(word if draw.random() < 0.9 else "new " for word in re.split(r"(?<=\s)", a))
        for folds in (True, False):
            drawn = side_by_side(compare(a, b).alignment, ("A", "B"), folds=folds)
            Parsed(drawn)
            cells = re.findall(r'<td class="side"[^>]*>(.*?)</td>', drawn, re.S)
            plain = [re.sub(r"<[^>]*>", "", cell).replace("&lt;b&gt;", "<b>") for cell in cells]
            for text, side in ((a, plain[0::2]), (b, plain[1::2])):
                # A row end replaces one whitespace character.
                assert "".join(side).split() == "".join(side).split()
                assert re.sub(r"\s", "", "".join(side)) == re.sub(r"\s", "", text)


def test_charts_are_well_formed_for_any_numbers():
    for counts in ([0, 0, 0], [1, 0, 10**9], [7, 7, 7]):
        Parsed(histogram([0.0, 0.3, 0.6, 1.0], counts, label=HOSTILE, mark=0.5, mark_text=HOSTILE))
    for points in ([(0.5, 3)], [(0.0, 0), (1.0, 0)], [(0.2, 5), (0.3, 10**7)]):
        Parsed(steps(points, label="kept", mark=0.25, mark_text="cut"))
    Parsed(curve([(0.0, 0.0), (1.0, 1.0)], label="found", mark=(0.5, 0.5), mark_text="here"))
    for heights in ([0.0, 0.0], [0.2, 10**7 + 0.5]):
        points = list(zip([0.26, 1.0], heights, strict=True))
        Parsed(density(points, label=HOSTILE, mark=0.5, mark_text=HOSTILE))
    Parsed(bars([(HOSTILE, 0), ("some", 3)], label="rows"))


@pytest.mark.parametrize("bits", [32, 64, 96, 128, 256])
def test_fingerprints_show_each_bit(bits):
    draw = random.Random(bits)
    a, b = draw.getrandbits(bits), draw.getrandbits(bits)
    drawn = fingerprints(a, b, bits)
    marks = re.findall(r'class="(bit[^"]*)"[^>]*><title>bit (\d+): (one|zero)(, differs)?<', drawn)
    assert len(marks) == 2 * bits
    assert sum("differs" in name for name, *_ in marks) == 2 * (a ^ b).bit_count()
    seen = {}
    for _, place, value, _ in marks:
        seen.setdefault(int(place), []).append(value == "one")
    assert all(seen[i] == [bool(a >> i & 1), bool(b >> i & 1)] for i in range(bits))
    assert f"{(a ^ b).bit_count()} of {bits} bits differ" in drawn
