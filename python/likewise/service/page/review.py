"""Review pages: labels of pairs, the next pair to label, and removed documents to keep after all."""

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.io.output.directory import SUMMARY
from likewise.runs.report.sections import why
from likewise.runs.viewing import KeptAfterAll
from likewise.service.page.answers import Place, dedup_command, input_arguments
from likewise.service.page.documents import Side, show_pair

_SHOWN = 200
_LOOKED_AT = 2000
_NEAR_THRESHOLD = 200
# Number of labels from which `likewise tune` chooses well (docs/benchmarks/tune.md).
_ENOUGH = 60


@dataclass(frozen=True)
class Candidate:
    """A pair without a label, and the address of its page."""

    doc_ids: tuple[str, str]
    address: str


def review(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """List the labels."""
    marks = place.view.marks
    labels = marks.items()
    kept = place.view.kept_after_all
    num_same = sum(label for _, _, label in labels)
    return place.show(
        "review.html", "review", "Review", labels=labels[:_SHOWN], num_labels=len(labels), num_same=num_same,
        path=None if marks.path is None else str(marks.path), has_next=_next(place) is not None, enough=_ENOUGH,
        command=_tune_command(place), kept=() if kept is None else kept.items()[:_SHOWN],
        num_kept=0 if kept is None else len(kept), rerun=None if kept is None else _rerun_command(place, kept),
    )  # fmt: skip


def next_pair(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show the unlabeled pair nearest to the threshold, except skipped ones."""
    num_skipped = min(_count(request.query_params.get("skip", "")), _LOOKED_AT)
    found = _next(place, num_skipped)
    if found is None:
        return RedirectResponse(place.plain("review"), 303)
    stored, number = found
    a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
    before = place.view.marks.label(a, b)
    show = partial(
        show_pair,
        place,
        current="review",
        up=place.address("review"),
        up_name="Review",
        after_label=place.address("review/next", skip=num_skipped or None),
        skip=place.address("review/next", skip=num_skipped + 1),
        labeled=None if before is None else (a, b, before),
    )
    if stored:
        assert place.view.thresholds is not None
        one = place.view.thresholds.pair(number[0])
        assert one is not None
        texts = place.view.texts([(one.row_a, one.place_a), (one.row_b, one.place_b)])
        sides = (Side(one.doc_id_a, "", "", texts[0]), Side(one.doc_id_b, "", "", texts[1]))
        reason = f"{place.view.thresholds.facts.measure} {one.similarity:.4f}"
        return show(sides, reason=reason)
    group = place.view.catalog.group(number[0])
    member = place.view.catalog.member(number[0], number[1])
    assert group is not None
    assert member is not None
    texts = place.view.texts([(member.row, member.place), (group.row, group.place)])
    sides = (Side(member.doc_id, "removed", "", texts[0]), Side(group.doc_id, "kept", "", texts[1]))
    return show(sides, reason=why(place.view.stated, member))


def mark(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Store or remove a label, then redirect to the address in the form if it is within these pages."""
    if not place.can_mark:
        raise InvalidInput("the service is read-only; labels cannot be stored")
    labels = {"1": True, "0": False, "": None}
    if fields.get("label") not in labels:
        raise InvalidInput("a label must be 1 for duplicates, 0 for others, or empty to remove it")
    a, b, label = fields.get("a", ""), fields.get("b", ""), labels[fields["label"]]
    place.view.marks.mark(a, b, label)
    then = _inside(place, fields.get("then", ""))
    if label is not None and then.partition("?")[0] == place.plain("review/next"):
        # The labeled pair is shown above the next pair, so that its label can be undone.
        then += ("&" if "?" in then else "?") + urlencode({"a": a, "b": b})
    return RedirectResponse(then, 303)


def keep(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Add a document to the list of those to keep after all, or remove it; then redirect to the address in the form."""
    if not place.can_mark:
        raise InvalidInput("the service is read-only; decisions cannot be stored")
    kept = place.view.kept_after_all
    if kept is None:
        raise InvalidInput("an index has no removed documents to keep; remove the document that it duplicates")
    if fields.get("keep") not in ("1", ""):
        raise InvalidInput("a decision must be 1 to keep the document, or empty to remove the decision")
    kept.mark(fields.get("doc_id", ""), stays=fields["keep"] == "1")
    return RedirectResponse(_inside(place, fields.get("then", "")), 303)


def export_kept(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the documents to keep after all as CSV, the format of `likewise dedup --decisions`."""
    kept = place.view.kept_after_all
    if kept is None:
        raise InvalidInput("an index has no decisions")
    headers = {"content-disposition": 'attachment; filename="decisions.csv"', "cache-control": "no-store"}
    return Response(kept.to_csv(), media_type="text/csv; charset=utf-8", headers=headers)


def export(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the labels as CSV, the format of `likewise tune`."""
    headers = {"content-disposition": 'attachment; filename="review.csv"', "cache-control": "no-store"}
    return Response(place.view.marks.to_csv(), media_type="text/csv; charset=utf-8", headers=headers)


def _inside(place: Place, address: str) -> str:
    """Return an address if it is one of this view's pages; otherwise the address of the labels."""
    parts = urlsplit(address)
    is_inside = not parts.scheme and not parts.netloc and "\\" not in address and address.isprintable()
    own = place.plain()
    if is_inside and address.isascii() and address.startswith(own) and "//" not in address:
        return address
    return place.plain("review")


def _tune_command(place: Place) -> str | None:
    """Return the command that chooses a recipe from the labels; None without stored labels or known inputs."""
    path = place.view.marks.path
    if path is None or not len(place.view.marks):
        return None
    inputs = input_arguments(place.view.summary)
    return None if inputs is None else f"likewise tune {inputs} --labels {shlex.quote(str(path))}"


def _rerun_command(place: Place, kept: KeptAfterAll) -> str | None:
    """Return the command that repeats the run and keeps the listed documents; None if there is no stored list."""
    if not len(kept) or kept.path is None:
        return None
    return dedup_command(
        place.view.summary,
        shlex.quote(f"{place.view.title}-decided"),
        shlex.quote(str(kept.path.with_name(SUMMARY))),
        f"--decisions {shlex.quote(str(kept.path))}",
    )


def _count(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else 0


def _next(place: Place, num_skipped: int = 0) -> tuple[bool, tuple[int, int]] | None:
    """Return whether the next pair is a stored one, and its numbers; None if no unlabeled pair is within the limits."""
    return next(islice(_unlabeled(place), num_skipped, None), None)


def _unlabeled(place: Place) -> Iterator[tuple[bool, tuple[int, int]]]:
    """Yield the pairs without labels, nearest to the threshold first."""
    view = place.view
    if view.thresholds is not None:
        above, below = view.thresholds.around(view.thresholds.own, _NEAR_THRESHOLD)
        nearest = sorted([*above, *below], key=lambda one: abs(one.similarity - view.thresholds.own))  # type: ignore[union-attr]
        for one in nearest:
            if one.doc_id_a != one.doc_id_b and view.marks.label(one.doc_id_a, one.doc_id_b) is None:
                yield True, (one.number, 0)
    start = 0
    while start < _LOOKED_AT:
        found = view.catalog.doubtful(after=start, limit=100)
        for group, member in found:
            if group.doc_id != member.doc_id and view.marks.label(group.doc_id, member.doc_id) is None:
                yield False, (group.number, member.row)
        if len(found) < 100:
            return
        start += 100
