"""Rows of ids and what was said of them as CSV, whatever characters ids hold."""

import csv
import io
from collections.abc import Iterable, Sequence


def label_rows(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a header and rows as CSV that reads back as it was given; lines end in a newline.

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
        # A carriage return ends a line for readers, and is not quoted by itself.
        writer = quoting if any("\r" in str(cell) for cell in row) else plain
        writer.writerow(row)
    return out.getvalue()
