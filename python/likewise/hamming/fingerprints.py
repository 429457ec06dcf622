"""Fingerprints: the inputs of Hamming search, from arrays, Arrow data, sketches and files."""

import mmap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ArrowColumn, TextData
from likewise.errors import InvalidInput, InvalidParameter
from likewise.io.fingerprints.flat import FlatFile, flat_from_parquet, how_to_store, read_array, read_recipe_beside
from likewise.io.places import check_regular
from likewise.recipe.methods import SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import Sketches
from likewise.stages.text import is_table

_WORD = (1 << 64) - 1
# Maximum length of a value in a message.
_MAX_DIGITS = 40


Words = NDArray[np.uint64]
Found = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint16]]

# Rows of a block, and pairs of one.
BLOCK_ROWS, BLOCK_PAIRS = 1 << 20, 1 << 21
# A single row may have more pairs than a block.
ALL_PAIRS = 2**40


def shown(value: object) -> str:
    """Return a value in the form used in messages."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length()} bits"
    text = repr(value)
    return text if len(text) <= _MAX_DIGITS else f"{text[: _MAX_DIGITS - 3]}..."


def as_words(name: str, given: TextData) -> NDArray[np.uint64]:
    """Return an array of any shape, or a list, as words of fingerprints, bit by bit."""
    if isinstance(given, list | tuple):
        return words_of_list(name, given)
    try:
        array = np.asarray(given)
    except (TypeError, ValueError) as error:
        raise InvalidParameter(name, f"{type(given).__name__} is not an array of fingerprints") from error
    if isinstance(given, np.ma.MaskedArray) and np.ma.is_masked(given):
        raise InvalidParameter(name, "masked values are not supported; remove them")
    if array.dtype == object and array.ndim == 1:
        return words_of_list(name, array.tolist())
    if array.dtype.kind in "iu" and not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if not array.flags.aligned:
        array = array.copy()
    if array.dtype == np.int64:
        return np.ascontiguousarray(array).view(np.uint64).reshape(array.shape)
    if array.dtype != np.uint64:
        raise InvalidParameter(
            name,
            f"{type(given).__name__} of {array.dtype}, shape {array.shape}, not supported; use uint64, int64 with the "
            "same bits, or uint8 of shape (n, bytes)",
        )
    return array


def words_of_list(name: str, given: Sequence[Any]) -> NDArray[np.uint64]:
    """Return a list of numbers, or of lists of words of one length, as an array of shape (n,) or (n, words)."""
    is_nested = bool(given) and all(
        isinstance(row, list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1) for row in given
    )
    if is_nested:
        rows = [words_of_list(name, row.tolist() if isinstance(row, np.ndarray) else row) for row in given]
        if len({row.shape for row in rows}) != 1 or rows[0].ndim != 1:
            raise InvalidParameter(
                name, "the lists differ in length; all fingerprints must have the same number of words"
            )
        return np.stack(rows)
    if not all(type(value) is int for value in given):
        given = [_word(name, number, value) for number, value in enumerate(given)]
    try:
        return np.array(given, np.uint64)
    except OverflowError:
        # Databases hand out words as signed integers with the same bits.
        wrong = next(((i, value) for i, value in enumerate(given) if not -(1 << 63) <= value < 1 << 64), None)
        if wrong is None:
            return np.array([value & _WORD for value in given], np.uint64)
        raise InvalidParameter(
            name,
            f"{shown(wrong[1])} at position {wrong[0]} is out of range; fingerprint words have 64 bits, from 0 to "
            "2^64 - 1 or signed",
        ) from None


def _word(name: str, number: int, value: object) -> int:
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise InvalidParameter(
            name, f"{shown(value)} at position {number} is not an integer; fingerprints are integers"
        )
    return int(value.__index__())


@dataclass(frozen=True, eq=False)
class Fingerprints:
    """Fingerprints in memory."""

    # The words of all fingerprints; word 0 of a fingerprint is the lowest
    words: NDArray[np.uint64]
    bits: int
    # 1 for fingerprints of empty texts. None if there are none.
    is_empty: NDArray[np.uint8] | None = None
    recipe: Recipe | None = None
    doc_ids: tuple[str, ...] | None = None
    # Whether they were given as bytes, so that their width is known without a recipe
    is_of_bytes: bool = False

    def __len__(self) -> int:
        return len(self.words) // -(-self.bits // 64)

    @property
    def empty_rows(self) -> NDArray[np.uint32]:
        """Rows of empty texts, ascending."""
        return np.flatnonzero(self.is_empty if self.is_empty is not None else ()).astype(np.uint32)

    def spooled(self, folder: Path, name: str) -> FlatFile:
        """Return a new flat file of the same fingerprints in `folder`."""
        path = folder / f"{name}.flat"
        self.words.tofile(path)
        return FlatFile(path, 0, len(self), self.bits, self.empty_rows, self.recipe)


def take_fingerprints(name: str, given: TextData) -> Fingerprints:
    """Return the value of parameter `name` as fingerprints."""
    if isinstance(given, str | Path):
        return _read(Path(given))
    if isinstance(given, Sketches):
        method = given.recipe.sketch
        if not isinstance(method, SimHash):
            raise InvalidParameter(name, "MinHash signatures are not supported; use band_pairs")
        is_empty = given.is_empty.astype(np.uint8) if given.is_empty.any() else None
        words = np.ascontiguousarray(given.array).reshape(-1)
        return Fingerprints(words, method.bits, is_empty, given.recipe, given.doc_ids)
    if hasattr(given, "__arrow_c_stream__") or hasattr(given, "__arrow_c_array__"):
        given = _from_arrow(name, given)
    if isinstance(given, np.ndarray) and given.dtype == np.uint8 and given.ndim == 2:
        num_rows, num_bytes = given.shape
        if num_bytes not in range(4, 33, 4):
            raise InvalidParameter(
                name, f"shape {given.shape} of uint8 is not (n, bytes) with 4 to 32 bytes, a multiple of 4"
            )
        padded = np.zeros((num_rows, -(-num_bytes // 8) * 8), np.uint8)
        padded[:, :num_bytes] = given
        return Fingerprints(padded.view("<u8").reshape(-1), 8 * num_bytes, is_of_bytes=True)
    array = as_words(name, given)
    if array.ndim not in (1, 2) or (array.ndim == 2 and not 1 <= array.shape[1] <= 4):
        raise InvalidParameter(name, f"shape {array.shape} is not (n,) or (n, words) with 1 to 4 words")
    bits = 64 * (array.shape[1] if array.ndim == 2 else 1)
    if isinstance(array, np.memmap):
        # Read, not mapped: truncating the file during a search must not cause a crash.
        array = np.array(array)
    return Fingerprints(np.ascontiguousarray(array).reshape(-1), bits)


def take_file(name: str, given: TextData, folder: Path) -> FlatFile:
    """Return the value of parameter `name` as a flat file. Other layouts are written to a new file in `folder`."""
    if isinstance(given, str | Path):
        path = Path(given)
        check_regular(path)
        if path.suffix == ".parquet":
            return flat_from_parquet(path, folder / f"{name}.flat")
        if path.suffix == ".npy":
            return _npy_file(path)
    return mapped_file(given) or take_fingerprints(name, given).spooled(folder, name)


def file_status(given: object) -> tuple[int, ...] | None:
    """Return a status that changes if a file, or the file of a mapped array, changes; None for other values."""
    path = given.filename if isinstance(given, np.memmap) else given
    if not isinstance(path, str | Path):
        return None
    try:
        status = Path(path).stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def refuse_changed(given: object, status: tuple[int, ...] | None) -> None:
    """Raise an error if a file has changed since :func:`file_status`."""
    if file_status(given) != status:
        path = given.filename if isinstance(given, np.memmap) else given
        raise InvalidInput("the file changed during the read", str(path))


def _read(path: Path) -> Fingerprints:
    if path.suffix == ".parquet":
        return take_fingerprints("fingerprints", Sketches.read(path))
    if path.suffix == ".npy":
        file = _npy_file(path)
        words = np.fromfile(file.path, np.uint64, file.num_rows * -(-file.bits // 64), offset=file.offset)
        is_empty = np.zeros(file.num_rows, np.uint8)
        is_empty[file.empty_rows] = 1
        return Fingerprints(words, file.bits, is_empty if len(file.empty_rows) else None, file.recipe)
    raise InvalidInput("fingerprint files must be .npy or .parquet; map any other file with numpy.memmap", str(path))


def _npy_file(path: Path) -> FlatFile:
    """Return the location of an array in its file. Its recipe file, if any, gives the width and the empty texts."""
    check_regular(path)
    array = read_array(path, is_mapped=True)
    file = mapped_file(array)
    if file is None:
        how = how_to_store(array.dtype, fortran_order=not array.flags.c_contiguous)
        raise InvalidInput(
            f"{'not an array of fingerprints: ' if how is None else ''}{array.dtype} of shape {array.shape}"
            f"{'' if how is None else f': {how}'}",
            str(path),
        )
    beside = read_recipe_beside(path, file.num_rows)
    return (
        file if beside is None else replace(file, bits=beside.bits, recipe=beside.recipe, empty_rows=beside.empty_rows)
    )


def mapped_file(array: ArrowColumn) -> FlatFile | None:
    """Return the location of an array, or of a slice of its rows, in the mapped file of little-endian uint64."""
    whole = array.base if isinstance(getattr(array, "base", None), np.memmap) else array
    if not isinstance(array, np.memmap) or not isinstance(whole.base, mmap.mmap) or whole.filename is None:
        return None
    # Copy-on-write: changes to the array are not in the file.
    if whole.mode == "c":
        return None
    if array.dtype != np.dtype("<u8") or array.ndim not in (1, 2) or not array.flags.c_contiguous:
        return None
    num_words = array.shape[1] if array.ndim == 2 else 1
    if not 1 <= num_words <= 4:
        return None
    offset = whole.offset + array.ctypes.data - whole.ctypes.data
    return FlatFile(Path(whole.filename), offset, len(array), 64 * num_words, np.zeros(0, np.uint32), None)


def _from_arrow(name: str, given: TextData) -> NDArray[Any]:
    import pyarrow as pa

    try:
        column = pa.chunked_array([given]) if isinstance(given, pa.Array) else _arrow_column(name, given)
    except (pa.ArrowException, TypeError) as error:
        raise InvalidParameter(name, f"cannot read this Arrow data: {error}") from error
    if column.null_count:
        raise InvalidParameter(name, f"{column.null_count} values are null")
    kind = column.type
    column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if pa.types.is_fixed_size_binary(kind) and kind.byte_width in (8, 16, 24, 32):
        data = np.frombuffer(column.buffers()[1] or b"", np.uint8)
        data = data[column.offset * kind.byte_width : (column.offset + len(column)) * kind.byte_width]
        return data.view("<u8").reshape(len(column), -1)
    if pa.types.is_fixed_size_list(kind) and kind.value_type in (pa.int64(), pa.uint64()):
        values = column.flatten()
        if values.null_count:
            raise InvalidParameter(name, f"{values.null_count} words are null")
        flat: NDArray[Any] = values.to_numpy(zero_copy_only=False)
        return flat.view(np.uint64).reshape(len(column), kind.list_size)
    if kind in (pa.int64(), pa.uint64()):
        numbers: NDArray[Any] = column.to_numpy(zero_copy_only=False)
        return numbers.view(np.uint64)
    raise InvalidParameter(name, f"a column of type {kind} is not supported; use (u)int64, lists or fixed-size binary")


def _arrow_column(name: str, given: TextData) -> ArrowColumn:
    """Return the column of Arrow data: in a table, the sketch column or the only column."""
    import pyarrow as pa

    if not is_table(given):
        return pa.chunked_array(given) if hasattr(given, "__arrow_c_stream__") else pa.chunked_array([pa.array(given)])
    table = pa.table(given)
    names = ["sketch"] if "sketch" in table.column_names else table.column_names
    if len(names) != 1:
        raise InvalidParameter(name, f"got a table with columns {names}; pass its fingerprint column")
    return table.column(names[0])


def joined(left: Words, right: Words | None, bits: int, *, within: int, max_pairs: int, threads: int) -> Found | None:
    """Return left rows, right rows and distances of all pairs, sorted; None if there are more than `max_pairs`."""
    sides = ((left, None), None if right is None else (right, None))
    found = _native.join_fingerprints(*sides, bits, within=within, max_pairs=max_pairs, threads=threads)
    if found is None:
        return None
    rows = np.asarray(found[0]).reshape(-1, 2)
    return rows[:, 0], rows[:, 1], np.asarray(found[1])


def streamed(
    read: Callable[[int, int], Words],
    rows: range,
    others: Words,
    bits: int,
    *,
    within: int,
    threads: int,
) -> Iterator[tuple[int, Found]]:
    """Join `rows`, read block by block, with others: the row after a block, and pairs that count from its start."""
    num_words = -(-bits // 64)
    # Each block is joined with all others, so it is not much smaller.
    most = max(BLOCK_ROWS, len(others) // num_words)
    low, num_rows = rows.start, most
    while low < rows.stop:
        words = read(low, min(low + num_rows, rows.stop))
        num_read = len(words) // num_words
        max_pairs = BLOCK_PAIRS if num_read > 1 else ALL_PAIRS
        found = joined(words, others, bits, within=within, max_pairs=max_pairs, threads=threads)
        if found is None:
            num_rows = max(1, num_read // 4)
            continue
        low += num_read
        yield low, found
        # Blocks grow again where pairs are sparse.
        num_rows = min(most, max(1, num_read * BLOCK_PAIRS // (2 * len(found[0]) + 1)))
