"""Ids of rows, and rows of ids."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidInput, InvalidParameter


class RowIds:
    """Ids of rows that are only ever appended; without ids, rows stand for themselves.

    Parameters
    ----------
    ids : sequence of str or int, or Arrow data, optional
        An id for each row.
    num_rows : int
        Rows at first.
    """

    def __init__(self, ids: Any, num_rows: int) -> None:  # noqa: ANN401 - sequences or Arrow data
        self._lock = RLock()
        self._num_rows = num_rows
        self._parts: list[Any] | None = None
        if ids is not None:
            self._parts = [_taken(ids, num_rows)]

    @property
    def has_ids(self) -> bool:
        """Whether rows have ids."""
        return self._parts is not None

    @property
    def num_rows(self) -> int:
        """Rows so far."""
        return self._num_rows

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Keep other changes out."""
        with self._lock:
            yield

    @contextmanager
    def adding(self, ids: Any, num_rows: int) -> Iterator[int]:  # noqa: ANN401 - sequences or Arrow data
        """Append rows if the block ends well; gives the first of them. Other changes wait."""
        with self._lock:
            if self._num_rows == 0 and ids is not None and self._parts is None:
                self._parts = []
            if (ids is None) != (self._parts is None):
                wanted = (
                    "the index has ids; give one for each" if ids is None else "the index goes by rows, without ids"
                )
                raise InvalidParameter("ids", wanted)
            part = None if ids is None else _taken(ids, num_rows)
            if part is not None and self._parts and part.type != self._parts[0].type:
                raise InvalidParameter("ids", f"they are {part.type}, those of the index {self._parts[0].type}")
            first = self._num_rows
            before = self._parts
            if part is not None and before is not None:
                # Before the block: what is found while it runs has its id.
                self._parts = _joined([*before, part])
            try:
                yield first
            except BaseException:
                self._parts = before
                raise
            self._num_rows = first + num_rows

    def column(self) -> Any:  # noqa: ANN401 - an Arrow array
        """All ids as one Arrow array, or None."""
        import pyarrow as pa

        parts = self._parts
        if parts is None:
            return None
        return pa.concat_arrays(parts) if parts else pa.array([], pa.large_string())

    def of_rows(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return ids of rows as an array of str or int; the rows, int64, where there are none."""
        parts = self._parts
        if parts is None:
            return rows.astype(np.int64)
        ends = np.cumsum([len(part) for part in parts])
        if rows.size and (not len(ends) or rows.max() >= ends[-1]):
            raise InvalidInput("the tables are damaged: they name rows that there are none of")
        part_of_row = np.searchsorted(ends, rows, side="right")
        found: NDArray[Any] = np.empty(len(rows), object)
        for number in np.unique(part_of_row):
            is_here = part_of_row == number
            first = ends[number] - len(parts[number])
            found[is_here] = parts[number].take(_arrow_rows(rows[is_here] - first)).to_numpy(zero_copy_only=False)
        return found

    def rows_of(self, ids: Any) -> NDArray[np.uint32]:  # noqa: ANN401 - rows or ids
        """Return the rows of these ids (the rows themselves where there are no ids), ascending, each once."""
        if self._parts is None:
            rows = np.unique(np.asarray(ids, np.int64))
            return rows[(rows >= 0) & (rows < self._num_rows)].astype(np.uint32)
        import pyarrow as pa
        import pyarrow.compute as pc

        column = self.column()
        try:
            wanted = pa.array(ids, column.type)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidParameter("rows", f"ids of this index are {column.type}: {error}") from error
        return np.flatnonzero(pc.is_in(column, value_set=wanted).to_numpy(zero_copy_only=False)).astype(np.uint32)


def _joined(parts: list[Any]) -> list[Any]:
    """Return the same ids in few parts; each id is moved a logarithmic number of times."""
    import pyarrow as pa

    while len(parts) > 1 and len(parts[-2]) < 4 * len(parts[-1]):
        parts[-2:] = [pa.concat_arrays(parts[-2:])]
    return parts


def _arrow_rows(rows: NDArray[Any]) -> Any:  # noqa: ANN401 - an Arrow array
    import pyarrow as pa

    return pa.array(rows)


def _taken(ids: Any, num_rows: int) -> Any:  # noqa: ANN401 - an Arrow array
    """Ids as an Arrow array of int64 or large_string."""
    import pyarrow as pa

    if hasattr(ids, "__arrow_c_stream__") and not isinstance(ids, pa.Array):
        column = pa.chunked_array(ids)
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    else:
        try:
            column = pa.array(ids)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise InvalidParameter("ids", f"they must be all str or all int: {error}") from error
    if pa.types.is_null(column.type) and len(column) == 0:
        column = column.cast(pa.large_string())
    if pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    elif pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        column = column.cast(pa.large_string())
    else:
        raise InvalidParameter("ids", f"{column.type}; they must be str or int")
    if column.null_count:
        raise InvalidParameter("ids", f"{column.null_count} of them are null")
    if len(column) != num_rows:
        raise InvalidParameter("ids", f"{len(column)} ids for {num_rows} fingerprints")
    return column
