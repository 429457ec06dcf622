"""Sizes on Chinese pages are those of the English ones."""

import re

import pytest

from tests.structure.pages import pages
from tests.structure.test_rules import ROOT

# Not rates (MB/s).
_SIZE = re.compile(r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?)\s?(kB|MB|GB|TB)(?![A-Za-z/])")
_CODE = re.compile(r"^```.*?^```", re.S | re.M)


def sizes(page):
    """Return the sizes in the text and the tables of a page, such as ``1,689 GB``."""
    text = _CODE.sub("", (ROOT / page).read_text(encoding="utf-8"))
    return {(number.replace(",", ""), unit) for number, unit in _SIZE.findall(text)}


CHINESE = [page for page in pages() if page.startswith("docs/zh/") or page == "README.zh-CN.md"]


@pytest.mark.parametrize("page", CHINESE)
def test_sizes_on_a_chinese_page_are_on_an_english_one(page):
    english = set().union(*(sizes(other) for other in pages() if other not in CHINESE))
    assert sizes(page) <= english


def test_both_pages_have_the_memory_of_the_items():
    english = (ROOT / "docs/howto/decontaminate.md").read_text(encoding="utf-8")
    chinese = (ROOT / "docs/zh/corpus.md").read_text(encoding="utf-8")
    (size,) = re.findall(r"100,000 questions take about (\S+ GB)", english)
    assert re.findall(r"10 万道题约 (\S+ GB)", chinese) == [size]
