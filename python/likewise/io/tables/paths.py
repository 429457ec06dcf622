"""Fields at paths: ``a.b`` is field b of the structs in column a, ``a[].b`` that of each struct in the lists of a.

The texts of a list are joined with newlines. The native reader of JSON Lines follows the same rules.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ArrowSchema, ColumnData
from likewise.errors import InvalidInput
from likewise.io.source.source import Cut
from likewise.io.tables.columns import as_large_text, is_text, null_where, number_column
from likewise.recipe.rules import ALL_ROLES, RoleNames

_LIST = "[]"
_STEPS = re.compile(r"\[\]|[^.\[\]]+")
# Field of the text in a list of parts, such as those of a multimodal message.
_PART = "text"


def has_column(schema: ArrowSchema, name: str) -> bool:
    """Return whether there is a column with this name, or a field at this path."""
    return type_of(schema, name) is not None


def type_of(schema: ArrowSchema, name: str) -> Any:
    """Return the type of a column, or of the field at a path; None if it does not exist."""
    import pyarrow as pa

    first, *rest = _steps(schema, name)
    if first not in schema.names:
        return None
    kind = schema.field(first).type
    if pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    for step in rest:
        if step == _LIST:
            if not _is_list(kind):
                return None
            kind = kind.value_type
        elif not pa.types.is_struct(kind) or kind.get_field_index(step) < 0:
            return None
        else:
            kind = kind.field(step).type
    return kind


def column_of(data: ColumnData, name: str) -> ArrowColumn:
    """Return the column of a table or record batch with this name, or the struct field at this dotted path."""
    import pyarrow.compute as pc

    first, *rest = _steps(data.schema, name)
    if _LIST in rest:
        raise InvalidInput(f"{name!r} is in a list; name a field with one value in each row")
    column = _plain(data.column(first))
    for part in rest:
        column = pc.struct_field(column, part)
    return column


def _plain(column: ArrowColumn) -> ArrowColumn:
    """Return a column without run-end encoding."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return pc.run_end_decode(column) if pa.types.is_run_end_encoded(column.type) else column


def text_of(data: ColumnData, name: str, roles: RoleNames = ALL_ROLES) -> ArrowColumn:
    """Return the field at a path; if it is a list of texts or in a list, the joined texts, null where there is none."""
    import pyarrow as pa

    first, *steps = _steps(data.schema, name)
    column = _plain(data.column(first))
    if not isinstance(column, pa.ChunkedArray):
        return _joined(column, steps, roles)
    chunks = column.chunks or [pa.array([], column.type)]
    return pa.chunked_array([_joined(chunk, steps, roles) for chunk in chunks])


def is_joined(schema: ArrowSchema, name: str) -> bool:
    """Return whether the text of a field consists of the texts of a list."""
    return _LIST in _steps(schema, name) or _is_list(type_of(schema, name))


def such_fields(name: str, kind: Any) -> str:
    """Return the rest of an error about a column that is not text: the path of a text in it, if it has one."""
    path = _text_path(name, kind)
    return "" if path == name else f", such as {path!r}"


def found_fields(schema: ArrowSchema) -> str:
    """Return the columns, for errors about a missing one; of structs and lists, the path of a text."""
    return ", ".join(repr(_text_path(field.name, field.type)) for field in schema)


def _text_path(name: str, kind: Any) -> str:
    import pyarrow as pa

    path = name
    if _is_list(kind):
        path, kind = path + _LIST, kind.value_type
    texts = [field.name for field in kind if _holds_text(field.type)] if pa.types.is_struct(kind) else []
    best = next((field for field in ("content", "value") if field in texts), texts[0]) if texts else None
    return name if best is None else f"{path}.{best}"


def without(column: ArrowColumn, schema: ArrowSchema, name: str, roles: RoleNames, cut: Cut) -> ArrowColumn:
    """Return the column of lists that holds the texts of a field, with parts of the joined texts removed."""
    import pyarrow as pa

    rows = column.take(number_column(cut.rows)).to_pylist()
    steps, first = _steps(schema, name)[1:], 0
    places: list[tuple[Any, Any]] = []
    numbers, starts, ends = [], [], []
    for row, count in zip(rows, cut.counts.tolist(), strict=True):
        at = 0
        for holder, key in _strings(row, steps or [_LIST], roles):
            size = len(holder[key].encode())
            for start, end in zip(cut.starts[first : first + count], cut.ends[first : first + count], strict=True):
                low, high = max(int(start) - at, 0), min(int(end) - at, size)
                if low < high:
                    numbers.append(len(places))
                    starts.append(low)
                    ends.append(high)
            places.append((holder, key))
            at += size + 1
        first += count
    of_strings = Cut.of_parts(
        *(np.array(values, np.int64) for values in (numbers, starts, ends)), keeps_words_apart=cut.keeps_words_apart
    )
    changed = [places[number] for number in of_strings.rows.tolist()]
    left, _ = of_strings.apply(Texts.from_list([holder[key] for holder, key in changed]))
    for (holder, key), text in zip(changed, left.to_list(), strict=True):
        holder[key] = text
    order = np.arange(len(column))
    order[cut.rows] = len(column) + np.arange(len(rows))
    return pa.concat_arrays([column, pa.array(rows, column.type)]).take(number_column(order))


