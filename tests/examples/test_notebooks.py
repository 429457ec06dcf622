"""The notebooks of the documentation: every cell runs in order, shows the values it claims, and stores no output."""

import json
import re
from pathlib import Path

import pytest

from tests.structure.test_documentation import evaluated

DOCS = Path(__file__).parents[2] / "docs"
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))


def read(path):
    return json.loads(path.read_text(encoding="utf-8"))


def cells(path, kind):
    return ["".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == kind]


def test_each_notebook_is_linked_from_the_book():
    page = (DOCS / "howto" / "notebooks.md").read_text(encoding="utf-8")
    assert set(re.findall(r"\(\.\./notebooks/([\w-]+\.ipynb)\)", page)) == {path.name for path in NOTEBOOKS}
    assert len(NOTEBOOKS) >= 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_stores_no_output_and_links_to_pages(path):
    book = read(path)
    assert book["nbformat"] == 4
    assert len({cell["id"] for cell in book["cells"]}) == len(book["cells"])
    code = [cell for cell in book["cells"] if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    assert not any(line.startswith(("!", "%")) for cell in code for line in cell["source"])
    for link in re.findall(r"\]\(([^)]+)\)", "\n".join(cells(path, "markdown"))):
        assert (path.parent / link).is_file(), link


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {}
    for source in cells(path, "code"):
        evaluated(source, names)


@pytest.mark.slow
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_in_a_kernel(path, tmp_path, monkeypatch):
    pytest.importorskip("nbclient")
    from tests.examples.test_notebook import in_kernel

    in_kernel(cells(path, "code"), tmp_path, monkeypatch)
