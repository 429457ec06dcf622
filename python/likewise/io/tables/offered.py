"""Data frames and Hugging Face datasets: conversion of the columns that are read to Arrow data.

Libraries are recognized by attributes of their objects and never imported.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowSchema, ArrowTable, ColumnData
from likewise.errors import InvalidInput
from likewise.io.tables.columns import OTHER_TYPES, check_unique, number_column, root_of

# Rows of a dataset that are gathered or converted at a time.
_ROWS_AT_ONCE = 1000


def as_arrow(data: ColumnData, needed: Sequence[str] = (), optional: Sequence[str] = ()) -> Any:
    """Return data of supported libraries as Arrow data, other data unchanged."""
    if isinstance(data, list):
        return data
    check_collected(data)
    if hasattr(data, "columns") and (hasattr(data, "loc") or hasattr(data, "get_columns")):
        columns, index = list(data.columns), getattr(getattr(data, "index", None), "names", ())
        check_unique(columns, (*needed, *optional))
        wanted = _wanted(columns, needed, optional)
        if wanted is not None:
            return data[wanted]
        # If a column is missing, only the names of the others matter; not all Python objects convert to Arrow data.
        return data if set(needed) <= {*columns, *index} else data.head(0)
    if hasattr(data, "column_name") and _is_dataset(getattr(data, "source", None)) and hasattr(data, "__len__"):
        return data.source.select_columns([data.column_name]).with_format("arrow")[:].column(0)
    if _is_dataset(data):
        return _of_splits([data], needed, optional)
    if isinstance(data, Mapping) and data and all(map(_is_dataset, data.values())):
        return _of_splits(list(data.values()), needed, optional)
    return _of_stored(data, needed, optional)


def _of_stored(data: Any, needed: Sequence[str], optional: Sequence[str]) -> Any:
    """Return the batches of a table or dataset that is not in memory; other data unchanged."""
    if hasattr(data, "to_reader") and hasattr(data, "projected_schema"):
        return data.to_reader()
    names = ("to_pyarrow_dataset", "metadata_location", "to_arrow_batch_reader", "get_fragments")
    if not any(hasattr(data, name) for name in names):
        return data
    import pyarrow as pa

    from likewise.io.tables.stored import rows_of

    found = rows_of(data)
    if found is None:
        return data
    schema, batches = found
    wanted = _wanted(schema.names, needed, optional) or schema.names
    some = pa.schema([schema.field(name) for name in wanted])
    return pa.RecordBatchReader.from_batches(some, batches(wanted))


def check_collected(data: object) -> None:
    """Raise InvalidInput for a query of Polars or Narwhals; even a look at its columns costs time and a warning."""
    if hasattr(type(data), "collect_schema") and hasattr(type(data), "collect"):
        raise InvalidInput("this is a query that has not run; give its result, frame.collect()")


def as_table(data: ColumnData) -> ArrowTable:
    """Return a table of any library as a pyarrow.Table."""
    import pyarrow as pa

    if isinstance(data, pa.Table):
        return data
    try:
        return pa.table(data)
    except pa.ArrowException as error:
        with contextlib.suppress(pa.ArrowException):
            if hasattr(data, "loc"):
                return pa.table(_evened(data))
        raise InvalidInput(f"cannot convert the table to Arrow data: {error}. {OTHER_TYPES}") from error


def _evened(frame: Any) -> Any:
    """Return a pandas frame whose columns of objects do not mix texts with lists of texts or of parts."""
    frame = frame.copy(deep=False)
    for name in frame.columns:
        if frame[name].dtype == object:
            frame[name] = _even(frame[name].tolist())
    return frame


def _even(values: list[Any]) -> list[Any]:
    """Return values in which a text is a list of one text if others are lists, and a part if others are objects."""
    kinds = {type(value) for value in values}
    if list in kinds:
        values = [[value] if isinstance(value, str) else value for value in values]
        entries = iter(_even([entry for value in values if isinstance(value, list) for entry in value]))
        return [[next(entries) for _ in value] if isinstance(value, list) else value for value in values]
    if dict in kinds:
        values = [{"text": value} if isinstance(value, str) else value for value in values]
        rows = [value for value in values if isinstance(value, dict)]
        keys = dict.fromkeys(key for row in rows for key in row)
        columns = [iter(_even([row.get(key) for row in rows])) for key in keys]
        made = (dict(zip(keys, map(next, columns), strict=True)) for _ in rows)
        return [next(made) if isinstance(value, dict) else value for value in values]
    return values


def as_reader(stream: Any) -> Any:
    """Return a stream of Arrow batches as a reader, not through the C interface, where exceptions lose their types."""
    import pyarrow as pa

    return stream if isinstance(stream, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(stream)


def _is_dataset(data: object) -> bool:
    return all(hasattr(data, name) for name in ("with_format", "select_columns", "column_names", "iter"))


def _is_table(dataset: Any) -> bool:
    """Return whether the rows of a dataset are those of its table, in the same order."""
    return hasattr(dataset, "__len__") and getattr(dataset, "_indices", None) is None


def _wanted(names: Sequence[str] | None, needed: Sequence[str], optional: Sequence[str]) -> list[str] | None:
    """Return which of these columns to read; None if all must be kept, or their names are unknown."""
    if names is None or not needed:
        return None
    # A dotted name is that of a field of a struct column.
    required, others = ({root_of(name, names) for name in some} for some in (needed, optional))
    return [name for name in names if name in required | others] if required <= set(names) else None


def _of_splits(splits: list[Any], needed: Sequence[str], optional: Sequence[str]) -> Any:
    import pyarrow as pa

    # A column that one split lacks is ignored in all.
    optional = [name for name in optional if all(name in (split.column_names or ()) for split in splits)]
    for place, split in enumerate(splits):
        wanted = _wanted(split.column_names, needed, optional)
        if wanted is not None:
            splits[place] = split.select_columns(wanted)
    if all(map(_is_table, splits)):
        tables = [split.with_format("arrow")[:].replace_schema_metadata(None) for split in splits]
        return tables[0] if len(tables) == 1 else pa.concat_tables(tables, promote_options="permissive")
    tables_of_all = chain.from_iterable(map(_tables, splits))
    first = next(tables_of_all, None)
    schema = pa.schema([]) if first is None else first.schema
    if first is None and splits[0].features is not None:
        schema = splits[0].features.arrow_schema
    rest = () if first is None else chain([first], tables_of_all)
    return pa.RecordBatchReader.from_batches(schema, _batches(schema, rest))


def _tables(dataset: Any) -> Iterator[Any]:
    import pyarrow as pa

    if hasattr(dataset, "__len__"):
        table = dataset.data.table.select(dataset.column_names).replace_schema_metadata(None)
        yield from [table] if _is_table(dataset) else _gathered(table, dataset._indices.column(0).to_numpy())
        return
    examples = getattr(dataset, "_ex_iterable", None)
    if getattr(examples, "iter_arrow", None) is not None:
        for table in dataset.with_format("arrow").iter(batch_size=_ROWS_AT_ONCE):
            yield table.replace_schema_metadata(None)
        return
    # For examples in Python, the library's conversion fails if a column mixes nulls and texts.
    schema = None if dataset.features is None else dataset.features.arrow_schema
    for batch in dataset.with_format(None).iter(batch_size=_ROWS_AT_ONCE):
        with _types_agree():
            table = pa.table(dict(batch), schema=schema)
        yield table.replace_schema_metadata(None)


def _gathered(table: ArrowTable, rows: NDArray[np.uint64]) -> Iterator[Any]:
    """Yield rows of a table in parts. ``Table.take`` would join all chunks of the table for each part."""
    import pyarrow as pa

    batches = table.to_batches()
    ends = np.cumsum([batch.num_rows for batch in batches])
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        part = rows[start : start + _ROWS_AT_ONCE].astype(np.int64)
        places = np.searchsorted(ends, part, side="right")
        order = np.argsort(places, kind="stable")
        numbers, firsts = np.unique(places[order], return_index=True)
        found = [
            batches[number].take(number_column(part[some] - (ends[number] - batches[number].num_rows)))
            for number, some in zip(numbers, np.split(order, firsts[1:]), strict=True)
        ]
        yield pa.Table.from_batches(found).combine_chunks().take(number_column(np.argsort(order)))


def _batches(schema: ArrowSchema, tables: ArrowTable) -> Iterator[Any]:
    for table in tables:
        with _types_agree():
            batches = table.select(schema.names).cast(schema).to_batches()
        yield from batches


@contextlib.contextmanager
def _types_agree() -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, KeyError) as error:
        raise InvalidInput(
            f"rows of the dataset differ in their columns or types ({error}); set its features with "
            "dataset.cast(features)"
        ) from error
