"""Growing arrays and text columns, in memory or in files; sorting; repeated keys; validation of row pairs."""

import contextlib
import errno
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise._native import Texts
from likewise.errors import InvalidParameter

# PyArrow has no types: these names say what an argument holds. Any library's objects with the Arrow interface will do.
ArrowTable: TypeAlias = Any
ArrowColumn: TypeAlias = Any
ArrowBatch: TypeAlias = Any
ArrowSchema: TypeAlias = Any
# Strings, tokens or bytes: a sequence, or an Arrow column.
TextData: TypeAlias = Any
# What NumPy makes an array of, or an Arrow column.
ColumnData: TypeAlias = Any

# Arrays grow by 1/16 at a time: enough to keep appending linear if growing moves memory.
_SPARE = 16


class GrowingArray:
    """Append-only flat array; :meth:`take` hands it over."""

    def __init__(self, dtype: Any) -> None:
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, values: NDArray[Any]) -> None:
        """Copy values to the end."""
        length = self._length + len(values)
        if length > len(self._array):
            # In place: for a large array, the system remaps pages instead of copying bytes.
            self._array.resize(length + length // _SPARE, refcheck=False)
        self._array[self._length : length] = values
        self._length = length

    def take(self) -> NDArray[Any]:
        """Return the array, read-only: the core shares read-only buffers and copies writable ones."""
        self._array.resize(self._length, refcheck=False)
        array, self._array, self._length = self._array, np.empty(0, self._array.dtype), 0
        array.flags.writeable = False
        return array


class _GrowingFile(GrowingArray):
    """The same in an unnamed file."""

    def __init__(self, folder: Path, dtype: Any) -> None:
        super().__init__(dtype)
        self._folder = folder
        self._file: BinaryIO | None = None

    def __del__(self) -> None:
        # Not taken, for example because a run failed.
        file: BinaryIO | None = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def append(self, values: NDArray[Any]) -> None:
        if self._file is None:
            self._file = _open_nameless(self._folder)
        self._file.write(np.ascontiguousarray(values, self._array.dtype).data.cast("B"))
        self._length += len(values)

    def take(self) -> NDArray[Any]:
        file, self._file, length, self._length = self._file, None, self._length, 0
        if file is None:
            return frozen(self._array)
        import mmap

        with file:
            if not length:
                return frozen(self._array)
            file.flush()
            mapped = mmap.mmap(file.fileno(), length * self._array.itemsize, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, self._array.dtype)


class ArraySpace:
    """Storage for the per-document arrays of a run."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        # Return an empty growing array, and a writable array of zeros.
        self.growing: Callable[[Any], GrowingArray] = GrowingArray
        self.zeros: Callable[[int, Any], NDArray[Any]] = np.zeros
        if folder is not None:
            self.growing, self.zeros = partial(_GrowingFile, folder), partial(_mapped_zeros, folder)

    def numbers(self, length: int) -> NDArray[np.int64]:
        """Return the numbers from 0 on, as a writable array."""
        numbers = self.zeros(length, np.int64)
        for part in slices(length, _AT_ONCE):
            numbers[part] = np.arange(part.start, part.stop)
        return numbers


def _mapped_zeros(folder: Path, length: int, dtype: Any) -> NDArray[Any]:
    num_bytes = length * np.dtype(dtype).itemsize
    if not num_bytes:
        return np.zeros(length, dtype)
    import mmap

    with _open_nameless(folder) as file:
        # Detect a full disk here: a later write to the mapping would end the process.
        _claim(file.fileno(), num_bytes)
        mapped = mmap.mmap(file.fileno(), num_bytes)
    return np.frombuffer(mapped, dtype)


def _claim(file: int, num_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, num_bytes)
        except OSError as error:
            # Some file systems cannot preallocate space.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        else:
            return
    os.ftruncate(file, num_bytes)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view, which the core uses without a copy. The array must not change during a call."""
    view = array.view()
    view.flags.writeable = False
    return view


def _open_nameless(folder: Path) -> BinaryIO:
    """Open a new file that is deleted when its last handle is closed."""
    import tempfile

    handle, name = tempfile.mkstemp(prefix="column-", dir=folder)
    if os.name == "posix":
        with contextlib.suppress(OSError):
            Path(name).unlink()
    else:
        # The system deletes it when its last handle, that of the mapping, is closed.
        os.close(handle)
        handle = os.open(name, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_TEMPORARY", 0))
    return os.fdopen(handle, "w+b")


class GrowingTexts:
    """Append-only column of texts; :meth:`take` hands it over."""

    def __init__(self, space: ArraySpace) -> None:
        self._parts: list[Texts] = []
        self._in_files = space.folder is not None
        if self._in_files:
            self._data, self._ends = space.growing(np.uint8), space.growing(np.int64)

    def append(self, texts: Texts) -> None:
        """Append texts; in memory, nothing is copied."""
        if not self._in_files:
            self._parts.append(texts)
            return
        import pyarrow as pa

        if not len(texts):
            return
        if not len(self._ends):
            self._ends.append(np.zeros(1, np.int64))
        column = pa.array(texts)
        _, offset_buffer, data = column.buffers()
        offsets = np.frombuffer(offset_buffer, np.int64)[column.offset : column.offset + len(column) + 1]
        self._ends.append(offsets[1:] - offsets[0] + len(self._data))
        if data is not None:
            self._data.append(np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]])

    def take(self) -> Texts:
        """Return all texts."""
        if not self._in_files or not len(self._ends):
            parts, self._parts = self._parts, []
            return Texts.concat(parts)
        import pyarrow as pa

        num_texts = len(self._ends) - 1
        buffers = [None, pa.py_buffer(self._ends.take()), pa.py_buffer(self._data.take())]
        return Texts.from_arrow(pa.LargeStringArray.from_buffers(num_texts, *buffers[1:]))