def _steps(schema: ArrowSchema, name: str) -> list[str]:
    return [name] if name in schema.names else _STEPS.findall(name) or [name]


def _is_list(kind: Any) -> bool:
    import pyarrow.types as are

    views = (are.is_list_view, are.is_large_list_view)
    return any(test(kind) for test in (are.is_list, are.is_large_list, are.is_fixed_size_list, *views))


def _holds_text(kind: Any) -> bool:
    """Return whether a value of this Arrow type is a text, or a list of texts or of parts with texts."""
    import pyarrow as pa

    if not _is_list(kind):
        return is_text(kind)
    entry = kind.value_type
    if pa.types.is_struct(entry) and entry.get_field_index(_PART) >= 0:
        entry = entry.field(_PART).type
    return is_text(entry) or pa.types.is_null(entry)


def _joined(column: ArrowColumn, steps: Sequence[str], roles: RoleNames) -> ArrowColumn:
    """Return the values at the end of the steps into an Arrow array; texts of lists are joined."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for number, step in enumerate(steps):
        if step == _LIST:
            steps = steps[number + 1 :]
            break
        column = pc.struct_field(column, step)
    else:
        if not (_is_list(column.type) and _holds_text(column.type)):
            return column
        steps, roles = [_PART] if pa.types.is_struct(column.type.value_type) else [], ALL_ROLES
    # Not by a cast, whose lists of views lack their last offset.
    entries, lengths = column.flatten(), pc.list_value_length(column).cast(pa.int64())
    texts = _joined(entries, steps, roles)
    if not (is_text(texts.type) or pa.types.is_null(texts.type)):
        return texts
    texts = as_large_text(texts)
    counts = np.asarray(texts.is_valid()) & (_are_counted(entries, roles) if steps and _LIST not in steps else True)
    before = np.concatenate([[0], np.cumsum(counts)])
    ends = np.cumsum(np.asarray(lengths.fill_null(0)))
    bounds = before[np.concatenate([[0], ends])]
    if not counts.all():
        texts = texts.filter(number_column(counts))
    joined = pc.binary_join(
        pa.LargeListArray.from_arrays(number_column(bounds), texts), pa.scalar("\n", pa.large_string())
    )
    is_empty = np.diff(bounds) == 0
    return null_where(joined, is_empty) if is_empty.any() else joined


def _are_counted(entries: ArrowColumn, roles: RoleNames) -> Any:
    """Return which entries of a list count, by their role."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = [name for name in ("role", "from") if has_column(pa.schema(list(entries.type)), name)]
    named = [as_large_text(pc.struct_field(entries, name)) for name in names if is_text(entries.type.field(name).type)]
    if not (named and roles.names):
        return np.full(len(entries), not roles.are_counted)
    # Few distinct roles, and PyArrow 26 misreads some slices in its kernels for lower case in ASCII.
    encoded = pc.coalesce(*named).dictionary_encode()
    counted = np.array([*map(roles.counts, encoded.dictionary.to_pylist()), roles.counts(None)], bool)
    return counted[np.asarray(encoded.indices.fill_null(len(counted) - 1))]


def _strings(value: Any, steps: Sequence[str], roles: RoleNames, *, is_item: bool = False) -> Iterator[tuple[Any, Any]]:
    """Yield where the strings of a value are that count, in order: a list or dict, and the index or key in it."""
    if value is None:
        return
    step, *rest = steps
    if step == _LIST:
        places: list[tuple[Any, Any]] = [(value, index) for index in range(len(value))]
    else:
        role = next((value[name] for name in ("role", "from") if isinstance(value.get(name), str)), None)
        places = [(value, step)] if not is_item or roles.counts(role) else []
    for holder, key in places:
        inner = holder[key]
        if rest:
            yield from _strings(inner, rest, roles, is_item=step == _LIST and _LIST not in rest)
        elif isinstance(inner, list):
            yield from _strings(inner, [_LIST, _PART] if inner and isinstance(inner[0], dict) else [_LIST], ALL_ROLES)
        elif isinstance(inner, dict):
            yield from _strings(inner, [_PART], ALL_ROLES)
        elif inner is not None:
            yield holder, key
