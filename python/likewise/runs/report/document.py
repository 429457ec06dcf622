"""Self-contained HTML document about a run: no external resources, no scripts, all texts escaped."""

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise.batch.write.summary import leak_table
from likewise.errors import counted
from likewise.io.html import Html, element, table
from likewise.io.output.directory import CONTAMINATED, COPIES, EVIDENCE, GIVEN, ITEMS, LEAKS, SITES
from likewise.io.output.evidence import readable
from likewise.io.output.summaries import is_over_parts, read_other, read_summary
from likewise.io.tables.columns import numbers_of, open_parquet
from likewise.measures.comparison import MAX_CHARACTERS, Stretch, align, inline
from likewise.progress import Progress
from likewise.recipe.recipe import Recipe
from likewise.runs.drawing.charts import stylesheet
from likewise.runs.report.sections import (
    cards,
    counts_table,
    facts,
    figures,
    heads,
    inputs_table,
    recipe_facts,
    run_figures,
    stage_chart,
    why,
)
from likewise.runs.viewing.catalog import KINDS, GroupRow, Member
from likewise.runs.viewing.texts import Missing, Place, TextReader
from likewise.runs.viewing.view import RunView, file_run

# Bytes of a document shown in a sample.
_SAMPLE_BYTES = 20_000
_COLUMNS = ("row", "doc_id", "file", "offset", "length", "span_start", "span_end", "kept_id", "kept_file")


_MOST_ROWS = 50
# Columns that locate a document in its file.
_HIDDEN = {"row", "other_row", "offset", "length", "span_start", "span_end"}

NUM_SAMPLES = 20
# Characters of each document compared in a sample.
_SAMPLE_CHARACTERS = 20_000


class _Removed(NamedTuple):
    """The parts that were removed from one document."""

    doc_id: str
    place: Place
    # Ranges of bytes in its text, in order
    spans: list[tuple[int, int]]
    # Documents with the first occurrences of the parts, each listed once
    kept: tuple[str, ...]


def parts_sections(
    run: Path, summary: dict[str, Any], *, num_samples: int, inputs: Path | None
) -> tuple[str, list[Html], list[Html]]:
    """Return the headline of a run over parts, the cards shown side by side, and the cards shown below."""
    recipe, options = Recipe.from_dict(summary["recipe"]), summary["options"]
    unit = options["unit"]
    removed = figures(
        [
            ("documents", summary["num_documents"]),
            ("changed", summary["num_changed"]),
            ("became empty and were removed", summary["num_emptied"] or None),
            (f"removed {unit}s", summary["num_removed_parts"]),
            ("bytes of text removed", summary["num_removed_bytes"]),
            ("bad rows", summary["num_bad_rows"] or None),
        ],
        summary,
    )
    asked = facts(
        [
            ("Parts", f"{unit}s"),
            ("Minimum length", f"{options['min_tokens']} words" if options["min_tokens"] else None),
            ("Also compared with", ", ".join(summary.get("against", {}).get("paths", [])) or None),
        ]
    )
    about = [("Parts", asked), ("Time", stage_chart(summary))]
    if unit != "span":
        about.insert(1, ("Recipe", recipe_facts(recipe, summary["recall"])))
    below = [(f"Removed {unit}s that account for the most bytes", _most_removed(summary))] if num_samples else []
    below.append(("Inputs", inputs_table(summary)))
    if num_samples:
        below.append(("Documents without their repeats", _samples_of_parts(run, summary, recipe, num_samples, inputs)))
    cards = [[_card(title, content) for title, content in some] for some in (about, below)]
    return summary["verification"], [removed, *cards[0]], cards[1]


def _most_removed(summary: dict[str, Any]) -> Html:
    parts = summary["most_removed"]
    if not parts:
        return element("p", "Nothing was removed.")
    names = ("Times", "Bytes")
    rows = []
    for part in parts:
        counts = zip(names, (part["num_times"], part["num_bytes"]), strict=True)
        cells = [element("td", f"{count:,}", class_="number", data_name=name) for name, count in counts]
        rows.append(element("tr", [*cells, element("td", part["text"], dir="auto")]))
    return table([*heads(*names, class_="number"), *heads("Text")], rows, class_="list")


