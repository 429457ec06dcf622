"""Arrow IPC files and streams, and streams of batches in memory: read and rewritten batch by batch."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import ArrowBatch, ArrowColumn, ArrowSchema
from likewise.errors import InvalidInput, reason_of
from likewise.io.source.source import NULL_TEXT, BadRow, InputFile, Kept, Piece, ReadRules, ReadTask, Unnamed
from likewise.io.tables.columns import OTHER_TYPES, narrowed, root_of, taken_rows
from likewise.io.tables.paths import column_of
from likewise.io.tables.tables import TableRows, integer_type

_FILE_MAGIC = b"ARROW1"
# First bytes of a compressed buffer, after its eight bytes of length.
_CODECS = {b"\x04\x22\x4d\x18": "lz4", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(eq=False)
class MemorySource(Unnamed):
    """Texts in memory."""

    is_plain: ClassVar[bool] = True
    can_read_again = True

    texts: Texts
    # Ids of the texts; row numbers if None
    ids: Texts | None = None
    fields: dict[str, Texts] = field(default_factory=dict)
    # Row of each text in the input, ascending, if the input has null rows, which are bad rows
    rows: NDArray[np.int64] | None = None
    # In that case, number of rows of the input
    num_rows: int = 0
    # In that case, ids of all rows of the input
    all_ids: Texts | None = None
    # Type of the given ids, if they are integers
    given_type: Any = None
    # Rows of `ids` whose id was null, so that it is the row number
    has_null_id: NDArray[np.bool_] | None = None
    num_bytes: int = field(init=False)

    def __post_init__(self) -> None:
        self.num_bytes = self.texts.num_bytes

    @property
    def id_type(self) -> str | None:
        """Name of the Arrow type of the ids in results, if they are integers: row numbers are."""
        return "int64" if self.ids is None else None if self.given_type is None else str(self.given_type)

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Split the texts into parts of about this size."""
        num_texts = len(self.texts)
        rows = max(1, num_texts * piece_bytes // max(1, self.num_bytes)) if num_texts else 1
        for start in range(0, num_texts, rows):
            count = min(rows, num_texts - start)
            yield ReadTask(self.num_bytes * count // num_texts, partial(self._read, start, count))
        if not num_texts and self.num_rows:
            yield ReadTask(0, partial(self._read, 0, 0))

    def _read(self, start: int, length: int) -> Iterator[Piece]:
        rows = np.arange(start, start + length, dtype=np.int64)
        first, end, places = start, start + length, rows
        if self.rows is not None:
            # Nulls before the first text belong to the first piece, other nulls to the piece of the text before them.
            first = int(self.rows[start]) if start else 0
            end = int(self.rows[start + length]) if start + length < len(self.rows) else self.num_rows
            places = self.rows[start : start + length]
        nulls = np.delete(np.arange(first, end), places - first).tolist() if end - first > length else []
        has_id = np.full(length, self.ids is not None, np.uint8)
        if self.has_null_id is not None:
            has_id[self.has_null_id[rows]] = 0
        yield Piece(
            texts=self._part(self.texts, rows),
            ids=Texts.from_list([""] * length) if self.ids is None else self._part(self.ids, rows),
            has_id=has_id,
            offsets=places.astype(np.uint64),
            lengths=np.ones(length, np.uint32),
            lines=(places - first).astype(np.uint32),
            num_lines=end - first,
            fields=[self._part(values, rows) for values in self.fields.values()],
            bad_rows=[BadRow(row - first, row, 1, NULL_TEXT) for row in nulls],
        )

    def read_texts(self, offsets: NDArray[np.uint64], lengths: NDArray[np.uint32]) -> Texts:
        """Return the texts of these rows."""
        rows = offsets.astype(np.int64)
        return self.texts.take(rows if self.rows is None else np.searchsorted(self.rows, rows))

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the requested columns."""
        return list(self.fields)

    @staticmethod
    def _part(texts: Texts, rows: NDArray[np.int64]) -> Texts:
        return texts if len(rows) == len(texts) else texts.take(rows)


@dataclass(eq=False)
class ArrowFile(InputFile):
    """An Arrow IPC file (Feather) or stream."""

    is_parquet: ClassVar[bool] = False
    takes_fields: ClassVar[bool] = True
    takes_tokens: ClassVar[bool] = True

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Read the batches; the jobs extract documents from parts of them."""
        with self._batches() as (schema, batches, _):
            yield from batch_jobs(
                TableRows(self.name, self.rules), schema, (batch for batch, _ in batches), piece_bytes, self._share
            )

    def field_names(self, offset: int, length: int) -> list[str]:
        """Return the names of the columns."""
        with self._batches() as (schema, _, _):
            return list(schema.names)

    def num_rows(self) -> int:
        """Return the number of rows."""
        with self._batches() as (_, batches, _):
            return sum(batch.num_rows for batch, _ in batches)

    def check_cut(self) -> None:
        """Raise InvalidInput if the column of texts is dictionary-encoded."""
        with self._batches() as (schema, _, _):
            TableRows(self.name, self.rules).check_cut(schema)

    def write_kept(self, target: Path, kept: Kept) -> None:
        """Write kept rows to a new file with the same format, schema, metadata and codec, batch by batch."""
        import pyarrow as pa

        options = pa.ipc.IpcWriteOptions(compression=self._codec(), use_threads=kept.threads > 1)
        with self._batches() as (schema, batches, is_file), target.open("xb") as sink:
            schema = self._kept_schema(kept, schema)
            # PyArrow cannot read the metadata of a file's footer; that of the schema is kept.
            make = pa.ipc.new_file if is_file else pa.ipc.new_stream
            with make(sink, schema, options=options) as writer:
                for part, metadata in self._kept(kept, schema, batches):
                    writer.write_batch(part, custom_metadata=metadata)

    def _kept_schema(self, kept: Kept, schema: ArrowSchema) -> ArrowSchema:
        """Return the schema of kept rows."""
        if kept.added is None:
            return schema
        kept.added.fields.check(schema.names, self.name)
        return kept.added.schema(schema)

    def _kept(self, kept: Kept, schema: ArrowSchema, batches: Iterator[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
        """Yield the kept rows of batches, with their metadata."""
        import pyarrow as pa

        row, rows = 0, kept.offsets.astype(np.int64)
        for batch, metadata in batches:
            low, high = map(int, np.searchsorted(rows, [row, row + batch.num_rows]))
            some = rows[low:high] - row
            row += batch.num_rows
            if len(some):
                part = batch if len(some) == batch.num_rows else taken_rows(batch, some)
                if kept.added is not None:
                    columns = kept.added.columns(slice(low, high))[1]
                    part = pa.RecordBatch.from_arrays([*part.columns, *columns], schema=schema)
                if kept.cut is not None:
                    part = TableRows(self.name, self.rules).without(part, kept.cut.within(low, high))
                yield part, metadata

    def _share(self, num_bytes: int, of: int) -> int:
        return num_bytes

    @contextmanager
    def _batches(self) -> Iterator[tuple[Any, Iterator[tuple[Any, Any]], bool]]:
        """Open the file; yield its schema, batches with their metadata, and whether it is not a stream."""
        import pyarrow as pa

        with self.path.open("rb") as file:
            is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
            file.seek(0)
            with pa.PythonFile(file, "r") as source:
                reader = self._checked(lambda: pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source))
                yield reader.schema, self._each(reader, is_file), is_file

    def _each(self, reader: Any, is_file: bool) -> Iterator[tuple[Any, Any]]:  # noqa: FBT001
        numbers = iter(range(reader.num_record_batches)) if is_file else None
        row, known = 0, dict[int, Any]()
        while True:
            if numbers is not None:
                number = next(numbers, None)
                if number is None:
                    return
                found = self._checked(partial(reader.get_batch_with_custom_metadata, number), row, known)
            else:
                found = self._checked(partial(_next_batch, reader), row, known)
                if found is None:
                    return
            yield found.batch, found.custom_metadata
            row += found.batch.num_rows

    def _checked(self, read: Callable[[], Any], row: int | None = None, known: dict[int, Any] | None = None) -> Any:
        """Return the result of `read`, validated except for the UTF-8 of texts; errors of PyArrow name the file."""
        import pyarrow as pa

        where = "" if row is None else f"after row {row}: "
        try:
            found = read()
            if row is not None and found is not None:
                # Check lengths and offsets before they are used.
                _check_batch(found.batch, {} if known is None else known)
            elif row is None:
                # Names are decoded on access.
                _ = found.schema.names
            return found
        except (pa.ArrowException, OSError, MemoryError, OverflowError, UnicodeDecodeError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            what = "not an Arrow file or stream, or damaged: {}"
            if isinstance(error, pa.ArrowNotImplementedError):
                what = f"cannot read the file: {{}}. {OTHER_TYPES}"
            raise InvalidInput(where + what.format(reason_of(error)), self.name) from error

    def _codec(self) -> str | None:
        """Return the codec of the first batch's buffers."""
        import pyarrow as pa

        with self.path.open("rb") as file:
            if file.read(len(_FILE_MAGIC)) == _FILE_MAGIC:
                file.seek(8)
            else:
                file.seek(0)
            with pa.PythonFile(file, "r") as source:
                try:
                    for message in pa.ipc.MessageReader.open_stream(source):
                        if message.type == "record batch" and message.body is not None:
                            return _CODECS.get(bytes(message.body[8:12]))
                except (pa.ArrowException, OSError):
                    return None
        return None


class BatchStream(Unnamed):
    """A stream of record batches in memory, read once; texts that verification needs again are spooled to disk."""

    def __init__(self, reader: Any, rules: ReadRules) -> None:
        self.reader, self.rules = reader, rules

    @property
    def num_bytes(self) -> int:
        """0: the size is unknown before the end."""
        return 0

    @property
    def id_type(self) -> str | None:
        """Name of the Arrow type of the ids in results, if they are integers: row numbers are."""
        name = self.rules.id_name(self.reader.schema.names)
        empty = self.reader.schema.empty_table()
        kind = "int64" if name is None else integer_type(column_of(empty, name))
        return None if kind is None else str(kind)

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Take the batches; the jobs extract documents from parts of them."""
        yield from batch_jobs(
            TableRows(None, self.rules), self.reader.schema, iter(self.reader), piece_bytes, lambda *_: 0
        )

    def put_aside(self, work: Path) -> "StreamCopy":
        """Write all batches to a file in `work`; return a source that can read it repeatedly."""
        import tempfile

        import pyarrow as pa

        with (
            tempfile.NamedTemporaryFile(prefix="stream-", dir=work, delete=False) as file,
            pa.ipc.new_stream(file, self.reader.schema) as writer,
        ):
            for batch in self.reader:
                writer.write_batch(batch)
        return StreamCopy(Path(file.name), self.rules, self.id_type)


class StreamCopy(Unnamed):
    """A stream of record batches spooled whole to disk: single texts are expensive to read again, the whole is not."""

    def __init__(self, path: Path, rules: ReadRules, id_type: str | None) -> None:
        # The creator of the file's directory deletes it.
        self.path, self.rules, self.id_type = path, rules, id_type

    @property
    def num_bytes(self) -> int:
        """Size of the file in bytes."""
        return self.path.stat().st_size

    def jobs(self, piece_bytes: int, work: Path) -> Iterator[ReadTask]:
        """Read the memory-mapped batches; the jobs extract documents from parts of them."""
        import pyarrow as pa

        with pa.memory_map(str(self.path)) as file, pa.ipc.open_stream(file) as reader:
            rows = TableRows(None, self.rules)
            yield from batch_jobs(rows, reader.schema, iter(reader), piece_bytes, lambda num_bytes, _: num_bytes)


def batch_jobs(
    rows: TableRows,
    schema: ArrowSchema,
    batches: Iterator[Any],
    piece_bytes: int,
    share: Callable[[int, int], int],
) -> Iterator[ReadTask]:
    """Yield a job for each part of each batch, of about `piece_bytes`."""
    columns = list(dict.fromkeys(root_of(name, schema.names) for name in rows.needed(schema)))
    first_row = 0
    for batch in batches:
        # Other columns need not stay in memory.
        needed = batch.select(columns)
        parts = max(1, -(-sum(map(_used_bytes, needed.columns)) // piece_bytes))
        step = max(1, -(-batch.num_rows // parts))
        for start in range(0, batch.num_rows, step):
            part = needed.slice(start, step)
            num_bytes = share(batch.nbytes * part.num_rows // batch.num_rows, batch.nbytes)
            yield ReadTask(num_bytes, partial(_read, rows, part, first_row + start))
        first_row += batch.num_rows


def _used_bytes(column: ArrowColumn) -> int:
    """Return the size of an array in bytes, of its dictionary only the share that its rows can use."""
    import pyarrow as pa

    if not pa.types.is_dictionary(column.type):
        return int(column.nbytes)
    values = column.dictionary
    return int(column.indices.nbytes + values.nbytes * min(len(column), len(values)) // max(len(values), 1))


def _read(rows: TableRows, part: ArrowBatch, first_row: int) -> Iterator[Piece]:
    import pyarrow as pa

    columns = [narrowed(column) for column in part.columns]
    yield rows.piece(pa.RecordBatch.from_arrays(columns, schema=part.schema), first_row)


def _check_batch(batch: ArrowBatch, known: dict[int, Any]) -> None:
    """Raise ArrowInvalid if a batch is unsafe, except for UTF-8; `known` has dictionaries checked in batches before."""
    import pyarrow as pa

    batch.validate()
    as_bytes = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary(), pa.string_view(): pa.binary_view()}
    for place, column in enumerate(batch.columns):
        is_known = False
        if pa.types.is_dictionary(column.type):
            before, known[place] = known.get(place), column.dictionary
            is_known = before is not None and _buffers(before) == _buffers(column.dictionary)
        if is_known:
            column = narrowed(column)
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            if column.type not in as_bytes:
                raise
            column.view(as_bytes[column.type]).validate(full=True)


def _buffers(column: ArrowColumn) -> list[tuple[int, int] | None]:
    """Return the place of an array in memory."""
    return [buffer and (buffer.address, buffer.size) for buffer in column.buffers()]


def _next_batch(reader: Any) -> ArrowBatch:
    try:
        return reader.read_next_batch_with_custom_metadata()
    except StopIteration:
        return None
