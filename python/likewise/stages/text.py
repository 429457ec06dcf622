"""Text: normalization, tokens, and documents in the accepted forms of input as native batches.

A batch has one kind: texts, bytes, or the user's tokens, encoded with their weights. Sketching, verification and
weighting treat all kinds alike; only the native `Extractor` distinguishes them. Public functions reject documents that
the recipe's tokens cannot split.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from likewise import _native
from likewise.arrays import ArrowColumn, ArrowTable, ColumnData, TextData
from likewise.errors import InvalidInput, InvalidParameter, RecipeMismatch
from likewise.io.source.source import NULL_TEXT, CutText, TokenRules, own_weight
from likewise.io.tables.columns import as_large_text, check_unique, is_text
from likewise.io.tables.offered import as_arrow, as_reader, as_table
from likewise.io.tables.paths import column_of, found_fields, has_column, such_fields, text_of
from likewise.io.tables.tables import texts_of, token_lists
from likewise.recipe.fields import OWN_WEIGHTS, TOKENS
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import ALL_ROLES, BYTE_TOKENS, USER_TOKENS, RoleNames, check_roles, role_names

# The column of a table that contains the text, or several columns that are joined with a newline.
TextField: TypeAlias = str | Sequence[str]
Tokenizer: TypeAlias = Callable[[str], Iterable[Any]]
_NAME_AND_VERSION = r"([\w-]+) (\d+(?:\.\w+)+)"


def as_documents(
    documents: TextData,
    recipe: Recipe,
    *,
    tokenizer: Tokenizer | None = None,
    text_field: TextField = "text",
    texts: TextData = None,
) -> _native.Texts:
    """Return documents of any accepted kind as one native batch."""
    batches = document_batches(documents, recipe, tokenizer=tokenizer, text_field=text_field, texts=texts)
    return _native.Texts.concat(list(batches))


def document_batches(
    documents: TextData,
    recipe: Recipe,
    *,
    tokenizer: Tokenizer | None = None,
    text_field: TextField = "text",
    texts: TextData = None,
) -> Iterator[_native.Texts]:
    """Yield documents of any accepted kind as native batches, at least one; otherwise as :func:`as_documents`."""
    check_tokenizer(recipe, tokenizer)
    documents, text_field = with_values(documents, recipe, text_field)
    if isinstance(documents, _native.Texts) and documents.kind != "text":
        yield documents
    elif tokenizer is not None:
        row = 0
        for batch in text_batches(documents, text_field, role_names(recipe.roles)):
            yield tokenized(batch, recipe, tokenizer, first_row=row)
            row += len(batch)
    elif recipe.takes_tokens and is_arrow(documents):
        yield from _of_lists(documents, recipe, text_field, texts)
    elif recipe.takes_tokens:
        yield from _batches(documents, lambda part, row: _encoded(part, recipe, None, row))
    elif are_bytes(documents, recipe):
        yield from _batches(documents, lambda part, row: _native.Texts.from_bytes(part))
    else:
        yield from text_batches(documents, text_field, role_names(recipe.roles))


def with_values(documents: TextData, recipe: Recipe, text_field: TextField) -> tuple[Any, TextField]:
    """Return documents and their text columns so that each text begins with its value of `only_within`.

    Nothing changes for recipes without `only_within`. The core reads the first line of a text as its value.
    """
    field = recipe.only_within
    if field is None or isinstance(documents, _native.Texts):
        return documents, text_field
    if is_table(documents):
        return documents, (field, *field_names(text_field))
    if is_arrow(documents) or isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise InvalidInput(_no_values(field))
    texts = (_with_value(row, document, field) for row, document in enumerate(documents))
    return list(texts) if isinstance(documents, list | tuple) else texts, text_field


def _with_value(row: int, document: object, field: str) -> str | None:
    pair: Sequence[object] = document if isinstance(document, tuple | list) else ()
    value, text = pair if len(pair) == 2 else (None, None)
    if not isinstance(value, str) or not (text is None or isinstance(text, str)):
        raise InvalidInput(_no_values(field), row=row)
    if "\n" in value:
        raise InvalidInput(f"the value {value!r} of {field!r} has several lines", row=row)
    return None if text is None else f"{value}\n{text}"


def _no_values(field: str) -> str:
    return f"the recipe compares only within {field!r}; expected a table with this column, or (value, text) pairs"


def check_tokenizer(recipe: Recipe, tokenizer: Tokenizer | None) -> None:
    """Raise an error if the recipe's tokens do not take the given tokenizer, or name another version of its package."""
    if tokenizer is not None and not recipe.takes_tokens:
        raise InvalidParameter(
            "tokenizer",
            f'a tokenizer does not apply to tokens {recipe.tokens}; set tokens="{USER_TOKENS}", '
            'tokenizer="NAME AND VERSION" (the name is part of the recipe id)',
        )
    if tokenizer is not None and not callable(tokenizer):
        raise InvalidParameter("tokenizer", f"{tokenizer!r} is not a function that takes a text")
    named = re.fullmatch(_NAME_AND_VERSION, recipe.tokenizer or "") if tokenizer is not None else None
    if named is not None and (installed := _installed(named[1])) not in (None, named[2]):
        raise RecipeMismatch(
            f"the tokenizer is not the version that the recipe names; install {named[1]}=={named[2]}, or use another "
            "name and a new index",
            {"tokenizer": (recipe.tokenizer, f"{named[1]} {installed}")},
        )


