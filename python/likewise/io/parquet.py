"""Parquet: read by row group, written back with its schema and its codecs."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidInput
from likewise.io.arrow import number_column
from likewise.io.source import BadRow, Piece, ReadRules

# Text decoded at once; a row group may hold gigabytes.
_BATCH_BYTES = 4 << 20
# Kept rows are gathered up to here before they become a row group.
_ROW_GROUP_BYTES = 64 << 20


@dataclass(frozen=True)
class ParquetFile:
    """A Parquet file with a column of texts.

    Parameters
    ----------
    path : Path
        Where it is.
    name : str
        Path relative to the common parent of the inputs, with slashes.
    num_bytes : int
        Its size.
    rules : ReadRules
        What is read of it.
    """

    path: Path
    name: str
    num_bytes: int
    rules: ReadRules = field(default_factory=ReadRules)

    @property
    def can_read_again(self) -> bool:
        """A single text would cost its whole row group."""
        return False

    def pieces(self, piece_bytes: int) -> list[tuple[int, int]]:
        """Return the row groups as (first row, rows)."""
        with self._open() as file:
            metadata = file.metadata
            rows = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        starts = np.concatenate([[0], np.cumsum(rows, dtype=np.int64)])
        return [(int(start), count) for start, count in zip(starts, rows, strict=False) if count]

    def read(self, start: int, length: int) -> Iterator[Piece]:
        """Read the row group that begins at row `start`, some megabytes at a time."""
        with self._open() as file:
            group = self._group_at(file, start)
            columns = self._columns(file.schema_arrow)
            wanted = [name for name in dict.fromkeys(columns) if name]
            bytes_a_row = max(1, file.metadata.row_group(group).total_byte_size // max(1, length))
            batch_rows = int(np.clip(_BATCH_BYTES // bytes_a_row, 16, 65536))
            for batch in self._batches(file, group, wanted, batch_rows):
                yield self._piece(batch, start)
                start += batch.num_rows

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Not offered: the run keeps what it needs in its spool."""
        raise NotImplementedError

    def write_kept(self, target: Path, keep: NDArray[np.bool_]) -> None:
        """Write the rows marked in `keep` to a new file of the same schema, metadata and codecs.

        Parameters
        ----------
        target : Path
            The new file.
        keep : ndarray of shape (rows,), bool
            Which rows.
        """
        import pyarrow as pa
        import pyarrow.parquet as pq

        with self._open() as file:
            metadata, schema = file.metadata, file.schema_arrow
            writer = pq.ParquetWriter(target, schema, **_looks(metadata))
            with writer, ThreadPoolExecutor(1) as ahead:
                gathered: list[Any] = []
                num_bytes = 0
                for group_done, batch in _one_ahead(ahead, self._kept_batches(file, keep)):
                    if batch is not None and batch.num_rows:
                        gathered.append(batch)
                        num_bytes += batch.nbytes
                    if gathered and (group_done or num_bytes >= _ROW_GROUP_BYTES):
                        writer.write_table(pa.Table.from_batches(gathered, schema))
                        gathered, num_bytes = [], 0

    def _kept_batches(self, file: Any, keep: NDArray[np.bool_]) -> Iterator[tuple[bool, Any]]:  # noqa: ANN401

        row = 0
        for group in range(file.metadata.num_row_groups):
            description = file.metadata.row_group(group)
            bytes_a_row = max(1, description.total_byte_size // max(1, description.num_rows))
            batch_rows = int(np.clip(4 * _BATCH_BYTES // bytes_a_row, 16, 65536))
            for batch in self._batches(file, group, None, batch_rows):
                mask = keep[row : row + batch.num_rows]
                row += batch.num_rows
                yield False, batch if mask.all() else batch.filter(number_column(mask))
            yield True, None

    def _open(self) -> Any:  # noqa: ANN401 - PyArrow has no types
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self.path, pre_buffer=False, buffer_size=65536, page_checksum_verification=True)
        except (pa.ArrowInvalid, pa.ArrowException) as error:
            raise InvalidInput(f"this is no Parquet file: {error}", self.name) from error

    def _batches(self, file: Any, group: int, columns: list[str] | None, rows: int) -> Iterator[Any]:  # noqa: ANN401
        import pyarrow as pa

        try:
            yield from file.iter_batches(rows, row_groups=[group], columns=columns, use_threads=False)
        except (pa.ArrowException, OSError) as error:
            raise InvalidInput(f"row group {group} cannot be read: {error}", self.name) from error

    def _group_at(self, file: Any, row: int) -> int:  # noqa: ANN401
        first = 0
        for group in range(file.metadata.num_row_groups):
            if first == row and file.metadata.row_group(group).num_rows:
                return group
            first += file.metadata.row_group(group).num_rows
        raise InvalidInput(f"no row group begins at row {row}; the file has changed", self.name)

    def _columns(self, schema: Any) -> list[str]:  # noqa: ANN401
        """Return text fields, the id field or "", further fields: as columns that exist."""
        rules = self.rules
        id_field = rules.id_field or ("id" if "id" in schema.names else "")
        for name in (*rules.text_fields, *([id_field] if id_field else [])):
            if not _has_column(schema, name):
                raise InvalidInput(
                    f"there is no column {name!r}; there are {', '.join(schema.names)}. "
                    "Name the right ones with --text-field and --id-field",
                    self.name,
                )
        fields = [name if _has_column(schema, name) else "" for name in rules.fields]
        return [*rules.text_fields, id_field, *fields]

    def _piece(self, batch: Any, first_row: int) -> Piece:  # noqa: ANN401

        rules, num_rows = self.rules, batch.num_rows
        id_field, *fields = self._columns(batch.schema)[len(rules.text_fields) :]
        texts = self._texts(batch)
        good, reasons = self._good_rows(texts, first_row)
        ids = self._ids(batch, id_field) if id_field else None
        if ids is not None and ids.null_count:
            has_id = np.asarray(ids.is_valid())
            if rules.id_field is not None:
                for row in np.flatnonzero(good & ~has_id).tolist():
                    reasons[row] = f"{id_field} is null"
                good &= has_id
            ids = ids.fill_null("")
        else:
            has_id = np.full(num_rows, ids is not None)
        kept = np.flatnonzero(good)
        everything = len(kept) == num_rows

        def pick(column: Any) -> Any:  # noqa: ANN401
            return column if everything else column.take(number_column(kept))

        rows = (kept + first_row).astype(np.uint64)
        return Piece(
            texts=Texts.from_arrow(pick(texts)),
            ids=Texts.from_list([""] * len(kept)) if ids is None else Texts.from_arrow(pick(ids)),
            has_id=has_id[kept].astype(np.uint8),
            offsets=rows,
            lengths=np.ones(len(kept), np.uint32),
            lines=kept.astype(np.uint32),
            num_lines=num_rows,
            num_blank=0,
            fields=[
                column_as_json(pick(_column(batch, name))) if name else Texts.from_list([""] * len(kept))
                for name in fields
            ],
            bad_rows=[BadRow(row, first_row + row, 1, reasons[row]) for row in np.flatnonzero(~good).tolist()],
        )

    def _texts(self, batch: Any) -> Any:  # noqa: ANN401
        import pyarrow as pa
        import pyarrow.compute as pc

        columns = []
        for name in self.rules.text_fields:
            column = _column(batch, name)
            if not _is_text(column.type):
                raise InvalidInput(
                    f"column {name!r} holds {column.type}, not text; name another with --text-field", self.name
                )
            columns.append(column)
        if len(columns) == 1:
            return columns[0]
        large = [column.cast(pa.large_string()) for column in columns]
        return pc.binary_join_element_wise(*large, pa.scalar("\n", pa.large_string()), null_handling="emit_null")

    def _good_rows(self, texts: Any, first_row: int) -> tuple[NDArray[np.bool_], dict[int, str]]:  # noqa: ANN401
        import pyarrow as pa
        import pyarrow.compute as pc

        reasons: dict[int, str] = {}
        good = np.ones(len(texts), bool)
        names = " + ".join(self.rules.text_fields)
        if texts.null_count:
            # A dictionary may hide nulls among its values: casting shows them all.
            good = np.asarray(texts.cast(pa.large_string()).is_valid())
            reasons.update(dict.fromkeys(np.flatnonzero(~good).tolist(), f"{names} is null"))
        if texts.nbytes > self.rules.max_document_bytes:
            sizes = np.asarray(pc.binary_length(texts.cast(pa.large_string())).fill_null(0))
            long = good & (sizes > self.rules.max_document_bytes)
            for row in np.flatnonzero(long).tolist():
                reasons[row] = (
                    f"the document has {sizes[row]} bytes; --max-document allows {self.rules.max_document_bytes}"
                )
            good &= ~long
        try:
            texts.validate(full=True)
        except pa.ArrowInvalid:
            for row in np.flatnonzero(good).tolist():
                try:
                    texts.slice(row, 1).validate(full=True)
                except pa.ArrowInvalid:
                    good[row] = False
                    reasons[row] = f"{names} is not valid UTF-8"
        return good, reasons

    def _ids(self, batch: Any, name: str) -> Any:  # noqa: ANN401
        import pyarrow as pa

        column = _column(batch, name)
        if pa.types.is_integer(column.type) or _is_text(column.type):
            return column.cast(pa.large_string())
        raise InvalidInput(f"column {name!r} holds {column.type}; ids are text or whole numbers", self.name)


def _has_column(schema: Any, name: str) -> bool:  # noqa: ANN401
    import pyarrow as pa

    if name in schema.names:
        return True
    first, *rest = name.split(".")
    if first not in schema.names:
        return False
    kind = schema.field(first).type
    for part in rest:
        if not pa.types.is_struct(kind) or kind.get_field_index(part) < 0:
            return False
        kind = kind.field(part).type
    return True


def _column(batch: Any, name: str) -> Any:  # noqa: ANN401
    import pyarrow.compute as pc

    if name in batch.schema.names:
        return batch.column(name)
    first, *rest = name.split(".")
    column = batch.column(first)
    for part in rest:
        column = pc.struct_field(column, part)
    return column


def _is_text(kind: Any) -> bool:  # noqa: ANN401
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def column_as_json(column: Any) -> Texts:  # noqa: ANN401
    """Return the values of an Arrow column as JSON; dates as ISO 8601."""
    return Texts.from_list([json.dumps(value, default=_iso_date) for value in column.to_pylist()])


def _iso_date(value: Any) -> str:  # noqa: ANN401
    return str(value.isoformat()) if hasattr(value, "isoformat") else str(value)


def _looks(metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return the writer's options that give a file the codecs and dictionaries of the one it comes from."""
    if not metadata.num_row_groups:
        return {}
    group = metadata.row_group(0)
    codecs, with_dictionary = {}, []
    for i in range(metadata.num_columns):
        column = group.column(i)
        codec = column.compression
        codecs[column.path_in_schema] = {"UNCOMPRESSED": "NONE", "LZ4_RAW": "LZ4"}.get(codec, codec)
        if column.has_dictionary_page:
            with_dictionary.append(column.path_in_schema)
    return {"compression": codecs, "use_dictionary": with_dictionary or False}


def _one_ahead(pool: ThreadPoolExecutor, items: Iterator[Any]) -> Iterator[Any]:
    """Yield the items, the next one being made in the pool while one is used."""
    end = object()
    coming = pool.submit(next, items, end)
    while (item := coming.result()) is not end:
        coming = pool.submit(next, items, end)
        yield item
