"""Texts of many documents read again, some megabytes at a time, on several threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.documents import Documents

Result = TypeVar("Result")

# Approximate bytes of documents read again at once, per thread.
_BYTES_A_THREAD = 8 << 20


def reading_pool(threads: int) -> ThreadPoolExecutor:
    """Return threads for reading texts again for a join."""
    return ThreadPoolExecutor(threads, thread_name_prefix="likewise-prefix")


def each_part(
    pool: ThreadPoolExecutor,
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[slice, _native.Texts], Result],
) -> Iterator[Result]:
    """Call `work` with slices of `rows`, which must be ascending, and their texts, on several threads."""

    def read_and_work(some: slice, read: Callable[[], _native.Texts]) -> Result:
        return work(some, read())

    for chunk in _chunks(documents, rows, threads):
        first = chunk.start
        parts = documents.texts(rows[chunk], threads)
        for job in [
            pool.submit(read_and_work, slice(first + part.start, first + part.stop), read) for part, read in parts
        ]:
            yield job.result()


def on_each_part(
    pool: ThreadPoolExecutor,
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[slice, _native.Texts], None],
) -> None:
    """Call `work` as `each_part` does, ignoring its results."""
    for _ in each_part(pool, documents, rows, threads, work):
        pass


def _chunks(documents: Documents, rows: NDArray[np.int64], threads: int) -> Iterator[slice]:
    """Split rows into chunks of documents that are read at once."""
    ends = np.cumsum(documents.lengths[rows].astype(np.int64))
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BYTES_A_THREAD * threads, "right"))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
