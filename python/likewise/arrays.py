"""Arrays and texts that grow, in memory or in a file; their sorting; pairs of rows that a user gives."""

import contextlib
import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.errors import InvalidParameter

# Arrays grow by a sixteenth at a time: enough that appending stays linear where memory must be moved to grow.
_SPARE = 16


class GrowingArray:
    """A flat array to whose end others are appended; :meth:`take` gives it away.

    Parameters
    ----------
    dtype : dtype
        Of every entry.
    folder : Path, optional
        Where the array lies in a file of its own, deleted with the array; in memory if None.
    """

    def __init__(self, dtype: Any, folder: Path | None = None) -> None:  # noqa: ANN401
        self._array: NDArray[Any] = np.empty(0, dtype)
        self._folder = folder
        self._file: BinaryIO | None = None
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __del__(self) -> None:
        # What nobody took, as when a run fails.
        file: BinaryIO | None = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def append(self, values: NDArray[Any]) -> None:
        """Copy values to the end.

        Raises
        ------
        OSError
            If the disk is full; in files only.
        """
        length = self._length + len(values)
        if self._folder is not None:
            if self._file is None:
                self._file = _open_nameless(self._folder)
            self._file.write(np.ascontiguousarray(values, self._array.dtype).data.cast("B"))
        else:
            if length > len(self._array):
                # In place: the system moves the pages of a large array rather than their bytes.
                self._array.resize(length + length // _SPARE, refcheck=False)
            self._array[self._length : length] = values
        self._length = length

    def take(self) -> NDArray[Any]:
        """Return the array, read-only: the core shares such a buffer, and copies one that somebody might write to."""
        dtype = self._array.dtype
        if self._folder is not None:
            file, self._file, length, self._length = self._file, None, self._length, 0
            if file is None:
                return frozen(np.empty(0, dtype))
            with file:
                if not length:
                    return frozen(np.empty(0, dtype))
                file.flush()
                mapped = mmap.mmap(file.fileno(), length * dtype.itemsize, access=mmap.ACCESS_READ)
            return np.frombuffer(mapped, dtype)
        self._array.resize(self._length, refcheck=False)
        array, self._array, self._length = self._array, np.empty(0, dtype), 0
        array.flags.writeable = False
        return array


class ArraySpace:
    """Where a run puts what it holds of every document.

    Parameters
    ----------
    folder : Path, optional
        A directory for files, each of one array and deleted with it; in memory if None.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder

    def growing(self, dtype: Any) -> GrowingArray:  # noqa: ANN401
        """Return an array to whose end others are appended."""
        return GrowingArray(dtype, self.folder)

    def zeros(self, length: int, dtype: Any) -> NDArray[Any]:  # noqa: ANN401
        """Return an array of zeros to write to.

        Raises
        ------
        OSError
            If the disk is full; in files only.
        """
        num_bytes = length * np.dtype(dtype).itemsize
        if self.folder is None or not num_bytes:
            return np.zeros(length, dtype)
        with _open_nameless(self.folder) as file:
            # A disk that is full is found here, not at some later store to the mapping, which would end the process.
            _claim(file.fileno(), num_bytes)
            mapped = mmap.mmap(file.fileno(), num_bytes)
        return np.frombuffer(mapped, dtype)


def _claim(file: int, num_bytes: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(file, 0, num_bytes)
        except OSError as error:
            # File systems that cannot allocate space beforehand.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
                raise
        else:
            return
    os.ftruncate(file, num_bytes)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: the core uses it where it lies. Nobody writes to the array during a call."""
    view = array.view()
    view.flags.writeable = False
    return view


def _open_nameless(folder: Path) -> BinaryIO:
    """Open a new file that goes when nobody holds it any more."""
    handle, name = tempfile.mkstemp(prefix="column-", dir=folder)
    if os.name == "posix":
        with contextlib.suppress(OSError):
            Path(name).unlink()
    else:
        # Deleted by the system when its last handle, that of the mapping, is closed.
        os.close(handle)
        handle = os.open(name, os.O_RDWR | getattr(os, "O_BINARY", 0) | getattr(os, "O_TEMPORARY", 0))
    return os.fdopen(handle, "w+b")


class GrowingTexts:
    """A column of texts to whose end others are appended; :meth:`take` gives it away.

    Parameters
    ----------
    space : ArraySpace
        Where their bytes lie.
    """

    def __init__(self, space: ArraySpace) -> None:
        self._parts: list[Texts] = []
        self._in_files = space.folder is not None
        self._data = space.growing(np.uint8)
        self._ends = space.growing(np.int64)

    def append(self, texts: Texts) -> None:
        """Take texts to the end; where they are in memory nothing is copied."""
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


# Keys that are sorted at once where they do not all lie in memory: about 20 MB.
_AT_ONCE = 1 << 19
_SAMPLE = 1 << 16


def stable_order(keys: NDArray[Any], space: ArraySpace) -> NDArray[np.int64]:
    """Return the places of keys in ascending order, equal ones in theirs.

    Parameters
    ----------
    keys : ndarray of shape (n,)
        Integers.
    space : ArraySpace
        Where the result lies. In files the keys are sorted part by part, in a bounded amount of memory.

    Returns
    -------
    ndarray of shape (n,), int64
        As ``numpy.argsort(keys, kind="stable")``.
    """
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


def places_of(values: Any, keys: NDArray[Any]) -> NDArray[np.intp]:  # noqa: ANN401 - a number or several
    """Return where values would stand in ascending keys, each before its equals.

    Parameters
    ----------
    values : int or array-like of int
        Numbers that the type of the keys can hold.
    keys : ndarray of shape (n,)
        Ascending; maybe in a file.

    Returns
    -------
    intp or ndarray of intp
        As ``numpy.searchsorted(keys, values)``, which makes a copy of all keys where the values are of another type.
    """
    return np.searchsorted(keys, np.asarray(values, keys.dtype))


def slices(length: int, step: int) -> Iterator[slice]:
    """Yield consecutive slices of so many entries, the last shorter."""
    for start in range(0, length, step):
        yield slice(start, min(start + step, length))


def _cuts(keys: NDArray[Any]) -> NDArray[Any]:
    """Return keys at which parts begin; one that many share begins a part and ends it."""
    sample = np.sort(keys[:: max(1, len(keys) // _SAMPLE)])
    num_parts = -(-2 * len(keys) // _AT_ONCE)
    cuts = sample[np.arange(1, num_parts) * len(sample) // num_parts]
    behind = cuts[cuts < np.iinfo(keys.dtype).max] + keys.dtype.type(1)
    return distinct(np.concatenate([cuts, behind]))


def distinct(values: NDArray[Any]) -> NDArray[Any]:
    """Return the distinct values of a flat array of integers, rising.

    As :func:`numpy.unique`, which loads NumPy's masked arrays: a sixth of the time of a short command.
    """
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]


def _spread(keys: NDArray[Any], cuts: NDArray[Any], starts: NDArray[np.int64], space: ArraySpace) -> NDArray[np.int64]:
    """Return places part by part, rising in each."""
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


def as_row_pairs(pairs: Any, num_rows: int) -> NDArray[np.int64]:  # noqa: ANN401 - anything that NumPy makes an array of
    """Return pairs of rows as int64 of shape (m, 2).

    Parameters
    ----------
    pairs : array of shape (m, 2), or nothing
        Whole numbers.
    num_rows : int
        Rows there are.

    Raises
    ------
    InvalidParameter
        If the shape is another, or a row is not an integer from 0 to below `num_rows`.
    """
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
