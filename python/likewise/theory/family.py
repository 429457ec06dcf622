"""Families of hash functions, and their amplification by AND and OR."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter, check_choice, check_integer, fraction_check

# Takes n rows and returns their values: int64 of shape (n, num_functions).
HashFunctions = Callable[[ArrayLike], NDArray[np.int64]]
_MAX_FUNCTIONS = 2**20


class Sensitivity(NamedTuple):
    """The guarantee of a family: (d1, d2, p1, p2).

    Parameters
    ----------
    d1, d2 : float
        Distances, d1 < d2.
    p1 : float
        Two items at distance d1 or less collide with this probability or more.
    p2 : float
        Two items at distance d2 or more collide with this probability or less.
    """

    d1: float
    d2: float
    p1: float
    p2: float

    @property
    def is_sensitive(self) -> bool:
        """Whether p1 > p2; otherwise the family does not separate these distances."""
        return self.p1 > self.p2

    @property
    def rho(self) -> float:
        """``ln(1/p1) / ln(1/p2)``: n**rho tables find a neighbor among n, independent of the number of rows."""
        if not 0.0 < self.p2 < 1.0 or self.p1 <= 0.0:
            return math.nan
        return math.log(self.p1) / math.log(self.p2)


class Family(ABC):
    """A family of hash functions that are drawn at random. Nearer items collide more often."""

    @property
    def num_functions(self) -> int:
        """Number of functions that are drawn together: 1, unless amplified."""
        return 1

    @property
    def leaf(self) -> "Family":
        """The family that is amplified; the family itself if it is not amplified."""
        return self

    @property
    @abstractmethod
    def max_distance(self) -> float:
        """Maximum possible distance, or infinity."""

    @abstractmethod
    def least_probability(self, distance: float) -> float:
        """Return the minimum P(collision) at a distance or less. If :attr:`is_exact`, this is P at the distance."""

    def greatest_probability(self, distance: float) -> float:
        """Return the maximum P(collision) at a distance or more. If :attr:`is_exact`, this is P at the distance."""
        return self.least_probability(distance)

    @property
    def is_exact(self) -> bool:
        """Whether P(collision) is a function of the distance alone, and known."""
        return True

    @abstractmethod
    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return `num` functions drawn at random; by default, :attr:`num_functions`.

        The same seed and NumPy version give the same functions.
        """

    @abstractmethod
    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return data as the array that this family hashes, with one item per row.

        Raises
        ------
        InvalidParameter
            If the family does not support the shape or the values.
        """

    @abstractmethod
    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the distances of one row to each of several rows (as :meth:`rows` returns them)."""

    def combine(self, equal: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which pairs collide, shape (n,), given which of their :attr:`num_functions` values are equal."""
        return np.asarray(equal[:, 0], np.bool_)

    def sensitivity(self, d1: float, d2: float) -> Sensitivity:
        """Return the guarantee of the family for two distances.

        Raises
        ------
        InvalidParameter
            If not ``0 <= d1 < d2 <= max_distance``.

        Examples
        --------
        >>> from likewise.theory import MinHashFamily
        >>> MinHashFamily(100).sensitivity(0.25, 0.75)
        Sensitivity(d1=0.25, d2=0.75, p1=0.75, p2=0.25)
        """
        if not 0 <= as_number("d1", d1) < as_number("d2", d2) <= self.max_distance:
            raise InvalidParameter("d1, d2", f"{d1} and {d2} violate 0 <= d1 < d2 <= {self.max_distance}")
        return Sensitivity(d1, d2, self.least_probability(d1), self.greatest_probability(d2))

    def curve(self, distances: Iterable[float]) -> NDArray[np.float64]:
        """Return P(collision), or its lower bound, at each distance: the S-curve of an amplified family."""
        return np.array([self.least_probability(float(distance)) for distance in distances])

    def all_of(self, num: int) -> "Amplified":
        """Return the AND of `num` independent draws: all must collide. P becomes ``p**num``."""
        return Amplified(self, "all", num)

    def any_of(self, num: int) -> "Amplified":
        """Return the OR of `num` independent draws: one must collide. P becomes ``1 - (1-p)**num``.

        Examples
        --------
        >>> from likewise.theory import MinHashFamily
        >>> steeper = MinHashFamily(100).all_of(4).any_of(4)
        >>> [round(steeper.least_probability(1 - s), 4) for s in (0.2, 0.5, 0.8)]
        [0.0064, 0.2275, 0.8785]
        """
        return Amplified(self, "any", num)

    def collisions(self, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of n pairs collide, given values of the same drawn functions: (n, num_functions), int64."""
        return self.combine(np.asarray(a) == np.asarray(b))

    def check_distance(self, distance: float) -> float:
        """Return a distance of this family, or raise InvalidParameter."""
        if not 0 <= as_number("distance", distance) <= self.max_distance:
            raise InvalidParameter("distance", f"{distance} is not from 0 to {self.max_distance}")
        return float(distance)


@dataclass(frozen=True)
class Amplified(Family):
    """The AND or OR of independent draws from a family, itself amplified or not.

    Parameters
    ----------
    base : Family
        The family to draw from.
    mode : {"all", "any"}
        Whether all draws must collide, or at least one.
    num : int
        Number of draws.
    """

    base: Family
    mode: str
    num: int

    def __post_init__(self) -> None:
        check_choice("mode", self.mode, ("all", "any"))
        check_integer("num", self.num, 1, _MAX_FUNCTIONS)
        check_integer("num_functions", self.num_functions, 1, _MAX_FUNCTIONS)

    @property
    def num_functions(self) -> int:
        """Number of functions of the leaf that are drawn together."""
        return self.num * self.base.num_functions

    @property
    def leaf(self) -> Family:
        """The family that all functions are drawn from."""
        return self.base.leaf

    @property
    def max_distance(self) -> float:
        """Maximum distance of the base family."""
        return self.base.max_distance

    @property
    def is_exact(self) -> bool:
        """Whether the base family is exact."""
        return self.base.is_exact

    def least_probability(self, distance: float) -> float:
        """Return :meth:`Family.least_probability`. Both modes are monotone, so bounds remain valid."""
        return self._of(self.base.least_probability(distance))

    def greatest_probability(self, distance: float) -> float:
        """Return :meth:`Family.greatest_probability`."""
        return self._of(self.base.greatest_probability(distance))

    def _of(self, probability: float) -> float:
        if self.mode == "all":
            return probability**self.num
        # Accurate to the last digits even if p is tiny.
        return 1.0 if probability >= 1.0 else -math.expm1(self.num * math.log1p(-probability))

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw` of the leaf."""
        return self.leaf.draw(seed, num=self.num_functions if num is None else num)

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows` of the leaf."""
        return self.leaf.rows(data)

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return :meth:`Family.distances` of the leaf."""
        return self.leaf.distances(row, rows)

    def combine(self, equal: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return :meth:`Family.combine`."""
        size = self.base.num_functions
        parts = [self.base.combine(equal[:, i * size : (i + 1) * size]) for i in range(self.num)]
        return np.asarray(np.all(parts, axis=0) if self.mode == "all" else np.any(parts, axis=0), np.bool_)


def as_number(name: str, value: object) -> float:
    """Return a number as a float, or raise InvalidParameter."""
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        raise InvalidParameter(name, f"{value!r} is not a number")
    return float(value)


def drawn(seed: int, num: int | None) -> tuple[np.random.Generator, int]:
    """Return a random generator and the number of functions to draw, or raise InvalidParameter."""
    count = 1 if num is None else check_integer("num", num, 1, _MAX_FUNCTIONS)
    return np.random.default_rng(check_integer("seed", seed, 0, 2**64 - 1)), count


def amplified_for(family: Family, distance: float, *, recall: float, num_functions: int) -> Amplified:
    """Return the steepest AND-OR of a plain family that still finds pairs at a distance with probability `recall`.

    It is ``family.all_of(rows).any_of(num_functions // rows)`` with the largest number of rows that reaches the recall,
    from `num_functions` functions. Bands of MinHash signatures are chosen by the same rule.

    Raises
    ------
    InvalidParameter
        If even rows of a single function do not reach the recall, or the family is already amplified.

    Examples
    --------
    >>> from likewise.theory import MinHashFamily
    >>> found = amplified_for(MinHashFamily(100), 0.2, recall=0.95, num_functions=128)
    >>> found.base.num, found.num
    (7, 18)
    """
    if isinstance(family, Amplified):
        raise InvalidParameter("family", "the family is already amplified; pass its leaf")
    fraction_check(zero=False, one=False)("recall", recall)
    check_integer("num_functions", num_functions, 1, _MAX_FUNCTIONS)
    family.check_distance(distance)
    best = None
    for rows in range(1, num_functions + 1):
        found = family.all_of(rows).any_of(num_functions // rows)
        if found.least_probability(distance) < recall:
            break
        best = found
    if best is None:
        raise InvalidParameter("recall", f"{num_functions} functions do not reach {recall} at distance {distance}")
    return best


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
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        held = self._parts[0] if self._parts else np.zeros((0, 0))
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

    def _keys(self, rows: NDArray[Any]) -> list[list[bytes]]:
        values = self._hashes(rows).reshape(len(rows), self._num_bands, self._num_rows)
        return [[row.tobytes() for row in values[:, band]] for band in range(self._num_bands)]
