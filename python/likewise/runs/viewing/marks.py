"""Labels that people gave to pairs of documents: a small CSV file next to the run, which `likewise tune` reads."""

import csv
import os
import threading
from pathlib import Path

from likewise.errors import InvalidInput
from likewise.io.label_rows import id_of_cell, label_rows
from likewise.io.output.whole import WholeFile

_HEADER = ("doc_id_a", "doc_id_b", "label")
# The file is written as a whole with each label.
MOST_MARKS = 100_000
_MOST_ID_CHARACTERS = 10_000


class Marks:
    """Labels of pairs; a pair is the same in either order.

    Parameters
    ----------
    path : Path, optional
        The file, made with the first label; None where labels are kept in memory alone.

    Raises
    ------
    InvalidInput
        If a file is there that is none of labels.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._labels: dict[tuple[str, str], bool] = {}
        if path is not None and path.exists():
            self._labels = _read(path)

    def __len__(self) -> int:
        return len(self._labels)

    def label(self, a: str, b: str) -> bool | None:
        """Return whether a pair was called duplicates; None where nobody has said."""
        return self._labels.get(_pair(a, b))

    def items(self) -> list[tuple[str, str, bool]]:
        """Return all labels, the latest first."""
        with self._lock:
            return [(a, b, label) for (a, b), label in reversed(self._labels.items())]

    def mark(self, a: str, b: str, label: bool | None) -> None:  # noqa: FBT001 - the label itself
        """Call a pair duplicates or not, or take back what was said; the file is written before this returns.

        Raises
        ------
        InvalidInput
            If the two are one document, or there are too many labels.
        """
        if a == b or not a or not b or max(len(a), len(b)) > _MOST_ID_CHARACTERS:
            raise InvalidInput("a label requires the ids of two different documents")
        with self._lock:
            before = dict(self._labels)
            self._labels.pop(_pair(a, b), None)
            if label is not None:
                if len(self._labels) >= MOST_MARKS:
                    self._labels = before
                    raise InvalidInput(
                        f"there are {MOST_MARKS:,} labels, the maximum; export them and start a new file"
                    )
                self._labels[_pair(a, b)] = label
            try:
                self._write()
            except OSError:
                self._labels = before
                raise

    def to_csv(self) -> str:
        """Return the labels as CSV: doc_id_a, doc_id_b, label (1 for duplicates, 0 for others)."""
        return label_rows(_HEADER, ((a, b, int(label)) for (a, b), label in self._labels.items()))

    def _write(self) -> None:
        if self.path is None:
            return
        whole = WholeFile(self.path)
        with whole.named_errors():
            try:
                with whole.unfinished.open("w", encoding="utf-8", newline="") as file:
                    file.write(self.to_csv())
                    file.flush()
                    os.fsync(file.fileno())
                whole.finish()
            finally:
                whole.discard()


def _pair(a: str, b: str) -> tuple[str, str]:
    return (a, b) if a <= b else (b, a)


def _read(path: Path) -> dict[tuple[str, str], bool]:
    labels = {}
    with path.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file)
        if tuple(next(rows, ())) != _HEADER:
            raise InvalidInput(f"not a file of labels; such a file begins with {','.join(_HEADER)}", str(path), 1)
        for number, row in enumerate(rows, 2):
            if len(row) != len(_HEADER) or row[2] not in ("0", "1"):
                raise InvalidInput("a row must be doc_id_a, doc_id_b, and 1 or 0", str(path), number)
            labels[_pair(id_of_cell(row[0]), id_of_cell(row[1]))] = row[2] == "1"
    return labels
