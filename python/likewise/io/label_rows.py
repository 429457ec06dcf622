"""Rows of ids and what was said of them as CSV, whatever characters ids hold."""

import csv
import io
import re
from collections.abc import Iterable, Sequence

# A spreadsheet runs a cell that begins with one of these. Cells begin where the text does, and behind what parts cells
# or lines in some country; quotes and spaces before a formula may be dropped.
_FORMULA = "(^|[;\t\r\n])({}[\"' ]*[=+\\-@＝＋－＠])"
_PLAIN = re.compile(_FORMULA.format(""))
_SHIELDED = re.compile(_FORMULA.format("'"))


def label_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a header and rows as CSV; lines end in a newline, and no spreadsheet takes a cell for a formula.

    What is read back is what was given once :func:`id_of_cell` took the apostrophe off ids that would begin one.

    Parameters
    ----------
    header : sequence of str
        Names of the columns.
    rows : iterable of sequences
        Ids first, as str; numbers as they are printed.
    """
    out = io.StringIO()
    plain, quoting = (csv.writer(out, lineterminator="\n", quoting=rule) for rule in (csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    plain.writerow(header)
    for row in rows:
        cells = [_PLAIN.sub(r"\1'\2", cell) if isinstance(cell, str) else cell for cell in row]
        # A carriage return ends a line for readers, and is not quoted by itself.
        writer = quoting if any("\r" in str(cell) for cell in cells) else plain
        writer.writerow(cells)
    return out.getvalue()


def id_of_cell(cell: str) -> str:
    """Return the id that a cell of such rows holds: without the apostrophes that keep it from being a formula."""
    return _SHIELDED.sub(lambda found: found[1] + found[2][1:], cell)
