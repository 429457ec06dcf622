"""Reading of documents in memory: lists, columns, tables and streams, as one input of a run."""

import contextlib
from collections.abc import Iterable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, TextData
from likewise.batch.read.documents import Documents
from likewise.errors import InvalidInput, InvalidParameter, check_choice, counted
from likewise.io.source.source import NULL_TEXT, ReadRules, Source, TokenRules
from likewise.io.tables.arrow import BatchStream, MemorySource
from likewise.io.tables.columns import as_large_text, check_unique, decoded, is_text, number_column
from likewise.io.tables.offered import as_arrow, as_reader, as_table, check_collected
from likewise.io.tables.paths import found_fields, has_column
from likewise.io.tables.tables import column_as_json, integer_type, texts_of
from likewise.job.reading import names_line, refusal
from likewise.recipe.presets import PRESETS
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import keep_needs, role_names, role_paths
from likewise.stages.text import (
    TextField,
    Tokenizer,
    are_bytes,
    as_documents,
    as_texts,
    check_tokenizer,
    field_names,
    is_arrow,
    is_null,
    is_stream,
    is_table,
    table_column,
    tokenized,
    with_values,
)
from likewise.stages.text import text_column as joined_column

#: What to do with documents whose text is null. Those that are kept match nothing.
Nulls = Literal["fail", "keep", "drop"]
NULLS: tuple[Nulls, ...] = get_args(Nulls)
# Lengths of texts have 32 bits.
_MAX_TEXT_BYTES = 2**32 - 1


def document_source(
    documents: TextData,
    ids: ColumnData,
    recipe: Recipe,
    *,
    text_field: TextField = "text",
    nulls: Nulls = "fail",
    tokenizer: Tokenizer | None = None,
    is_read_again: bool = False,
) -> Source:
    """Return documents in memory, of any kind that the recipe takes, as an input; streams are not held in memory."""
    check_tokenizer(recipe, tokenizer)
    check_choice("nulls", nulls, NULLS)
    documents, text_field = with_values(documents, recipe, text_field)
    fields = keep_needs(recipe.keep)[1]
    if not recipe.takes_tokens or tokenizer is not None:
        needed = (*field_names(text_field), *((ids,) if isinstance(ids, str) else ()), *fields)
        if not isinstance(documents, list):
            documents = as_arrow(documents, needed, ("id",) if ids is None else ())
    if is_arrow(documents) and is_stream(documents):
        if tokenizer is None and not is_read_again and (ids is None or isinstance(ids, str)):
            return _stream_source(documents, ids, text_field, fields, recipe)
        documents = as_reader(documents).read_all()
    columns: dict[str, Any] = {}
    given_type, texts_without_tokens, has_null_id = None, None, None
    if is_arrow(documents) and is_table(documents):
        table = as_table(documents)
        name = ids if isinstance(ids, str) else "id" if ids is None and "id" in table.column_names else None
        column = table_column(table, name) if name is not None else ids
        # As for files: only an explicitly named id column must have an id in every row.
        ids = _with_row_numbers(column) if ids is None and name is not None else column
        if ids is not column:
            has_null_id = np.asarray(decoded(column).is_null())
        given_type = None if column is None else integer_type(column)
        if name is not None and given_type is not None and column.null_count:
            import pyarrow as pa

            # Row numbers must fit too.
            fits = len(column) <= np.iinfo(given_type.to_pandas_dtype()).max
            given_type = given_type if fits else pa.int64()
        if recipe.only_within is not None:
            table_column(table, recipe.only_within)
        columns = {name: table_column(table, name) for name in fields}
        is_of_tokens = recipe.takes_tokens and tokenizer is None
        texts_without_tokens = texts_of(table, ("text",)) if is_of_tokens else None
        documents = (
            table_column(table, field_names(text_field)[0], remedy="set text_field to the column of tokens")
            if is_of_tokens
            else joined_column(table, text_field, role_names(recipe.roles))
        )
        if recipe.roles and nulls == "fail" and len(documents) == documents.null_count > 0:
            raise _no_role(table, text_field, recipe.roles)
    elif fields:
        raise InvalidParameter("keep", f"field {fields[0]!r} is used, but only tables and files have fields")
    elif isinstance(ids, str):
        raise InvalidParameter("ids", f"{ids!r} names a column, but the texts are not a table")
    rows, num_rows = None, 0
    if nulls != "fail":
        documents, rows, num_rows = _without_nulls(documents)
        if rows is not None and texts_without_tokens is not None:
            texts_without_tokens = texts_without_tokens.take(number_column(rows))
    if tokenizer is None and (recipe.takes_tokens or are_bytes(documents, recipe)):
        texts = as_documents(documents, recipe, texts=texts_without_tokens)
    else:
        texts = as_texts(documents)
    given_fields = {name: column_as_json(column) for name, column in columns.items()}
    given_ids: Texts | None = None
    if ids is not None:
        from likewise.index.ids import all_ids

        if isinstance(ids, Iterator):
            ids = list(ids)
        given_ids, given_type = all_ids(ids), given_type or integer_type(ids)
        num_given = len(texts) if rows is None else num_rows
        if len(given_ids) != num_given:
            raise InvalidInput(f"{counted(len(given_ids), 'id')} for {counted(num_given, 'text')}")
    if tokenizer is not None:
        texts = tokenized(texts, recipe, tokenizer)
    if rows is None:
        return MemorySource(texts, given_ids, given_fields, given_type=given_type, has_null_id=has_null_id)
    return MemorySource(
        texts,
        None if given_ids is None else given_ids.take(rows),
        {name: values.take(rows) for name, values in given_fields.items()},
        rows,
        num_rows,
        given_ids,
        given_type,
        None if has_null_id is None else has_null_id[rows],
    )


