"""Self-contained HTML document about a run: no external resources, no scripts, all texts escaped."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.batch.write.summary import leak_table
from likewise.checks import counted
from likewise.io.output.directory import CONTAMINATED, COPIES, EVIDENCE, GIVEN, ITEMS, LEAKS, SITES
from likewise.io.output.summaries import is_over_parts, read_other, read_summary
from likewise.measures.comparison import MAX_CHARACTERS, align
from likewise.progress import Progress
from likewise.runs.drawing import Html, element, inline, stylesheet
from likewise.runs.report.parts import parts_sections
from likewise.runs.report.sections import (
    counts_table,
    curve_chart,
    figures,
    inputs_table,
    recipe_facts,
    run_figures,
    search_facts,
    similarity_chart,
    size_chart,
    stage_chart,
    threshold_chart,
    why,
)
from likewise.runs.viewing import KINDS, GroupRow, Member, Missing, RunView

_MOST_ROWS = 50
# Columns that locate a document in its file.
_HIDDEN = {"row", "other_row", "offset", "length", "span_start", "span_end"}

NUM_SAMPLES = 20
# Characters of each document compared in a sample.
_SAMPLE_CHARACTERS = 20_000


def table_sections(run: Path, summary: Mapping[str, Any]) -> list[Html]:
    """Return the counts of a summary that are not zero, and the first rows of each table of the output."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts = [(name.removeprefix("num_"), value) for name, value in summary.items() if name.startswith("num_")]
    sections = [figures([(name.replace("_", " "), value or None) for name, value in counts], summary)]
    if "splits" in summary:
        head, *rows = leak_table(summary)
        sections.append(_card_of_command("splits", [str(name) for name in head], rows, len(rows)))
    for name in (LEAKS, COPIES, GIVEN, CONTAMINATED, ITEMS, SITES, EVIDENCE):
        if not (run / name).is_file():
            continue
        file = pq.ParquetFile(run / name)
        batches = itertools.islice(file.iter_batches(batch_size=_MOST_ROWS), 1)
        first = pa.Table.from_batches(batches, file.schema_arrow)
        shown = [one for one in first.column_names if one not in _HIDDEN and first[one].null_count < len(first)]
        rows = [[row[one] for one in shown] for row in first.select(shown).to_pylist()]
        sections.append(_card_of_command(Path(name).stem, shown, rows, file.metadata.num_rows))
    return sections


def _card_of_command(title: str, names: list[str], rows: list[Any], num: int) -> Html:
    head = element("tr", [element("th", name.replace("_", " "), scope="col") for name in names])
    body = [element("tr", [element("td", _shown(value)) for value in row]) for row in rows]
    table = element("table", [element("thead", head), element("tbody", body)], class_="list")
    more = [element("p", f"and {num - len(rows):,} more in the table", class_="quiet")] if num > len(rows) else []
    parts = [
        element("h2", f"{title.capitalize()}: {num:,}"),
        element("div", table, class_="scroll", tabindex="0"),
        *more,
    ]
    return element("section", parts, class_="card")


def _shown(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}" if isinstance(value, float) else str(value)


def report(run: Path, *, samples: bool = True, inputs: Path | None = None, progress: Progress | None = None) -> str:
    """Return a self-contained HTML page about a finished run."""
    if (other := read_other(run)) is not None:
        command, found = other
        return _page(f"{run.resolve().name} ({command})", found["verification"], table_sections(run, found))
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
        _card("Similarities of removed documents", similarity_chart(catalog.similarities(), recipe)),
        _card("Group sizes", size_chart(catalog.sizes())),
        *([_card("Probability of finding a pair", chart)] if chart is not None else []),
        _card("Time", stage_chart(summary)),
    ]
    return [
        run_figures(summary, catalog.num_groups()),
        *([element("p", view.note, class_="notice")] if view.note else []),
        *(_samples(view) if samples else []),
        element("div", cards, class_="columns"),
        *([_card(f"Duplicates by {summary['counts_by']['field']}", counts)] if counts is not None else []),
        _card("Inputs", inputs_table(summary)),
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


def _samples(view: RunView) -> list[Html]:
    kinds = view.catalog.least_certain(NUM_SAMPLES)
    shown: set[tuple[int, int]] = set()
    cards = []
    for number, (kind, num, found) in enumerate(kinds):
        # What one kind leaves, the next ones may show.
        room = -(-(NUM_SAMPLES - len(shown)) // (len(kinds) - number))
        new = [(group, member) for group, member in found if (group.number, member.row) not in shown][:room]
        shown |= {(group.number, member.row) for group, member in new}
        parts = []
        for group, member in new:
            texts = view.texts([(member.row, member.place), (group.row, group.place)])
            parts.append(element("div", [_why(view, group, member), _difference(view, texts)], class_="pair"))
        title = f"Differ in {KINDS[kind]}: " if kind else ""
        title += f"{len(new)} of {counted(num, 'removal')}, least certain first"
        cards.append(_card(title, parts))
    about = "Struck through: only in the removed document. Underlined: only in the kept document."
    return [element("p", about if cards else "No document was removed.", class_="quiet"), *cards]


def _why(view: RunView, group: GroupRow, member: Member) -> Html:
    ids = [element("b", member.doc_id), " removed for ", element("b", group.doc_id), " "]
    return element("div", [*ids, element("span", why(view.stated, member), class_="tag")])


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