# For arrays in files: number of entries sorted or written at once, about 20 MB.
_AT_ONCE = 1 << 19
# Number of keys whose repeats are searched at once.
_KEYS_AT_ONCE = 1 << 16
_SAMPLE = 1 << 16


def stable_order(keys: NDArray[Any], space: ArraySpace) -> NDArray[np.int64]:
    """Return the order that sorts keys; equal keys keep their order."""
    if space.folder is None or len(keys) <= _AT_ONCE:
        return np.argsort(keys, kind="stable")
    cuts = _cuts(keys)
    ends = np.zeros(len(cuts) + 1, np.int64)
    for part in slices(len(keys), _AT_ONCE):
        ends += np.bincount(np.searchsorted(cuts, keys[part], "right"), minlength=len(ends))
    ends = np.cumsum(ends)
    order = _spread(keys, cuts, np.concatenate([[0], ends[:-1]]), space)
    for start, end in zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True):
        places = order[start:end]
        values = keys[places]
        if end - start > 1 and values.min() != values.max():
            order[start:end] = places[np.argsort(values, kind="stable")]
    return order


def repeated_keys(
    keys_of: Callable[[slice], NDArray[np.uint64]], length: int, num_words: int, most_bytes: int | None = None
) -> Iterator[tuple[NDArray[np.uint64], NDArray[np.uint64]]]:
    """Yield the entries whose key equals that of an earlier entry, and for each the first entry with this key."""
    needed = 16 * length * (num_words + 1)
    num_shares = 1 if most_bytes is None else max(1, -(-needed // max(1, most_bytes)))
    for share in range(num_shares):
        equal = _native.EqualKeys(num_words, share, num_shares)
        for part in slices(length, _KEYS_AT_ONCE):
            later, first = equal.add(frozen(np.ascontiguousarray(keys_of(part)).reshape(-1)))
            yield np.asarray(later), np.asarray(first)
        later, first = equal.finish()
        yield np.asarray(later), np.asarray(first)


def double_id(
    ids_of: Callable[[slice], Texts],
    length: int,
    space: ArraySpace,
    groups_of: Callable[[slice], NDArray[Any]] | None = None,
    most_bytes: int | None = None,
) -> tuple[int, int] | None:
    """Return the first entry with the id of an earlier one, and that earlier one; None if all ids differ."""
    num_words = 2 if groups_of is None else 3
    hashes = space.growing(np.uint64)
    for part in slices(length, _KEYS_AT_ONCE):
        ids = ids_of(part)
        columns = [np.asarray(ids.hashes(seed)) for seed in (0, 1)]
        if groups_of is not None:
            columns.append(groups_of(part).astype(np.uint64))
        hashes.append(np.stack(columns, axis=1).reshape(-1))
    keys = hashes.take().reshape(-1, num_words)
    double: tuple[int, int] | None = None
    for later, first in repeated_keys(lambda part: keys[part], length, num_words, most_bytes):
        for place in np.argsort(later).tolist():
            pair = int(later[place]), int(first[place])
            if double is not None and pair > double:
                break
            # Ids can be crafted so that their hashes are equal.
            if len({ids_of(slice(entry, entry + 1))[0] for entry in pair}) == 1:
                double = pair
                break
    return double


def places_of(values: ArrowColumn, keys: NDArray[Any]) -> NDArray[np.intp]:
    """Return the insertion points of values in ascending keys, each before equal keys."""
    return np.searchsorted(keys, np.asarray(values, keys.dtype))


def slices(length: int, step: int) -> Iterator[slice]:
    """Return consecutive slices of `step` entries; the last may be shorter."""
    starts = range(0, length, step)
    return map(slice, starts, [*starts[1:], length])


def _cuts(keys: NDArray[Any]) -> NDArray[Any]:
    """Return the keys at which parts begin; a key shared by many entries gets its own part."""
    sample = np.sort(keys[:: max(1, len(keys) // _SAMPLE)])
    num_parts = -(-2 * len(keys) // _AT_ONCE)
    cuts = sample[np.arange(1, num_parts) * len(sample) // num_parts]
    behind = cuts[cuts < np.iinfo(keys.dtype).max] + keys.dtype.type(1)
    return distinct(np.concatenate([cuts, behind]))


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of an array, ascending; `numpy.unique` imports masked arrays, which takes longer."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _spread(keys: NDArray[Any], cuts: NDArray[Any], starts: NDArray[np.int64], space: ArraySpace) -> NDArray[np.int64]:
    """Return places grouped by part, ascending within each."""
    spread = space.zeros(len(keys), np.int64)
    starts = starts.copy()
    for some in slices(len(keys), _AT_ONCE):
        number = np.searchsorted(cuts, keys[some], "right")
        order = np.argsort(number, kind="stable")
        counts = np.bincount(number, minlength=len(starts))
        bounds = np.concatenate([[0], np.cumsum(counts)])
        for part in np.flatnonzero(counts).tolist():
            places = order[bounds[part] : bounds[part + 1]]
            spread[starts[part] : starts[part] + len(places)] = places + some.start
        starts += counts
    return spread


def as_row_pairs(pairs: Any, num_rows: int) -> NDArray[np.int64]:
    """Return pairs of rows as int64 of shape (m, 2)."""
    try:
        found = np.asarray(pairs)
    except ValueError as error:
        raise InvalidParameter("pairs", f"not pairs of rows: {error}") from error
    if not found.size and found.ndim:
        return np.zeros((0, 2), np.int64)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu":
        raise InvalidParameter("pairs", f"expected integers of shape (m, 2), got {found.dtype} of shape {found.shape}")
    if not (found.min() >= 0 and found.max() < num_rows):
        raise InvalidParameter("pairs", f"rows must be from 0 to {num_rows - 1}")
    return found.astype(np.int64)
