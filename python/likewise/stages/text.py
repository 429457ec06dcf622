"""Text: normalization, tokens, and the accepted forms of input."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, TypeAlias

from likewise import _native
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, TextData
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.source.source import NULL_TEXT
from likewise.io.tables.columns import as_large_text, check_unique, is_text
from likewise.io.tables.offered import as_arrow, as_reader, as_table
from likewise.io.tables.paths import column_of, found_fields, has_column, such_fields, text_of
from likewise.recipe.fields import TOKENS
from likewise.recipe.text import ALL_ROLES, RoleNames, check_roles

# Number of strings passed to the core at once, so that an iterator's texts are not all in memory twice.
_STRINGS_AT_ONCE = 8192
# The column of a table that contains the text, or several columns that are joined with a newline.
TextField: TypeAlias = str | Sequence[str]
# Iterables that are read as one batch, or not at all.
_WHOLE = (str, bytes, Mapping, list, _native.Texts)


def normalize(text: str) -> str:
    r"""Return the normalized text: NFKC case folding, and each run of whitespace as one space.

    Parameters
    ----------
    text : str
        Lone surrogates count as U+FFFD.

    Returns
    -------
    str
        Empty if the text counts as empty.

    Examples
    --------
    >>> normalize("  Straße\tＡＢＣ ")
    'strasse abc'
    """
    return _native.normalize(text)


def tokens(text: str, rule: str = "auto") -> list[str]:
    """Return the tokens of a text, in order.

    Examples
    --------
    >>> tokens("Don't panic, 猫!")
    ["don't", 'panic', '猫']
    """
    if rule not in TOKENS:
        raise InvalidParameter("tokens", f"{rule!r} is not one of {', '.join(TOKENS)}")
    return _native.tokens(text, rule)


def as_texts(texts: TextData, text_field: TextField = "text", roles: RoleNames = ALL_ROLES) -> _native.Texts:
    """Return texts of any accepted kind as one native batch. Arrow data is not copied."""
    if isinstance(texts, _native.Texts):
        return texts
    texts = as_arrow(texts, field_names(text_field))
    if isinstance(texts, str | bytes):
        raise InvalidInput("expected a list of texts, got a single text; put it in a list")
    if isinstance(texts, Mapping):
        raise InvalidInput("expected texts, got a mapping; pass its values")
    if is_arrow(texts):
        return _native.Texts.from_arrow(
            text_column(texts, text_field, roles) if is_table(texts) else _one_column(texts)
        )
    if isinstance(texts, list):
        return _from_list(texts)
    return _native.Texts.concat(list(_of_strings(texts)))


def text_batches(
    texts: TextData, text_field: TextField = "text", roles: RoleNames = ALL_ROLES
) -> Iterator[_native.Texts]:
    """Yield texts of any accepted kind as native batches: streams and iterators batch by batch, the others as one."""
    texts = as_arrow(texts, field_names(text_field))
    if hasattr(texts, "__arrow_c_stream__") and is_stream(texts):
        reader = as_reader(texts)
        first_row = 0
        # Check the column even if the stream has no batches.
        yield _native.Texts.from_arrow(text_column(reader.schema.empty_table(), text_field, roles))
        for batch in reader:
            column = text_column(batch, text_field, roles)
            yield _counted_from(first_row, _native.Texts.from_arrow, column)
            first_row += batch.num_rows
    elif isinstance(texts, Iterable) and not isinstance(texts, _WHOLE) and not is_arrow(texts):
        yield from _of_strings(texts)
    else:
        yield as_texts(texts, text_field, roles)


def _one_column(column: ArrowColumn) -> ArrowColumn:
    """Return a column without a table; lists of texts are joined and run ends decoded, as in a table."""
    import pyarrow as pa

    column = pa.chunked_array([column]) if isinstance(column, pa.Array) else pa.chunked_array(column)
    return text_of(pa.table({"text": column}), "text")


def _of_strings(texts: TextData) -> Iterator[_native.Texts]:
    if not isinstance(texts, Iterable):
        raise InvalidInput(
            f"texts have type {type(texts).__name__}; expected a list of str, "
            "Arrow data (PyArrow, Polars, DuckDB, pandas, datasets) "
            "or an iterable of str"
        )
    for first_row, part in in_lists(texts):
        yield _counted_from(first_row, _from_list, part)


def in_lists(entries: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield the entries of an iterable in lists, at least one, each with the number of its first entry."""
    source, first = iter(entries), 0
    part = list(islice(source, _STRINGS_AT_ONCE))
    yield first, part
    while part:
        first += len(part)
        part = list(islice(source, _STRINGS_AT_ONCE))
        if part:
            yield first, part


