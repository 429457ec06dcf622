"""Results shown in notebooks: short, and nothing in a document becomes markup."""

from html.parser import HTMLParser

import numpy as np

import likewise

HOSTILE = "<script>alert('x')</script> one fine day & night \u202e by the sea with many words"


class Tags(HTMLParser):
    """Tags and text of a fragment; every tag must be closed."""

    def __init__(self, markup):
        super().__init__()
        self.tags, self.open, self.text = set(), [], ""
        self.feed(markup)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def shown(thing, *, most=4000):
    markup = thing._repr_html_()
    assert len(markup) < most
    found = Tags(markup)
    assert found.tags <= {
        "p",
        "strong",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "del",
        "ins",
        "em",
        "details",
        "summary",
    }
    assert "\u202e" not in found.text
    return found.text


def test_a_deduplication_shows_counts_and_the_first_evidence():
    texts = [f"{HOSTILE} {number // 10}" for number in range(80)]
    ids = [f"<b>{number}</b>" for number in range(80)]
    result = likewise.dedup(texts, threshold=1.0, ids=ids)
    text = shown(result)
    assert "80 documents: 8 kept, 72 removed" in text
    assert "<b>1</b><b>0</b>1.0000" in text
    assert "and 67 more in .removed" in text
    assert "jaccard similarity >= 1.0" in text
    assert "evidence" not in shown(likewise.dedup(["a text", "another"]))


def test_a_comparison_shows_both_texts():
    found = likewise.compare(HOSTILE, HOSTILE.replace("fine", "rainy"))
    assert "<del>fine</del>" in found._repr_html_()
    assert "<ins>rainy</ins>" in found._repr_html_()
    assert "jaccard" in shown(found)
    long = likewise.compare("word " * 20_000, "other " * 20_000)
    assert "The first" in shown(long, most=400_000)
    shown(likewise.compare("", ""))


def test_sketches_and_indexes_show_their_sizes(tmp_path):
    sketches = likewise.sketch([HOSTILE, ""], within=3)
    assert "sketches2" in shown(sketches)
    index = likewise.HammingIndex(np.array([0, 7], np.uint64))
    assert "fingerprints2" in shown(index)
    assert repr(index) == "<HammingIndex of 2 fingerprints: 64 bits, within 3>"
    with likewise.Index(tmp_path / "<i>seen", within=3) as seen:
        seen.add("a", HOSTILE)
        assert "documents1" in shown(seen)
        assert "distance <= 3" in shown(seen)
    assert "documents" in shown(seen)
