"""Report of a run of ``likewise repeats``: the most frequent removed parts, and documents without them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise.io.output.directory import EVIDENCE
from likewise.io.output.evidence import readable
from likewise.io.tables.columns import numbers_of
from likewise.measures.comparison import Stretch
from likewise.recipe.recipe import Recipe
from likewise.runs.drawing import Html, element, inline
from likewise.runs.report.sections import facts, figures, inputs_table, recipe_facts, stage_chart
from likewise.runs.viewing.texts import Place, TextReader
from likewise.runs.viewing.view import file_run

# Bytes of a document shown in a sample.
_SAMPLE_BYTES = 20_000
_COLUMNS = ("row", "doc_id", "file", "offset", "length", "span_start", "span_end", "kept_id", "kept_file")


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
        below.append(("Documents without their repeats", _samples(run, summary, recipe, num_samples, inputs)))
    cards = [
        [element("section", [element("h2", title), content], class_="card") for title, content in some]
        for some in (about, below)
    ]
    return summary["verification"], [removed, *cards[0]], cards[1]


def _most_removed(summary: dict[str, Any]) -> Html:
    parts = summary["most_removed"]
    if not parts:
        return element("p", "Nothing was removed.")
    names = ("Times", "Bytes")
    head = [element("th", name, scope="col", class_="number") for name in names]
    rows = []
    for part in parts:
        counts = zip(names, (part["num_times"], part["num_bytes"]), strict=True)
        cells = [element("td", f"{count:,}", class_="number", data_name=name) for name, count in counts]
        rows.append(element("tr", [*cells, element("td", part["text"], dir="auto")]))
    columns = element("tr", [*head, element("th", "Text", scope="col")])
    return element("table", [element("thead", columns), element("tbody", rows)], class_="list")


def _samples(run: Path, summary: dict[str, Any], recipe: Recipe, count: int, inputs: Path | None) -> Html:
    stated, files = summary.get("input_directory"), summary["inputs"]
    directory = inputs if inputs is not None else None if stated is None else Path(stated)
    names, sizes = [file["path"] for file in files], [file["num_bytes"] for file in files]
    shown: list[Html] = [element("p", "Struck through: removed from the document.", class_="quiet")]
    with TextReader(directory, names, sizes, file_run(summary), recipe) as reader:
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
    import pyarrow.parquet as pq

    with readable(run / EVIDENCE), pq.ParquetFile(run / EVIDENCE) as file:
        metadata = file.metadata
        starts = np.cumsum([0, *(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))])
        total = int(starts[-1])
        chosen = np.unique(np.linspace(0, max(0, total - 1), min(count, total)).astype(np.int64))
        groups = np.searchsorted(starts, chosen, side="right") - 1
        done = -1
        for group in np.unique(groups).tolist():
            table = file.read_row_group(group, columns=list(_COLUMNS))
            rows = numbers_of(table.column("row"), np.int64, 0)
            for number in (chosen[groups == group] - starts[group]).tolist():
                if rows[number] != done:
                    done = rows[number]
                    low, high = np.searchsorted(rows, [done, done + 1]).tolist()
                    yield _removed(table.slice(low, high - low).to_pylist())


def _removed(rows: list[dict[str, Any]]) -> _Removed:
    first = rows[0]
    return _Removed(
        first["doc_id"],
        Place(first["file"], first["offset"], first["length"]),
        [(row["span_start"], row["span_end"]) for row in rows],
        tuple(dict.fromkeys(row["kept_id"] for row in rows)),
    )
