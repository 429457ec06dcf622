"""Comparison of two finished runs."""

import math
from collections import deque
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from likewise.arrays import ArrowTable
from likewise.errors import differing
from likewise.io.kept import BATCH_ROWS, kept_copies, kept_documents, kinds_of
from likewise.io.output.directory import EVIDENCE
from likewise.io.output.evidence import read_evidence
from likewise.io.output.summaries import read_summary

Item = TypeVar("Item")
# Maximum distance at which equal items are matched after a difference.
WINDOW = 1024

# Places differ if the same sequence is split into other files.
_PLACES = ("file", "offset", "length", "kept_file", "kept_offset")
_MOST_NAMED = 5
_COUNTS = ("num_documents", "num_kept", "num_removed", "num_empty", "num_short", "num_capped")


class Beside(NamedTuple, Generic[Item]):
    """A pair of aligned items."""

    # Position of each item in its sequence, from 0; if the item is None, that of the next one
    number_a: int
    number_b: int
    # The items; None if only the other sequence has one
    a: Item | None
    b: Item | None
    # Whether the keys are equal
    is_same: bool


def aligned(first: Iterator[Item], second: Iterator[Item], key: Callable[[Item], Hashable]) -> Iterator[Beside[Item]]:
    """Yield two sequences aligned; after a difference, equal items are matched again."""
    waiting_a: deque[Item] = deque()
    waiting_b: deque[Item] = deque()
    number_a = number_b = 0
    while True:
        _fill(waiting_a, first, 1)
        _fill(waiting_b, second, 1)
        if not waiting_a and not waiting_b:
            return
        if waiting_a and waiting_b and key(waiting_a[0]) == key(waiting_b[0]):
            yield Beside(number_a, number_b, waiting_a.popleft(), waiting_b.popleft(), is_same=True)
            number_a, number_b = number_a + 1, number_b + 1
            continue
        _fill(waiting_a, first, WINDOW)
        _fill(waiting_b, second, WINDOW)
        skip_a, skip_b = _next_equal([key(item) for item in waiting_a], [key(item) for item in waiting_b])
        for i in range(max(skip_a, skip_b)):
            a = waiting_a.popleft() if i < skip_a else None
            b = waiting_b.popleft() if i < skip_b else None
            yield Beside(number_a, number_b, a, b, is_same=False)
            number_a, number_b = number_a + (i < skip_a), number_b + (i < skip_b)


def _fill(waiting: deque[Item], source: Iterator[Item], length: int) -> None:
    waiting.extend(islice(source, max(0, length - len(waiting))))


def _next_equal(keys_a: list[Hashable], keys_b: list[Hashable]) -> tuple[int, int]:
    """Return the positions of the equal keys with the smallest sum of positions; the lengths if there are none."""
    first_in_b: dict[Hashable, int] = {}
    for place, found in enumerate(keys_b):
        first_in_b.setdefault(found, place)
    common = ((i, first_in_b[found]) for i, found in enumerate(keys_a) if found in first_in_b)
    return min(common, key=sum, default=(len(keys_a), len(keys_b)))


@dataclass(frozen=True)
class Differing:
    """Items of two runs that differ."""

    num: int
    # The first differing items, side by side
    items: tuple[Beside[Any], ...] = ()
    # Columns of both runs, if they differ; rows were then not compared
    columns: tuple[list[str], list[str]] | None = None
    # The first two rows of evidence that differ only in their row numbers
    renumbered: Beside[Any] | None = None

    def __bool__(self) -> bool:
        return bool(self.num or self.columns or self.renumbered)


@dataclass(frozen=True)
class RunComparison:
    """Differences between two finished runs."""

    compared: str
    # Fields of the recipe and counts of the summary that differ, with both values
    recipe: dict[str, tuple[Any, Any]]
    counts: dict[str, tuple[Any, Any]]
    # Rows of evidence, as dictionaries
    evidence: Differing
    # Kept documents: lines as bytes, rows of tables as dictionaries. None if they were not compared.
    kept: Differing | None

    @property
    def is_same(self) -> bool:
        """Whether the runs gave the same answer."""
        return not (self.recipe or self.counts or self.evidence or self.kept)

    def lines(self) -> list[str]:
        """Return one line of text per difference."""
        lines = [f"recipe: {name} {a!r} and {b!r}" for name, (a, b) in self.recipe.items()]
        lines += [f"{name}: {a} and {b}" for name, (a, b) in self.counts.items()]
        lines += _evidence_lines(self.evidence)
        return lines + [_kept_line(beside) for beside in (self.kept.items if self.kept else ())]

    def to_dict(self) -> dict[str, object]:
        """Return everything as JSON values; values without a JSON type become text."""
        evidence: dict[str, object] = {
            "num_differing": self.evidence.num,
            "rows": [_plain({"first": beside.a, "second": beside.b}) for beside in self.evidence.items],
        }
        if self.evidence.columns is not None:
            evidence["columns"] = list(self.evidence.columns)
        if self.evidence.renumbered is not None:
            beside = self.evidence.renumbered
            evidence["renumbered"] = _plain({"first": beside.a, "second": beside.b})
        kept = None
        if self.kept is not None:
            documents = [
                {
                    "first_number": None if beside.a is None else beside.number_a,
                    "first": beside.a,
                    "second_number": None if beside.b is None else beside.number_b,
                    "second": beside.b,
                }
                for beside in self.kept.items
            ]
            kept = {"num_differing": self.kept.num, "documents": _plain(documents)}
        return {
            "is_same": self.is_same,
            "compared": self.compared,
            "recipe": _plain(self.recipe),
            "counts": _plain(self.counts),
            "evidence": evidence,
            "kept": kept,
        }