@cache
def _installed(package: str) -> str | None:
    # Its imports take as long as those of a third of this package, and few recipes name a tokenizer.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return None


def tokenized(texts: _native.Texts, recipe: Recipe, tokenizer: Tokenizer, *, first_row: int = 0) -> _native.Texts:
    """Return texts as the tokens that a Python function returns for them."""
    lists = [tokenizer(text) for text in texts.to_list()]
    return _encoded(lists, recipe, texts, first_row)


def are_bytes(documents: object, recipe: Recipe) -> bool:
    """Return whether documents are a list of bytes, which tokens ``bytes`` and ``chunks`` take."""
    is_list = isinstance(documents, list | tuple) and len(documents) > 0
    return is_list and recipe.tokens in BYTE_TOKENS and isinstance(documents[0], bytes)  # type: ignore[index]


def _batches(documents: TextData, read: Callable[[list[Any], int], _native.Texts]) -> Iterator[_native.Texts]:
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise InvalidInput(f"documents have type {type(documents).__name__}; expected a list of token lists")
    for row, part in in_lists(documents):
        yield read(part, row)


def _of_lists(documents: TextData, recipe: Recipe, text_field: TextField, texts: TextData) -> Iterator[_native.Texts]:
    """Yield the batches of an Arrow column of lists, or of such a column of a table or a stream."""
    import pyarrow as pa

    rules = TokenRules.of(recipe)
    assert rules is not None
    names = [text_field] if isinstance(text_field, str) else list(text_field)
    has_stream = hasattr(documents, "__arrow_c_stream__")
    if not is_table(documents):
        lists = pa.chunked_array(documents) if has_stream else pa.chunked_array([pa.array(documents)])
        columns = iter(_with_texts(lists, texts))
    else:
        batches = pa.RecordBatchReader.from_stream(documents) if has_stream else [documents]
        columns = (
            pair for batch in batches for pair in _with_texts(table_column(batch, names[0]), texts_of(batch, ("text",)))
        )
    row = 0
    for column, own_texts in columns:
        found = token_lists(column, rules, names[0], own_texts)
        nulls = dict.fromkeys(np.flatnonzero(~np.asarray(column.is_valid())).tolist(), NULL_TEXT)
        refused = {**found.refused, **nulls}
        if refused:
            first = min(refused)
            raise InvalidInput(refused[first], row=row + first)
        yield found.documents
        row += len(column)
    if not row:
        yield _native.Texts.from_list([])


