"""Groups as rows, with sizes and dates over all runs; removed documents of each value of a field, folder or file."""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from likewise.arrays import ArrowTable, ColumnData, slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.columns import Date, Value, field_ranks, field_value
from likewise.batch.read.documents import Documents
from likewise.batch.read.ingest import NO_VALUE
from likewise.errors import InvalidInput, InvalidParameter, check_choice, check_integer
from likewise.io.output.evidence import AGAINST, INPUT
from likewise.io.tables.columns import constant_column, nullable_text_column, number_column, text_column
from likewise.job.output import Slice, path_slices, shrinkage

COUNT_WEIGHTS = ("log", "sqrt", "inverse")


class EarlierGroups(NamedTuple):
    """Counts of earlier runs for the groups of reference documents."""

    runs: Sequence[str]
    # Number of the run that kept each reference document; -1 for documents of a file
    run_of: NDArray[np.int64]
    # Position among the documents that the run kept
    positions: NDArray[np.int64]
    # Reference documents that a run counted, ascending; one entry per run
    rows: NDArray[np.int64]
    # group_size and, if the runs wrote them, first_seen, last_seen and new_values
    groups: Any


def weight_of_count(name: str | None) -> Callable[[int], float] | None:
    """Return the function from a number of copies to a weight: log, sqrt, inverse, or cap:N."""
    if name is None:
        return None
    kind, _, most = name.partition(":")
    if kind == "cap":
        if not most.isascii() or not most.isdigit():
            raise InvalidParameter("count_weight", f"{name!r} has no number; use cap:N, such as cap:5")
        return partial(min, float(check_integer("count_weight", int(most), 1, 2**31 - 1)))
    check_choice("count_weight", name, (*COUNT_WEIGHTS, "cap:N"))
    functions: dict[str, Callable[[int], float]] = {
        "log": lambda count: 1 + math.log(count),
        "sqrt": math.sqrt,
        "inverse": lambda count: 1 / count,
    }
    if name not in functions:
        raise InvalidParameter("count_weight", "cap:N requires a number for N, such as cap:5")
    return functions[name]


class GroupColumns(NamedTuple):
    """Columns of groups in addition to their members."""

    # Field of numbers or dates whose first and last value in each group are written
    date_field: str | None = None
    # Field whose values are counted in each group
    count_by: str | None = None
    # Function of the number of copies for the column ``weight`` (:func:`weight_of_count`)
    weight: str | None = None


class _Dates:
    """The values of a field, in order."""

    def __init__(self, documents: Documents, field: str) -> None:
        self._field = field
        ranks = field_ranks(documents, field, "date_field")
        texts = documents.field(field)
        distinct, rows = np.unique(ranks, return_index=True)
        # Documents without a value have the last rank, if there are any.
        self._none = len(distinct)
        self._texts: list[str] = []
        self._values: list[Value] = []
        for rank, row in zip(distinct.tolist(), rows.tolist(), strict=True):
            value = field_value(field, texts[row])
            if value is None:
                self._none = rank
                break
            # As written: numbers may have more digits than a float.
            self._texts.append(json.loads(texts[row], parse_int=str, parse_float=str, parse_constant=str))
            self._values.append(value)
        self._ranks = ranks

    def ends(
        self,
        members: NDArray[np.int64],
        starts: NDArray[np.int64],
        alone: NDArray[np.int64] | None,
        earlier: "list[list[dict[str, Any]]] | None",
    ) -> tuple[Any, Any]:
        """Return the first and the last value of each group as text columns, null if no member has one.

        `alone` is a further member of each group, or -1; `earlier` are the rows of earlier runs.
        """
        # The last rank is that of documents without a value, if there are any.
        first, last = np.full(len(starts), self._none, np.int64), np.full(len(starts), -1, np.int64)
        ends = np.append(starts, len(members))[1:]
        has_own = ends > starts
        if has_own.any():
            ranks = self._ranks[members]
            first[has_own] = np.minimum.reduceat(ranks, starts[has_own])
            last[has_own] = np.maximum.reduceat(np.where(ranks == self._none, -1, ranks), starts[has_own])
        if alone is not None:
            # A reference document that no run counted counts as one copy.
            ranks = np.where(alone >= 0, self._ranks[alone], self._none)
            first, last = np.minimum(first, ranks), np.maximum(last, np.where(ranks == self._none, -1, ranks))
        of_first, of_last = (
            [None if rank in (-1, self._none) else (self._values[rank], self._texts[rank]) for rank in ranks.tolist()]
            for ranks in (first, last)
        )
        for number, rows in enumerate(earlier or ()):
            for row in rows:
                for name, found, better in (("first_seen", of_first, min), ("last_seen", of_last, max)):
                    if (text := row.get(name)) is not None:
                        values = [one for one in (found[number], (self._parsed(text), text)) if one is not None]
                        found[number] = better(values, key=lambda one: one[0])
        return tuple(
            nullable_text_column([None if one is None else one[1] for one in of]) for of in (of_first, of_last)
        )

    def _parsed(self, text: str) -> Value:
        """Return a value written by another run, as a number or a date like the values of this run."""
        is_date = bool(self._values) and isinstance(self._values[0], Date)
        for written in (json.dumps(text), text) if is_date else (text, json.dumps(text)):
            try:
                value = field_value(self._field, written)
            except (InvalidInput, ValueError):
                continue
            if value is not None and (not self._values or type(value) is type(self._values[0])):
                return value
        raise InvalidInput(
            f"an earlier run has {text!r} in the field {self._field!r}, which cannot be compared with the values of "
            "this run"
        )


