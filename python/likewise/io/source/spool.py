"""Texts spooled to a file for verification, if the input is expensive to read again."""

import io
import mmap
import threading
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts, checksum, range_checksum
from likewise.errors import LikewiseError

# Name of the file of a run.
SPOOL_NAME = "texts.spool"


class Spool:
    """A file of texts that are appended in any order and then memory-mapped: it uses disk, not anonymous memory."""

    def __init__(self, path: Path, *, is_kept: bool = False, has_tokens: bool = False) -> None:
        self._has_tokens = has_tokens
        self._path = path
        self._is_kept = is_kept
        self._file = path.open("r+b" if is_kept and path.exists() else "w+b")
        self._num_bytes = 0
        self._lock = threading.Lock()
        # First byte, checksum, offsets of the texts relative to the first byte.
        self._places: list[tuple[int, int, NDArray[np.int64]]] = []
        self._map: mmap.mmap | None = None
        self._texts: dict[int, Texts] = {}

    def append(self, texts: Texts) -> int:
        """Append texts; return the handle for :meth:`texts`. Thread-safe."""
        import pyarrow as pa

        array = pa.array(texts)
        _, offset_buffer, data = array.buffers()
        offsets = (
            np.frombuffer(offset_buffer, np.int64)[array.offset : array.offset + len(array) + 1]
            if len(array)
            else np.zeros(1, np.int64)
        )
        first, end = int(offsets[0]), int(offsets[-1])
        told = 0
        if self._is_kept and end > first:
            told = checksum(np.frombuffer(data, np.uint8)[first:end])
        with self._lock:
            start = self._num_bytes
            self._num_bytes += end - first
            self._places.append((start, told, offsets - first))
            handle = len(self._places) - 1
        if end > first:
            # Each thread writes to its own range, so threads do not wait for each other.
            with self._path.open("r+b", buffering=0) as file:
                file.seek(start)
                write_all(file, memoryview(data)[first:end])
        return handle

    def place(self, handle: int) -> tuple[int, int, NDArray[np.int64]]:
        """Return the first byte, the checksum and the relative offsets of the texts of one :meth:`append`."""
        with self._lock:
            return self._places[handle]

    def restore(self, start: int, told: int, sizes: NDArray[np.uint32]) -> int:
        """Return a handle for texts of these sizes that an earlier run appended. Call it before any :meth:`append`."""
        offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)]).astype(np.int64)
        self._places.append((start, told, offsets))
        self._num_bytes = max(self._num_bytes, start + int(offsets[-1]))
        return len(self._places) - 1

    @staticmethod
    def holds(path: Path, start: int, num_bytes: int, told: int) -> bool:
        """Return whether the file still contains the appended bytes."""
        try:
            return num_bytes == 0 or range_checksum(path, start, num_bytes) == told
        except (LikewiseError, OSError):
            return False

    def texts(self, handle: int) -> Texts:
        """Return the texts of one :meth:`append`, memory-mapped. Call it after everything is appended."""
        import pyarrow as pa

        with self._lock:
            if handle not in self._texts:
                if self._map is None:
                    size = self._num_bytes
                    self._map = mmap.mmap(self._file.fileno(), size, access=mmap.ACCESS_READ) if size else None
                start, _, offsets = self._places[handle]
                data = pa.py_buffer(b"") if self._map is None else pa.py_buffer(self._map)
                buffers = [None, pa.py_buffer(offsets), data.slice(start, int(offsets[-1]))]
                kind = pa.large_binary() if self._has_tokens else pa.large_string()
                array = pa.Array.from_buffers(kind, len(offsets) - 1, buffers)
                self._texts[handle] = (Texts.from_encoded if self._has_tokens else Texts.from_arrow)(array)
            return self._texts[handle]

    def close(self) -> None:
        """Close the file, and delete it unless it must be kept."""
        self._texts.clear()
        self._map = None
        self._file.close()
        if not self._is_kept:
            self._path.unlink(missing_ok=True)


def write_all(file: io.RawIOBase, data: memoryview) -> None:
    """Write all bytes, in several calls if needed."""
    while data:
        data = data[file.write(data) or 0 :]
