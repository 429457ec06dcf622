"""Arrow columns created from the buffers of arrays and strings, arrays from columns, and selection of rows.

``pyarrow.array`` and ``to_numpy`` import pandas if it is installed, which takes half a second.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput

# What to do with columns of types that PyArrow does not have.
OTHER_TYPES = "Convert its columns to types that Arrow has, for example 128-bit integers to text"


def number_column(values: NDArray[Any], is_null: NDArray[np.bool_] | None = None) -> Any:  # noqa: ANN401 - PyArrow has no types
    """Return an Arrow array of the same numbers or booleans, without a copy if possible.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Integers, floats, or bool.
    is_null : ndarray of shape (n,), bool, optional
        Which integers or floats become null.

    Returns
    -------
    pyarrow.Array
        An array of the corresponding type.
    """
    import pyarrow as pa

    if values.dtype == np.bool_:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    contiguous = np.ascontiguousarray(values)
    return pa.Array.from_buffers(
        pa.from_numpy_dtype(values.dtype), len(values), [_validity(is_null), pa.py_buffer(contiguous)]
    )


def _validity(is_null: NDArray[np.bool_] | None) -> Any:  # noqa: ANN401
    import pyarrow as pa

    return None if is_null is None else pa.py_buffer(np.packbits(~is_null, bitorder="little"))


def numbers_of(column: Any, dtype: Any, absent: float) -> NDArray[Any]:  # noqa: ANN401
    """Return the numbers or booleans of an Arrow column.

    Parameters
    ----------
    column : pyarrow.Array or pyarrow.ChunkedArray
        Integers, floats or booleans.
    dtype : dtype
        Type of the result, integers or floats.
    absent : float
        In place of null.

    Returns
    -------
    ndarray of shape (n,)

    Raises
    ------
    pyarrow.ArrowException
        If a value does not fit the type.
    """
    import pyarrow as pa

    cast = column.cast(pa.from_numpy_dtype(dtype))
    parts = [np.empty(0, dtype)]
    for chunk in cast.chunks if isinstance(cast, pa.ChunkedArray) else [cast]:
        validity, data = chunk.buffers()
        rows = slice(chunk.offset, chunk.offset + len(chunk))
        values = np.frombuffer(data or b"", dtype)[rows]
        if chunk.null_count:
            is_valid = np.unpackbits(np.frombuffer(validity, np.uint8), bitorder="little")[rows]
            values = np.where(is_valid, values, np.dtype(dtype).type(absent))
        parts.append(values)
    return np.concatenate(parts)


def text_column(texts: Texts | Sequence[str]) -> Any:  # noqa: ANN401
    """Return an Arrow array of string without nulls; of large_string for more than 2 GB.

    Parameters
    ----------
    texts : Texts or sequence of str
        The strings.

    Returns
    -------
    pyarrow.Array
        An array of n strings.
    """
    import pyarrow as pa

    batch = texts if isinstance(texts, Texts) else Texts.from_list(list(texts))
    if not len(batch):
        return pa.nulls(0, pa.string())
    large = pa.array(batch)
    if batch.num_bytes >= 2**31:
        return large
    _, offset_buffer, data = large.buffers()
    offsets = np.frombuffer(offset_buffer, np.int64)[large.offset : large.offset + len(large) + 1]
    # Narrowed without a cast, which would import pyarrow.compute.
    narrow = (offsets - offsets[0]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(large), pa.py_buffer(narrow), pa.py_buffer(b"") if data is None else data.slice(int(offsets[0]))
    )


def nullable_text_column(texts: Sequence[str | None]) -> Any:  # noqa: ANN401
    """Return an Arrow array of string in which None is null."""
    import pyarrow as pa

    full = text_column([text or "" for text in texts])
    is_null = np.array([text is None for text in texts], bool)
    return pa.Array.from_buffers(full.type, len(full), [_validity(is_null), *full.buffers()[1:]], offset=full.offset)


def as_large_text(column: Any) -> Any:  # noqa: ANN401
    """Return an Arrow column of text in any layout as large_string; rows without text are null."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([as_large_text(chunk) for chunk in column.chunks], pa.large_string())
    if pa.types.is_dictionary(column.type):
        # The dictionary may contain nulls, and PyArrow cannot take values that are views.
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
    return column.cast(pa.large_string())


def is_text(kind: Any) -> bool:  # noqa: ANN401
    """Return whether an Arrow type is text in any layout, also in a dictionary."""
    import pyarrow.types as are

    kind = kind.value_type if are.is_dictionary(kind) else kind
    return bool(are.is_string(kind) or are.is_large_string(kind) or are.is_string_view(kind))


def decoded(column: Any) -> Any:  # noqa: ANN401
    """Return an Arrow column without its dictionary, if it has one; texts then have the type large_string."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    return as_large_text(column) if is_text(column.type) else column.cast(column.type.value_type)


def check_unique(names: Sequence[str], wanted: Sequence[str], file: str | None = None) -> None:
    """Raise InvalidInput if several columns have the name of one of these columns or fields."""
    all_names = list(names)
    for name in wanted:
        column = name if name in all_names else name.split(".")[0]
        if (num := all_names.count(column)) > 1:
            raise InvalidInput(f"{num} columns are named {column!r}; rename all but one", file)


def constant_column(text: str, num_rows: int) -> Any:  # noqa: ANN401
    """Return an Arrow array that repeats one string."""
    return text_column(Texts.from_list([text]).take(np.zeros(num_rows, np.int64)))


def taken_rows(data: Any, rows: NDArray[np.int64]) -> Any:  # noqa: ANN401
    """Return rows of an Arrow array or record batch.

    Parameters
    ----------
    data : pyarrow.Array or pyarrow.RecordBatch
        Data of any type.
    rows : ndarray of shape (n,)
        Row numbers, ascending.

    Returns
    -------
    pyarrow.Array or pyarrow.RecordBatch
        Data of the same type.
    """
    import pyarrow as pa

    try:
        return data.take(number_column(rows))
    except pa.ArrowNotImplementedError:
        # PyArrow cannot take views, so slice and concatenate runs of rows.
        breaks = np.flatnonzero(np.diff(rows) != 1) + 1
        starts, ends = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(rows)]])
        parts = [data.slice(int(rows[low]), int(high - low)) for low, high in zip(starts, ends, strict=True) if high]
        join = pa.concat_batches if isinstance(data, pa.RecordBatch) else pa.concat_arrays
        return join(parts) if parts else data.slice(0, 0)


def null_where(column: Any, is_null: NDArray[np.bool_]) -> Any:  # noqa: ANN401
    """Return an Arrow array with the same values, null in some rows."""
    import pyarrow as pa

    return pa.Array.from_buffers(
        column.type, len(column), [_validity(is_null), *column.buffers()[1:]], offset=column.offset
    )