class GroupRows:
    """The rows of the table of groups, one for each group, in parts."""

    def __init__(
        self,
        documents: Documents,
        decision: Decision,
        kept_ids: Sequence[str],
        columns: GroupColumns,
        earlier: EarlierGroups | None,
    ) -> None:
        self._documents = documents
        self._decision = decision
        self._kept_ids = kept_ids
        self._earlier = earlier
        self._weight = weight_of_count(columns.weight)
        self._dates = None if columns.date_field is None else _Dates(documents, columns.date_field)
        self._values = None if columns.count_by is None else value_codes(documents, columns.count_by)
        # Removed documents, ordered by group.
        self._order = np.argsort(decision.kept_rows, kind="stable")
        self._leaders = decision.kept_rows[self._order]

    def tables(self) -> Iterator[Any]:
        """Yield the tables; at least one."""
        documents, at_once = self._documents, self._documents.room.rows_at_once
        first = documents.num_references
        for part in slices(len(documents) - first, at_once):
            rows = np.arange(first + part.start, first + part.stop)
            yield self._table(rows[self._decision.kept[rows]], INPUT)
        if first == len(documents):
            yield self._table(np.zeros(0, np.int64), INPUT)
        for part in slices(first, at_once):
            leaders = np.arange(part.start, part.stop)
            if self._earlier is None:
                leaders = np.unique(self._leaders[slice(*np.searchsorted(self._leaders, [part.start, part.stop]))])
            if len(leaders):
                yield self._table(leaders, AGAINST)
        if self._kept_ids:
            yield self._of_index()

    def _table(self, leaders: NDArray[np.int64], source: str) -> ArrowTable:
        """Return the groups of these documents, which must be ascending."""
        lows, highs = np.searchsorted(self._leaders, leaders), np.searchsorted(self._leaders, leaders, "right")
        num_own = int(source == INPUT)
        ends = np.cumsum(highs - lows + num_own)
        starts = ends - (highs - lows) - num_own
        members = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
        is_removed = np.ones(len(members), bool)
        if num_own:
            members[starts] = leaders
            is_removed[starts] = False
        # Leaders are ascending and all their duplicates are included, in runs of consecutive places.
        own = np.concatenate([np.zeros(0, np.int64), *map(np.arange, lows.tolist(), highs.tolist())])
        members[is_removed] = self._decision.removed_rows[self._order[own]]
        return self._rows(self._documents.doc_ids(leaders), source, members, starts, leaders)

    def _of_index(self) -> Any:
        rows = np.flatnonzero(self._decision.kept_rows < 0)
        groups: dict[str, list[int]] = {}
        for row, name in zip(self._decision.removed_rows[rows].tolist(), self._kept_ids, strict=True):
            groups.setdefault(name, []).append(row)
        members = np.array([row for one in groups.values() for row in one], np.int64)
        starts = np.cumsum([0, *map(len, groups.values())])[:-1]
        return self._rows(text_column(list(groups)), AGAINST, members, starts, None)

    def _rows(
        self,
        ids: ColumnData,
        source: str,
        members: NDArray[np.int64],
        starts: NDArray[np.int64],
        leaders: NDArray[np.int64] | None,
    ) -> ArrowTable:
        offsets = np.append(starts, len(members)).astype(np.int32)
        sizes = np.diff(offsets).astype(np.int64)
        columns = {
            "group": ids,
            "kept_source": constant_column(source, len(ids)),
            "group_size": number_column(sizes),
            "members": pa.ListArray.from_arrays(number_column(offsets), self._documents.doc_ids(members)),
        }
        num_copies, num_runs = sizes.copy(), (sizes > 0).astype(np.int64)
        counted, alone = None, None
        if source == AGAINST and leaders is not None:
            columns["kept_run"], columns["kept_position"] = self._kept_by(leaders)
            counted = self._counted_before(leaders)
            # A reference document that no run counted counts as one copy.
            alone = np.where([not rows for rows in counted], leaders, -1)
            num_copies += [sum(row["group_size"] for row in rows) for rows in counted] + (alone >= 0)
            num_runs += [max(len(rows), 1) for rows in counted]
        else:
            columns["kept_run"] = pa.nulls(len(ids), pa.string())
            columns["kept_position"] = pa.nulls(len(ids), pa.int64())
        columns["num_copies"], columns["num_runs"] = number_column(num_copies), number_column(num_runs)
        if self._dates is not None:
            columns["first_seen"], columns["last_seen"] = self._dates.ends(members, starts, alone, counted)
        if self._values is not None:
            columns["new_values"], columns["values"] = self._counted_values(members, offsets, alone, counted)
        if self._weight is not None:
            weights = [self._weight(count) for count in num_copies.tolist()]
            columns["weight"] = number_column(np.array(weights, np.float64))
        return pa.table(columns)

    def _kept_by(self, leaders: NDArray[np.int64]) -> tuple[Any, Any]:
        """Return the run that kept each reference document, and the position there; null for documents of files."""
        if self._earlier is None:
            return pa.nulls(len(leaders), pa.string()), pa.nulls(len(leaders), pa.int64())
        run_of = self._earlier.run_of[leaders]
        keys = [None if number < 0 else self._earlier.runs[number] for number in run_of.tolist()]
        return nullable_text_column(keys), number_column(self._earlier.positions[leaders], run_of < 0)

    def _counted_before(self, leaders: NDArray[np.int64]) -> list[list[dict[str, Any]]]:
        """Return the counts of earlier runs for each of these reference documents, which must be ascending."""
        if self._earlier is None or not len(leaders):
            return [[] for _ in leaders]
        lows, highs = (np.searchsorted(self._earlier.rows, leaders, side) for side in ("left", "right"))
        rows = self._earlier.groups.slice(lows[0], highs[-1] - lows[0]).to_pylist()
        return [rows[low:high] for low, high in zip((lows - lows[0]).tolist(), (highs - lows[0]).tolist(), strict=True)]

    def _counted_values(
        self,
        members: NDArray[np.int64],
        offsets: NDArray[np.int32],
        alone: NDArray[np.int64] | None,
        counted: list[list[dict[str, Any]]] | None,
    ) -> tuple[Any, Any]:
        """Return the number of members of each group with each value: in this run, and in all runs."""
        assert self._values is not None
        codes, names = self._values
        own, total = [], []
        values = [names[code] for code in codes[members].tolist()]
        for number, (start, end) in enumerate(pairwise(offsets.tolist())):
            counts = Counter(values[start:end])
            own.append(_as_rows(counts))
            if alone is not None and alone[number] >= 0:
                counts[names[codes[alone[number]]]] += 1
            for row in () if counted is None else counted[number]:
                for one in row.get("new_values") or ():
                    counts[one["value"]] += one["num_documents"]
            total.append(_as_rows(counts))
        kind = pa.list_(pa.struct({"value": pa.string(), "num_documents": pa.int64()}))
        return pa.array(own, kind), pa.array(total, kind)


