"""Arrow columns of lists of tokens, or of (token, weight) structs, as encoded documents."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowColumn, ColumnData, TextData
from likewise.errors import InvalidInput
from likewise.io.source.source import TokenRules, own_weight
from likewise.io.tables.columns import as_large_text
from likewise.recipe.fields import MAX_OWN_WEIGHT


@dataclass(frozen=True)
class TokenLists:
    """The documents of a column of lists."""

    # One encoded document per row; those of rejected rows are meaningless
    documents: Texts
    # Bytes of the tokens of each row, or of its text if it has none
    sizes: NDArray[np.int64]
    # Rejected rows, which are not lists of tokens, with reasons. Null rows are not included, and have no tokens.
    refused: dict[int, str]


def token_lists(column: ArrowColumn, rules: TokenRules, name: str, texts: TextData = None) -> TokenLists:
    """Return the documents of an Arrow array of lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    _check_type(column.type, rules, name)
    entries = column.flatten()
    offsets = np.concatenate([[0], np.cumsum(np.asarray(pc.list_value_length(column).fill_null(0)), dtype=np.int64)])
    good = np.ones(len(entries), bool) if not entries.null_count else np.asarray(entries.is_valid())
    weights = np.ones(len(entries), np.uint8)
    numbers = None
    if rules.is_weighted:
        entries, numbers = entries.field(0), entries.field(1)
        weights, are_weights = _scaled(numbers, rules.scale)
        good &= are_weights
    entries = as_large_text(entries)
    good &= np.asarray(entries.is_valid())
    is_utf8 = _are_utf8(entries)
    good &= is_utf8
    refused: dict[int, str] = {}
    rows = np.searchsorted(offsets, np.flatnonzero(~good), side="right") - 1
    for entry, row in zip(np.flatnonzero(~good).tolist(), rows.tolist(), strict=True):
        if row not in refused:
            refused[row] = _reason(entries, numbers, entry, rules.scale, is_utf8=bool(is_utf8[entry]))
    if refused:
        filler = pa.scalar("", pa.large_string())
        entries = pc.if_else(pa.array(good), entries.cast(pa.large_binary()), filler.cast(pa.large_binary()))
        entries = entries.cast(pa.large_string())
    counts = [np.asarray(count(entries)).astype(np.int64) for count in (pc.utf8_length, pc.binary_length)]
    lengths, sizes = (np.diff(np.concatenate([[0], np.cumsum(one)])[offsets]) for one in counts)
    own_texts = None
    if texts is not None:
        has_none = sizes == 0
        texts = pc.if_else(pa.array(has_none), texts, pa.scalar("", pa.large_string()))
        is_utf8 = _are_utf8(texts)
        refused |= dict.fromkeys(np.flatnonzero(~is_utf8).tolist(), "the text is not valid UTF-8")
        texts = pc.if_else(pa.array(is_utf8), texts, pa.scalar("", pa.large_string()))
        lengths, sizes = lengths + np.asarray(pc.utf8_length(texts)), sizes + np.asarray(pc.binary_length(texts))
        own_texts = Texts.from_arrow(texts)
    documents = Texts.from_tokens(offsets, Texts.from_arrow(entries), weights, lengths.astype(np.uint32), own_texts)
    return TokenLists(documents, sizes, refused)


def _check_type(kind: Any, rules: TokenRules, name: str) -> None:
    import pyarrow as pa

    are = pa.types
    wanted = "lists of {token, weight}" if rules.is_weighted else "lists of tokens"
    entry = kind.value_type if are.is_list(kind) or are.is_large_list(kind) else None
    token = entry
    if rules.is_weighted and entry is not None:
        is_pair = are.is_struct(entry) and entry.num_fields >= 2
        is_pair = is_pair and (are.is_integer(entry.field(1).type) or are.is_floating(entry.field(1).type))
        token = entry.field(0).type if is_pair else None
    if token is not None and are.is_dictionary(token):
        token = token.value_type
    is_text = token is not None and (
        are.is_string(token) or are.is_large_string(token) or are.is_string_view(token) or are.is_null(token)
    )
    if not is_text:
        how = "; (token, weight) pairs require weights own" if entry is not None and are.is_struct(entry) else ""
        raise InvalidInput(f"column {name!r} has type {kind}, not {wanted}{how if not rules.is_weighted else ''}")


def _scaled(numbers: ColumnData, scale: float | None) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """Return weights as integers, and which of them are valid, by the rules of `own_weight`."""
    import pyarrow as pa

    valid = np.asarray(numbers.is_valid())
    values = numbers.fill_null(0).cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    is_whole = scale is None
    with np.errstate(invalid="ignore", over="ignore"):
        scaled = values if is_whole else np.rint(values * scale)
        good = valid & (values >= 0) & (scaled <= MAX_OWN_WEIGHT)
    if is_whole and not pa.types.is_integer(numbers.type):
        good &= False
    return np.where(good, scaled, 0).astype(np.uint8), good


def _are_utf8(entries: Any) -> NDArray[np.bool_]:
    import pyarrow as pa

    good = np.ones(len(entries), bool)
    try:
        entries.validate(full=True)
    except pa.ArrowInvalid:
        for entry in range(len(entries)):
            try:
                entries.slice(entry, 1).validate(full=True)
            except pa.ArrowInvalid:
                good[entry] = False
    return good


def _reason(entries: Any, numbers: ColumnData, entry: int, scale: float | None, *, is_utf8: bool) -> str:
    if not is_utf8:
        return "a token is not valid UTF-8"
    token = entries[entry].as_py()
    if token is not None:
        try:
            own_weight(token, numbers[entry].as_py(), scale, 0)
        except InvalidInput as error:
            return error.message
    return "a token is null"
