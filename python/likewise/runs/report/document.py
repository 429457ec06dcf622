"""One self-contained HTML document about a run: nothing is loaded, no script runs, nothing of a text becomes markup."""

from collections.abc import Iterator
from pathlib import Path

from likewise.measures.comparison import align
from likewise.measures.diffs import MAX_CHARACTERS
from likewise.progress import Progress
from likewise.runs.drawing import Html, element, inline, stylesheet
from likewise.runs.report.sections import (
    counts_table,
    curve_chart,
    recipe_facts,
    run_figures,
    search_facts,
    similarity_chart,
    size_chart,
    stage_chart,
    threshold_chart,
)
from likewise.runs.viewing import GroupRow, Member, Missing, RunView

NUM_SAMPLES = 20
# A sample shows so much of long texts around each difference, and so much of a document at all.
_SAMPLE_CHARACTERS = 20_000


def report(run: Path, *, samples: bool = True, inputs: Path | None = None, progress: Progress | None = None) -> str:
    """Return a self-contained HTML page about a finished run.

    Parameters
    ----------
    run : Path
        The output directory.
    samples : bool
        Whether twenty removals are shown with their texts; without them the page holds no word of any document.
    inputs : Path, optional
        The directory of the inputs, where they lie elsewhere than at the time of the run.
    progress : callable, optional
        Takes events.

    Returns
    -------
    str
        HTML.

    Raises
    ------
    InvalidInput
        If there is no finished run, or its evidence is damaged.
    """
    with RunView(run, inputs=inputs, progress=progress) as view:
        return "<!doctype html>\n" + _document(view, samples=samples)


def _document(view: RunView, *, samples: bool) -> Html:
    summary, recipe, catalog = view.summary, view.recipe, view.catalog
    chart, chosen, counts = curve_chart(recipe), threshold_chart(summary), counts_table(summary)
    cards = [
        _card("Recipe", recipe_facts(recipe, summary["recall"])),
        _card("Comparisons", search_facts(summary)),
        *([_card("How the threshold was chosen", chosen)] if chosen is not None else []),
        _card("Similarities of removed documents", similarity_chart(catalog, recipe)),
        _card("Group sizes", size_chart(catalog)),
        *([_card("Probability of finding a pair", chart)] if chart is not None else []),
        _card("Time", stage_chart(summary)),
    ]
    body = [
        element("header", [element("h1", f"Likewise: {view.title}"), element("p", summary["verification"])]),
        run_figures(summary, catalog.num_groups()),
        *([element("p", view.note, class_="notice")] if view.note else []),
        element("div", cards, class_="columns"),
        *([_card(f"Duplicates by {summary['counts_by']['field']}", counts)] if counts is not None else []),
        _inputs(view),
        *([_samples(view)] if samples else []),
    ]
    style = element("style", Html(stylesheet()))
    head = [
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        # Also where it is opened as a file: nothing can be loaded, and no script runs.
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        element("title", f"Likewise: {view.title}"),
        style,
    ]
    return element("html", [element("head", head), element("body", element("main", body))], lang="en")


def _card(title: str, content: object) -> Html:
    return element("section", [element("h2", title), content], class_="card")


def _inputs(view: RunView) -> Html:
    names = ("Documents", "Kept", "Bad rows")
    head = [element("th", "File", scope="col"), *(element("th", name, scope="col", class_="number") for name in names)]
    rows = []
    for file in view.summary["inputs"]:
        counts = (file["num_documents"], file["num_kept"], file["num_bad_rows"])
        cells = [
            element("td", f"{count:,}", class_="number", data_name=name)
            for name, count in zip(names, counts, strict=True)
        ]
        rows.append(element("tr", [element("td", file["path"], class_="id"), *cells]))
    shown, more = rows[:100], len(rows) - 100
    table = element("table", [element("thead", element("tr", head)), element("tbody", shown)], class_="list")
    return _card("Inputs", [table, element("p", f"and {more:,} more", class_="quiet") if more > 0 else ""])


def _samples(view: RunView) -> Html:
    pairs = list(_spread(view))
    if not pairs:
        return element("p", "No document was removed.")
    parts = []
    for group, member in pairs:
        texts = view.texts([(member.row, member.place), (group.row, group.place)])
        parts.append(element("div", [_why(view, group, member), _difference(view, texts)], class_="pair"))
    title = f"{len(pairs)} removals, least similar first" if len(pairs) > 1 else "The removal"
    about = element(
        "p", "Struck through: only in the removed document. Underlined: only in the kept document.", class_="quiet"
    )
    return _card(title, [about, *parts])


def _spread(view: RunView) -> Iterator[tuple[GroupRow, Member]]:
    """Yield removals at equal distances in the order of their similarity, the least similar first."""
    total = view.summary["num_removed"]
    count = min(NUM_SAMPLES, total)
    for number in range(count):
        yield from view.catalog.doubtful(after=number * (total - 1) // max(1, count - 1), limit=1)


def _why(view: RunView, group: GroupRow, member: Member) -> Html:
    measured = f"{view.summary['recipe'].get('measure', view.recipe.measure)} {member.similarity:.4f}"
    if member.distance is not None:
        measured += f", distance {member.distance}"
    ids = [element("b", member.doc_id), " removed for ", element("b", group.doc_id), " "]
    return element("div", [*ids, element("span", measured, class_="tag")])


def _difference(view: RunView, texts: list[str | bytes | Missing]) -> Html:
    a, b = texts
    for text in (a, b):
        if isinstance(text, Missing):
            return element("p", text.reason, class_="quiet")
    if not isinstance(a, str) or not isinstance(b, str):
        return element("p", "The documents are binary.", class_="quiet")
    if max(len(a), len(b)) > MAX_CHARACTERS:
        return element("p", f"The texts are longer than {MAX_CHARACTERS:,} characters.", class_="quiet")
    cut = (a[:_SAMPLE_CHARACTERS], b[:_SAMPLE_CHARACTERS])
    return inline(align(*cut))
