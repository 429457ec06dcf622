"""Labeled pairs of documents, read from and written to small CSV files."""

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.arrays import TextData
from likewise.errors import InvalidInput, counted
from likewise.io.label_rows import id_of_cell, label_rows
from likewise.io.output.whole import write_whole
from likewise.io.tables.offered import as_table

HEADER = ("doc_id_a", "doc_id_b", "label", "weight")
_SIDES = (("doc_id_a", "doc_id_b"), ("id1", "id2"), ("id_a", "id_b"))
_YES = ("1", "y", "yes", "true")
_NO = ("0", "n", "no", "false")
# A pair that was shown and is neither.
_NEITHER = ("-1", "", "s", "skip", "?")
_MOST_LABELS = 1_000_000
_MOST_BYTES = 256 << 20


@dataclass(frozen=True)
class Label:
    """The label of a pair of documents.

    Parameters
    ----------
    a, b : str
        Ids, ``a < b``: a pair is the same in either order.
    is_duplicate : bool or None
        None if the pair was shown and skipped.
    weight : float
        Number of pairs of the collection that it represents.
    """

    a: str
    b: str
    is_duplicate: bool | None
    weight: float = 1.0


@dataclass(frozen=True)
class Labels:
    """Labels of distinct pairs, and notes about ignored rows of a file.

    Parameters
    ----------
    labels : list of Label
        In the order of the file.
    notes : list of str
        One sentence for each ignored item, with the reason.
    unwritten : list of str
        Short descriptions of the contents of the file that :func:`write_labels` does not write.
    """

    labels: list[Label]
    notes: list[str] = field(default_factory=list)
    unwritten: list[str] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def num_duplicates(self) -> int:
        """Number of pairs labeled as duplicates."""
        return sum(label.is_duplicate is True for label in self.labels)

    @property
    def num_others(self) -> int:
        """Number of pairs labeled as not duplicates."""
        return sum(label.is_duplicate is False for label in self.labels)


def ordered(a: str, b: str) -> tuple[str, str]:
    """Return the two ids of a pair in the order used by labels."""
    return (a, b) if a <= b else (b, a)


def read_labels(path: str | Path) -> Labels:
    """Read labeled pairs from a CSV or TSV file.

    Parameters
    ----------
    path : str or Path
        A file with the columns ``doc_id_a``, ``doc_id_b`` (or ``id1``, ``id2``), ``label``, and optionally ``weight``,
        in any order. Other columns are ignored. Without a header, the first three columns are used, and the third is
        the label. If the first line contains a tab, fields are separated by tabs. An id that a spreadsheet would read
        as a formula begins with an apostrophe, as written by :func:`write_labels`.

    Returns
    -------
    Labels
        Each pair once. Pairs of a document with itself and pairs with two labels that contradict each other are left
        out, with a note.

    Raises
    ------
    InvalidInput
        If the file is empty or not UTF-8, or a row is not a pair with a label. A label is 1, 0, y, n, or empty (also -1
        or skip) for a pair that is neither.
    """
    path = Path(path)
    with path.open("rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if len(content) > _MOST_BYTES:
        raise InvalidInput(f"larger than {_MOST_BYTES:,} bytes; not a file of labeled pairs", str(path))
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"byte {error.start} is not UTF-8; convert the file", str(path)) from error
    first = text.partition("\n")[0]
    is_tabbed = "\t" in first
    lines = io.StringIO(text, newline="")
    reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE) if is_tabbed else csv.reader(lines)
    try:
        rows = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InvalidInput(f"not CSV: {error}", str(path), reader.line_num) from error
    if not rows:
        raise InvalidInput("the file contains no labels", str(path))
    columns = _columns(rows[0][1])
    if columns is None:
        if len(rows[0][1]) < 3 or _meaning(rows[0][1][2]) == "unknown":
            raise InvalidInput(
                "not a file of labeled pairs; the first line must be doc_id_a,doc_id_b,label, or a pair with its "
                "label (1 or 0)",
                str(path),
                rows[0][0],
            )
        columns, others = (0, 1, 2, None), [f"column {number + 1}" for number in range(3, len(rows[0][1]))]
    else:
        others = [f"column {name!r}" for i, name in enumerate(rows[0][1]) if i not in columns]
        rows = rows[1:]
    if len(rows) > _MOST_LABELS:
        raise InvalidInput(f"{len(rows):,} labels; the maximum is {_MOST_LABELS:,}", str(path))
    found = _checked([_label(row, columns, path, number) for number, row in rows])
    found.unwritten.extend(others)
    return found


