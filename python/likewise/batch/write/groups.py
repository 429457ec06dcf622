"""Groups as rows: members, sizes, and when they were first and last seen."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import slices
from likewise.batch.decide.decision import Decision
from likewise.batch.read.documents import Documents
from likewise.batch.read.priority import field_ranks, field_value
from likewise.io.output.evidence import AGAINST, INPUT, write_evidence
from likewise.io.tables.columns import constant_column, nullable_text_column, number_column, text_column


def write_groups(
    documents: Documents, decision: Decision, kept_ids: Sequence[str], date_field: str | None, path: Path
) -> None:
    """Write one row for each group as Parquet.

    Parameters
    ----------
    documents : Documents
        All documents, with the field of dates.
    decision : Decision
        Verdicts on them.
    kept_ids : sequence of str
        Ids of documents of an index, of removed documents whose kept row is -1, in their order.
    date_field : str, optional
        Field of numbers or dates of which the first and last of each group are written.
    path : Path
        The new file. Groups of the inputs come first, in the order of their kept documents; then those of reference
        documents.
    """
    dates = None if date_field is None else _Dates(documents, date_field)
    write_evidence(_Rows(documents, decision, kept_ids, dates).tables(), path)


class _Dates:
    """Values of a field in order."""

    def __init__(self, documents: Documents, field: str) -> None:
        ranks = field_ranks(documents, field, "date_field")
        texts = documents.field(field)
        distinct, rows = np.unique(ranks, return_index=True)
        # Documents without a value have the last rank, if there are any.
        self._none = len(distinct)
        self._texts: list[str] = []
        for rank, row in zip(distinct.tolist(), rows.tolist(), strict=True):
            if field_value(field, texts[row]) is None:
                self._none = rank
                break
            # As it is written: numbers have more digits than a float.
            self._texts.append(json.loads(texts[row], parse_int=str, parse_float=str, parse_constant=str))
        self._ranks = ranks

    def ends(self, members: NDArray[np.int64], starts: NDArray[np.int64]) -> tuple[Any, Any]:
        """Return the first and the last value of each group as text columns, null where no member has one."""
        ranks = self._ranks[members]
        first = np.minimum.reduceat(ranks, starts)
        last = np.maximum.reduceat(np.where(ranks == self._none, -1, ranks), starts)
        return self._column(first), self._column(np.where(last < 0, self._none, last))

    def _column(self, ranks: NDArray[np.int64]) -> Any:  # noqa: ANN401 - PyArrow has no types
        return nullable_text_column([None if rank == self._none else self._texts[rank] for rank in ranks.tolist()])


class _Rows:
    """The rows of the table of groups, some at a time."""

    def __init__(self, documents: Documents, decision: Decision, kept_ids: Sequence[str], dates: _Dates | None) -> None:
        self._documents = documents
        self._decision = decision
        self._kept_ids = kept_ids
        self._dates = dates
        # Removed documents group by group.
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
            leaders = np.unique(self._leaders[slice(*np.searchsorted(self._leaders, [part.start, part.stop]))])
            if len(leaders):
                yield self._table(leaders, AGAINST)
        if self._kept_ids:
            yield self._of_index()

    def _table(self, leaders: NDArray[np.int64], source: str) -> Any:  # noqa: ANN401
        """Return the groups of these documents, which rise."""
        lows, highs = np.searchsorted(self._leaders, leaders), np.searchsorted(self._leaders, leaders, "right")
        num_own = int(source == INPUT)
        ends = np.cumsum(highs - lows + num_own)
        starts = ends - (highs - lows) - num_own
        members = np.zeros(int(ends[-1]) if len(ends) else 0, np.int64)
        is_removed = np.ones(len(members), bool)
        if num_own:
            members[starts] = leaders
            is_removed[starts] = False
        # Leaders rise and all their duplicates are taken: these are consecutive but for groups of one.
        own = np.concatenate([np.zeros(0, np.int64), *map(np.arange, lows.tolist(), highs.tolist())])
        members[is_removed] = self._decision.removed_rows[self._order[own]]
        return self._rows(self._documents.doc_ids(leaders), source, members, starts)

    def _of_index(self) -> Any:  # noqa: ANN401
        rows = np.flatnonzero(self._decision.kept_rows < 0)
        groups: dict[str, list[int]] = {}
        for row, name in zip(self._decision.removed_rows[rows].tolist(), self._kept_ids, strict=True):
            groups.setdefault(name, []).append(row)
        members = np.array([row for one in groups.values() for row in one], np.int64)
        starts = np.cumsum([0, *map(len, groups.values())])[:-1]
        return self._rows(text_column(list(groups)), AGAINST, members, starts)

    def _rows(self, ids: Any, source: str, members: NDArray[np.int64], starts: NDArray[np.int64]) -> Any:  # noqa: ANN401
        import pyarrow as pa

        offsets = np.append(starts, len(members)).astype(np.int32)
        columns = {
            "group": ids,
            "kept_source": constant_column(source, len(ids)),
            "group_size": number_column(np.diff(offsets).astype(np.int64)),
            "members": pa.ListArray.from_arrays(number_column(offsets), self._documents.doc_ids(members)),
        }
        if self._dates is not None:
            columns["first_seen"], columns["last_seen"] = (
                self._dates.ends(members, starts) if len(members) else (pa.nulls(0, pa.string()),) * 2
            )
        return pa.table(columns)
