"""Arrow files in the checkpoint directory, written and read by Python workers, and joins of their fingerprints.

Spark gives workers no files in addition to their rows, and Spark Connect has no broadcast variables. So workers use the
directory that all machines share, directly if it is a path, and through fsspec if it is a URL.
"""

import os
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ArrowTable, frozen
from likewise.errors import InvalidInput
from likewise.hamming.blocks import streamed
from likewise.io.remote import is_remote, local_path, put_file, store_of

# Maximum number of fingerprints of one call.
ROWS_AT_ONCE = 1 << 20
_TEMPORARY = ".tmp-"


class Held:
    """Cache of the last value in a worker process. It has one entry, since it takes most of the memory."""

    def __init__(self) -> None:
        self._key: tuple[Any, ...] | None = None
        self._value: Any = None

    def get(self, key: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return the value for a key, from the cache or from `make`."""
        if key != self._key:
            # Free the old value first, since both may not fit in memory.
            self._key, self._value = None, None
            self._value = make()
            self._key = key
        return self._value


# Worker processes run many tasks.
HELD = Held()


def hits(
    stored: NDArray[np.uint64], words: NDArray[np.uint64], bits: int, within: int
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]]:
    """Yield all pairs within the radius, in parts: rows of `words`, rows of the stored ones, and distances."""
    flat = [frozen(np.ascontiguousarray(side).reshape(-1)) for side in (words, stored)]
    num_words = -(-bits // 64)

    def read(low: int, high: int) -> NDArray[np.uint64]:
        return flat[0][low * num_words : high * num_words]

    low = 0
    for high, (rows, others, distances) in streamed(read, range(len(words)), flat[1], bits, within=within, threads=1):
        yield rows + low, others, distances.astype(np.int32)
        low = high


def write_table(directory: str, name: str, table: ArrowTable) -> None:
    """Write an Arrow table to a file, which is complete under its name or absent."""
    import pyarrow as pa

    if is_remote(directory):
        from tempfile import TemporaryDirectory

        with TemporaryDirectory(prefix="likewise-") as folder:
            path = Path(folder) / "table.arrow"
            with pa.OSFile(str(path), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
                writer.write_table(table)
            store, root = store_of(directory)
            put_file(store, path, f"{root}/{name}")
        return
    folder_path = Path(local_path(directory))
    folder_path.mkdir(parents=True, exist_ok=True)
    # Two attempts of one task may write at the same time.
    temporary = folder_path / f"{_TEMPORARY}{uuid.uuid4().hex}"
    try:
        with pa.OSFile(str(temporary), "wb") as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        os.replace(temporary, folder_path / name)  # noqa: PTH105 - renames into place
    finally:
        temporary.unlink(missing_ok=True)


def read_table(directory: str, name: str) -> ArrowTable:
    """Return the table of a file, memory-mapped if the directory is a path, so that processes share its pages."""
    import pyarrow as pa

    try:
        if is_remote(directory):
            store, root = store_of(directory)
            with store.open(f"{root}/{name}", "rb") as source:
                return pa.ipc.open_file(pa.py_buffer(source.read())).read_all()
        return pa.ipc.open_file(pa.memory_map(str(Path(local_path(directory)) / name))).read_all()
    except FileNotFoundError as error:
        raise InvalidInput(
            f"this worker does not find {directory}/{name}, which another wrote; use a checkpoint directory that all "
            "machines share under one path, or a URL"
        ) from error
