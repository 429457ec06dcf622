"""Two texts side by side, word by word, with common and differing words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from likewise.io.html import Html, element, escaped, joined

if TYPE_CHECKING:
    from likewise.measures.comparison import Stretch

# A row of the two columns ends at a line break, or after a sentence once it has this many characters.
_LONG_ROW = 240
_BREAK = re.compile(r"\n|(?<=[.!?。！？])\s")
# Number of equal rows shown around a difference; longer runs are folded.
_CONTEXT_ROWS = 2
# Longer texts are not shown.
MAX_CHARACTERS = 200_000


@dataclass
class _Row:
    """One row: pieces of both sides, each with whether it is the same on the other side."""

    left: list[tuple[str, bool]] = field(default_factory=list)
    right: list[tuple[str, bool]] = field(default_factory=list)
    num_characters: int = 0

    @property
    def is_same(self) -> bool:
        return all(is_same for _, is_same in (*self.left, *self.right))


def side_by_side(alignment: "Sequence[Stretch]", names: tuple[object, object], *, folds: bool = True) -> Html:
    """Return two aligned texts as a table of two columns, with differences marked."""
    head = element("thead", element("tr", [element("th", name, scope="col") for name in names]))
    rows = list(_rows(alignment))
    if not rows:
        cells = [element("td", element("em", "empty")) for _ in "ab"]
        return element("table", [head, element("tbody", element("tr", cells))], class_="diff")
    bodies = []
    for is_folded, part in _folded(rows, folds=folds):
        body = element("tbody", [_row(row) for row in part])
        if is_folded:
            text = f"{len(part):,} equal rows"
            inner = element("table", body, class_="diff")
            body = element(
                "tbody", element("tr", element("td", element("details", [element("summary", text), inner]), colspan=2))
            )
        bodies.append(body)
    return element("table", [head, *bodies], class_="diff")


def inline(alignment: "Sequence[Stretch]", *, context: int = 60) -> Html:
    """Return two aligned texts as one: only in the first is struck out, only in the second is underlined."""
    parts = []
    last = len(alignment) - 1
    for number, part in enumerate(alignment):
        if part.is_same:
            parts.append(_shortened(part.a, context, is_first=number == 0, is_last=number == last))
        else:
            parts += [element("del", part.a)] if part.a else []
            parts += [element("ins", part.b)] if part.b else []
    return element("p", parts, class_="inline-diff", dir="auto")


def _shortened(text: str, context: int, *, is_first: bool, is_last: bool) -> Html:
    if len(text) <= 2 * context + 8:
        return escaped(text)
    # Cut at spaces, if there are any.
    start = "" if is_first else text[:context].rpartition(" ")[0] or text[:context]
    end = "" if is_last else text[-context:].partition(" ")[2] or text[-context:]
    return joined([start, " ", element("span", "…", class_="gap", title=f"{len(text):,} equal characters"), " ", end])


def _row(row: _Row) -> Html:
    cells = [
        element("td", _marked(row.left, "del"), class_="side", dir="auto"),
        element("td", _marked(row.right, "ins"), class_="side", dir="auto"),
    ]
    return element("tr", cells, class_="same" if row.is_same else "changed")


def _marked(pieces: list[tuple[str, bool]], tag: str) -> list[Html]:
    return [escaped(text) if is_same else element(tag, text) for text, is_same in pieces]


def _rows(alignment: "Sequence[Stretch]") -> Iterator[_Row]:
    row = _Row()
    for part in alignment:
        if not part.is_same or part.a != part.b:
            # Differences that the recipe ignores are not marked.
            lines = [part.a.split("\n"), part.b.split("\n")]
            if not part.is_same or len(lines[0]) != len(lines[1]):
                lines = [[part.a], [part.b]]
            for number, (left, right) in enumerate(zip(*lines, strict=True)):
                if number:
                    yield row
                    row = _Row()
                row.left.append((left, part.is_same))
                row.right.append((right, part.is_same))
                row.num_characters += max(len(left), len(right))
            continue
        start = 0
        for end in _BREAK.finditer(part.a):
            is_line = part.a[end.start()] == "\n"
            if not is_line and row.num_characters + end.start() - start < _LONG_ROW:
                continue
            row.left.append((part.a[start : end.start()], True))
            row.right.append((part.a[start : end.start()], True))
            yield row
            row, start = _Row(), end.end()
        rest = part.a[start:]
        row.left.append((rest, True))
        row.right.append((rest, True))
        row.num_characters += len(rest)
    if any(text for text, _ in (*row.left, *row.right)):
        yield row


def _folded(rows: list[_Row], *, folds: bool) -> Iterator[tuple[bool, list[_Row]]]:
    """Yield (whether the rows are folded, rows)."""
    changed = [number for number, row in enumerate(rows) if not row.is_same]
    if not folds or not changed:
        yield False, rows
        return
    near = [False] * len(rows)
    for number in changed:
        for beside in range(max(0, number - _CONTEXT_ROWS), min(len(rows), number + _CONTEXT_ROWS + 1)):
            near[beside] = True
    start = 0
    for number in range(1, len(rows) + 1):
        if number == len(rows) or near[number] != near[start]:
            # Folding a single row would save no space.
            yield not near[start] and number - start > 1, rows[start:number]
            start = number