def _from_list(texts: list[Any]) -> _native.Texts:
    """Return strings as a batch; a null raises the same error as in Arrow data."""
    try:
        return _native.Texts.from_list(texts)
    except InvalidInput as error:
        if error.row is not None and isinstance(texts[error.row], Mapping):
            raise InvalidInput(
                f"{error.message}; give rows with fields as a table, such as pyarrow.Table.from_pylist(rows)",
                row=error.row,
            ) from error
        if error.row is None or not is_null(texts[error.row]):
            raise
        raise InvalidInput(NULL_TEXT, row=error.row) from error


def is_null(value: object) -> bool:
    """Return whether an entry of a list is missing: None, or NaN or NA from pandas."""
    return value is None or (isinstance(value, float) and value != value) or type(value).__name__ == "NAType"


def _counted_from(first_row: int, read: Callable[[Any], _native.Texts], data: ColumnData) -> _native.Texts:
    """Return what `read` returns for data; its errors name the row counted from `first_row`."""
    try:
        return read(data)
    except InvalidInput as error:
        if error.row is None or not first_row:
            raise
        raise InvalidInput(error.message, error.file, error.row + first_row) from error


def is_arrow(data: object) -> bool:
    """Return whether data is offered through the C interface of Arrow."""
    return hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__")


def is_table(data: object) -> bool:
    """Return whether Arrow data has named columns, rather than being a single column."""
    return any(hasattr(data, name) for name in ("schema", "columns", "column_names"))


def is_stream(data: object) -> bool:
    """Return whether Arrow data has columns but can be read only once, batch by batch, like a reader or a query."""
    return is_table(data) and any(
        hasattr(data, name) for name in ("read_next_batch", "to_arrow_reader", "fetch_arrow_reader")
    )


def table_column(
    table: ArrowTable, name: str, read: Callable[..., ArrowColumn] = column_of, *, remedy: str = "choose one of these"
) -> ArrowColumn:
    """Return one column of any Arrow table, or the field at a path, as a PyArrow chunked array."""
    data = as_table(table)
    check_unique(data.column_names, [name])
    if not has_column(data.schema, name):
        raise InvalidInput(f"no column {name!r} in the table (found: {found_fields(data.schema)}); {remedy}")
    return read(data, name)


def field_names(text_field: TextField) -> tuple[str, ...]:
    """Return the columns of the text, at least one."""
    names = (
        (text_field,) if isinstance(text_field, str) else tuple(text_field) if isinstance(text_field, Iterable) else ()
    )
    if not names or not all(isinstance(name, str) for name in names):
        raise InvalidParameter("text_field", f"{text_field!r} is neither a column nor a list of columns")
    return names


def text_column(table: ArrowTable, text_field: TextField, roles: RoleNames = ALL_ROLES) -> ArrowColumn:
    """Return the text of an Arrow table as a chunked array, columns joined with a newline; null if one value is."""
    import pyarrow as pa
    import pyarrow.compute as pc

    names = field_names(text_field)
    check_roles(roles, names)
    remedy = "set text_field to the text column"
    columns = [table_column(table, name, partial(text_of, roles=roles), remedy=remedy) for name in names]
    for name, column in zip(names, columns, strict=True):
        if not is_text(column.type) and (len(names) > 1 or not pa.types.is_null(column.type)):
            is_list = pa.types.is_list(column.type) or pa.types.is_large_list(column.type)
            how = '; lists of tokens require tokens="user"' if is_list else ""
            raise InvalidInput(
                f"the column {name!r} has type {column.type}, not text; convert it to text, or choose another column"
                f"{such_fields(name, column.type)}{how}"
            )
    if len(names) == 1:
        return columns[0]
    large = map(as_large_text, columns)
    return pc.binary_join_element_wise(*large, pa.scalar("\n", pa.large_string()), null_handling="emit_null")
