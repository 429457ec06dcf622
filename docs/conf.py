"""Sphinx settings: `make docs`."""

from typing import Any

project = "Likewise"
author = "The Likewise authors"
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


def setup(app: Any) -> None:
    """Connect what is done to the help of commands."""
    app.connect("sphinx-click-process-options", _stars_as_they_are)
    app.connect("sphinx-click-process-description", _examples_as_they_are)
