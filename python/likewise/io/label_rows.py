"""Rows of ids and labels as CSV, safe for any characters in ids."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# Spreadsheets execute cells that begin so; a cell starts at the beginning, or after a separator of some locale.
_FORMULA = "(^|[;\t\r\n])({}[\"' ]*[=+\\-@＝＋－＠])"
_PLAIN = re.compile(_FORMULA.format(""))
_SHIELDED = re.compile(_FORMULA.format("'"))


def label_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a header and rows as CSV in which spreadsheets see no formulas; :func:`id_of_cell` restores ids."""
    out = io.StringIO()
    plain, quoting = (csv.writer(out, lineterminator="\n", quoting=rule) for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    plain.writerow(header)
    for row in rows:
        cells = [_PLAIN.sub(r"\1'\2", cell) if isinstance(cell, str) else cell for cell in row]
        # A carriage return ends a line for readers, but the writer does not quote it.
        writer = quoting if any("\r" in str(cell) for cell in cells) else plain
        writer.writerow(cells)
    return out.getvalue()


def id_of_cell(cell: str) -> str:
    """Return the id in a cell of such rows, without the apostrophes that prevent formulas."""
    return _SHIELDED.sub(lambda found: found[1] + found[2][1:], cell)
