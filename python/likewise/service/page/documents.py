"""Pages of a group, and of two documents side by side."""

from dataclasses import dataclass, replace
from pathlib import Path

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.io.formats import format_by_name
from likewise.io.html import Html, element
from likewise.measures import Measures
from likewise.measures.comparison import MAX_CHARACTERS, align, compare, inline, side_by_side
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import BYTE_TOKENS
from likewise.runs.drawing.charts import fingerprints
from likewise.runs.report import sections
from likewise.runs.viewing.catalog import GroupFilter, GroupRow, Member
from likewise.runs.viewing.texts import Missing
from likewise.runs.viewing.texts import Place as TextPlace
from likewise.service.page.answers import Place
from likewise.service.page.lists import filter_of, query_of, sample_of

_ON_A_PAGE = 100
_SHOWN_CHARACTERS = 20_000
# Number of characters of each document that are compared for the list of a group.
_DIFF_CHARACTERS = 3000
# Names of the two documents in the measures if one of them was removed.
_ROLES = ("removed", "kept")
KEPT = "kept"

Text = str | bytes | Missing


_MOST_NEAR = 10
_PASTED_DIFF_CHARACTERS = 6000


@dataclass(frozen=True)
class ListedMember:
    """A document of a group as a row of its table."""

    member: Member
    shown: str | Html
    why: str
    address: Html
    label: bool | None
    is_kept_after_all: bool


@dataclass(frozen=True)
class Side:
    """One of two documents shown side by side."""

    doc_id: str
    state: str
    where: str
    text: Text


