"""Ids of documents as native columns."""

from collections.abc import Iterable
from typing import Any

from likewise import _native
from likewise.errors import InvalidInput


def all_ids(ids: Any) -> _native.Texts:  # noqa: ANN401 - lists, Arrow data
    """Return ids as a native column; whole numbers in decimal."""
    if isinstance(ids, _native.Texts):
        return ids
    if isinstance(ids, str | bytes):
        raise InvalidInput("a single id was given where several are expected; put it in a list")
    if hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__"):
        import pyarrow as pa

        column = pa.chunked_array(ids)
        return _native.Texts.from_arrow(column.cast(pa.large_string()) if pa.types.is_integer(column.type) else column)
    if not isinstance(ids, Iterable):
        raise InvalidInput(f"ids are {type(ids).__name__}; expected a list of str")
    names = list(ids)
    for row, name in enumerate(names):
        if isinstance(name, str):
            continue
        if isinstance(name, bool) or not hasattr(name, "__index__"):
            raise InvalidInput(f"the id is {name!r}; ids are text or whole numbers", row=row)
        names[row] = str(name.__index__())
    return _native.Texts.from_list(names)


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
