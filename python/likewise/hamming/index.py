"""The Hamming index: fingerprints that come and go, and all within k bits of any, exactly."""

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.checks import check_integer, num_threads, take_bytes
from likewise.errors import InvalidParameter
from likewise.hamming.build import BuiltOutOfCore
from likewise.hamming.file import read_hamming_file, write_hamming_file
from likewise.hamming.ids import RowIds
from likewise.hamming.matches import Matches, mask_number, native_set, with_empty
from likewise.hamming.rows import MAX_ROWS, FingerprintRows, take_one, take_rows
from likewise.markup import facts
from likewise.recipe.recipe import Recipe


class HammingIndex(BuiltOutOfCore):
    """Fingerprints, and for any fingerprint all of them within a radius: exact, in microseconds, at a few bytes each.

    Parameters
    ----------
    fingerprints : Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int, optional
        What it holds at first; an int is one of 64 bits. Of :class:`~likewise.Sketches` the recipe is kept, and empty
        texts match empty texts only.
    ids : sequence of str or int, or Arrow data, optional
        An id for each, no two the same: text, or whole numbers of 64 bits, signed. Rows, the numbers of insertion from
        0, where None. ``False``: not even rows are kept; queries give the fingerprints found, each once, and nothing
        can be added or removed.
    within : int
        Greatest radius of a query.
    memory : float or str, optional
        Bytes that the tables may take, as a number or as text (``"4GB"``); four times the fingerprints where None.
    bits : int, optional
        Width of a fingerprint, a multiple of 32 from 32 to 256; 64 a word where None.
    plan : PlannedSearch, or sequence of (mask, radius), optional
        Keys of the tables; the cheapest plan for the fingerprints at hand where None. Keys that are not complete
        within `within` are refused; no key at all is the scan.
    threads : int, optional
        Threads of each call; all processors where None.

    Raises
    ------
    InvalidParameter
        If a parameter is out of range, an id comes twice, or no plan fits `memory`.
    RecipeMismatch
        If sketches of another recipe are added or looked for.

    Notes
    -----
    Tables under a directory, by the plan of :func:`~likewise.hamming.plan.plan_hamming`; new fingerprints wait in a
    tail that is scanned and are merged into larger tables (Bentley, Saxe, 1980).
    Any number of threads may search and change one index.

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
        fingerprints: Any = None,  # noqa: ANN401 - Sketches, Arrow data or array-like
        ids: Any = None,  # noqa: ANN401 - sequences, Arrow data, False
        within: int = 3,
        memory: float | str | None = None,
        *,
        bits: int | None = None,
        plan: Any = None,  # noqa: ANN401 - a planned search or keys
        threads: int | None = None,
    ) -> None:
        taken = take_rows(np.zeros(0, np.uint64) if fingerprints is None else fingerprints, bits, may_stay=True)
        self._threads = num_threads(threads)
        self._recipe = taken.recipe
        self._bits = taken.bits
        self._with_rows = ids is not False
        if not self._with_rows and taken.empty_rows.size:
            raise InvalidParameter("ids", "an index without rows cannot represent empty texts; remove them")
        self._empty_rows = taken.empty_rows
        within = check_integer("within", within, 0, taken.bits)
        self._ids = RowIds(None if ids is False else ids, taken.num_rows, self._holds)
        self._native = native_set(
            taken,
            within,
            with_rows=self._with_rows,
            plan=plan,
            memory_bytes=None if memory is None else take_bytes("memory", memory, 0),
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
        """Leave: nothing is held that would have to be given back."""

    @property
    def within(self) -> int:
        """Greatest radius of a query."""
        return self._native.within

    @property
    def bits(self) -> int:
        """Width of a fingerprint."""
        return self._bits

    @property
    def recipe(self) -> Recipe | None:
        """What made the fingerprints, where that is known."""
        return self._recipe

    @property
    def stats(self) -> dict[str, Any]:
        """Sizes: rows, distinct fingerprints, bytes of the tables, bytes per fingerprint, keys, how crowded they are.

        ``largest_bucket`` is the most entries that share a place of a table's directory; ``most_candidates`` the most
        fingerprints that one query was compared with so far, over all tables and what is scanned, 0 before the first
        query of this process. Large buckets are refined by further bits, so it may be far below the sum of the buckets.
        Of an index that grew into several segments it is a bound: the most of a piece of a batch in each, added.
        """
        facts: dict[str, Any] = dict(self._native.facts())
        num_distinct = sum(facts["segment_distinct"])
        facts["keys"] = [(mask_number(mask), radius) for mask, radius in self._native.keys]
        facts["bytes_per_fingerprint"] = facts["table_bytes"] / num_distinct if num_distinct else 0.0
        facts["row_bytes_per_fingerprint"] = facts["row_bytes"] / num_distinct if num_distinct else 0.0
        facts["num_empty"] = len(self._empty_rows)
        return facts

    def query(
        self,
        fingerprint: Any,  # noqa: ANN401 - an integer or words
        within: int | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return the rows (or ids) within a radius of one fingerprint, and their distances.

        Parameters
        ----------
        fingerprint : int, or array of words
            What to look for.
        within : int, optional
            Radius in bits; that of the index where None.

        Returns
        -------
        rows : ndarray of shape (m,)
            As ``Matches.rows``.
        distances : ndarray of shape (m,), uint16
            Bits that differ.

        Raises
        ------
        InvalidParameter
            If the radius is above that of the index.
        """
        _, rows, distances = self._search(take_one(fingerprint, self._bits, self._recipe), within, 1)
        return rows, distances

    def query_batch(
        self,
        fingerprints: Any,  # noqa: ANN401 - Sketches, Arrow data or array-like
        within: int | None = None,
    ) -> Matches:
        """Return the rows (or ids) within a radius of each fingerprint.

        Parameters
        ----------
        fingerprints : Sketches, Arrow data, or array of shape (q,) or (q, words), uint64
            What to look for. Of sketches, empty texts find the empty texts.
        within : int, optional
            Radius in bits; that of the index where None.

        Returns
        -------
        Matches
            Offsets, rows, distances.

        Raises
        ------
        InvalidParameter
            If the radius is above that of the index, or the widths differ.
        RecipeMismatch
            If sketches were made by another recipe.
        """
        taken = self._taken(fingerprints)
        found = self._search(taken.words, within, self._threads)
        return found if not taken.empty_rows.size else with_empty(found, taken, self._ids.of_rows(self._empty_rows))

    def nearest(
        self,
        fingerprint: Any,  # noqa: ANN401 - an integer or words
        num: int,
    ) -> tuple[NDArray[Any], NDArray[np.uint16]]:
        """Return the `num` nearest rows (or ids) in ascending order of distance, then row.

        Parameters
        ----------
        fingerprint : int, or array of words
            What to look for.
        num : int
            How many; all where there are fewer.

        Returns
        -------
        rows : ndarray of shape (m,)
            As ``Matches.rows``.
        distances : ndarray of shape (m,), uint16
            Bits that differ.

        Notes
        -----
        The radius grows until enough are found; beyond that of the index everything is compared: some nanoseconds a
        fingerprint, and 48 bytes of memory for each of `num`. Ctrl-C ends it. Empty texts are not near anything.
        """
        num = check_integer("num", num, 1, MAX_ROWS)
        _, rows, codes, distances = self._native.nearest(take_one(fingerprint, self._bits, self._recipe), num)
        return self._named(rows, codes), np.asarray(distances)

    def join(
        self,
        fingerprints: Any,  # noqa: ANN401 - Sketches, Arrow data or array-like
        within: int | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[Any], NDArray[np.uint16]]:
        """Return all pairs of a fingerprint given and one of the index within a radius.

        Parameters
        ----------
        fingerprints : Sketches, Arrow data, or array of shape (q,) or (q, words), uint64
            The other side.
        within : int, optional
            Radius in bits; that of the index where None.

        Returns
        -------
        others : ndarray of shape (m,), int64
            Positions in `fingerprints`, ascending.
        rows : ndarray of shape (m,)
            As ``Matches.rows``.
        distances : ndarray of shape (m,), uint16
            Bits that differ.
        """
        offsets, rows, distances = self.query_batch(fingerprints, within)
        return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets)), rows, distances

    def add(
        self,
        fingerprints: Any,  # noqa: ANN401 - an integer, Sketches, Arrow data or array-like
        ids: Any = None,  # noqa: ANN401 - sequences or Arrow data
    ) -> NDArray[np.int64]:
        """Insert fingerprints and return their rows.

        Parameters
        ----------
        fingerprints : int, Sketches, Arrow data, array of shape (n,) or (n, words), uint64, or list of int
            What to insert.
        ids : sequence of str or int, or Arrow data, optional
            Their ids, if the index has ids. An id that stands in the index is refused; one that was removed may come
            again.

        Returns
        -------
        ndarray of shape (n,), int64
            Their rows.

        Raises
        ------
        InvalidParameter
            If the widths differ, ids are missing or not wanted, an id comes twice (naming the first), or the index
            keeps no rows. Nothing is changed then.
        RecipeMismatch
            If sketches were made by another recipe.

        Notes
        -----
        The first call with ids costs 0.2 us and 12 bytes for each id there is, for knowing them again; without ids
        there is nothing to know.
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

    def remove(self, rows: Any) -> int:  # noqa: ANN401 - rows or ids
        """Remove rows (or ids) and return how many there were.

        Parameters
        ----------
        rows : int, str, sequence of these, or Arrow data
            Rows; ids where the index has ids. What is not there counts for nothing.

        Returns
        -------
        int
            Rows removed.

        Raises
        ------
        InvalidParameter
            If they are something else, a mask for instance, or the index keeps no rows. Nothing is removed then.
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
        """Write the index to one file, complete under its name or not at all.

        Parameters
        ----------
        path : str or Path
            The file; one that is there is replaced, and of a symbolic link the file it names.

        Raises
        ------
        InvalidInput, OSError
            If something that is no regular file has the name, or the system refuses.
        """
        with self._ids.changing():
            write_hamming_file(
                self._native,
                Path(path),
                recipe=self._recipe,
                empty_rows=self._empty_rows,
                num_rows=self._ids.num_rows,
                with_rows=self._with_rows,
                ids=self._ids.column(),
            )

    @classmethod
    def open(cls, path: str | Path, *, verify: bool = False, threads: int | None = None) -> Self:
        """Open a file that :meth:`save` wrote; tables are mapped, not read.

        Parameters
        ----------
        path : str or Path
            The file. It must not be changed while the index lives; replacing it, as `save` does, is harmless.
        verify : bool
            Whether every block is checked now, not when a search first reads it (which fails if it is damaged).
        threads : int, optional
            Threads of each call; all processors where None.

        Returns
        -------
        HammingIndex
            As it was; changes stay in memory until it is saved.

        Raises
        ------
        InvalidInput
            If the file is damaged or no Hamming index, saying where.
        """
        native, recipe, empty_rows, num_rows, with_rows, ids = read_hamming_file(Path(path), verify=verify)
        index = cls.__new__(cls)
        index._threads = num_threads(threads)
        index._recipe, index._bits, index._with_rows = recipe, native.bits, with_rows
        index._native, index._empty_rows = native, empty_rows
        index._ids = RowIds(ids, num_rows, index._holds, is_checked=True)
        return index

    def _holds(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which rows are there."""
        return np.asarray(self._native.holds(rows.astype(np.uint32))).view(bool) | np.isin(rows, self._empty_rows)

    def _taken(self, fingerprints: Any) -> FingerprintRows:  # noqa: ANN401
        return take_rows(fingerprints, self._bits, recipe=self._recipe)

    def _search(self, words: NDArray[np.uint64], within: int | None, threads: int) -> Matches:
        within = self._native.within if within is None else check_integer("within", within, 0, self._bits)
        offsets, rows, codes, distances = self._native.search(words, within, threads=threads)
        return Matches(np.asarray(offsets), self._named(rows, codes), np.asarray(distances))

    def _named(self, rows: _native.Array, codes: _native.Array) -> NDArray[Any]:
        if self._with_rows:
            return self._ids.of_rows(np.asarray(rows))
        found = np.asarray(codes)
        return found if self._bits <= 64 else found.reshape(-1, -(-self._bits // 64))
