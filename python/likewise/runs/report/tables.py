"""Sections of the report about other commands than a deduplication: counts, and the first rows of each table."""

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from likewise.batch.write.summary import leak_table
from likewise.io.output.directory import CONTAMINATED, COPIES, EVIDENCE, GIVEN, ITEMS, LEAKS, SITES
from likewise.runs.drawing import Html, element
from likewise.runs.report.sections import figures

_MOST_ROWS = 50
# Columns that locate a document in its file.
_HIDDEN = {"row", "other_row", "offset", "length", "span_start", "span_end"}


def table_sections(run: Path, summary: Mapping[str, Any]) -> list[Html]:
    """Return the counts of a summary that are not zero, and the first rows of each table of the output."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    counts = [(name.removeprefix("num_"), value) for name, value in summary.items() if name.startswith("num_")]
    sections = [figures([(name.replace("_", " "), value or None) for name, value in counts], summary)]
    if "splits" in summary:
        head, *rows = leak_table(summary)
        sections.append(_card("splits", [str(name) for name in head], rows, len(rows)))
    for name in (LEAKS, COPIES, GIVEN, CONTAMINATED, ITEMS, SITES, EVIDENCE):
        if not (run / name).is_file():
            continue
        file = pq.ParquetFile(run / name)
        batches = itertools.islice(file.iter_batches(batch_size=_MOST_ROWS), 1)
        first = pa.Table.from_batches(batches, file.schema_arrow)
        shown = [one for one in first.column_names if one not in _HIDDEN and first[one].null_count < len(first)]
        rows = [[row[one] for one in shown] for row in first.select(shown).to_pylist()]
        sections.append(_card(Path(name).stem, shown, rows, file.metadata.num_rows))
    return sections


def _card(title: str, names: list[str], rows: list[Any], num: int) -> Html:
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