def run_differences(first: Path, second: Path) -> tuple[list[str], str]:
    """Return the first differences between two finished runs as text, and what was compared."""
    found = compare_runs(first, second)
    return found.lines(), found.compared


def compare_runs(first: Path, second: Path, *, most: int = _MOST_NAMED, with_counts: bool = False) -> RunComparison:
    """Return what differs between two finished runs.

    Compares recipe, evidence in row order (not the places in files, which another split of the same sequence changes),
    and kept documents in input order. Container bytes and timings are not compared.
    """
    one, two = read_summary(first), read_summary(second)
    counts = {name: (a, b) for name in _COUNTS if (a := one.get(name)) != (b := two.get(name))}
    evidence = _evidence_differences(first, second, most, with_counts=with_counts)
    compared, found = "recipe, evidence", None
    kept = [kept_copies(run, summary) for run, summary in ((first, one), (second, two))]
    if kept[0] is not None and kept[1] is not None:
        if kinds_of(kept[0]) != kinds_of(kept[1]):
            compared += ", number of kept documents (formats differ)"
        else:
            compared += ", kept documents"
            besides = aligned(kept_documents(kept[0]), kept_documents(kept[1]), _hashable)
            found = _first(besides, most, with_counts=with_counts)
    return RunComparison(compared, _recipe_differences(one, two), counts, evidence, found)


def _first(besides: Iterator[Beside[Any]], most: int, *, with_counts: bool) -> Differing:
    num, items = 0, []
    for beside in besides:
        if not beside.is_same:
            num += 1
            if num <= most:
                items.append(beside)
            if num == most and not with_counts:
                break
    return Differing(num, tuple(items))


def _recipe_differences(one: dict[str, Any], two: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    if one["recipe_id"] == two["recipe_id"]:
        return {}
    return differing(one["recipe"], two["recipe"]) or {"recipe_id": (one["recipe_id"], two["recipe_id"])}


def _evidence_differences(first: Path, second: Path, most: int, *, with_counts: bool) -> Differing:
    one, two = read_evidence(first / EVIDENCE), read_evidence(second / EVIDENCE)
    # Report another recipe by its fields, not by every row.
    left_out = {*_PLACES, "recipe_id"}
    columns = [[name for name in table.column_names if name not in left_out] for table in (one, two)]
    if columns[0] != columns[1]:
        return Differing(0, columns=(columns[0], columns[1]))
    one, two = one.select(columns[0]), two.select(columns[0])
    if one.equals(two):
        return Differing(0)
    renumbered: list[Beside[Any]] = []

    def besides() -> Iterator[Beside[Any]]:
        for beside in aligned(_rows(one), _rows(two), _without_numbers):
            if beside.is_same and beside.a != beside.b and not renumbered:
                renumbered.append(beside)
            yield beside

    found = replace(_first(besides(), most, with_counts=with_counts), renumbered=next(iter(renumbered), None))
    if found:
        return found
    types = [[f"{field.name}: {field.type}" for field in table.schema] for table in (one, two)]
    return Differing(0, columns=(types[0], types[1]))


def _evidence_lines(evidence: Differing) -> list[str]:
    if evidence.columns is not None:
        return [f"evidence: columns {evidence.columns[0]} and {evidence.columns[1]}"]
    lines = [f"evidence: {_evidence_row(beside.a)} and {_evidence_row(beside.b)}" for beside in evidence.items]
    if evidence.renumbered is not None:
        rows = f"{_evidence_row(evidence.renumbered.a)} and {_evidence_row(evidence.renumbered.b)}"
        lines.append(f"evidence: row numbers differ, first {rows}")
    return lines


def _without_numbers(row: dict[str, Any]) -> str:
    """Return the evidence without row numbers, which one additional document changes for all later rows."""
    return repr([value for name, value in row.items() if name not in ("row", "kept_row")])


def _rows(table: ArrowTable) -> Iterator[dict[str, Any]]:
    for batch in table.to_batches(BATCH_ROWS):
        yield from batch.to_pylist()


def _evidence_row(row: dict[str, Any] | None) -> str:
    if row is None:
        return "nothing"
    return f"row {row['row']} ({row['doc_id']}) for {row['kept_row']} ({row['kept_id']}) at {row['similarity']!r}"


def _kept_line(beside: Beside[Any]) -> str:
    if beside.a is None or beside.b is None:
        number = beside.number_b if beside.a is None else beside.number_a
        run = "second" if beside.a is None else "first"
        return f"kept: only the {run} run has document {number}, {_shown(beside.b if beside.a is None else beside.a)}"
    number = beside.number_a
    other = "" if beside.number_b == number else f" ({beside.number_b} in the second run)"
    return f"kept: document {number}{other} is {_shown(beside.a)} and {_shown(beside.b)}"


def _plain(value: object) -> Any:
    """Return JSON values; bytes are decoded, and values without a JSON type become text."""
    if isinstance(value, dict):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if value is None or isinstance(value, str | int | float) else str(value)


def _hashable(document: object) -> Hashable:
    return document if isinstance(document, bytes) else repr(document)


def _shown(document: object) -> str:
    text = document.decode("utf-8", "replace") if isinstance(document, bytes) else repr(document)
    return text if len(text) <= 80 else f"{text[:77]}..."
