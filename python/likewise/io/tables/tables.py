"""Tables: the documents in the rows of an Arrow batch, whatever file they come from."""

import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowBatch, ArrowColumn, ArrowSchema, ArrowTable, ColumnData, TextData
from likewise.errors import InvalidInput
from likewise.io.source.source import (
    NULL_TEXT,
    BadRow,
    Cut,
    Piece,
    ReadRules,
    TokenRules,
    id_type_of,
    own_weight,
)
from likewise.io.tables.columns import as_large_text, check_unique, decoded, is_text, root_of, taken_rows
from likewise.io.tables.paths import (
    column_of,
    found_fields,
    has_column,
    is_joined,
    such_fields,
    text_of,
    type_of,
    without,
)
from likewise.recipe.fields import MAX_OWN_WEIGHT

# Above this, a float represents several integers.
_MOST_WHOLE = 2.0**53


class TokenLists(NamedTuple):
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
    if token is None or not (is_text(token) or are.is_null(token)):
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


class TableRows(NamedTuple):
    """Extracts documents from record batches."""

    # Name of the file, for messages
    name: str | None
    rules: ReadRules

    def columns(self, schema: ArrowSchema) -> list[str]:
        """Return text fields, id field or "", and further fields, as names of existing columns ("" if missing)."""
        rules = self.rules
        id_field = rules.id_name(schema.names) or ""
        check_unique(schema.names, (*rules.text_fields, id_field, *rules.fields), self.name)
        for name in (*rules.text_fields, *([id_field] if id_field else [])):
            if not has_column(schema, name):
                raise InvalidInput(
                    f"no column {name!r} (found: {found_fields(schema)}). "
                    f"Set the columns with {rules.option_of(name)} and --id-field",
                    self.name,
                )
        fields = [name if has_column(schema, name) else "" for name in rules.fields]
        return [*rules.text_fields, id_field, *fields]

    def needed(self, schema: ArrowSchema) -> list[str]:
        """Return the names of all columns that are read, each once."""
        texts = () if self.rules.tokens is None else text_columns(schema, self.rules.text_without_tokens)
        names = (*self.columns(schema), *texts)
        return list(dict.fromkeys(name if name in schema.names else name.partition("[]")[0] for name in names if name))

    def piece(self, batch: ArrowBatch, first_row: int) -> Piece:
        """Return the documents of a record batch whose first row is row `first_row` of its file."""
        rules, num_rows = self.rules, batch.num_rows
        id_field, *fields = self.columns(batch.schema)[len(rules.text_fields) :]
        if rules.tokens is None:
            column = self._texts(batch)
            is_list = any(is_joined(batch.schema, name) for name in rules.text_fields)
            good, reasons = self._good_rows(column, "no text in {}" if is_list else "{} is null")
        else:
            documents, good, reasons = self._documents(batch, rules.tokens)
        ids, why_not = self._ids(batch, id_field) if id_field else (None, {})
        for row in sorted(why_not):
            reasons.setdefault(row, f"{id_field} is {why_not[row]}")
            good[row] = False
        if ids is not None and ids.null_count:
            has_id = np.asarray(ids.is_valid())
            if rules.requires_id:
                for row in np.flatnonzero(good & ~has_id).tolist():
                    reasons[row] = f"{id_field} is null"
                good &= has_id
            ids = ids.fill_null("")
        else:
            has_id = np.full(num_rows, ids is not None)
        kept = np.flatnonzero(good)
        everything = len(kept) == num_rows

        def pick(column: ArrowColumn) -> Any:
            return column if everything else taken_rows(column, kept)

        # Ids outlive the batch, so they must be copied: sharing a column would keep the whole batch in memory.
        rows = (kept + first_row).astype(np.uint64)
        return Piece(
            texts=Texts.from_arrow(pick(column)) if rules.tokens is None else documents.take(kept),
            ids=Texts.from_list([""] * len(kept)) if ids is None else Texts.from_arrow(taken_rows(ids, kept)),
            has_id=has_id[kept].astype(np.uint8),
            offsets=rows,
            lengths=np.ones(len(kept), np.uint32),
            lines=kept.astype(np.uint32),
            num_lines=num_rows,
            fields=[
                column_as_json(pick(column_of(batch, name))) if name else Texts.from_list([""] * len(kept))
                for name in fields
            ],
            bad_rows=[BadRow(row, first_row + row, 1, reasons[row]) for row in np.flatnonzero(~good).tolist()],
        )

    def check_cut(self, schema: ArrowSchema) -> None:
        """Raise InvalidInput if parts of texts cannot be removed because their column is dictionary-encoded."""
        import pyarrow as pa

        (name,) = self.columns(schema)[: len(self.rules.text_fields)]
        kind = type_of(schema, name)
        if pa.types.is_dictionary(kind):
            raise InvalidInput(
                f"parts of text cannot be removed from the dictionary-encoded column {name!r}; convert it to string",
                self.name,
            )

    def without(self, batch: ArrowBatch, cut: Cut) -> Any:
        """Return a record batch with parts of its texts removed; rows of the cut count from the start of the batch."""
        import pyarrow as pa
        import pyarrow.compute as pc

        if not len(cut.rows):
            return batch
        (name,) = self.rules.text_fields
        if is_joined(batch.schema, name):
            place = batch.schema.get_field_index(root_of(name, batch.schema.names))
            column = without(batch.column(place), batch.schema, name, self.rules.roles, cut)
            return batch.set_column(place, batch.schema.field(place), column)
        texts = as_large_text(column_of(batch, name))
        left, _ = cut.apply(Texts.from_arrow(taken_rows(texts, cut.rows)))
        is_cut = np.zeros(batch.num_rows, bool)
        is_cut[cut.rows] = True
        texts = pc.replace_with_mask(texts, pa.array(is_cut), pa.array(left))
        first, *rest = [name] if name in batch.schema.names else name.split(".")
        place = batch.schema.get_field_index(first)
        columns = list(batch.columns)
        columns[place] = _with_field(columns[place], rest, texts)
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _documents(self, batch: ArrowBatch, tokens: TokenRules) -> tuple[Texts, NDArray[np.bool_], dict[int, str]]:
        """Return the documents of a column of lists, a mask of valid ones, and the reasons why others are invalid."""
        (name,) = self.rules.text_fields
        column = column_of(batch, name)
        try:
            found = token_lists(column, tokens, name, texts_of(batch, self.rules.text_without_tokens))
        except InvalidInput as error:
            raise InvalidInput(f"{error.message}; choose another with --tokens-field", self.name) from None
        reasons = {row: f"{name}: {reason}" for row, reason in found.refused.items()}
        for row in np.flatnonzero(~np.asarray(column.is_valid())).tolist():
            reasons[row] = NULL_TEXT if self.name is None else f"{name} is null"
        for row in np.flatnonzero(found.sizes > self.rules.max_document_bytes).tolist():
            reasons.setdefault(row, self.rules.too_long(int(found.sizes[row])))
        good = np.ones(batch.num_rows, bool)
        good[list(reasons)] = False
        return found.documents, good, reasons

    def _texts(self, batch: ArrowBatch) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for name in self.rules.text_fields:
            column = text_of(batch, name, self.rules.roles)
            if not is_text(column.type):
                raise InvalidInput(
                    f"column {name!r} has type {column.type}, not text; choose another with "
                    f"{self.rules.option_of(name)}{such_fields(name, column.type)}",
                    self.name,
                )
            columns.append(column)
        if len(columns) == 1:
            # The cast of string shares the bytes, and a spool writes large_string without a copy.
            return columns[0] if pa.types.is_dictionary(columns[0].type) else as_large_text(columns[0])
        large = [as_large_text(column) for column in columns]
        return pc.binary_join_element_wise(*large, pa.scalar("\n", pa.large_string()), null_handling="emit_null")

    def _good_rows(self, texts: TextData, why_null: str) -> tuple[NDArray[np.bool_], dict[int, str]]:
        import pyarrow as pa
        import pyarrow.compute as pc

        reasons: dict[int, str] = {}
        names = " + ".join(self.rules.text_fields)
        good = _are_utf8(texts)
        # First of all, since the lengths of a damaged column are meaningless.
        reasons |= dict.fromkeys(np.flatnonzero(~good).tolist(), f"{names} is not valid UTF-8")
        if texts.null_count or pa.types.is_dictionary(texts.type):
            # A dictionary may contain nulls; casting reveals them.
            for row in np.flatnonzero(good & ~np.asarray(as_large_text(texts).is_valid())).tolist():
                good[row] = False
                reasons[row] = NULL_TEXT if self.name is None else why_null.format(names)
        if texts.nbytes > self.rules.max_document_bytes:
            sizes = np.asarray(pc.binary_length(as_large_text(texts).cast(pa.large_binary())).fill_null(0))
            long = good & (sizes > self.rules.max_document_bytes)
            for row in np.flatnonzero(long).tolist():
                reasons[row] = self.rules.too_long(int(sizes[row]))
            good &= ~long
        return good, reasons

    def _ids(self, batch: ArrowBatch, name: str) -> tuple[Any, dict[int, str]]:
        """Return ids as an Arrow array, null in rows without one, and the values that are not valid ids by row."""
        import pyarrow as pa

        column = decoded(column_of(batch, name))
        if pa.types.is_integer(column.type) or is_text(column.type):
            return column.cast(pa.large_string()), {}
        if pa.types.is_floating(column.type):
            return _ids_of_numbers(column, required=self.rules.requires_id)
        raise InvalidInput(
            f"column {name!r} has type {column.type}; ids must be text or integers. Choose another with --id-field, or "
            "ignore ids with --id-field none",
            self.name,
        )