def _as_rows(counts: Counter[str | None]) -> list[dict[str, Any]]:
    """Return counts as rows, most frequent value first."""
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0] is None, item[0] or ""))
    return [{"value": value, "num_documents": count} for value, count in ranked]


_AT_ONCE = 1 << 18
_MOST_VALUES = 100
_MOST_PAIRS = 1000


class _Counts(NamedTuple):
    """Removed documents by their value, and by the value of the kept document."""

    names: Sequence[str | None]
    of_documents: NDArray[np.int64]
    of_removed: NDArray[np.int64]
    # Number of removed documents by value, value of the kept one, and where that one is from; the most frequent first
    ranked: list[tuple[tuple[int, int, str], int]]

    def shrinkage(self, by: str) -> dict[str, Any]:
        """Return the summary field about the values that lost the largest share."""
        kept: dict[int, list[dict[str, object]]] = {}
        for (one, other, source), number in self.ranked:
            entry: dict[str, object] = {"value": self.names[other], "kept_source": source, "num_removed": number}
            kept.setdefault(one, []).append(entry)
        return shrinkage(
            by,
            [
                Slice(name, int(num), int(self.of_removed[code]), kept.get(code, []))
                for code, (name, num) in enumerate(zip(self.names, self.of_documents, strict=True))
                if num
            ],
        )