def _samples_of_parts(run: Path, summary: dict[str, Any], recipe: Recipe, count: int, inputs: Path | None) -> Html:
    shown: list[Html] = [element("p", "Struck through: removed from the document.", class_="quiet")]
    with TextReader(summary, inputs, file_run(summary), recipe) as reader:
        for removed in _spread(run, count):
            (text,) = reader.texts([removed.place])
            kept = [element("b", doc_id) for doc_id in removed.kept[:3]]
            why: list[object] = [element("b", removed.doc_id), " repeats ", kept[0]]
            for one in kept[1:]:
                why += [", ", one]
            if len(removed.kept) > len(kept):
                why.append(f" and {len(removed.kept) - len(kept):,} more")
            if isinstance(text, str):
                drawn = inline(_without(text.encode()[:_SAMPLE_BYTES], removed.spans))
            else:
                drawn = element("p", "The document is binary." if isinstance(text, bytes) else text.reason)
            shown.append(element("div", [element("div", why), drawn], class_="pair"))
    return element("div", shown) if len(shown) > 1 else element("p", "Nothing was removed.")


def _without(text: bytes, spans: list[tuple[int, int]]) -> list[Stretch]:
    """Return a text and what is left of it as an alignment."""
    found, at = [], 0
    for start, end in [*spans, (len(text), len(text))]:
        stays = text[at : max(at, start)].decode(errors="ignore")
        goes = text[max(at, start) : end].decode(errors="ignore")
        at = max(at, end)
        found += [Stretch(True, stays, stays)] if stays else []  # noqa: FBT003 - a record
        found += [Stretch(False, goes, "")] if goes else []  # noqa: FBT003
    return found


def _spread(run: Path, count: int) -> Iterator[_Removed]:
    """Yield documents at equal distances in the evidence, each with all parts removed from it."""
    with readable(run / EVIDENCE), open_parquet(run / EVIDENCE) as file:
        metadata = file.metadata
        starts = np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])
        total = int(starts[-1])
        chosen = np.unique(np.linspace(0, max(0, total - 1), min(count, total)).astype(np.int64))
        groups = np.searchsorted(starts, chosen, side="right") - 1
        done = -1
        for group in np.unique(groups).tolist():
            found = file.read_row_group(group, columns=list(_COLUMNS))
            rows = numbers_of(found.column("row"), np.int64, 0)
            for number in (chosen[groups == group] - starts[group]).tolist():
                if rows[number] != done:
                    done = rows[number]
                    low, high = np.searchsorted(rows, [done, done + 1]).tolist()
                    yield _removed(found.slice(low, high - low).to_pylist())


def _removed(rows: list[dict[str, Any]]) -> _Removed:
    first = rows[0]
    return _Removed(
        first["doc_id"],
        Place(first["file"], first["offset"], first["length"]),
        [(row["span_start"], row["span_end"]) for row in rows],
        tuple(dict.fromkeys(row["kept_id"] for row in rows)),
    )


def table_sections(run: Path, summary: Mapping[str, Any]) -> list[Html]:
    """Return the counts of a summary that are not zero, and the first rows of each table of the output."""
    import pyarrow as pa

    counts = [(name.removeprefix("num_"), value) for name, value in summary.items() if name.startswith("num_")]
    sections = [figures([(name.replace("_", " "), value or None) for name, value in counts], summary)]
    if "splits" in summary:
        head, *rows = leak_table(summary)
        sections.append(_card_of_command("splits", [str(name) for name in head], rows, len(rows)))
    for name in (LEAKS, COPIES, GIVEN, CONTAMINATED, ITEMS, SITES, EVIDENCE):
        if not (run / name).is_file():
            continue
        file = open_parquet(run / name)
        batches = itertools.islice(file.iter_batches(batch_size=_MOST_ROWS), 1)
        first = pa.Table.from_batches(batches, file.schema_arrow)
        shown = [one for one in first.column_names if one not in _HIDDEN and first[one].null_count < len(first)]
        rows = [[row[one] for one in shown] for row in first.select(shown).to_pylist()]
        sections.append(_card_of_command(Path(name).stem, shown, rows, file.metadata.num_rows))
    return sections


def _card_of_command(title: str, names: list[str], rows: list[Any], num: int) -> Html:
    head = heads(*(name.replace("_", " ") for name in names))
    body = [element("tr", [element("td", _shown(value)) for value in row]) for row in rows]
    more = [element("p", f"and {num - len(rows):,} more in the table", class_="quiet")] if num > len(rows) else []
    parts = [
        element("h2", f"{title.capitalize()}: {num:,}"),
        element("div", table(head, body, class_="list"), class_="scroll", tabindex="0"),
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
    summary, counts = view.summary, counts_table(view.summary)
    about = [_card(title, content) for title, content in cards(view, "Similarities of removed documents")]
    return [
        run_figures(summary, view.catalog.num_groups()),
        *([element("p", view.note, class_="notice")] if view.note else []),
        *(_samples(view) if samples else []),
        element("div", about, class_="columns"),
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
