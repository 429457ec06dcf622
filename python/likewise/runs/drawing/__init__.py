"""How are results drawn? Texts, charts and fingerprints as HTML and SVG, safe whatever a document contains.

Charts and differences are functions that return markup, used by the report and by the templates of the page. Everything
else is escaped by the function that joins them, which also makes hidden characters visible.
"""

from functools import cache
from importlib.resources import files

from likewise.io.html import Html, element, escaped, joined, visible
from likewise.measures.diffs import inline, side_by_side
from likewise.runs.drawing.charts import bars, curve, density, fingerprints, histogram, similarity_bar, steps

__all__ = [
    "Html",
    "bars",
    "curve",
    "density",
    "element",
    "escaped",
    "fingerprints",
    "histogram",
    "inline",
    "joined",
    "side_by_side",
    "similarity_bar",
    "steps",
    "stylesheet",
    "visible",
]


@cache
def stylesheet() -> str:
    """Return the stylesheet of the page and of reports: light and dark, without anything from outside."""
    return (files("likewise.runs.drawing") / "style.css").read_text(encoding="utf-8")
