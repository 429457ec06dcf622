"""Arrow columns created from the buffers of arrays and strings, arrays from columns, and selection of rows.

``pyarrow.array`` and ``to_numpy`` import pandas if it is installed, which takes half a second.
"""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData
from likewise.errors import InvalidInput

# What to do with columns of types that PyArrow does not have.
OTHER_TYPES = "Convert its columns to types that Arrow has, one type each, for example 128-bit integers to text"


def open_parquet(path: Path, **options: Any) -> Any:
    """Return the ``ParquetFile`` at a local path."""
    import pyarrow.parquet as pq

    # PyArrow takes a relative path with a colon for a URL.
    return pq.ParquetFile(path.absolute(), **options)


def number_column(values: NDArray[Any], is_null: NDArray[np.bool_] | None = None) -> ArrowColumn:
    """Return an Arrow array of the same numbers or booleans, without a copy if possible."""
    import pyarrow as pa

    if values.dtype == np.bool_:
        bits = np.packbits(values, bitorder="little")
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, pa.py_buffer(bits)])
    data = pa.py_buffer(np.ascontiguousarray(values))
    column = pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, data])
    return column if is_null is None else null_where(column, is_null)


def numbers_of(column: ArrowColumn, dtype: Any, absent: float) -> NDArray[Any]:
    """Return the numbers or booleans of an Arrow column."""
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


def text_column(texts: Texts | Sequence[str]) -> ArrowColumn:
    """Return an Arrow array of string without nulls; of large_string for more than 2 GB."""
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


def nullable_text_column(texts: Sequence[str | None]) -> ArrowColumn:
    """Return an Arrow array of string in which None is null."""
    return null_where(text_column([text or "" for text in texts]), np.array([text is None for text in texts], bool))


def as_large_text(column: ArrowColumn) -> Any:
    """Return an Arrow column of text in any layout as large_string; rows without text are null."""
    import pyarrow as pa

    if isinstance(column, pa.ChunkedArray):
        return pa.chunked_array([as_large_text(chunk) for chunk in column.chunks], pa.large_string())
    if pa.types.is_dictionary(column.type):
        # The dictionary may contain nulls, and PyArrow cannot take values that are views.
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(pa.large_string()))
    return column.cast(pa.large_string())


def narrowed(column: ArrowColumn) -> ArrowColumn:
    """Return an Arrow array without values of its dictionary that it does not use, if it has fewer rows than values."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type) or len(column.dictionary) <= len(column):
        return column
    is_null = ~np.asarray(column.indices.is_valid())
    used, places = np.unique(numbers_of(column.indices, np.int64, -1), return_inverse=True)
    first = int(np.searchsorted(used, 0)) if is_null.any() else 0
    if not (used[first:] < len(column.dictionary)).all() or (len(used) > first and used[first] < 0):
        raise pa.ArrowInvalid("an index of a dictionary is outside it")
    values = taken_rows(column.dictionary, used[first:])
    indices = number_column(np.maximum(places - first, 0), is_null).cast(column.type.index_type)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=column.type.ordered)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text in any layout, also in a dictionary."""
    import pyarrow.types as are

    kind = kind.value_type if are.is_dictionary(kind) else kind
    return bool(are.is_string(kind) or are.is_large_string(kind) or are.is_string_view(kind))


def decoded(column: ArrowColumn) -> Any:
    """Return an Arrow column without its dictionary, if it has one; texts then have the type large_string."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return column
    return as_large_text(column) if is_text(column.type) else column.cast(column.type.value_type)


def root_of(name: str, names: Collection[str]) -> str:
    """Return the column that contains the field at a path, given the names of all columns."""
    return name if name in names else name.partition("[]")[0].split(".")[0]


def check_unique(names: Sequence[str], wanted: Sequence[str], file: str | None = None) -> None:
    """Raise InvalidInput if several columns have the name of one of these columns or fields."""
    all_names = list(names)
    for name in wanted:
        column = root_of(name, all_names)
        if (num := all_names.count(column)) > 1:
            raise InvalidInput(f"{num} columns are named {column!r}; rename all but one", file)


def constant_column(text: str, num_rows: int) -> ArrowColumn:
    """Return an Arrow array that repeats one string."""
    return text_column(Texts.from_list([text]).take(np.zeros(num_rows, np.int64)))


def taken_rows(data: ColumnData, rows: NDArray[np.int64]) -> ArrowTable:
    """Return rows of an Arrow array or record batch."""
    import pyarrow as pa

    is_batch = isinstance(data, pa.RecordBatch)
    if not any(_shares_buffers(column.type) for column in (data.columns if is_batch else [data])):
        return data.take(number_column(rows))
    # PyArrow cannot take views, so slice and concatenate runs of rows.
    breaks = np.flatnonzero(np.diff(rows) != 1) + 1
    starts, ends = np.concatenate([[0], breaks]), np.concatenate([breaks, [len(rows)]])
    parts = [data.slice(int(rows[low]), int(high - low)) for low, high in zip(starts, ends, strict=True) if high]
    if not is_batch:
        return _compacted(pa.concat_arrays(parts) if parts else data.slice(0, 0))
    joined = pa.concat_batches(parts) if parts else data.slice(0, 0)
    return pa.RecordBatch.from_arrays([_compacted(column) for column in joined.columns], schema=data.schema)


def _shares_buffers(kind: Any) -> bool:
    """Return whether rows of this type that are taken keep the bytes of other rows, or cannot be taken."""
    import pyarrow as pa

    if kind in (pa.string_view(), pa.binary_view()) or pa.types.is_list_view(kind) or pa.types.is_run_end_encoded(kind):
        return True
    return pa.types.is_large_list_view(kind) or any(
        _shares_buffers(kind.field(number).type) for number in range(kind.num_fields)
    )


def _compacted(column: ArrowColumn) -> Any:
    """Return the same values with views into buffers that hold nothing else."""
    plain = _without_views(column.type)
    return column if plain == column.type else column.cast(plain).cast(column.type)


def _without_views(kind: Any) -> Any:
    """Return the type with offsets in place of views of strings."""
    import pyarrow as pa

    types = pa.types
    if kind == pa.string_view():
        return pa.large_string()
    if kind == pa.binary_view():
        return pa.large_binary()
    inner = [kind.field(number).with_type(_without_views(kind.field(number).type)) for number in range(kind.num_fields)]
    if types.is_struct(kind):
        return pa.struct(inner)
    if types.is_map(kind):
        return pa.map_(kind.key_type, inner[0].type.field(1), keys_sorted=kind.keys_sorted)
    if types.is_fixed_size_list(kind):
        return pa.list_(inner[0], kind.list_size)
    if types.is_list(kind):
        return pa.list_(inner[0])
    if types.is_large_list(kind):
        return pa.large_list(inner[0])
    # PyArrow cannot cast list views of views.
    return kind


def null_where(column: ArrowColumn, is_null: NDArray[np.bool_]) -> Any:
    """Return an Arrow array with the same values, null in some rows."""
    import pyarrow as pa

    validity = pa.py_buffer(np.packbits(~is_null, bitorder="little"))
    return pa.Array.from_buffers(column.type, len(column), [validity, *column.buffers()[1:]], offset=column.offset)