def _with_texts(column: ArrowColumn, texts: TextData) -> Iterator[tuple[Any, Any]]:
    """Yield the chunks of a column, each with its part of the texts, if there are texts."""
    start = 0
    for chunk in column.chunks:
        yield chunk, None if texts is None else texts.slice(start, len(chunk))
        start += len(chunk)


def _encoded(documents: list[Any], recipe: Recipe, texts: _native.Texts | None, first_row: int) -> _native.Texts:
    if documents and all(isinstance(document, CutText) for document in documents):
        return _native.Texts.concat([document.document for document in documents])
    is_weighted = recipe.weights == OWN_WEIGHTS
    offsets, tokens, weights, own_lengths = [0], [], [], []
    has_texts = texts is None and any(isinstance(document, Mapping) for document in documents)
    own_texts: list[str] = []
    for row, document in enumerate(documents, first_row):
        cut, text = _with_text(document, row) if has_texts else (document, "")
        pairs = _pairs(cut, recipe.weight_scale, row) if is_weighted else _plain(cut, row)
        for token, weight in pairs:
            tokens.append(token)
            weights.append(weight)
        own_lengths.append(sum(map(len, tokens[offsets[-1] :])) or len(text))
        own_texts.append(text)
        offsets.append(len(tokens))
    if has_texts:
        texts = _native.Texts.from_list(own_texts)
    return _native.Texts.from_tokens(
        np.array(offsets, np.int64),
        _native.Texts.from_list(tokens),
        np.array(weights, np.uint8),
        np.array(own_lengths if texts is None or has_texts else texts.lengths(), np.uint32),
        texts,
    )


def _with_text(document: Any, row: int) -> tuple[Any, str]:
    """Return the tokens of a document and the text by which it is compared if it has none."""
    if not isinstance(document, Mapping):
        return document, ""
    text = document.get("text")
    if "tokens" not in document or not document.keys() <= {"tokens", "text"} or not isinstance(text, str | None):
        raise InvalidInput('expected {"tokens": a list of tokens, "text": a str or None}', row=row)
    return document["tokens"], text or ""


def _pairs(document: Any, scale: float | None, row: int) -> list[tuple[str, int]]:
    if isinstance(document, str):
        raise InvalidInput("weights own requires documents as lists of (token, weight) pairs", row=row)
    try:
        pairs = [(token, weight) for token, weight in document]
    except (TypeError, ValueError):
        raise InvalidInput("weights own requires documents as lists of (token, weight) pairs", row=row) from None
    for token, _ in pairs:
        if not isinstance(token, str):
            raise InvalidInput(f"the token {token!r} is not a str", row=row)
    return [(token, own_weight(token, weight, scale, row)) for token, weight in pairs]


def _plain(document: Any, row: int) -> list[tuple[str, int]]:
    if isinstance(document, str | bytes) or not isinstance(document, Iterable):
        raise InvalidInput(
            f"the document has type {type(document).__name__}; tokens user requires lists of str, or a tokenizer",
            row=row,
        )
    tokens = list(document)
    for token in tokens:
        if not isinstance(token, str):
            reason = "; (token, weight) pairs require weights own" if isinstance(token, tuple | list) else ""
            raise InvalidInput(f"the token {token!r} is not a str{reason}", row=row)
    return [(token, 1) for token in tokens]


# Number of strings passed to the core at once, so that an iterator's texts are not all in memory twice.
_STRINGS_AT_ONCE = 8192
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
    if isinstance(texts, list):
        return _from_list(texts)
    texts = as_arrow(texts, field_names(text_field))
    if isinstance(texts, str | bytes):
        raise InvalidInput("expected a list of texts, got a single text; put it in a list")
    if isinstance(texts, Mapping):
        raise InvalidInput("expected texts, got a mapping; pass its values")
    if is_arrow(texts):
        return _native.Texts.from_arrow(
            text_column(texts, text_field, roles) if is_table(texts) else _one_column(texts)
        )
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
