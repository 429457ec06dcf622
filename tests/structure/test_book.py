"""Consistency of the book: figures, links, the page map, and the names in the reference."""

import ast
import importlib.util
import re
import subprocess
from xml.etree import ElementTree

import pytest

import likewise
from likewise.cli import group
from tests.structure.pages import pages
from tests.structure.test_rules import ROOT

IMAGES = ROOT / "docs" / "images" / "concepts"
_LINK = re.compile(r"!?\[[^\]\[]*\]\(([^)\s]+)\)")


def figures():
    """Return the functions that draw figures."""
    spec = importlib.util.spec_from_file_location("docs_figures", ROOT / "tools" / "docs_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FIGURES


@pytest.mark.parametrize("name", sorted(figures()))
def test_a_figure_is_what_the_code_draws(name):
    drawn = figures()[name]()
    kept = (IMAGES / f"{name}.svg").read_text(encoding="utf-8")
    assert drawn == kept, "draw it anew: make figures"
    assert len(drawn) < 32_000
    assert "prefers-color-scheme:dark" in drawn
    root = ElementTree.fromstring(drawn)
    assert root.find("{http://www.w3.org/2000/svg}title").text
    assert any(f"images/concepts/{name}.svg" in (ROOT / page).read_text(encoding="utf-8") for page in pages())


def tracked_pages():
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=False).stdout
    return sorted({*listed.split(), *pages()})


def anchors(path):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    text = path.read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M), re.M)
    headings += re.findall(r"^(\w.+)\n-{3,}$", text, re.M)  # Headings in reStructuredText within a page.
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", tracked_pages())
def test_links_lead_somewhere(page):
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M)
    for link in _LINK.findall(re.sub(r"`[^`\n]*`", "code", text)):
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = ((ROOT / page).parent / name) if name else ROOT / page
        assert target.exists(), f"{page}: {link}"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page}: {link}"


def test_every_page_is_on_the_map():
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"```{toctree}\n(.*?)```", first, re.S)
    listed = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    assert len(listed) == len(set(listed))
    there = {page.removeprefix("docs/").removesuffix(".md") for page in pages() if page.startswith("docs/")}
    assert there - {"index"} == set(listed)


def test_every_public_name_has_its_entry():
    reference = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "reference").glob("*.md"))
    entries = set(re.findall(r"\.\. auto(?:function|class|exception|module):: ([\w.]+)", reference))
    modules = {name for name in entries if f"automodule:: {name}" in reference}
    for name in likewise.__all__:
        if not name.startswith("__"):
            home = getattr(likewise, name).__module__
            assert {name, f"likewise.{name}", f"{home}.{name}"} & entries or home in modules, name


def test_a_command_knows_its_name():
    """Otherwise the reference would list them all under one name."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        assert command.name == name
        for below in command.list_commands(None) if hasattr(command, "list_commands") else []:
            assert command.get_command(None, below).name == below


def test_lines_explained_in_chinese_are_those_of_the_program():
    """Fixed words of each line of a summary, between its numbers, are in a text of the package."""
    written = set()
    for path in (ROOT / "python" / "likewise").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                written.add(node.value)
    page = (ROOT / "docs" / "zh" / "summary.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    assert len(rows) > 20
    for row in rows:
        for shown in re.findall(r"`([^`]+)`", row):
            for words in re.split(r"[\d.]+%?|\bdocuments?\b", shown):
                assert any(words.strip(" (),:;") in text for text in written), (shown, words)


def test_the_book_lists_its_pages_for_models(tmp_path):
    spec = importlib.util.spec_from_file_location("book_settings", ROOT / "docs" / "conf.py")
    settings = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(settings)
    settings.write_for_models(tmp_path)
    text = (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# Likewise")
    assert [caption for caption, _ in settings.sections_of_book()] == re.findall(r"^## (.+)$", text, re.M)
    linked = re.findall(r"^- \[.+\]\((.+?)\)", text, re.M)
    assert set(linked) == {page.removeprefix("docs/") for page in pages() if page.startswith("docs/")} - {"index.md"}
    for page in linked:
        source = ROOT / "FORMAT.md" if page == "developers/format.md" else ROOT / "docs" / page
        assert (tmp_path / page).read_bytes() == source.read_bytes()
