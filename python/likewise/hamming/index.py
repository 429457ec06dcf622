"""The Hamming index: an exact search for all stored fingerprints within k bits of a query, with updates."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter, check_integer, num_threads, take_bytes
from likewise.hamming.build import BuiltOutOfCore, Described, read_hamming_file
from likewise.hamming.ids import RowIds
from likewise.hamming.matches import (
    MAX_ROWS,
    FingerprintRows,
    Matches,
    public_names,
    take_one,
    take_rows,
    with_empty,
)
from likewise.io.html import facts
from likewise.recipe.recipe import Recipe


class HammingIndex(BuiltOutOfCore):
    """An exact index of fingerprints. A query finds all fingerprints within a radius, in microseconds.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, array, or list of int, optional
        The initial fingerprints: uint64 of shape (n,) or (n, words), or uint8 of shape (n, bits / 8) as in faiss. An
        int is one fingerprint of 64 bits. With :class:`~likewise.Sketches`, the index keeps the recipe, and empty texts
        match only empty texts.
    ids : sequence of str or int, or Arrow data, optional
        A unique id for each fingerprint: text or signed 64-bit integers. By default, fingerprints are identified by
        their rows, numbered from 0 in order of insertion. With ``False``, the index does not store rows either: queries
        return the fingerprints found, each once, and fingerprints cannot be added or removed.
    within : int
        Maximum radius of a query.
    memory : float or str, optional
        Maximum size of the tables in bytes, as a number or as text (``"4GB"``). By default, four times the size of the
        fingerprints.
    bits : int, optional
        Width of a fingerprint, a multiple of 32 from 32 to 256. By default, 64 bits per word.
    threads : int, optional
        Number of threads for each call. By default, all processors are used.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range, an id appears twice, or no plan fits in `memory`.
    RecipeMismatch
        If sketches made with a different recipe are added or searched for.

    Notes
    -----
    The tables follow the plan of :func:`~likewise.hamming.plan.plan_hamming`. New fingerprints are appended to a tail
    that is scanned, and later merged into larger tables (Bentley, Saxe, 1980).
    Any number of threads can search and change one index.

    Examples
    --------
    >>> import numpy as np
    >>> index = HammingIndex(np.array([0, 7, 255], np.uint64), ids=["a", "b", "c"])
    >>> ids, distances = index.query(3)
    >>> ids.tolist(), distances.tolist()
    (['a', 'b'], [2, 1])
    """

    def __init__(
        self,
        fingerprints: ColumnData = None,
        ids: ColumnData = None,
        within: int = 3,
        memory: float | str | None = None,
        *,
        bits: int | None = None,
        threads: int | None = None,
    ) -> None:
        taken = take_rows(np.zeros(0, np.uint64) if fingerprints is None else fingerprints, bits)
        self._threads = num_threads(threads)
        self._recipe = taken.recipe
        self._bits = taken.bits
        self._with_rows = ids is not False
        if not self._with_rows and taken.empty_rows.size:
            raise InvalidParameter("ids", "an index without rows cannot represent empty texts; remove them")
        self._empty_rows = taken.empty_rows
        within = check_integer("within", within, 0, taken.bits)
        self._ids = RowIds(None if ids is False else ids, taken.num_rows, self._holds)
        memory_bytes = None if memory is None else float(take_bytes("memory", memory, 0))
        with public_names(table_bytes="memory"):
            self._native = _native.HammingSet(
                taken.words,
                taken.bits,
                within=within,
                rows=taken.rows,
                with_rows=self._with_rows,
                memory_bytes=memory_bytes,
                threads=self._threads,
            )

    def __len__(self) -> int:
        return len(self._native) + len(self._empty_rows)

    def __repr__(self) -> str:
        return f"<HammingIndex of {len(self):,} fingerprints: {self.bits} bits, within {self.within}>"

    def _repr_html_(self) -> str:
        stats = self.stats
        values = {
            "fingerprints": f"{len(self):,}",
            "bits": self.bits,
            "within": self.within,
            "keys": len(stats["keys"]),
            "tables": f"{stats['table_bytes']:,} bytes",
        }
        return facts("HammingIndex", values)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: the index has no resources to release."""

    @property
    def within(self) -> int:
        """Maximum radius of a query."""
        return self._native.within

    @property
    def bits(self) -> int:
        """Width of a fingerprint, in bits."""
        return self._bits

    @property
    def recipe(self) -> Recipe | None:
        """The recipe of the fingerprints, if known."""
        return self._recipe

    @property
    def stats(self) -> dict[str, Any]:
        """Rows, distinct fingerprints, bytes of the tables, bytes per fingerprint, keys, and sizes of buckets.

        ``largest_bucket`` is the largest number of entries that share a slot of a table's directory.
        ``most_candidates`` is the largest number of fingerprints that one query was compared with so far, over all
        tables and the scanned tail. It is 0 before the first query of this process. Large buckets are refined by
        further bits, so it may be far below the sum of the buckets. For an index with several segments, it is an upper
        bound: the sum of the largest numbers for a part of a batch in each segment.
        """
        facts: dict[str, Any] = dict(self._native.facts())
        num_distinct = sum(facts["segment_distinct"])
        # A mask is given as words.
        keys = self._native.keys
        facts["keys"] = [(sum(word << 64 * i for i, word in enumerate(mask)), radius) for mask, radius in keys]
        facts["bytes_per_fingerprint"] = facts["table_bytes"] / num_distinct if num_distinct else 0.0
        facts["row_bytes_per_fingerprint"] = facts["row_bytes"] / num_distinct if num_distinct else 0.0
        facts["num_empty"] = len(self._empty_rows)
        return facts

    def query(
        self,
        fingerprint: Any,
        within: int | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return the rows (or ids) within a radius of one fingerprint, an int or array of words, and their distances.

        The result is that of :meth:`query_batch` for this fingerprint, without offsets.
        """
        _, rows, distances = self._search(take_one(fingerprint, self._bits, self._recipe), within, 1)
        return rows, distances

    def query_batch(
        self,
        fingerprints: ColumnData,
        within: int | None = None,
    ) -> Matches:
        """Return the rows (or ids) within a radius of each fingerprint.

        Parameters
        ----------
        fingerprints : Sketches, Arrow data, or array of shape (q,) or (q, words), uint64
            The fingerprints to search for. In sketches, empty texts match the empty texts of the index.
        within : int, optional
            Radius in bits. By default, the radius of the index.

        Raises
        ------
        InvalidParameter
            If the radius is larger than that of the index, or the widths differ.
        RecipeMismatch
            If the sketches were made with a different recipe.
        """
        taken = self._taken(fingerprints)
        found = self._search(taken.words, within, self._threads)
        return found if not taken.empty_rows.size else with_empty(found, taken, self._ids.of_rows(self._empty_rows))

    def nearest(
        self,
        fingerprint: Any,
        k: int = 10,
    ) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return the `k` nearest rows (or ids) of one fingerprint, in ascending order of distance, and their distances.

        The radius grows until enough rows are found. Beyond the radius of the index, all fingerprints are compared.
        This takes a few nanoseconds per fingerprint, and 48 bytes of memory for each of the `k` results. Ctrl-C
        interrupts the search. Rows at one distance are in order. Empty texts are not near anything.
        """
        _, rows, distances = self._nearest(take_one(fingerprint, self._bits, self._recipe), k)
        return rows, distances

    def nearest_batch(
        self,
        fingerprints: ColumnData,
        k: int = 10,
    ) -> Matches:
        """Return the `k` nearest rows (or ids) of each fingerprint, in ascending order of distance, then row.

        Fingerprints are given as for :meth:`query_batch`. Each query costs as much as a call of :meth:`nearest`; the
        threads share the queries.
        """
        taken = self._taken(fingerprints)
        found = self._nearest(taken.words, k)
        return found if not taken.empty_rows.size else with_empty(found, taken, found.rows[:0])

    def join(
        self,
        fingerprints: ColumnData,
        within: int | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint16]]:
        """Return all pairs of a given fingerprint and a fingerprint of the index within a radius, as three arrays.

        The first holds positions in `fingerprints`, ascending, int64; the others are those of :meth:`query_batch`.
        """
        offsets, rows, distances = self.query_batch(fingerprints, within)
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), rows, distances

    def add(
        self,
        fingerprints: ColumnData,
        ids: ColumnData = None,
    ) -> NDArray[np.int64]:
        """Insert fingerprints and return their rows, int64 of shape (n,).

        Parameters
        ----------
        fingerprints : int, Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int
            The fingerprints to insert.
        ids : sequence of str or int, or Arrow data, optional
            Their ids, if the index has ids. An id that the index already contains is rejected. The id of a removed
            fingerprint can be used again.

        Raises
        ------
        InvalidParameter
            If the widths differ, ids are missing or not expected, an id appears twice, or the index does not store
            rows. In that case, nothing changes.
        RecipeMismatch
            If the sketches were made with a different recipe.

        Notes
        -----
        The first call with ids takes 0.2 us and 12 bytes for each existing id, to build a lookup table.
        """
        if isinstance(fingerprints, int | np.integer):
            fingerprints = take_one(fingerprints, self._bits, self._recipe).reshape(1, -1)
        taken = self._taken(fingerprints)
        if not self._with_rows:
            raise InvalidParameter("fingerprints", "an index without rows (ids=False) cannot be changed")
        with self._ids.adding(ids, taken.num_rows) as first:
            rows = np.arange(first, first + taken.num_rows, dtype=np.int64)
            kept = rows if taken.rows is None else first + taken.rows.astype(np.int64)
            self._native.insert(taken.words, kept.astype(np.uint32), threads=self._threads)
            if taken.empty_rows.size:
                self._empty_rows = np.concatenate([self._empty_rows, first + taken.empty_rows])
            if taken.num_rows:
                self._recipe = self._recipe or taken.recipe
        return rows

    def remove(self, rows: Any) -> int:
        """Remove rows (or ids) and return how many were removed.

        Parameters
        ----------
        rows : int, str, sequence of these, or Arrow data
            Rows, or ids if the index has ids. Unknown rows and ids are ignored.

        Raises
        ------
        InvalidParameter
            If the type is not supported (a mask, for example), or the index does not store rows. In that case, nothing
            is removed.
        """
        if not self._with_rows:
            raise InvalidParameter("rows", "an index without rows (ids=False) cannot be changed")
        is_one = isinstance(rows, int | str | np.integer)
        with self._ids.changing():
            numbers = self._ids.rows_of([rows] if is_one else rows)
            is_gone = np.isin(self._empty_rows, numbers)
            self._empty_rows = self._empty_rows[~is_gone]
            return self._native.remove(numbers) + int(is_gone.sum())

    def save(self, path: str | Path) -> None:
        """Write the index to one file. The file is renamed into place only when it is complete.

        An existing file is replaced. If the path is a symbolic link, its target is replaced. Raises InvalidInput if the
        path exists but is not a regular file.
        """
        with self._ids.changing():
            about = (self._recipe, self._empty_rows, self._ids.num_rows, self._with_rows, self._ids.column())
            self._native.save(str(path), *Described(*about).stored())

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False, threads: int | None = None) -> Self:
        """Open a file written by :meth:`save`. The tables are memory-mapped; changes stay in memory until saved.

        Parameters
        ----------
        path : str or Path
            The file. It must not be modified while the index is in use. Replacing it, as `save` does, is safe.
        verify : bool
            Whether to check all blocks now. By default, a block is checked when a search first reads it, and the
            search fails if the block is damaged.
        threads : int, optional
            Number of threads for each call. By default, all processors are used.

        Raises
        ------
        InvalidInput
            If the file is damaged or is not a Hamming index. The error names the place.
        """
        native, found = read_hamming_file(Path(path), verify=verify)
        index = cls.__new__(cls)
        index._threads = num_threads(threads)
        index._recipe, index._bits, index._with_rows = found.recipe, native.bits, found.with_rows
        index._native, index._empty_rows = native, found.empty_rows
        index._ids = RowIds(found.ids, found.num_rows, index._holds, is_checked=True)
        return index

    def _holds(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        return np.asarray(self._native.holds(rows.astype(np.uint32))).view(bool) | np.isin(rows, self._empty_rows)

    def _taken(self, fingerprints: ColumnData) -> FingerprintRows:
        return take_rows(fingerprints, self._bits, recipe=self._recipe)

    def _search(self, words: NDArray[np.uint64], within: int | None, threads: int) -> Matches:
        within = self._native.within if within is None else check_integer("within", within, 0, self._bits)
        offsets, rows, codes, distances = self._native.search(words, within, threads=threads)
        return Matches(np.asarray(offsets), self._named(rows, codes), np.asarray(distances))

    def _nearest(self, words: NDArray[np.uint64], k: int) -> Matches:
        k = check_integer("k", k, 1, MAX_ROWS)
        offsets, rows, codes, distances = self._native.nearest(words, k, threads=self._threads)
        return Matches(np.asarray(offsets), self._named(rows, codes), np.asarray(distances))

    def _named(self, rows: _native.Array, codes: _native.Array) -> NDArray[Any]:
        if self._with_rows:
            return self._ids.of_rows(np.asarray(rows))
        found = np.asarray(codes)
        return found if self._bits <= 64 else found.reshape(-1, -(-self._bits // 64))
