"""The threshold page: how many documents other thresholds would have kept, and the pairs around a threshold."""

import json
import math
import shlex

from starlette.requests import Request
from starlette.responses import Response

from likewise.errors import InvalidInput
from likewise.measures.comparison import align
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.runs.drawing import Html, element, histogram, inline, steps
from likewise.runs.report.sections import threshold_of
from likewise.runs.viewing import Missing, StoredPair, Thresholds
from likewise.service.page.answers import Place, dedup_command, shown
from likewise.service.page.documents import Side, show_pair

_AROUND = 4
_DIFF_CHARACTERS = 6000


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
    headers = {"content-disposition": f'attachment; filename="{_recipe_name(cut)}"', "cache-control": "no-store"}
    text = json.dumps(recipe_at(place, cut).to_dict(), indent=2) + "\n"
    return Response(text, media_type="application/json", headers=headers)


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
