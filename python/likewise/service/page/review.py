"""Labels of pairs: which ones people called duplicates, and the next pair to ask about."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.service.page.answers import Place
from likewise.service.page.documents import Side, show_pair, why

_SHOWN = 200
_LOOKED_AT = 2000
_NEAR_THRESHOLD = 200


@dataclass(frozen=True)
class Candidate:
    """A pair that nobody has labeled, and where it is shown."""

    doc_ids: tuple[str, str]
    address: str


def review(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """List the labels."""
    marks = place.view.marks
    labels = marks.items()
    num_same = sum(label for _, _, label in labels)
    return place.show(
        "review.html", "review", "Review", labels=labels[:_SHOWN], num_labels=len(labels), num_same=num_same,
        path=None if marks.path is None else str(marks.path), has_next=_next(place) is not None,
    )  # fmt: skip


def next_pair(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show the pair nearest to the threshold that nobody has labeled yet."""
    found = _next(place)
    if found is None:
        return RedirectResponse(place.plain("review"), 303)
    stored, number = found
    up, name = place.address("review"), "Review"
    if stored:
        assert place.view.thresholds is not None
        one = place.view.thresholds.pair(number[0])
        assert one is not None
        texts = place.view.texts([(one.row_a, one.place_a), (one.row_b, one.place_b)])
        sides = (Side(one.doc_id_a, "", "", texts[0]), Side(one.doc_id_b, "", "", texts[1]))
        reason = f"{place.view.thresholds.facts.measure} {one.similarity:.4f}"
        return show_pair(place, sides, current="review", reason=reason, up=up, up_name=name, is_review=True)
    group = place.view.catalog.group(number[0])
    member = place.view.catalog.member(number[0], number[1])
    assert group is not None
    assert member is not None
    texts = place.view.texts([(member.row, member.place), (group.row, group.place)])
    sides = (Side(member.doc_id, "removed", "", texts[0]), Side(group.doc_id, "kept", "", texts[1]))
    return show_pair(place, sides, current="review", reason=why(place, member), up=up, up_name=name, is_review=True)


def mark(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Store or take back a label, then go where the form says, within these pages."""
    if not place.can_mark:
        raise InvalidInput("the service is read-only; labels cannot be stored")
    labels = {"1": True, "0": False, "": None}
    if fields.get("label") not in labels:
        raise InvalidInput("a label must be 1 for duplicates, 0 for others, or empty to remove it")
    place.view.marks.mark(fields.get("a", ""), fields.get("b", ""), labels[fields["label"]])
    return RedirectResponse(_inside(place, fields.get("then", "")), 303)


def export(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Give the labels as CSV, as `likewise tune` takes them."""
    headers = {"content-disposition": 'attachment; filename="review.csv"', "cache-control": "no-store"}
    return Response(place.view.marks.to_csv(), media_type="text/csv; charset=utf-8", headers=headers)


def _inside(place: Place, address: str) -> str:
    """Return an address if it is one of this view's pages, else that of the labels."""
    parts = urlsplit(address)
    is_inside = not parts.scheme and not parts.netloc and "\\" not in address and address.isprintable()
    own = place.plain()
    if is_inside and address.isascii() and address.startswith(own) and "//" not in address:
        return address
    return place.plain("review")


def _next(place: Place) -> tuple[bool, tuple[int, int]] | None:
    """Return whether the next pair is a stored one, and its numbers; None where all that are looked at have labels."""
    view = place.view
    if view.thresholds is not None:
        above, below = view.thresholds.around(view.thresholds.own, _NEAR_THRESHOLD)
        nearest = sorted([*above, *below], key=lambda one: abs(one.similarity - view.thresholds.own))  # type: ignore[union-attr]
        for one in nearest:
            if one.doc_id_a != one.doc_id_b and view.marks.label(one.doc_id_a, one.doc_id_b) is None:
                return True, (one.number, 0)
    start = 0
    while start < _LOOKED_AT:
        found = view.catalog.doubtful(after=start, limit=100)
        for group, member in found:
            if group.doc_id != member.doc_id and view.marks.label(group.doc_id, member.doc_id) is None:
                return False, (group.number, member.row)
        if len(found) < 100:
            return None
        start += 100
    return None
