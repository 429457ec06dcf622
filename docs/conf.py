"""Sphinx settings: `make docs`."""

import re
import shutil
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_DOCS = Path(__file__).parent
# The only place with addresses; absent until the project has one.
_URLS = tomllib.loads((_DOCS.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"].get("urls", {})
html_baseurl = _URLS.get("Documentation", "")

project = "Likewise"
author = "the Likewise developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_click"]
html_theme = "furo"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
autodoc_typehints = "none"
# Large, and only their names are needed here.
autodoc_mock_imports = [
    *(
        "datasets",
        "datatrove",
        "haystack",
        "itemadapter",
        "langchain_core",
        "llama_index",
        "mcp",
        "pyspark",
        "scrapy",
        "sklearn",
    ),
]
numpydoc_show_class_members = False
# Types in NumPy sections are prose ("ndarray of shape (n,), uint64"), not cross references.
nitpicky = False
# Two hyphens begin an option, and quotes stand in commands that are copied.
smartquotes = False


def _examples_as_they_are(_app: Any, _context: Any, lines: list[str]) -> None:
    """Show the lines of a command's help that click is told not to wrap as code; in all others no star is markup."""
    shown, is_code = [], False
    for line in lines:
        if line.startswith("| "):
            if not is_code:
                shown += [line[2:], "", ".. code-block:: text", ""]
            else:
                shown.append("    " + line[2:].strip())
            is_code = True
        else:
            shown.append(line.replace("*", r"\*").replace("`", "``"))
            is_code = False
    lines[:] = shown


def _stars_as_they_are(_app: Any, _context: Any, lines: list[str]) -> None:
    """Show a star in the help of an option as it is: it is no markup."""
    lines[:] = [line if line.startswith("..") else line.replace("*", r"\*") for line in lines]


def sections_of_book() -> Iterator[tuple[str, list[str]]]:
    """Yield the captions of the table of contents with their pages."""
    text = (_DOCS / "index.md").read_text(encoding="utf-8")
    for caption, pages in re.findall(r"```\{toctree\}\n:maxdepth: 1\n:caption: ([^\n]+)\n\n(.*?)```", text, re.S):
        yield caption, pages.split()


def _source(page: str) -> Path:
    """Return the file of a page; a page may include a file of the project instead."""
    path = _DOCS / f"{page}.md"
    included = re.search(r"^```\{include\} (\S+)", path.read_text(encoding="utf-8"), re.M)
    return path if included is None else path.parent / included[1]


def _title_and_summary(page: str) -> tuple[str, str]:
    """Return the title and the first paragraph of a page, without links."""
    text = re.sub(r"<!--.*?-->", "", _source(page).read_text(encoding="utf-8"), flags=re.S)
    blocks = [block.strip() for block in re.split(r"\n{2,}", text) if block.strip()]
    title = next(block for block in blocks if block.startswith("#")).partition("\n")[0].lstrip("# ")
    told = next((block for block in blocks if not block.startswith(("#", "```", "|", "![", "["))), "")
    return title, re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", " ".join(told.split()))


def write_for_models(target: Path) -> None:
    """Write `llms.txt`, which lists all pages, and the Markdown of each page next to its HTML."""
    title, summary = _title_and_summary("index")
    lines = [f"# {title}", "", f"> {summary}"]
    for caption, pages in sections_of_book():
        lines += ["", f"## {caption}", ""]
        for page in pages:
            (target / page).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(_source(page), target / f"{page}.md")
            name, about = _title_and_summary(page)
            lines.append(f"- [{name}]({html_baseurl}{page}.md)" + (f": {about}" if about else ""))
    (target / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")


def _write_for_models(app: Any, error: Exception | None) -> None:
    if error is None and app.builder.name == "html":
        write_for_models(Path(app.outdir))


def setup(app: Any) -> None:
    """Connect what is done to the help of commands, and to the finished book."""
    app.connect("build-finished", _write_for_models)
    app.connect("sphinx-click-process-options", _stars_as_they_are)
    app.connect("sphinx-click-process-description", _examples_as_they_are)
