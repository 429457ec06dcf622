"""Charts, texts and fingerprints as HTML and SVG, safe for any document content.

Charts and differences are functions that return markup, used by the report and the templates of the page. The function
that joins markup escapes everything else and makes hidden characters visible.
"""

from functools import cache
from importlib.resources import files

from likewise.io.html import Html, element, escaped, joined, visible
from likewise.measures.comparison import inline, side_by_side
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
    """Return the stylesheet of the page and of reports: light and dark, without external resources."""
    return (files("likewise.runs.drawing") / "style.css").read_text(encoding="utf-8")