def _counted(
    decision: Decision,
    first: int,
    names: Sequence[str | None],
    of_documents: NDArray[np.int64],
    codes_of: Callable[[NDArray[np.int64]], NDArray[np.int64]],
) -> _Counts:
    """Count the removals of a run whose references have rows below `first`; documents of an index have value 0."""
    of_removed = np.zeros(len(names), np.int64)
    pairs: Counter[tuple[int, int, str]] = Counter()
    for part in slices(len(decision.removed_rows), _AT_ONCE):
        removed, kept_rows = codes_of(decision.removed_rows[part]), decision.kept_rows[part]
        of_removed += np.bincount(removed, minlength=len(names))
        kept = np.where(kept_rows < 0, 0, codes_of(np.maximum(kept_rows, 0)))
        found, numbers = np.unique(np.stack([removed, kept, kept_rows < first], 1), axis=0, return_counts=True)
        for (one, other, is_reference), number in zip(found.tolist(), numbers.tolist(), strict=True):
            pairs[one, other, AGAINST if is_reference else INPUT] += number
    ranked = sorted(
        pairs.items(), key=lambda item: (-item[1], names[item[0][0]] or "", names[item[0][1]] or "", item[0][2])
    )
    return _Counts(names, of_documents, of_removed, ranked)


def shrinkage_by_path(documents: Documents, decision: Decision) -> dict[str, Any]:
    """Return the summary field about the folders and files that lost the largest share."""
    first = documents.num_reference_sources
    names, of_sources = path_slices([source.name or "" for source in documents.sources[first:]])
    # References come first, and are no slice of the inputs.
    of_sources = np.concatenate([np.zeros(first, np.int64), 1 + of_sources])
    sizes = np.bincount(of_sources, np.diff(documents.starts) * (of_sources > 0), len(names) + 1).astype(np.int64)
    counted = _counted(
        decision,
        documents.num_references,
        (None, *names),
        sizes,
        lambda rows: of_sources[documents.sources_of(rows)],
    )
    return counted.shrinkage("path")


def counts_by(documents: Documents, decision: Decision, field: str) -> dict[str, Any]:
    """Return the summary fields about the values of a field."""
    codes, names = value_codes(documents, field)
    of_documents = np.bincount(codes[documents.num_references :], minlength=len(names))
    counted = _counted(decision, documents.num_references, names, of_documents, lambda rows: codes[rows])
    of_removed, ranked = counted.of_removed, counted.ranked
    values = [code for code in range(len(names)) if of_documents[code]]
    values.sort(key=lambda code: (-int(of_documents[code]), names[code] or ""))
    by_field = {
        "field": field,
        "num_values": len(values),
        "values": [
            {"value": names[code], "num_documents": int(of_documents[code]), "num_removed": int(of_removed[code])}
            for code in values[:_MOST_VALUES]
        ],
        "num_pairs": len(ranked),
        "pairs": [
            {"removed": names[one], "kept": names[other], "kept_source": source, "num_removed": number}
            for (one, other, source), number in ranked[:_MOST_PAIRS]
        ],
    }
    return {"counts_by": by_field, **counted.shrinkage(field)}


def with_values(tables: Iterable[Any], documents: Documents, decision: Decision, field: str) -> Iterator[Any]:
    """Yield tables of evidence with the columns ``value`` and ``kept_value``, a field of both documents."""
    codes, names = value_codes(documents, field)
    start = 0
    for table in tables:
        part = slice(start, start + len(table))
        start = part.stop
        kept_rows = decision.kept_rows[part]
        # Fields of the documents of an index are not stored.
        kept = np.where(kept_rows < 0, 0, codes[np.maximum(kept_rows, 0)])
        for name, numbers in (("value", codes[decision.removed_rows[part]]), ("kept_value", kept)):
            table = table.append_column(name, nullable_text_column([names[number] for number in numbers.tolist()]))
        yield table


def value_codes(documents: Documents, field: str) -> tuple[NDArray[np.int64], list[str | None]]:
    """Return the number of each document's value, and the values."""
    numbers: dict[str | None, int] = {None: 0}
    codes = documents.room.space.growing(np.int64)
    of_json: dict[str, int] = {}
    for texts in documents.fields[field]:
        some = np.zeros(len(texts), np.int64)
        for row, text in enumerate(texts.to_list()):
            code = of_json.get(text)
            if code is None:
                code = of_json[text] = numbers.setdefault(value_name(text), len(numbers))
            some[row] = code
        codes.append(some)
    return codes.take(), list(numbers)


def value_name(text: str) -> str | None:
    """Return the displayed form of a value: a string unchanged, but for lone surrogates, anything else as JSON."""
    from likewise.index.ids import as_stored

    if text in NO_VALUE:
        return None
    return as_stored(json.loads(text)) if text.startswith('"') else text
