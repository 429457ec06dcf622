"""Lookup of the ids of rows, and of the rows of ids."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from types import MethodType
from typing import Any
from weakref import WeakMethod

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ColumnData, TextData
from likewise.errors import InvalidInput, InvalidParameter, counted, reason_of
from likewise.io.tables.columns import decoded, number_column
from likewise.stages.text import is_table

# Returns which of these rows still exist.
IsHeld = Callable[[NDArray[np.int64]], NDArray[np.bool_]]


def id_keys(column: ArrowColumn) -> NDArray[np.uint64]:
    """Return a 64-bit key for each id: the bits of a number, or the hash of a text."""
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        numbers: NDArray[np.int64] = column.to_numpy(zero_copy_only=False)
        return numbers.view(np.uint64)
    return np.asarray(Texts.from_arrow(column).hashes())


def first_double(column: ArrowColumn, keys: NDArray[np.uint64]) -> tuple[int, int] | None:
    """Return the positions of the first repeated id and of its earlier occurrence, or None."""
    ranked = np.sort(keys)
    repeated = ranked[1:][ranked[1:] == ranked[:-1]]
    # Different ids with the same key are not duplicates.
    before: dict[object, int] = {}
    for row in np.flatnonzero(np.isin(keys, repeated)).tolist() if len(repeated) else ():
        value = column[row].as_py()
        if value in before:
            return row, before[value]
        before[value] = row
    return None


class IdLookup:
    """A lookup table from keys of ids to rows, 12 bytes per id, in sorted runs that are merged when alike in size."""

    def __init__(self) -> None:
        self._runs: list[tuple[NDArray[np.uint64], NDArray[np.uint32]]] = []

    def add(self, keys: NDArray[np.uint64], first_row: int) -> None:
        """Add the keys of the rows that begin at `first_row`."""
        order = np.argsort(keys, kind="stable")
        runs = [*self._runs, (keys[order], (first_row + order).astype(np.uint32))]
        while len(runs) > 1 and len(runs[-2][0]) < 4 * len(runs[-1][0]):
            both = np.concatenate([runs[-2][0], runs[-1][0]])
            rows = np.concatenate([runs[-2][1], runs[-1][1]])
            # A stable sort of two sorted parts is a merge.
            order = np.argsort(both, kind="stable")
            runs[-2:] = [(both[order], rows[order])]
        self._runs = runs

    def candidates(self, keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of a position in `keys` and a row with that key."""
        positions, rows = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        # Sorted, so that similar keys are looked up in the same cache lines.
        order = np.argsort(keys)
        keys = keys[order]
        for held, held_rows in self._runs:
            low = np.searchsorted(held, keys)
            if len(keys) == 1:
                # A single id, the usual case, needs only a slice.
                high = np.searchsorted(held, keys, "right")
            else:
                is_there = held[np.minimum(low, len(held) - 1)] == keys
                high = low.copy()
                high[is_there] = np.searchsorted(held, keys[is_there], "right")
            counts = high - low
            num = int(counts.sum())
            if num:
                positions.append(np.repeat(np.arange(len(keys)), counts))
                starts = np.repeat(low - np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
                rows.append(held_rows[starts + np.arange(num)].astype(np.int64))
        return order[np.concatenate(positions)], np.concatenate(rows)


_WANTED = "ids must be str or signed 64-bit integers"


class RowIds:
    """Ids of rows, which are only appended. Without ids, rows represent themselves."""

    def __init__(self, ids: ColumnData, num_rows: int, is_held: IsHeld, *, is_checked: bool = False) -> None:
        self._lock = RLock()
        self._num_rows = num_rows
        is_method = isinstance(is_held, MethodType)
        self._is_held: Callable[[], IsHeld | None] = WeakMethod(is_held) if is_method else lambda: is_held
        # No part is empty, because the first id determines the type.
        self._parts: list[Any] | None = None
        # Created when ids are first added or looked up.
        self._lookup: IdLookup | None = None
        if ids is not None:
            column = _taken(ids, num_rows)
            if not is_checked:
                _refuse_doubles(column, id_keys(column))
            self._parts = [column] if len(column) else []

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        return self._parts is not None

    @property
    def num_rows(self) -> int:
        """Number of rows so far."""
        return self._num_rows

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Block other changes."""
        with self._lock:
            yield

    @contextmanager
    def adding(self, ids: ColumnData, num_rows: int) -> Iterator[int]:
        """Append rows if the block succeeds, and yield the first of them. Other changes wait."""
        with self._lock:
            before = self._parts
            held = [] if before is None and ids is not None and self._num_rows == 0 else before
            if (ids is None) != (held is None):
                wanted = (
                    "the index has ids; give one per fingerprint"
                    if ids is None
                    else "the index has no ids; remove them"
                )
                raise InvalidParameter("ids", wanted)
            first = self._num_rows
            if held is None or num_rows == 0:
                if ids is not None:
                    _taken(ids, num_rows)
                yield first
                self._num_rows = first + num_rows
                return
            part = _taken(ids, num_rows)
            if held and part.type != held[0].type:
                raise InvalidParameter("ids", f"have type {part.type}, but those of the index have type {held[0].type}")
            keys = id_keys(part)
            _refuse_doubles(part, keys)
            lookup = self._looked_up()
            self._refuse_known(part, keys, lookup)
            # Set before the block, so that rows found while it runs have their ids.
            self._parts = _joined([*held, part])
            try:
                yield first
            except BaseException:
                self._parts = before
                raise
            lookup.add(keys, first)
            self._num_rows = first + num_rows

    def column(self) -> ArrowColumn:
        """Return all ids as one Arrow array, or None."""
        import pyarrow as pa

        parts = self._parts
        if parts is None:
            return None
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())

    def of_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the ids of rows as an array of str or int, or the rows as int64 if there are no ids."""
        parts = self._parts
        if parts is None:
            return rows.astype(np.int64)
        ends = np.cumsum([len(part) for part in parts])
        if rows.size and (not len(ends) or rows.max() >= ends[-1]):
            raise InvalidInput("the tables are corrupt: they refer to rows that do not exist")
        part_of_row = np.searchsorted(ends, rows, side="right")
        found: NDArray[Any] = np.empty(len(rows), object)
        for number in np.unique(part_of_row):
            is_here = part_of_row == number
            first = ends[number] - len(parts[number])
            found[is_here] = parts[number].take(number_column(rows[is_here] - first)).to_numpy(zero_copy_only=False)
        return found

    def rows_of(self, ids: ColumnData) -> NDArray[np.uint32]:
        """Return the rows of these ids (the rows themselves if there are no ids), ascending, each once.

        Unknown ids and rows are ignored.
        """
        column = id_column("rows", ids)
        if self._parts is None:
            if len(column) and not _is_integer(column):
                raise InvalidParameter("rows", f"got {column.type}; the index has no ids, so rows must be integers")
            rows = np.unique(column.to_numpy(zero_copy_only=False)) if len(column) else np.zeros(0, np.int64)
            return rows[(rows >= 0) & (rows < self._num_rows)].astype(np.uint32)
        with self._lock:
            if not self._parts or not len(column):
                return np.zeros(0, np.uint32)
            if column.type != self._parts[0].type:
                raise InvalidParameter("rows", f"got {column.type}; ids of this index have type {self._parts[0].type}")
            positions, found = self._looked_up().candidates(id_keys(column))
            return np.unique(found[self._are_equal(column, positions, found)]).astype(np.uint32)

    def _looked_up(self) -> IdLookup:
        if self._lookup is None:
            self._lookup = IdLookup()
            row = 0
            for part in self._parts or ():
                self._lookup.add(id_keys(part), row)
                row += len(part)
        return self._lookup

    def _are_equal(
        self,
        column: ArrowColumn,
        positions: NDArray[np.int64],
        rows: NDArray[np.int64],
    ) -> NDArray[np.bool_]:
        """Return which pairs of a position in `column` and a row with the same key have the same id."""
        if not len(rows) or _is_integer(column):
            return np.ones(len(rows), bool)
        wanted = column.take(number_column(positions)).to_numpy(zero_copy_only=False)
        return np.asarray(wanted == self.of_rows(rows), bool)

    def _refuse_known(self, part: Any, keys: NDArray[np.uint64], lookup: IdLookup) -> None:
        positions, rows = lookup.candidates(keys)
        if not len(rows):
            return
        is_held = self._is_held()
        # The caller holds a reference to the owner of the ids.
        assert is_held is not None
        is_known = is_held(rows)
        is_known[is_known] = self._are_equal(part, positions[is_known], rows[is_known])
        if is_known.any():
            position, row = min(zip(positions[is_known].tolist(), rows[is_known].tolist(), strict=True))
            raise InvalidParameter(
                "ids",
                f"{part[position].as_py()!r}, at position {position}, is already in the index, at row "
                f"{row}; remove it first, or use another id",
            )


def _refuse_doubles(column: ArrowColumn, keys: NDArray[np.uint64]) -> None:
    found = first_double(column, keys)
    if found is not None:
        second, first = found
        raise InvalidParameter(
            "ids", f"{column[first].as_py()!r} appears twice, at positions {first} and {second}; ids must be unique"
        )


def _joined(parts: list[Any]) -> list[Any]:
    """Merge the parts into a few. Each id is moved a logarithmic number of times."""
    import pyarrow as pa

    while len(parts) > 1 and len(parts[-2]) < 4 * len(parts[-1]):
        parts[-2:] = [pa.concat_arrays(parts[-2:])]
    return parts


def _taken(ids: ColumnData, num_rows: int) -> Any:
    """Return ids as an Arrow array of int64 or large_string, one for each of the rows."""
    column = id_column("ids", ids)
    if len(column) != num_rows:
        raise InvalidParameter("ids", f"{counted(len(column), 'id')} for {counted(num_rows, 'fingerprint')}")
    return column


def _is_integer(column: ArrowColumn) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(column.type))