def group(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show a group: the kept document and the removed ones, with reasons."""
    view, catalog = place.view, place.view.catalog
    found = _group(place, request)
    wanted = filter_of(request)
    query = query_of(wanted)
    before, behind = catalog.groups_beside(wanted, found)
    after = _number(request.query_params.get("after", "-1"))
    members = catalog.members(found.number, wanted, after=after, limit=_ON_A_PAGE + 1)
    has_more = len(members) > _ON_A_PAGE
    members = members[:_ON_A_PAGE]
    texts = view.texts([(found.row, found.place), *((one.row, one.place) for one in members)])
    rows = []
    for member, text in zip(members, texts[1:], strict=True):
        address = place.address(f"groups/{found.number}/pair/{member.row}/{KEPT}", **query)
        label = view.marks.label(member.doc_id, found.doc_id)
        stays = view.kept_after_all is not None and member.doc_id in view.kept_after_all
        shown, reason = _difference(texts[0], text, view.recipe), sections.why(view.stated, member)
        rows.append(ListedMember(member, shown, reason, address, label, stays))
    return place.show(
        "group.html", "groups", f"Group of {found.doc_id}", group=found, rows=rows, text=_shown(texts[0]),
        where=where(found.place),
        more=place.address(f"groups/{found.number}", **query, after=members[-1].row) if has_more else None,
        next_group=behind and place.address(f"groups/{behind}", **query),
        previous_group=before and place.address(f"groups/{before}", **query),
        up=place.address("groups", **query), everything=_everything(place, found, wanted),
    )  # fmt: skip


def _everything(place: Place, group: GroupRow, wanted: GroupFilter) -> Html | None:
    """Return the address of a group without filters on its removed documents; None if there are none."""
    if not wanted.names_removed:
        return None
    less = replace(wanted, value="", differs="", least=None, most=None)
    return place.address(f"groups/{group.number}", **query_of(less))


def pair(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show two documents of a group side by side."""
    view, catalog = place.view, place.view.catalog
    found = _group(place, request)
    names = request.path_params["a"], request.path_params["b"]
    members = [None if name == KEPT else _member(place, found, name) for name in names]
    documents = [(found.row, found.place) if one is None else (one.row, one.place) for one in members]
    texts = view.texts(documents)
    sides = []
    for member, (_, at), text in zip(members, documents, texts, strict=True):
        doc_id = found.doc_id if member is None else member.doc_id
        sides.append(Side(doc_id, "kept" if member is None else "removed", where(at), text))
    first = members[0]
    wanted = filter_of(request)
    query = query_of(wanted)
    reason, before, behind = None, None, None
    if first is not None and members[1] is None:
        reason = sections.why(view.stated, first)
        before, behind = (
            None if row is None else place.address(f"groups/{found.number}/pair/{row}/{KEPT}", **query)
            for row in catalog.beside(found.number, first.row, wanted)
        )
    return show_pair(
        place, (sides[0], sides[1]), current="groups", reason=reason, before=before, behind=behind,
        up=place.address(f"groups/{found.number}", **query), up_name=f"Group of {found.doc_id}",
    )  # fmt: skip


def find(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Redirect to the group that contains a document, by its id."""
    doc_id = request.query_params.get("id", "")
    number = place.view.catalog.find_id(doc_id)
    if number is None:
        raise InvalidInput(f"no group contains the document {doc_id!r}; documents without duplicates are in no group")
    return RedirectResponse(place.plain(f"groups/{number}"), 303)


def show_pair(
    place: Place,
    sides: tuple[Side, Side],
    *,
    current: str,
    up: Html,
    up_name: str,
    reason: str | None = None,
    before: Html | None = None,
    behind: Html | None = None,
    after_label: str | None = None,
    skip: Html | None = None,
    labeled: tuple[str, str, bool, str] | None = None,
    queue: object = None,
) -> Response:
    """Show two documents side by side; `after_label` and `skip` are the next addresses, `labeled` may be undone."""
    view = place.view
    is_removed = (sides[0].state, sides[1].state) == _ROLES
    roles = _ROLES if is_removed else ("A", "B")
    drawn = compared(place, sides[0].text, sides[1].text, (sides[0].doc_id, sides[1].doc_id), roles)
    label = view.marks.label(sides[0].doc_id, sides[1].doc_id)
    return place.show(
        "pair.html", current, f"{sides[0].doc_id} and {sides[1].doc_id}", sides=sides, reason=reason, before=before,
        behind=behind, up=up, up_name=up_name, drawn=drawn, label=label, then=after_label or place.here, skip=skip,
        labeled=labeled, roles=roles, queue=queue, keeps=is_removed and view.kept_after_all is not None,
        is_kept_after_all=is_removed and view.kept_after_all is not None and sides[0].doc_id in view.kept_after_all,
    )  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """The comparison of two documents as markup; parts that cannot be drawn are None."""

    matches: bool | None
    difference: Html
    measures: Html | None
    fingerprints: Html | None
    curve: Html | None
    is_simhash: bool = False


def compared(place: Place, a: Text, b: Text, names: tuple[str, str], roles: tuple[str, str] = ("A", "B")) -> Drawn:
    """Compare two documents by the recipe of the view and render the result; `roles` name them in the measures."""
    for text in (a, b):
        if isinstance(text, Missing):
            return Drawn(None, element("p", text.reason, class_="notice"), None, None, None)
    assert not isinstance(a, Missing)
    assert not isinstance(b, Missing)
    if max(len(a), len(b)) > MAX_CHARACTERS:
        told = f"The texts have {len(a):,} and {len(b):,} characters; this page compares up to {MAX_CHARACTERS:,}."
        return Drawn(None, element("p", told, class_="notice"), None, None, None)
    recipe = place.view.recipe
    if isinstance(a, bytes) != isinstance(b, bytes):
        raise InvalidInput("one document is text and the other is binary")
    found = compare(a, b, recipe)
    if isinstance(a, str):
        difference = side_by_side(found.alignment, names)
    else:
        difference = element("p", "These documents are binary and have no word alignment.", class_="notice")
    measures = found.measures
    curve = sections.curve_chart(recipe, measures.jaccard if isinstance(recipe.sketch, MinHash) else measures.cosine)
    return Drawn(
        found.matches,
        difference,
        _measured(measures, roles),
        fingerprints(*measures.fingerprints, measures.bits),
        curve,
        isinstance(recipe.sketch, SimHash),
    )


def _difference(kept: Text, removed: Text, recipe: Recipe) -> str | Html:
    """Return the differences between a removed document and the kept one; the removed one's beginning if unknown."""
    if not isinstance(kept, str) or not isinstance(removed, str):
        return sample_of(removed)[0]
    if kept == removed:
        return "equal text"
    alignment = align(removed[:_DIFF_CHARACTERS], kept[:_DIFF_CHARACTERS], recipe)
    if all(part.is_same for part in alignment):
        if max(len(removed), len(kept)) <= _DIFF_CHARACTERS:
            return "only differences that the recipe ignores"
        return f"no difference that the recipe counts in the first {_DIFF_CHARACTERS:,} characters"
    return inline(alignment, context=30)


def _measured(measures: Measures, roles: tuple[str, str]) -> Html:
    in_a, in_b = measures.num_features
    a, b = roles
    edits = f"{measures.edit_distance:,} {measures.unit}s to change"
    bound = "" if measures.is_alignment_exact else " (bound)"
    return sections.facts(
        [
            ("Jaccard", f"{measures.jaccard:.4f}"),
            (f"Containment of {a} in {b}", f"{measures.containment_a_in_b:.4f}"),
            (f"Containment of {b} in {a}", f"{measures.containment_b_in_a:.4f}"),
            ("Cosine", f"{measures.cosine:.4f}"),
            ("Dice", f"{measures.dice:.4f}"),
            ("Overlap", f"{measures.overlap:.4f}"),
            ("Edit", f"{measures.edit:.4f}, {edits}{bound}"),
            ("Longest common subsequence", f"{measures.lcs:.4f}{bound}"),
            ("Hamming", f"{measures.hamming:.4f}, {measures.distance} of {measures.bits} bits differ"),
            ("MinHash estimate of Jaccard", f"{measures.minhash_estimate:.4f}"),
            ("Features", f"{measures.num_shared:,} shared, {in_a:,} in {a}, {in_b:,} in {b}"),
        ]
    )


def _shown(text: Text) -> tuple[str, bool, int]:
    """Return the displayed text or the reason why it is missing, whether it is that reason, and the omitted length."""
    if isinstance(text, Missing):
        return text.reason, True, 0
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return shown[:_SHOWN_CHARACTERS], False, max(0, len(shown) - _SHOWN_CHARACTERS)


def where(place: TextPlace) -> str:
    """Return the file and the offset of a document; empty if it is in no file."""
    if place.file is None:
        return ""
    known = format_by_name(Path(place.file))
    unit = "row" if known is not None and known.kind in ("parquet", "arrow") else "byte"
    return f"{place.file}, {unit} {place.offset:,}"


def _group(place: Place, request: Request) -> GroupRow:
    found = place.view.catalog.group(min(request.path_params["number"], 2**62))
    if found is None:
        raise InvalidInput("no group with this number")
    return found


def _member(place: Place, found: GroupRow, name: str) -> Member:
    member = place.view.catalog.member(found.number, _number(name))
    if member is None:
        raise InvalidInput("no such document in this group")
    return member


def _number(text: str) -> int:
    return int(text) if text.lstrip("-").isascii() and text.lstrip("-").isdigit() and len(text) < 19 else -1


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
                cut = text[:_PASTED_DIFF_CHARACTERS], found.text[:_PASTED_DIFF_CHARACTERS]
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
