"""Self-contained HTML document about a run: no external resources, no scripts, all texts escaped."""

from collections.abc import Iterator
from pathlib import Path

from likewise.io.output.summaries import is_over_parts, read_summary
from likewise.measures.comparison import align
from likewise.measures.diffs import MAX_CHARACTERS
from likewise.progress import Progress
from likewise.runs.drawing import Html, element, inline, stylesheet
from likewise.runs.report.parts import parts_sections
from likewise.runs.report.sections import (
    counts_table,
    curve_chart,
    inputs_table,
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
# Characters of each document compared in a sample.
_SAMPLE_CHARACTERS = 20_000


def report(run: Path, *, samples: bool = True, inputs: Path | None = None, progress: Progress | None = None) -> str:
    """Return a self-contained HTML page about a finished run."""
    summary = read_summary(run)
    if is_over_parts(summary):
        num_samples = NUM_SAMPLES if samples else 0
        headline, (counts, *cards), below = parts_sections(run, summary, num_samples=num_samples, inputs=inputs)
        return _page(run.resolve().name, headline, [counts, element("div", cards, class_="columns"), *below])
    with RunView(run, inputs=inputs, progress=progress) as view:
        return _page(view.title, summary["verification"], _body(view, samples=samples))


def _body(view: RunView, *, samples: bool) -> list[Html]:
    summary, recipe, catalog = view.summary, view.stated, view.catalog
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
    return [
        run_figures(summary, catalog.num_groups()),
        *([element("p", view.note, class_="notice")] if view.note else []),
        element("div", cards, class_="columns"),
        *([_card(f"Duplicates by {summary['counts_by']['field']}", counts)] if counts is not None else []),
        _card("Inputs", inputs_table(summary)),
        *([_samples(view)] if samples else []),
    ]


def _page(title: str, about: str, body: list[Html]) -> str:
    header = [element("h1", f"Likewise: {title}"), element("p", about)]
    style = element("style", Html(stylesheet()))
    head = [
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        # Also applies to the page opened as a file: nothing can be loaded, and no script runs.
        Html("<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"),
        element("title", f"Likewise: {title}"),
        style,
    ]
    main = element("main", [element("header", header), *body])
    return "<!doctype html>\n" + element("html", [element("head", head), element("body", main)], lang="en")


def _card(title: str, content: object) -> Html:
    return element("section", [element("h2", title), content], class_="card")


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
    """Yield removals at equal distances in order of similarity, least similar first."""
    total = view.summary["num_removed"]
    count = min(NUM_SAMPLES, total)
    for number in range(count):
        yield from view.catalog.doubtful(after=number * (total - 1) // max(1, count - 1), limit=1)


def _why(view: RunView, group: GroupRow, member: Member) -> Html:
    measured = f"{view.stated.measure} {member.similarity:.4f}"
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
    return inline(align(*cut, view.recipe))
