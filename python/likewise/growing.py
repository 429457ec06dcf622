"""Arrays in memory or in files: those that grow at their end, and room for others.

A mapped file is no anonymous memory: the system writes its pages out and reads them again as it sees fit. So what a
bounded run holds of every document lies in files, and everything else works on both kinds alike.
"""

import contextlib
import errno
import mmap
import os
import tempfile
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

# Room is made a sixteenth at a time: enough that appending stays linear where memory must be moved to grow.
_SPARE = 16


class GrowingArray:
    """A flat array to whose end others are appended; :meth:`take` gives it away.

    Parameters
    ----------
    dtype : dtype
        Of every entry.
    folder : Path, optional
        Where the array lies in a file of its own, deleted with the array; in memory where None.
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
        A directory for files, each of one array and deleted with it; in memory where None.
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
            # File systems that cannot claim room beforehand.
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
