"""Documents of any kind as native batches: texts, bytes, and tokens that the user cut.

A batch has one kind: texts, bytes, or the user's tokens, encoded with their weights. Sketching, verification and
weighing treat all alike; only the native `Extractor` distinguishes them. Public functions reject documents that the
recipe's tokens cannot cut.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from likewise import _native
from likewise.checks import check_integer
from likewise.errors import InvalidInput, InvalidParameter
from likewise.recipe.recipe import Recipe
from likewise.recipe.rules import OWN_WEIGHTS
from likewise.recipe.text import BYTE_TOKENS, USER_TOKENS
from likewise.recipe.weights import MAX_WEIGHT
from likewise.stages.text import TextField, text_batches

Tokenizer: TypeAlias = Callable[[str], Iterable[Any]]
_AT_ONCE = 8192


def as_documents(
    documents: Any,  # noqa: ANN401 - lists, Arrow data, iterables
    recipe: Recipe,
    *,
    tokenizer: Tokenizer | None = None,
    text_field: TextField = "text",
) -> _native.Texts:
    """Return documents of any accepted kind as one native batch.

    Parameters
    ----------
    documents : list of str, Arrow data, table, or iterable
        Texts; of tokens ``bytes`` and ``chunks`` also bytes; of tokens ``user`` lists of str, of weights ``own`` lists
        of (token, weight), or texts where there is a `tokenizer`.
    recipe : Recipe
        Says which.
    tokenizer : callable, optional
        Returns the tokens of a text, or pairs of token and weight.
    text_field : str or sequence of str
        Column of a table that holds the text; several are joined with a newline.

    Returns
    -------
    Texts
        As many as came.

    Raises
    ------
    InvalidInput
        If an entry is of another kind.
    InvalidParameter
        If a tokenizer is given to a recipe of other tokens, or a weight is no whole number from 0 to 15.
    """
    return _native.Texts.concat(list(document_batches(documents, recipe, tokenizer=tokenizer, text_field=text_field)))


def document_batches(
    documents: Any,  # noqa: ANN401
    recipe: Recipe,
    *,
    tokenizer: Tokenizer | None = None,
    text_field: TextField = "text",
) -> Iterator[_native.Texts]:
    """Yield documents of any accepted kind as native batches, at least one; as :func:`as_documents` otherwise."""
    check_tokenizer(recipe, tokenizer)
    if isinstance(documents, _native.Texts) and documents.kind != "text":
        yield documents
    elif tokenizer is not None:
        row = 0
        for batch in text_batches(documents, text_field):
            yield tokenized(batch, recipe, tokenizer, first_row=row)
            row += len(batch)
    elif recipe.takes_tokens:
        yield from _batches(documents, lambda part, row: _encoded(part, recipe, None, row))
    elif are_bytes(documents, recipe):
        yield from _batches(documents, lambda part, row: _native.Texts.from_bytes(part))
    else:
        yield from text_batches(documents, text_field)


def check_tokenizer(recipe: Recipe, tokenizer: Tokenizer | None) -> None:
    """Raise InvalidParameter if a tokenizer is given to a recipe of other tokens."""
    if tokenizer is not None and not recipe.takes_tokens:
        raise InvalidParameter(
            "tokenizer",
            f'a tokenizer does not apply to tokens {recipe.tokens}; set tokens="{USER_TOKENS}", '
            'tokenizer="NAME AND VERSION" (the name is part of the recipe id)',
        )
    if tokenizer is not None and not callable(tokenizer):
        raise InvalidParameter("tokenizer", f"{tokenizer!r} is not a function that takes a text")


def tokenized(texts: _native.Texts, recipe: Recipe, tokenizer: Tokenizer, *, first_row: int = 0) -> _native.Texts:
    """Return texts as the tokens that a function of Python cuts from them."""
    lists = [tokenizer(text) for text in texts.to_list()]
    return _encoded(lists, recipe, np.asarray(texts.lengths()), first_row)


def are_bytes(documents: object, recipe: Recipe) -> bool:
    """Return whether documents are a list of bytes, as tokens ``bytes`` and ``chunks`` take."""
    is_list = isinstance(documents, list | tuple) and len(documents) > 0
    return is_list and recipe.tokens in BYTE_TOKENS and isinstance(documents[0], bytes)  # type: ignore[index]


def _batches(documents: Any, read: Callable[[list[Any], int], _native.Texts]) -> Iterator[_native.Texts]:  # noqa: ANN401
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable):
        raise InvalidInput(f"documents have type {type(documents).__name__}; expected a list of token lists")
    source = iter(documents)
    row = 0
    while True:
        part = list(islice(source, _AT_ONCE))
        if part or not row:
            yield read(part, row)
        if not part:
            return
        row += len(part)


def _encoded(documents: list[Any], recipe: Recipe, lengths: Any, first_row: int) -> _native.Texts:  # noqa: ANN401
    is_weighted = recipe.weights == OWN_WEIGHTS
    offsets, tokens, weights, own_lengths = [0], [], [], []
    for row, document in enumerate(documents, first_row):
        for token, weight in _pairs(document, row) if is_weighted else _plain(document, row):
            tokens.append(token)
            weights.append(weight)
        own_lengths.append(sum(map(len, tokens[offsets[-1] :])))
        offsets.append(len(tokens))
    return _native.Texts.from_tokens(
        np.array(offsets, np.int64),
        _native.Texts.from_list(tokens),
        np.array(weights, np.uint8),
        np.array(own_lengths if lengths is None else lengths, np.uint32),
    )


def _pairs(document: Any, row: int) -> list[tuple[str, int]]:  # noqa: ANN401
    if isinstance(document, str):
        raise InvalidInput("weights own requires documents as lists of (token, weight) pairs", row=row)
    try:
        pairs = [(token, weight) for token, weight in document]
    except (TypeError, ValueError):
        raise InvalidInput("weights own requires documents as lists of (token, weight) pairs", row=row) from None
    for token, weight in pairs:
        if not isinstance(token, str):
            raise InvalidInput(f"the token {token!r} is not a str", row=row)
        check_integer("weights", weight, 0, MAX_WEIGHT)
    return pairs


def _plain(document: Any, row: int) -> list[tuple[str, int]]:  # noqa: ANN401
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
