"""Ids of documents: text, or whole numbers in decimal."""

import contextlib
import reprlib
from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import TypeVar

import numpy as np

from likewise import _native
from likewise.arrays import ColumnData
from likewise.errors import InvalidInput, InvalidParameter, counted
from likewise.io.tables.columns import decoded
from likewise.io.tables.offered import as_arrow
from likewise.stages.text import is_null

_MAX_BYTES = 65_535
Batch = TypeVar("Batch", bound=Sized)


def paired(ids: ColumnData, batches: Iterable[Batch]) -> Iterator[tuple[_native.Texts, Batch]]:
    """Yield each batch of documents with its ids."""
    ids = as_arrow(ids)
    is_column = hasattr(ids, "__len__") or hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__")
    if not is_column and not isinstance(ids, Iterable):
        raise InvalidInput(f"ids have type {type(ids).__name__}; expected a list of str")
    if not is_column or isinstance(ids, Iterator):
        rest = iter(ids)
        row = 0
        for batch in batches:
            with rows_from(row):
                names = all_ids(list(islice(rest, len(batch))))
            yield names, batch
            row += len(batch)
        if next(rest, None) is not None:
            raise InvalidInput("more ids than texts; the texts with ids were added")
        return
    whole = all_ids(ids)
    row = 0
    source = iter(batches)
    following: Batch | None = next(source, None)
    # Read one batch ahead: a column of texts is a single batch, so its length is checked before the batch is yielded.
    while following is not None:
        batch, following = following, next(source, None)
        end = row + len(batch)
        if end > len(whole) or (following is None and end != len(whole)):
            more = " or more documents" if following else None
            raise InvalidInput(f"{counted(len(whole), 'id')} for {counted(end, more or 'document', more)}")
        is_all = row == 0 and end == len(whole)
        yield whole if is_all else whole.take(np.arange(row, end, dtype=np.int64)), batch
        row = end
    if len(whole) != row:
        raise InvalidInput(f"{counted(len(whole), 'id')} for {counted(row, 'document')}")


def all_ids(ids: ColumnData) -> _native.Texts:
    """Return ids as a native column, with whole numbers in decimal."""
    if isinstance(ids, _native.Texts):
        return ids
    if isinstance(ids, str | bytes):
        raise InvalidInput("expected a list of ids, got a single id; put it in a list")
    ids = as_arrow(ids)
    if hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__"):
        import pyarrow as pa

        # The values of a dictionary may contain nulls.
        column = decoded(pa.chunked_array(ids))
        if column.null_count:
            raise InvalidInput("the id is null; ids must be text or integers", row=column.is_null().index(True).as_py())
        if pa.types.is_integer(column.type):
            column = column.cast(pa.large_string())
        try:
            return _native.Texts.from_arrow(column)
        except InvalidInput as error:
            if error.row is not None:
                raise
            raise InvalidInput(f"the id column has type {column.type}; ids must be text or integers") from error
    if not isinstance(ids, Iterable):
        raise InvalidInput(f"ids have type {type(ids).__name__}; expected a list of str")
    names = list(ids)
    for row, name in enumerate(names):
        if not isinstance(name, str):
            # A missing id makes floats of the others in pandas and NumPy.
            missing = next((i for i, one in enumerate(names) if is_null(one)), row) if isinstance(name, float) else row
            names[row] = one_id(names[missing], missing)
    return _native.Texts.from_list(names)


def one_id(name: object, row: int | None = None) -> str:
    """Return an id as text, or raise InvalidInput."""
    if isinstance(name, str):
        return name
    if is_null(name):
        raise InvalidInput("the id is null; ids must be text or integers", row=row)
    if isinstance(name, bool) or not hasattr(name, "__index__"):
        raise InvalidInput(f"the id is {reprlib.repr(name)}; ids must be text or integers", row=row)
    return str(name.__index__())


@contextlib.contextmanager
def rows_from(first: int) -> Iterator[None]:
    """Convert row numbers in errors about a part to row numbers of the whole; the part begins at row `first`."""
    try:
        yield
    except InvalidInput as error:
        if error.row is None or not first:
            raise
        raise InvalidInput(error.message, row=first + error.row) from error


def as_stored(doc_id: object) -> str:
    """Return an id as an index stores it: whole numbers in decimal, lone surrogates as U+FFFD."""
    name = one_id(doc_id)
    return name if is_kept_as_given(name) else str(_native.Texts.from_list([name]).to_list()[0])


def check_lengths(names: _native.Texts) -> None:
    """Raise InvalidInput, which names the row, if an id is too long."""
    all_names = names.to_list()
    # A character has at most 4 bytes.
    if 4 * max(map(len, all_names), default=0) <= _MAX_BYTES:
        return
    for row, name in enumerate(all_names):
        num_bytes = len(name.encode("utf-8", "replace"))
        if num_bytes > _MAX_BYTES:
            raise InvalidInput(f"the id has {num_bytes:,} bytes; the limit is {_MAX_BYTES:,}", row=row)


def too_long(error: InvalidParameter, names: _native.Texts) -> Exception:
    """Return the error for a rejected batch: one that names the row of an id that is too long, if there is one."""
    try:
        check_lengths(names)
    except InvalidInput as found:
        return found
    return error


def is_kept_as_given(doc_id: object) -> bool:
    """Return whether an id is a str without lone surrogates, which would become U+FFFD."""
    if type(doc_id) is not str:
        return False
    if doc_id.isascii():
        return True
    try:
        doc_id.encode()
    except UnicodeEncodeError:
        return False
    return True