def _ids_of_numbers(column: ArrowColumn, *, required: bool) -> tuple[Any, dict[int, str]]:
    """Return floats as ids: pandas converts integers to floats if one is missing, and represents that one as NaN."""
    import pyarrow as pa

    values = column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    is_null = np.isnan(values)
    is_whole = ~is_null & (np.trunc(values) == values) & (np.abs(values) <= _MOST_WHOLE)
    why_not = {
        row: f"{values[row]!s}, not an integer up to 2^53; ignore ids with --id-field none"
        for row in np.flatnonzero(~is_whole & ~is_null).tolist()
    }
    if required:
        is_missing = np.asarray(column.is_null())
        why_not |= {row: "null" if is_missing[row] else "NaN" for row in np.flatnonzero(is_null).tolist()}
    whole = pa.array(np.where(is_whole, values, 0).astype(np.int64), mask=~is_whole)
    return whole.cast(pa.large_string()), why_not


def text_columns(schema: ArrowSchema, names: Sequence[str]) -> Sequence[str]:
    """Return these names if they are all columns of text, otherwise none."""
    are_there = all(has_column(schema, name) and is_text(type_of(schema, name)) for name in names)
    return names if are_there and not any(is_joined(schema, name) for name in names) else ()


def texts_of(batch: ArrowBatch, names: Sequence[str]) -> Any:
    """Return the text of each row in these columns as an Arrow array, "" for nulls; None if they are not text."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not text_columns(batch.schema, names):
        return None
    columns = [as_large_text(column_of(batch, name)) for name in names]
    texts = pc.binary_join_element_wise(*columns, pa.scalar("\n", pa.large_string()), null_handling="emit_null")
    texts = pc.fill_null(texts if len(columns) > 1 else columns[0], pa.scalar("", pa.large_string()))
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _with_field(column: ArrowColumn, path: Sequence[str], values: ArrowColumn) -> Any:
    """Return a column, or a struct column, with new values in the field at this path."""
    import pyarrow as pa

    if not path:
        return values.cast(column.type)
    parts = [column.field(i) for i in range(column.type.num_fields)]
    place = column.type.get_field_index(path[0])
    parts[place] = _with_field(parts[place], path[1:], values)
    return pa.StructArray.from_arrays(parts, fields=list(column.type), mask=column.is_null())


def column_as_json(column: ArrowColumn) -> Texts:
    """Return the values of an Arrow column as JSON; dates as ISO 8601, decimals as numbers."""
    from decimal import Decimal

    def written(value: object) -> str:
        return getattr(value, "isoformat", value.__str__)()

    # The text of a decimal is a JSON number.
    values = (str(one) if isinstance(one, Decimal) else json.dumps(one, default=written) for one in column.to_pylist())
    return Texts.from_list(list(values))


def integer_type(ids: ColumnData) -> Any:
    """Return the Arrow type of ids if they are integers, otherwise None."""
    import pyarrow as pa

    if hasattr(ids, "__arrow_c_stream__") or hasattr(ids, "__arrow_c_array__"):
        ids = pa.chunked_array(ids)
    if isinstance(ids, pa.Field | pa.ChunkedArray):
        kind = ids.type.value_type if pa.types.is_dictionary(ids.type) else ids.type
        return kind if pa.types.is_integer(kind) else None
    if isinstance(ids, np.ndarray) and ids.dtype != object:
        return pa.from_numpy_dtype(ids.dtype) if np.issubdtype(ids.dtype, np.integer) else None
    try:
        is_whole = len(ids) > 0 and all(not isinstance(one, str) and -(2**63) <= one < 2**63 for one in ids)
    except TypeError:
        return None
    return pa.int64() if is_whole else None


def with_id_types(table: ArrowTable, **columns: Iterable[object]) -> Any:
    """Return a table in memory whose columns of ids have the type of ids of the sources given for each."""
    for name, sources in columns.items():
        if (kind := id_type_of(sources)) is not None:
            place = table.column_names.index(name)
            table = table.set_column(place, name, table.column(place).cast(kind))
    return table