def id_column(name: str, given: TextData) -> ArrowColumn:
    """Return ids or rows as an Arrow array of int64 or large_string. An empty array may have either type."""
    import pyarrow as pa

    try:
        column = _arrow_column(name, given)
        kind = column.type
        if column.null_count:
            raise InvalidParameter(name, f"{column.null_count} ids are null; {_WANTED}")
        if not len(column):
            return pa.array([], pa.int64() if pa.types.is_integer(kind) else pa.large_string())
        if pa.types.is_integer(kind):
            return column.cast(pa.int64())
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            column = column.cast(pa.large_string())
            column.validate(full=True)
            return column
    except (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError) as error:
        if isinstance(error, InvalidParameter):
            raise
        raise InvalidParameter(name, f"{reason_of(error)}; {_WANTED}, all of one kind") from error
    raise InvalidParameter(name, f"{kind} given; {_WANTED}")


def _arrow_column(name: str, given: TextData) -> ArrowColumn:
    import pyarrow as pa

    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        if is_table(given):
            raise InvalidParameter(name, "got a table; pass its id column")
        column = decoded(pa.chunked_array([given]) if isinstance(given, pa.Array) else pa.chunked_array(given))
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(given, str | bytes | Mapping) or not hasattr(given, "__iter__"):
        raise InvalidParameter(name, f"{given!r} is not a sequence or a column; {_WANTED}")
    values = given if isinstance(given, np.ndarray | list) else list(given)
    if isinstance(values, np.ndarray) and values.ndim != 1:
        raise InvalidParameter(name, f"expected a one-dimensional array, got shape {values.shape}")
    if not isinstance(values, np.ndarray) or values.dtype == object:
        # Arrow would convert True to 1 in a list of numbers, and bytes to text.
        other = next((value for value in values if isinstance(value, bool | np.bool_ | float | bytes)), None)
        if other is not None:
            raise InvalidParameter(name, f"{other!r} given; {_WANTED}")
    return pa.array(values)
