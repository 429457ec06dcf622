"""A small in-memory index that searches with an amplified family."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter
from likewise.theory.family import Amplified, Family


class Neighbors(NamedTuple):
    """Results of a search, sorted by (query, distance, row).

    Parameters
    ----------
    queries, rows : ndarray of shape (m,), int64
        Row of the query, row in the index.
    distances : ndarray of shape (m,), float64
        Exact distances.
    num_candidates : int
        Number of pairs that shared a bucket and were measured.
    """

    queries: NDArray[np.int64]
    rows: NDArray[np.int64]
    distances: NDArray[np.float64]
    num_candidates: int


class LSHIndex:
    """An in-memory index of vectors, sets or sequences, with hash tables of a family.

    Parameters
    ----------
    family : Family
        ``leaf.all_of(rows).any_of(bands)``, or a part of this; :func:`amplified_for` chooses one. Each draw of the OR
        is a table.
    seed : int
        Seed for drawing the functions.

    Raises
    ------
    InvalidParameter
        If the family is a different cascade. Tables are an OR of ANDs.

    Notes
    -----
    The distances of all returned neighbors are exact. A neighbor is found with the probability that :meth:`recall`
    returns. The index takes about 100 bytes per row and table, plus the rows themselves. Use it for up to about 100,000
    vectors of your own. For documents, use :func:`likewise.dedup` or :class:`likewise.HammingIndex`.

    Examples
    --------
    >>> import numpy as np
    >>> from likewise.theory import LSHIndex, PStableFamily, amplified_for
    >>> index = LSHIndex(amplified_for(PStableFamily(2, width=4.0), 1.0, recall=0.99, num_functions=64))
    >>> index.add([[0, 0], [0, 1], [30, 30]]).tolist()
    [0, 1, 2]
    >>> index.query([[0, 0.1]], within=1.0).rows.tolist()
    [0, 1]
    """

    def __init__(self, family: Family, *, seed: int = 0) -> None:
        bands = family if isinstance(family, Amplified) and family.mode == "any" else family.any_of(1)
        rows = bands.base if isinstance(bands.base, Amplified) and bands.base.mode == "all" else bands.base.all_of(1)
        if isinstance(rows.base, Amplified):
            raise InvalidParameter("family", "tables are an OR of ANDs; pass leaf.all_of(rows).any_of(bands)")
        self.family = family
        self._num_bands, self._num_rows = bands.num, rows.num
        self._hashes = family.draw(seed)
        self._tables: list[dict[bytes, list[int]]] = [{} for _ in range(bands.num)]
        self._parts: list[NDArray[Any]] = []
        self._num_held = 0

    def __len__(self) -> int:
        return self._num_held

    def recall(self, within: float) -> float:
        """Return P(found), or a lower bound, for rows at this distance or less from a query."""
        return self.family.least_probability(within)

    def add(self, data: ColumnData) -> NDArray[np.int64]:
        """Add rows and return their row numbers."""
        rows = self.family.rows(data)
        first, self._num_held = self._num_held, self._num_held + len(rows)
        self._parts.append(rows)
        for table, keys in zip(self._tables, self._keys(rows), strict=True):
            for row, key in enumerate(keys, first):
                table.setdefault(key, []).append(row)
        return np.arange(first, self._num_held, dtype=np.int64)

    def query(self, data: ColumnData, *, within: float) -> Neighbors:
        """Find the rows within a distance of each query.

        Parameters
        ----------
        data : as `add`
            The queries.
        within : float
            Maximum distance.

        Returns
        -------
        Neighbors
            The neighbors, with exact distances. Each neighbor is found with probability :meth:`recall` or more.
        """
        self.family.check_distance(within)
        rows = self.family.rows(data)
        held = self._held()
        found: list[set[int]] = [set() for _ in range(len(rows))]
        for table, keys in zip(self._tables, self._keys(rows), strict=True):
            for query, key in enumerate(keys):
                found[query].update(table.get(key, ()))
        parts = [(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))]
        for query, candidates in enumerate(found):
            if not candidates:
                continue
            near = np.array(sorted(candidates), np.int64)
            distances = self.family.distances(rows[query], held[near])
            hits = distances <= within
            near, distances = near[hits], distances[hits]
            order = np.lexsort((near, distances))
            parts.append((np.full(len(order), query, np.int64), near[order], distances[order]))
        queries, which, distances = (np.concatenate(column) for column in zip(*parts, strict=True))
        return Neighbors(queries, which, distances, sum(map(len, found)))

    def _held(self) -> NDArray[Any]:
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0] if self._parts else np.zeros((0, 0))

    def _keys(self, rows: NDArray[Any]) -> list[list[bytes]]:
        values = self._hashes(rows).reshape(len(rows), self._num_bands, self._num_rows)
        return [[row.tobytes() for row in values[:, band]] for band in range(self._num_bands)]