def as_labels(given: TextData) -> Labels:
    """Return labels from labels, a file, a table as for :func:`read_labels`, or tuples of ids, label and weight."""
    if isinstance(given, Labels):
        return given
    if isinstance(given, str | Path):
        return read_labels(given)
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        table = as_table(given)
        columns = _columns(table.column_names)
        if columns is None:
            raise InvalidInput(f"labels need the columns id_a, id_b and label (found: {', '.join(table.column_names)})")
        rows = zip(*(table.column(number).to_pylist() for number in columns if number is not None), strict=True)
    else:
        rows = iter(given)
    return _checked([_given_label(row, number) for number, row in enumerate(rows)])


def _given_label(row: Any, number: int) -> Label:
    cells = list(row) if isinstance(row, tuple | list) else []
    if len(cells) not in (3, 4) or cells[0] is None or cells[1] is None:
        raise InvalidInput("a label needs two ids and a value", row=number)
    a, b, label, weight = (*cells, 1.0)[:4]
    if isinstance(label, float):
        # In pandas, an integer column with nulls has floats.
        label = "" if math.isnan(label) else int(label) if label.is_integer() else label
    meaning = _meaning("" if label is None else str(label))
    if isinstance(meaning, str):
        raise InvalidInput(f"the label {label!r} is not valid; use 1, 0, or null for neither", row=number)
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight < math.inf:
        raise InvalidInput(f"the weight {weight!r} is not a number above 0", row=number)
    return Label(*ordered(str(a), str(b)), meaning, float(weight))


def _columns(header: Sequence[str]) -> tuple[int, int, int, int | None] | None:
    names = [cell.strip().lower() for cell in header]
    for a, b in _SIDES:
        if a in names and b in names and "label" in names:
            weight = names.index("weight") if "weight" in names else None
            return names.index(a), names.index(b), names.index("label"), weight
    return None


def _meaning(cell: str) -> bool | str | None:
    value = cell.strip().lower()
    if value in _YES or value in _NO:
        return value in _YES
    return None if value in _NEITHER else "unknown"


def _label(row: Sequence[str], columns: tuple[int, int, int, int | None], path: Path, number: int) -> Label:
    a, b, label, weight = columns
    if len(row) <= max(a, b, label):
        raise InvalidInput(f"{counted(len(row), 'field')}; a row must have two ids and a label", str(path), number)
    meaning = _meaning(row[label])
    if isinstance(meaning, str):
        raise InvalidInput(f"the label {row[label]!r} is not valid; use 1, 0, or empty for neither", str(path), number)
    stands_for = 1.0
    if weight is not None and len(row) > weight and row[weight].strip():
        try:
            stands_for = float(row[weight])
        except ValueError:
            stands_for = math.nan
        if not (0 < stands_for < math.inf):
            raise InvalidInput(f"the weight {row[weight]!r} is not a number above 0", str(path), number)
    return Label(*ordered(id_of_cell(row[a]), id_of_cell(row[b])), meaning, stands_for)


def _checked(labels: Iterable[Label]) -> Labels:
    found: dict[tuple[str, str], Label] = {}
    contradicted: set[tuple[str, str]] = set()
    num_alone = num_again = 0
    for label in labels:
        pair = label.a, label.b
        if label.a == label.b:
            num_alone += 1
            continue
        before = found.get(pair)
        if before is not None:
            num_again += 1
            if before.is_duplicate is not label.is_duplicate and None not in (before.is_duplicate, label.is_duplicate):
                contradicted.add(pair)
            if label.is_duplicate is None:
                continue
        found[pair] = label
    for pair in contradicted:
        del found[pair]
    notes: list[str] = []
    unwritten: list[str] = []
    if num_alone:
        notes.append(f"{counted(num_alone, 'pair')} of a document with itself ignored")
    if contradicted:
        a, b = min(contradicted)
        notes.append(f"{counted(len(contradicted), 'pair')} with contradictory labels ignored, such as {a} and {b}")
        unwritten.append("contradictory labels")
    if num_again:
        named = counted(num_again, "label repeats an earlier one", "labels repeat earlier ones")
        notes.append(f"{named}; each pair counts once")
    return Labels(list(found.values()), notes, unwritten)


def write_labels(labels: Sequence[Label], path: Path) -> None:
    """Write labels as CSV. The file is renamed into place when it is complete and synced."""
    rows = (
        (label.a, label.b, "skip" if label.is_duplicate is None else int(label.is_duplicate), f"{label.weight:g}")
        for label in labels
    )
    write_whole(path, label_rows(HEADER, rows), is_synced=True)
