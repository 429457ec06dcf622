"""The first page of a view, and its groups."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from likewise.errors import InvalidInput
from likewise.runs.drawing import Html, similarity_bar
from likewise.runs.report import sections
from likewise.runs.viewing import SORTS, GroupRow, IndexView, Missing
from likewise.service.page.answers import SAMPLE_CHARACTERS, Place

_ON_A_PAGE = 50
_SORT_NAMES = {"size": "largest first", "similarity": "least similar first", "input": "in input order"}
_MOST_SEARCHED = 500


@dataclass(frozen=True)
class ListedGroup:
    """A group as a row of the list."""

    group: GroupRow
    sample: str
    is_missing: bool
    bar: Html
    address: Html


def sample_of(text: str | bytes | Missing) -> tuple[str, bool]:
    """Return the beginning of a document on one line, and whether it is the reason why there is none."""
    if isinstance(text, Missing):
        return text.reason, True
    shown = text[: 4 * SAMPLE_CHARACTERS]
    line = " ".join((shown.decode("utf-8", "replace") if isinstance(shown, bytes) else shown).split())
    return (line[:SAMPLE_CHARACTERS] or "(empty)"), False


def overview(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Show a run or an index in figures and drawings."""
    view = place.view
    catalog, recipe, summary = view.catalog, view.recipe, view.summary
    cards: list[tuple[str, Html]] = []
    if view.kind == "run":
        numbers = sections.run_figures(summary, catalog.num_groups())
        cards = [
            ("Recipe", sections.recipe_facts(recipe, summary["recall"])),
            ("Comparisons", sections.search_facts(summary)),
        ]
        if (chosen := sections.threshold_chart(summary)) is not None:
            cards.append(("How the threshold was chosen", chosen))
    else:
        removed = sum(size * num for size, num in catalog.sizes()) - catalog.num_groups()
        numbers = sections.figures(
            [
                ("documents", summary["num_documents"]),
                ("duplicates", removed),
                ("groups", catalog.num_groups()),
                ("segments", len(summary["segment_rows"])),
            ]
        )
        cards = [("Recipe", sections.recipe_facts(recipe, recipe.stated_recall))]
    cards.append(("Similarities of duplicates", sections.similarity_chart(catalog, recipe)))
    cards.append(("Group sizes", sections.size_chart(catalog)))
    curve = sections.curve_chart(recipe)
    if curve is not None:
        cards.append(("Probability of finding a pair", curve))
    if view.kind == "run":
        cards.append(("Time", sections.stage_chart(summary)))
        if (counts := sections.counts_table(summary)) is not None:
            cards.append((f"Duplicates by {summary['counts_by']['field']}", counts))
    about = summary["verification"] if view.kind == "run" else "All documents checked so far and their verdicts."
    return place.show("overview.html", "overview", view.title, about=about, numbers=numbers, cards=cards)


def groups(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """List groups, a page at a time."""
    asked = request.query_params
    sort = asked.get("sort", "size") if asked.get("sort") in SORTS else "size"
    words = asked.get("q", "")[:_MOST_SEARCHED]
    found = place.view.catalog.list_groups(sort=sort, words=words, cursor=asked.get("at", ""), limit=_ON_A_PAGE)
    texts = place.view.texts([(group.row, group.place) for group in found.groups])
    rows = []
    for group, text in zip(found.groups, texts, strict=True):
        sample, is_missing = sample_of(text)
        bar = similarity_bar(group.lowest, group.highest)
        rows.append(ListedGroup(group, sample, is_missing, bar, place.address(f"groups/{group.number}")))
    is_stale = isinstance(place.view, IndexView) and not place.view.is_current
    return place.show(
        "groups.html", "groups", "Groups", rows=rows, words=words, sort=sort, sorts=_SORT_NAMES, found=found,
        before=found.before and place.address("groups", sort=sort, q=words, at=found.before),
        after=found.after and place.address("groups", sort=sort, q=words, at=found.after),
        is_stale=is_stale,
    )  # fmt: skip


def sort_again(place: Place, request: Request, fields: dict[str, str]) -> Response:
    """Sort the groups of an index anew."""
    if not isinstance(place.view, IndexView):
        raise InvalidInput("the groups of a finished run do not change")
    place.view.sort_again()
    return RedirectResponse(place.plain("groups"), 303)
