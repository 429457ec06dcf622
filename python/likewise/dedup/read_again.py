"""Texts of many documents read again, some megabytes at a time, on several threads."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.dedup.documents import Documents

# Documents of about so many bytes are read again at once, for each thread.
_BYTES_A_THREAD = 8 << 20


def reading_pool(threads: int) -> ThreadPoolExecutor:
    """Return the threads that read texts again for a join."""
    return ThreadPoolExecutor(threads, thread_name_prefix="likewise-prefix")


def each_part(
    pool: ThreadPoolExecutor,
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[slice, _native.Texts], None],
) -> None:
    """Call `work` with slices of `rows`, which rise, and their texts until all had their turn, on several threads."""

    def read_and_work(some: slice, read: Callable[[], _native.Texts]) -> None:
        work(some, read())

    for chunk in _chunks(documents, rows, threads):
        first = chunk.start
        parts = documents.texts(rows[chunk], threads)
        for job in [
            pool.submit(read_and_work, slice(first + part.start, first + part.stop), read) for part, read in parts
        ]:
            job.result()


def _chunks(documents: Documents, rows: NDArray[np.int64], threads: int) -> Iterator[slice]:
    """Cut rows where their lengths add up to what is read at once."""
    ends = np.cumsum(documents.lengths[rows].astype(np.int64))
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BYTES_A_THREAD * threads, "right"))
        stop = max(stop, start + 1)
        yield slice(start, stop)
        start = stop
