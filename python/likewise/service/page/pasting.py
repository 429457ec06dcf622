"""Pages for pasted text: compare two texts, or find documents similar to one."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from likewise.errors import InvalidInput
from likewise.measures.comparison import MAX_CHARACTERS, compare
from likewise.recipe.text import BYTE_TOKENS
from likewise.runs.drawing import Html, inline
from likewise.service.page.answers import Place
from likewise.service.page.documents import compared

_MOST_NEAR = 10
_DIFF_CHARACTERS = 6000


@dataclass(frozen=True)
class ListedNear:
    """A document similar to a pasted text."""

    doc_id: str
    similarity: float
    distance: int | None
    matches: bool
    difference: Html | None
    address: Html | None


def compare_two(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Compare two pasted texts by the recipe of the view."""
    _check_texts(place)
    a, b = fields.get("a", ""), fields.get("b", "")
    _check_length(a, b)
    drawn = compared(place, a, b, ("A", "B")) if request.method == "POST" else None
    return place.show("compare.html", "compare", "Compare two texts", a=a, b=b, drawn=drawn, most=MAX_CHARACTERS)


def near(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show the documents similar to a pasted text."""
    _check_texts(place)
    text = fields.get("text", "")
    _check_length(text)
    rows = None
    if request.method == "POST":
        view = place.view
        rows = []
        for found in view.neighbors(text, _MOST_NEAR):
            difference = None
            if found.text is not None:
                cut = text[:_DIFF_CHARACTERS], found.text[:_DIFF_CHARACTERS]
                difference = inline(compare(*cut, view.recipe).alignment, context=40)
            number = view.catalog.find_id(found.doc_id)
            address = None if number is None else place.address(f"groups/{number}")
            rows.append(ListedNear(found.doc_id, found.similarity, found.distance, found.matches, difference, address))
    return place.show("near.html", "near", "Find similar documents", text=text, rows=rows, most=MAX_CHARACTERS)


def _check_texts(place: Place) -> None:
    recipe = place.view.recipe
    if recipe.tokens in BYTE_TOKENS or recipe.takes_tokens:
        raise InvalidInput(f"documents with tokens {recipe.tokens} cannot be compared with pasted text")


def _check_length(*texts: str) -> None:
    for text in texts:
        if len(text) > MAX_CHARACTERS:
            raise InvalidInput(f"{len(text):,} characters; this page compares up to {MAX_CHARACTERS:,}")