def column_named(documents: TextData, recipe: object, text_field: TextField) -> tuple[Any, TextField]:
    """Return the recipe and the text field; a name given as the recipe that is a column and no preset is the field."""
    if not isinstance(documents, list):
        check_collected(documents)
    of_schema = getattr(getattr(documents, "schema", None), "names", ())
    names = getattr(documents, "column_names", getattr(documents, "columns", of_schema))
    if not isinstance(recipe, str) or recipe in PRESETS:
        return recipe, text_field
    if any(isinstance(name, str) and name == recipe for name in names):
        return None, recipe
    if not len(names) or isinstance(names, dict):
        return recipe, text_field
    found, presets = (", ".join(map(str, some)) for some in (names, PRESETS))
    raise InvalidParameter("recipe", f"{recipe!r} is not a column (found: {found}) or a preset ({presets})")


def _stream_source(
    texts: TextData,
    id_field: str | None,
    text_field: TextField,
    fields: tuple[str, ...],
    recipe: Recipe,
) -> Source:
    reader = as_reader(texts)
    names, text_fields = reader.schema.names, field_names(text_field)
    rules = ReadRules(
        text_fields, id_field, fields, _MAX_TEXT_BYTES, tokens=TokenRules.of(recipe), roles=role_names(recipe.roles)
    ).checked()
    wanted = (*text_fields, *([rules.id_field] if rules.id_field else []), *fields)
    check_unique(names, wanted)
    for name in wanted:
        if not has_column(reader.schema, name):
            raise InvalidInput(
                f"no column {name!r} in the stream; found: {found_fields(reader.schema)}. Use text_field to name the "
                "column with the text"
            )
    return BatchStream(reader, rules)


def _no_role(table: ArrowTable, text_field: TextField, roles: tuple[str, ...]) -> InvalidInput:
    paths = [path for path in role_paths(field_names(text_field)) if has_column(table.schema, path)]
    texts = [text for path in paths for text in joined_column(table, path).unique().drop_null().to_pylist()]
    found = names_line(list(dict.fromkeys(role for text in texts for role in text.split("\n"))))
    return InvalidInput(f"no message with a text has the roles {', '.join(roles)} (found: {found}); choose other roles")


def _without_nulls(documents: TextData) -> tuple[Any, NDArray[np.int64] | None, int]:
    """Return the non-null documents, their rows (None if there are no nulls), and the number of given rows."""
    if is_arrow(documents):
        import pyarrow as pa

        column = pa.array(documents) if hasattr(documents, "__arrow_c_array__") else pa.chunked_array(documents)
        column = as_large_text(column) if pa.types.is_string_view(column.type) else decoded(column)
        if not column.null_count:
            return column, None, len(column)
        rows = np.flatnonzero(np.asarray(column.is_valid()))
        return column.drop_null() if len(rows) else [], rows, len(column)
    if isinstance(documents, Texts | str | bytes) or not isinstance(documents, Iterable):
        return documents, None, 0
    given = list(documents)
    rows = np.flatnonzero([not is_null(one) for one in given])
    return [given[row] for row in rows.tolist()], None if len(rows) == len(given) else rows, len(given)


@contextlib.contextmanager
def null_option_named() -> Iterator[None]:
    """Name the option `nulls` in the error about a null text, as a context."""
    try:
        yield
    except InvalidInput as error:
        if error.message != NULL_TEXT:
            raise
        raise InvalidInput(f'{NULL_TEXT}, or set nulls="keep" or nulls="drop"', row=error.row) from error


def check_only_nulls(documents: Documents) -> None:
    """Raise the error of the first bad row that is not a null text."""
    for source, bad_rows in zip(documents.sources, documents.bad_rows, strict=True):
        for bad in bad_rows:
            if bad.reason != NULL_TEXT:
                raise refusal(source, bad)


def mask_of_rows(documents: Documents, kept: NDArray[np.bool_], *, nulls_are_kept: bool) -> NDArray[np.bool_]:
    """Return whether each row of the input is kept, including null texts."""
    num_nulls = sum(map(len, documents.bad_rows))
    if not num_nulls:
        return kept
    mask = np.full(len(documents) + num_nulls, nulls_are_kept)
    mask[documents.lines] = kept
    return mask


def _with_row_numbers(column: ArrowColumn) -> Any:
    """Return ids with row numbers in place of nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    # A dictionary may contain nulls.
    given, column = column, decoded(column)
    if not column.null_count or not (is_text(column.type) or pa.types.is_integer(column.type)):
        return given
    return pc.coalesce(column.cast(pa.large_string()), pa.array(np.arange(len(column))).cast(pa.large_string()))
