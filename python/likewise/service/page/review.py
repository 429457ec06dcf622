"""Review pages: the queue of removals, pairs around the threshold, and the judgments made on both."""

import json
import math
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from urllib.parse import urlencode, urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.io.html import Html, element
from likewise.io.output.directory import SUMMARY
from likewise.measures.comparison import align, inline
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.runs.drawing.charts import histogram, steps
from likewise.runs.report.sections import threshold_of, why
from likewise.runs.viewing.catalog import KINDS
from likewise.runs.viewing.neighbors import KeptAfterAll
from likewise.runs.viewing.texts import Missing
from likewise.runs.viewing.thresholds import StoredPair, Thresholds
from likewise.service.page.answers import Place, dedup_command, download, input_arguments, shown
from likewise.service.page.documents import Side, show_pair, where

_AROUND = 4
_DIFF_CHARACTERS = 6000


_SHOWN = 200
# Places of the queue that are searched at once.
_LOOKED_AT = 1000
_NEAR_THRESHOLD = 200
# Number of labels from which `likewise tune` chooses well (docs/benchmarks/tune.md).
_ENOUGH = 60


def threshold(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show how many documents each threshold would keep."""
    view = place.view
    stored = view.thresholds
    if stored is None:
        return place.show("unstored.html", "threshold", "Threshold", threshold=threshold_of(view.stated))
    cut = _cut(stored, request)
    points = stored.curve
    kept = dict(points)[cut]
    edges, counts = stored.histogram()
    data = {
        "cuts": [point for point, _ in points],
        "kept": [num for _, num in points],
        "found": [_rounded(stored.found(point)) for point, _ in points],
        "total": stored.facts.num_documents,
        "own": stored.own,
        "own_kept": stored.num_kept,
        "bits": near.bits if isinstance(near := view.stated.sketch, SimHashDistance) else None,
    }
    above, below = _around(place, stored, cut)
    return place.show(
        "threshold.html", "threshold", "Threshold", stored=stored, cut=cut, kept=kept,
        total=stored.facts.num_documents, position=[point for point, _ in points].index(cut), data=json.dumps(data),
        found=stored.found(cut),
        chart=histogram(edges, counts, label="similarity minus margin and penalty", mark=cut, mark_text="cut"),
        curve=steps(points, label="threshold (x), documents kept (y)", mark=cut, mark_text="cut"),
        command=command(place, cut), recipe_name=_recipe_name(cut),
        recipe_address=place.address("threshold/recipe.json", cut=cut), above=above, below=below,
        num_pairs=len(stored.similarity), measure=stored.facts.measure,
    )  # fmt: skip


def around(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the pairs just above and just below a cut as a part of the page, for its script."""
    stored = _stored(place)
    above, below = _around(place, stored, _cut(stored, request))
    return shown("around.html", above=above, below=below, place=place)


def pair(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show a stored pair side by side."""
    stored = _stored(place)
    found = stored.pair(request.path_params["number"])
    if found is None:
        raise InvalidInput("no stored pair with this number")
    texts = place.view.texts([(found.row_a, found.place_a), (found.row_b, found.place_b)])
    sides = (Side(found.doc_id_a, "", "", texts[0]), Side(found.doc_id_b, "", "", texts[1]))
    required = stored.required(found.number)
    is_match = found.similarity >= required
    reason = (
        f"{stored.facts.measure} {found.similarity:.4f}, {'at least' if is_match else 'below'} the run's {required:g}"
    )
    return show_pair(
        place, sides, current="threshold", reason=reason, up=place.address("threshold", cut=round(found.similarity, 6)),
        up_name="Threshold",
    )  # fmt: skip


def recipe_file(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the recipe of the run with another threshold, for `likewise dedup --recipe`."""
    cut = _cut(_stored(place), request)
    text = json.dumps(recipe_at(place, cut).to_dict(), indent=2) + "\n"
    return download(text, "application/json", _recipe_name(cut))


def recipe_at(place: Place, cut: float) -> Recipe:
    """Return the recipe of the run with a cut as its threshold. Bands and rows are chosen again if a recall is set."""
    recipe = place.view.stated
    stored, own = _stored(place), recipe.sketch
    if cut == stored.own:
        return recipe
    searched = {"bands": None, "rows": None} if recipe.fields.get("recall") is not None else {}
    if isinstance(own, SimHashDistance):
        return recipe.replace(within=round((1.0 - cut) * own.bits), **searched)
    return recipe.replace(threshold=cut, **searched)


def command(place: Place, cut: float) -> str:
    """Return the command that runs with a cut, using the recipe file that the page offers."""
    return dedup_command(place.view.summary, _name_of(place, cut), _recipe_name(cut))


def _recipe_name(cut: float) -> str:
    return f"recipe-{cut:g}.json"


def _name_of(place: Place, cut: float) -> str:
    return shlex.quote(f"{place.view.title}-{cut:g}")


def _stored(place: Place) -> Thresholds:
    stored = place.view.thresholds
    if stored is None:
        raise InvalidInput("the run stored no pairs; repeat it with --store-pairs FLOOR")
    return stored


def _cut(stored: Thresholds, request: Request) -> float:
    """Return the offered cut nearest to the requested one; the run's own without a valid request."""
    try:
        asked = float(request.query_params.get("cut", ""))
    except ValueError:
        asked = stored.own
    if not math.isfinite(asked):
        asked = stored.own
    return min(stored.cuts, key=lambda cut: abs(cut - asked))


def _around(place: Place, stored: Thresholds, cut: float) -> tuple[list[Html], list[Html]]:
    above, below = stored.around(cut, _AROUND)
    return [_drawn(place, one) for one in above], [_drawn(place, one) for one in below]


def _drawn(place: Place, found: StoredPair) -> Html:
    a, b = place.view.texts([(found.row_a, found.place_a), (found.row_b, found.place_b)])
    link = element("a", f"{found.doc_id_a} and {found.doc_id_b}", href=place.address(f"threshold/pair/{found.number}"))
    measured = f"{found.similarity:.4f}" + ("" if found.distance is None else f", distance {found.distance}")
    head = element("div", [link, " ", element("span", measured, class_="tag")])
    if isinstance(a, Missing) or isinstance(b, Missing):
        reason = a.reason if isinstance(a, Missing) else b.reason if isinstance(b, Missing) else ""
        return element("div", [head, element("p", reason, class_="quiet")], class_="pair")
    if not isinstance(a, str) or not isinstance(b, str):
        return element("div", head, class_="pair")
    body = inline(align(a[:_DIFF_CHARACTERS], b[:_DIFF_CHARACTERS], place.view.recipe), context=40)
    return element("div", [head, body], class_="pair")


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


@dataclass(frozen=True)
class Judgment:
    """A label in the list, with the address of its pair if it is a removal."""

    a: str
    b: str
    label: bool
    address: Html | None
    # Id of the removed document; empty if the pair is no removal
    removed: str


@dataclass(frozen=True)
class Queued:
    """The place of a removal among all removals, or among those of one kind, and the kinds to choose from."""

    place: int
    num: int
    kinds: list[tuple[str, int, Html, bool]]


def review(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """List the judgments."""
    marks = place.view.marks
    labels = marks.items()
    kept = place.view.kept_after_all
    num_same = sum(label for _, _, label in labels)
    return place.show(
        "review.html", "review", "Review", labels=[_judgment(place, *one) for one in labels[:_SHOWN]],
        num_labels=len(labels), num_same=num_same, path=None if marks.path is None else str(marks.path),
        has_next=_next_place(place, _all_places(place)) is not None, has_pairs=next(_near_threshold(place), None),
        enough=_ENOUGH, kinds=_kinds(place, None),
        command=_tune_command(place), kept=() if kept is None else kept.items()[:_SHOWN],
        num_kept=0 if kept is None else len(kept), rerun=None if kept is None else _rerun_command(place, kept),
    )  # fmt: skip


def next_removal(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show the removal at a place of the queue, or the first one without a label after a place."""
    asked = request.query_params
    kind = asked.get("kind", "")
    places = place.view.catalog.queues().get(kind) or _all_places(place)
    at, after = _count(asked.get("at", "")), _count(asked.get("after", ""))
    found = at if at in places else _next_place(place, range(max(places.start, after + 1), places.stop))
    if found is None:
        return RedirectResponse(place.plain("review"), 303)
    before = place.view.catalog.queued(range(after, after + 1))
    label = place.view.marks.label(*before[0][1:]) if before else None
    group, member = place.view.catalog.removal(found)
    texts = place.view.texts([(member.row, member.place), (group.row, group.place)])
    sides = (
        Side(member.doc_id, "removed", where(member.place), texts[0]),
        Side(group.doc_id, "kept", where(group.place), texts[1]),
    )
    return show_pair(
        place, sides, current="review", up=place.address("review"), up_name="Review",
        reason=why(place.view.stated, member), skip=place.address("review/next", kind=kind, after=found),
        before=place.address("review/next", kind=kind, at=found - 1) if found - 1 in places else None,
        after_label=place.address("review/next", kind=kind, after=found),
        labeled=None if label is None else (*before[0][1:], label, place.address("review/next", kind=kind, at=after)),
        queue=Queued(found - places.start + 1, len(places), _kinds(place, kind)),
    )  # fmt: skip


def next_pair(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show the unlabeled pair nearest to the threshold, except skipped ones; only runs that stored pairs have them."""
    num_skipped = _count(request.query_params.get("skip", ""))
    one = next(islice(_near_threshold(place), num_skipped, None), None)
    if one is None:
        return RedirectResponse(place.plain("review"), 303)
    assert place.view.thresholds is not None
    a, b = request.query_params.get("a", ""), request.query_params.get("b", "")
    before = place.view.marks.label(a, b)
    texts = place.view.texts([(one.row_a, one.place_a), (one.row_b, one.place_b)])
    again = place.address("review/pairs", skip=num_skipped or None)
    return show_pair(
        place, (Side(one.doc_id_a, "", "", texts[0]), Side(one.doc_id_b, "", "", texts[1])), current="review",
        up=place.address("review"), up_name="Review", after_label=again,
        reason=f"{place.view.thresholds.facts.measure} {one.similarity:.4f}",
        skip=place.address("review/pairs", skip=num_skipped + 1),
        labeled=None if before is None else (a, b, before, again),
    )  # fmt: skip


def mark(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Store or remove a label, then redirect to the address in the form if it is within these pages.

    The label of a removal also decides whether the next run keeps the document.
    """
    if not place.can_mark:
        raise InvalidInput("the service is read-only; labels cannot be stored")
    labels = {"1": True, "0": False, "": None}
    if fields.get("label") not in labels:
        raise InvalidInput("a label must be 1 for duplicates, 0 for others, or empty to remove it")
    a, b, label = fields.get("a", ""), fields.get("b", ""), labels[fields["label"]]
    place.view.marks.mark(a, b, label)
    if (removed := fields.get("removed")) in (a, b) and place.view.kept_after_all is not None:
        place.view.kept_after_all.mark(removed, stays=label is False)
    then = _inside(place, fields.get("then", ""))
    if label is not None and then.partition("?")[0] == place.plain("review/pairs"):
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
    return download(kept.to_csv(), "text/csv; charset=utf-8", "decisions.csv")


def export(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Return the labels as CSV, the format of `likewise tune`."""
    return download(place.view.marks.to_csv(), "text/csv; charset=utf-8", "review.csv")


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


def _judgment(place: Place, a: str, b: str, label: bool) -> Judgment:  # noqa: FBT001 - the label itself
    found = place.view.catalog.find_pair(a, b)
    if found is None:
        return Judgment(a, b, label, None, "")
    number, row = found
    member = place.view.catalog.member(number, row)
    assert member is not None
    removed, kept = (a, b) if member.doc_id == a else (b, a)
    return Judgment(removed, kept, label, place.address(f"groups/{number}/pair/{row}/kept"), removed)


def _all_places(place: Place) -> range:
    queues = place.view.catalog.queues()
    return range(1, max((places.stop for places in queues.values()), default=1))


def _kinds(place: Place, chosen: str | None) -> list[tuple[str, int, Html, bool]]:
    """Return the name, the number of removals and the queue of each kind, and whether it is the chosen one."""
    queues = place.view.catalog.queues()
    if len(queues) < 2:
        return []
    kinds = [("", _all_places(place)), *((kind, places) for kind, places in queues.items() if kind)]
    return [
        (KINDS[kind] if kind else "all", len(places), place.address("review/next", kind=kind), kind == chosen)
        for kind, places in kinds
    ]


def _next_place(place: Place, places: range) -> int | None:
    """Return the first place without a label."""
    for start in range(places.start, places.stop, _LOOKED_AT):
        for at, *pair in place.view.catalog.queued(range(start, min(start + _LOOKED_AT, places.stop))):
            if pair[0] != pair[1] and place.view.marks.label(*pair) is None:
                return at
    return None


def _near_threshold(place: Place) -> Iterator[StoredPair]:
    """Yield the stored pairs without labels, nearest to the threshold first."""
    view = place.view
    if view.thresholds is None:
        return
    own = view.thresholds.own
    above, below = view.thresholds.around(own, _NEAR_THRESHOLD)
    for one in sorted([*above, *below], key=lambda one: abs(one.similarity - own)):
        if one.doc_id_a != one.doc_id_b and view.marks.label(one.doc_id_a, one.doc_id_b) is None:
            yield one
