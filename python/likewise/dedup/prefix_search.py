"""Candidate pairs by the rarest features of documents: every pair that may reach the threshold, none missing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.dedup.candidates import Candidates
from likewise.dedup.collapse import Collapsed
from likewise.dedup.documents import Documents
from likewise.recipe import Recipe

# Documents of about so many bytes are read again at once, for each thread.
_BYTES_A_THREAD = 8 << 20


class PrefixSearch:
    """Candidates by an exact join of the feature sets (docs/concepts/shingle-sets.md).

    Texts are read again, some megabytes at a time (for containment twice); what stays is the prefix of each document.
    """

    num_capped = 0

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        assert documents.rarity is not None
        self._threads = threads
        num_positions = len(collapsed.order)
        self._join = _native.PrefixJoin(
            num_positions,
            recipe.feature_rules,
            documents.rarity,
            measure=recipe.measure,
            threshold=recipe.similarity_threshold,
        )
        rows = np.sort(collapsed.order.astype(np.int64))
        positions = np.empty(len(documents), np.uint32)
        positions[collapsed.order] = np.arange(num_positions, dtype=np.uint32)
        with ThreadPoolExecutor(threads, thread_name_prefix="likewise-prefix") as pool:
            if self._join.needs_marks:
                for _ in each_part(pool, documents, rows, threads, lambda _, texts: self._join.mark(texts)):
                    pass
            for _ in each_part(
                pool, documents, rows, threads, lambda rows, texts: self._join.add(positions[rows], texts)
            ):
                pass
        self._join.finish()

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, up to so many; removed earlier ones are left out."""
        later, earlier, end = self._join.candidates_up_to(low, high, states, max_pairs, threads=self._threads)
        return Candidates(np.asarray(later), np.asarray(earlier), None, len(later), end)


Result = TypeVar("Result")


def each_part(
    pool: ThreadPoolExecutor,
    documents: Documents,
    rows: NDArray[np.int64],
    threads: int,
    work: Callable[[NDArray[np.int64], _native.Texts], Result],
) -> Iterator[Result]:
    """Call `work` with some rising rows and their texts until all had their turn, on several threads.

    Yields
    ------
    result
        What it returned, in the order of the rows; some megabytes of texts are read at a time.
    """

    def read_and_work(some: NDArray[np.int64], read: Callable[[], _native.Texts]) -> Result:
        return work(some, read())

    for chunk in _chunks(documents, rows, threads):
        parts = documents.texts(chunk, threads)
        for job in [pool.submit(read_and_work, chunk[part], read) for part, read in parts]:
            yield job.result()


def _chunks(documents: Documents, rows: NDArray[np.int64], threads: int) -> Iterator[NDArray[Any]]:
    """Cut rows where their lengths add up to what is read at once."""
    ends = np.cumsum(documents.lengths[rows].astype(np.int64))
    start = 0
    while start < len(rows):
        before = int(ends[start - 1]) if start else 0
        stop = int(np.searchsorted(ends, before + _BYTES_A_THREAD * threads, "right"))
        stop = max(stop, start + 1)
        yield rows[start:stop]
        start = stop
