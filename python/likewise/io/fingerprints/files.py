"""Huge fingerprint files that are read once, in order: flat words, .npy, Parquet sketches."""

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import frozen
from likewise.errors import InvalidInput
from likewise.io.fingerprints.flat import (
    RecipeBeside,
    check_no_nulls,
    how_to_store,
    parquet_file,
    read_recipe_beside,
    recipe_of_metadata,
)
from likewise.io.places import check_regular

# A file is identified by its size, its modification time, and the bytes of blocks spread over it.
_NUM_BLOCKS = 64
_BLOCK_BYTES = 1 << 16


def file_identity(path: Path) -> dict[str, object]:
    """Return the identity of a file: its size, its modification time, and a digest of blocks spread over it."""
    status = path.stat()
    digest = hashlib.sha256()
    with path.open("rb") as file:
        last = max(0, status.st_size - _BLOCK_BYTES)
        for block in range(_NUM_BLOCKS):
            file.seek(last * block // (_NUM_BLOCKS - 1))
            digest.update(file.read(_BLOCK_BYTES))
    return {"size": status.st_size, "modified_ns": status.st_mtime_ns, "digest": digest.hexdigest()[:32]}


class FlatFile:
    """Little-endian 64-bit words, row by row, from an offset in the file."""

    def __init__(
        self, path: Path, num_words: int, offset: int, num_rows: int, beside: RecipeBeside | None = None
    ) -> None:
        self.path, self.num_words, self.num_rows = path, num_words, num_rows
        self._offset = offset
        self._empty_rows = np.zeros(0, np.int64) if beside is None else beside.empty_rows.astype(np.int64)
        self.recipe = None if beside is None else beside.recipe
        digest = hashlib.sha256(self._empty_rows.tobytes()).hexdigest()[:32]
        self.empty_rows_beside = None if beside is None else digest

    def words(self, low: int, high: int) -> NDArray[np.uint64]:
        """Return the words of rows ``low:high``."""
        with self.path.open("rb") as file:
            file.seek(self._offset + 8 * self.num_words * low)
            words = np.fromfile(file, "<u8", self.num_words * (high - low))
        if len(words) < self.num_words * (high - low):
            raise InvalidInput(
                f"the file changed while it was in use: it ends before row {high}; run again", str(self.path)
            )
        return frozen(words)

    def empty_rows(self, low: int, high: int) -> NDArray[np.int64]:
        """Return the rows of empty texts in ``low:high``; none if the file has no recipe next to it."""
        first, last = np.searchsorted(self._empty_rows, [low, high])
        return self._empty_rows[first:last]


class ParquetFile:
    """The column ``sketch`` of a Parquet file of fingerprints, read a row group at a time."""

    # Data that other files store next to them is inside this file.
    empty_rows_beside = None

    def __init__(self, path: Path, num_words: int) -> None:
        import pyarrow as pa

        self.path, self.num_words = path, num_words
        self._file = parquet_file(path, pre_buffer=False)
        schema = self._file.schema_arrow
        if "sketch" not in schema.names:
            raise InvalidInput("no column named sketch in the file", str(path))
        kind = schema.field("sketch").type
        is_list = pa.types.is_fixed_size_list(kind)
        value = kind.value_type if is_list else kind
        width = kind.list_size if is_list else 1
        if value not in (pa.int64(), pa.uint64()) or width != num_words:
            raise InvalidInput(
                f"the sketches are {kind}, but the queries are fingerprints of {num_words} 64-bit words", str(path)
            )
        metadata = schema.metadata or {}
        recipe = metadata.get(b"likewise.recipe")
        self.recipe = None if recipe is None else recipe_of_metadata(recipe, path)
        self._columns = ["sketch", "is_empty"] if "is_empty" in schema.names else ["sketch"]
        sizes = [self._file.metadata.row_group(i).num_rows for i in range(self._file.num_row_groups)]
        self._starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.num_rows = int(self._starts[-1])
        self._held: tuple[int, NDArray[np.uint64], NDArray[np.int64]] | None = None

    def words(self, low: int, high: int) -> NDArray[np.uint64]:
        """Return the words of rows ``low:high``, up to the end of the row group of `low`."""
        start, words, _ = self._group(int(np.searchsorted(self._starts, low, "right")) - 1)
        return words[(low - start) * self.num_words : (high - start) * self.num_words]

    def empty_rows(self, low: int, high: int) -> NDArray[np.int64]:
        """Return the rows of empty texts in ``low:high``, up to the end of the row group of `low`."""
        _, _, empty = self._group(int(np.searchsorted(self._starts, low, "right")) - 1)
        return empty[(empty >= low) & (empty < high)]

    def _group(self, group: int) -> tuple[int, NDArray[np.uint64], NDArray[np.int64]]:
        start = int(self._starts[group])
        if self._held is None or self._held[0] != start:
            self._held = None
            table = self._file.read_row_group(group, columns=self._columns, use_threads=False)
            for name in self._columns:
                check_no_nulls(table.column(name), name, self.path, start)
            column = table.column("sketch").combine_chunks()
            flat: Any = column.flatten() if self.num_words > 1 else column
            words = np.ascontiguousarray(flat.to_numpy(zero_copy_only=False)).view(np.uint64)
            words.flags.writeable = False
            empty = np.zeros(0, np.int64)
            if "is_empty" in self._columns:
                empty = np.flatnonzero(table.column("is_empty").to_numpy()).astype(np.int64) + start
            self._held = (start, words, empty)
        return self._held


def open_fingerprints(path: Path, num_words: int) -> FlatFile | ParquetFile:
    """Open a file of fingerprints of `num_words` words by its extension: ``.parquet``, ``.npy``, else flat words."""
    check_regular(path)
    if path.suffix == ".parquet":
        return ParquetFile(path, num_words)
    if path.suffix == ".npy":
        return _open_npy(path, num_words)
    size, row_bytes = path.stat().st_size, 8 * num_words
    if size % row_bytes:
        raise InvalidInput(
            f"the file size, {size} bytes, is not a multiple of the fingerprint size, {row_bytes} bytes", str(path)
        )
    return FlatFile(path, num_words, 0, size // row_bytes)


def _open_npy(path: Path, num_words: int) -> FlatFile:
    with path.open("rb") as file:
        try:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran_order, kind = read(file)
        except Exception as error:  # NumPy raises a dozen kinds of errors.
            raise InvalidInput(f"not a .npy file: {error}", str(path)) from error
        offset = file.tell()
    width = shape[1] if len(shape) == 2 else 1
    how = how_to_store(kind, fortran_order=fortran_order and width > 1)
    if how is not None and width == num_words:
        raise InvalidInput(f"the array is {kind} of shape {shape}; {how}", str(path))
    if kind != np.dtype("<u8") or len(shape) not in (1, 2) or (fortran_order and width > 1) or width != num_words:
        raise InvalidInput(
            f"the array is {kind} of shape {shape}; the queries are fingerprints of {num_words} words of type uint64",
            str(path),
        )
    if shape[0] < 0 or path.stat().st_size < offset + 8 * num_words * shape[0]:
        raise InvalidInput(f"truncated file: it has fewer than the declared {shape[0]} rows", str(path))
    return FlatFile(path, num_words, offset, int(shape[0]), read_recipe_beside(path, int(shape[0])))
