"""Pages are short: limits on the words of a page and the characters of a paragraph."""

import re

import pytest

from tests.structure.pages import pages
from tests.structure.test_rules import ROOT

MAX_WORDS = 1500
MAX_CHARACTERS = 5 * 100
# For reference, not for reading through: no word limit.
REFERENCE = (
    "docs/reference/",
    "docs/developers/definitions.md",
    "docs/benchmarks/findings.md",
    "docs/benchmarks/quality-tables.md",
)
_FENCED = re.compile(r"^(?P<fence>`{3,}).*?^(?P=fence)\s*$", re.S | re.M)
_LIST_ITEM = re.compile(r"\s*([-*+]|\d+\.) ")


def words(text):
    """Return the number of words outside tables."""
    return sum(len(line.split()) for line in text.splitlines() if not line.startswith("|"))


def paragraphs(text):
    """Return paragraphs and list items, each as one line; without code, tables, headings and HTML."""
    found = [""]
    for line in _FENCED.sub("\n", text).splitlines():
        if not line.strip() or line.startswith(("|", "#", "<")):
            found.append("")
        elif _LIST_ITEM.match(line):
            found.append(line.strip())
        else:
            found[-1] += f" {line.strip()}"
    return [paragraph.strip() for paragraph in found if paragraph]


@pytest.mark.parametrize("page", pages())
def test_a_page_is_short(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    if not page.startswith(REFERENCE):
        assert words(text) <= MAX_WORDS
    assert not [paragraph for paragraph in paragraphs(text) if len(paragraph) > MAX_CHARACTERS]


def test_a_long_paragraph_is_found():
    text = "# A\n\nshort\n\n" + "word \n" * 101 + "\n- item\n- item\n"
    assert [len(paragraph) > MAX_CHARACTERS for paragraph in paragraphs(text)] == [False, True, False, False]
    assert words("one two\n| three |\n") == 2


def places_of(cell):
    """Return the places that a cell names, each as the paths that it may stand for."""
    named = re.findall(r"`([\w./-]*(?:/\w+|\.(?:py|rs|md)))`", cell)
    folders = [name for name in named if not name.endswith((".py", ".rs", ".md"))]
    alone = [name for name in named if "/" not in name]
    # Names without a folder are in the folder that is named beside them.
    wanted = [name for name in named if not (alone and name in folders)]
    return [[name, *(f"{folder}/{name}" for folder in folders)] for name in wanted]


def test_a_change_needs_at_most_three_places():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert len(text.replace("|", " ").split()) <= MAX_WORDS
    rows = re.findall(r"^\| (.*) \| (.*) \|$", text.partition("## To change X")[2].partition("\n## ")[0], re.MULTILINE)
    assert len(rows) > 20
    for what, where in rows[1:]:
        places = places_of(where)
        assert len([place for place in places if not place[0].startswith(("tests", "docs"))]) <= 3, what
        for place in places:
            exists = [(ROOT / top / path).exists() for path in place for top in ("", "python/likewise")]
            assert any(exists), place
