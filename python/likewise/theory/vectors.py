"""Families for sets, angles, bits and Euclidean distance, over rows of a dense array."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter, check_integer
from likewise.theory.family import Family, HashFunctions, as_number, drawn

_MAX_DIMENSION = 2**24
# Above this, float64 cannot represent all integers.
_MOST_IN_FLOAT = 2**53


@dataclass(frozen=True)
class _VectorFamily(Family):
    """A family over rows of `dimension` numbers."""

    dimension: int

    def __post_init__(self) -> None:
        check_integer("dimension", self.dimension, 1, _MAX_DIMENSION)

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: numbers of shape (n, dimension). A single row may be one-dimensional."""
        try:
            rows = np.atleast_2d(np.asarray(data))
        except ValueError as error:
            raise InvalidParameter("data", f"not an array of numbers: {error}") from error
        if rows.dtype.kind not in "biuf":
            raise InvalidParameter("data", f"rows must contain numbers, not {rows.dtype}")
        if rows.ndim != 2 or rows.shape[1] != self.dimension:
            raise InvalidParameter(
                "data", f"rows of shape {rows.shape} given; expected {self.dimension} numbers per row"
            )
        if not np.isfinite(rows).all():
            raise InvalidParameter("data", "rows must contain only finite numbers")
        return rows


@dataclass(frozen=True)
class MinHashFamily(_VectorFamily):
    """Min-hash for the Jaccard distance of sets: (d1, d2, 1 - d1, 1 - d2)-sensitive.

    A function is a permutation of the `dimension` possible items; its value is the first item that the set contains.
    Rows represent sets as 0 and 1 (or False and True). Distance: 1 - Jaccard similarity.

    Parameters
    ----------
    dimension : int
        Number of possible items of a set.

    Notes
    -----
    Each function takes n x dimension steps. Source: Broder, Charikar, Frieze, Mitzenmacher, Min-wise independent
    permutations, STOC 1998.
    """

    @property
    def max_distance(self) -> float:
        """1: nothing in common."""
        return 1.0

    def least_probability(self, distance: float) -> float:
        """Return 1 - distance."""
        return 1.0 - self.check_distance(distance)

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: bool of shape (n, dimension)."""
        rows = super().rows(data)
        if not ((rows == 0) | (rows == 1)).all():
            raise InvalidParameter("data", "sets must be rows of 0 and 1")
        return rows.astype(np.bool_)

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw`. An empty set has the value `dimension`."""
        random, count = drawn(seed, num)
        orders = [random.permutation(self.dimension) for _ in range(count)]

        def hashes(data: ArrayLike) -> NDArray[np.int64]:
            rows = self.rows(data)
            first = [np.where(rows, order, self.dimension).min(axis=1) for order in orders]
            return np.stack(first, axis=1).astype(np.int64)

        return hashes

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return 1 - Jaccard similarity; 0 for two empty sets."""
        united = (rows | row).sum(axis=1)
        shared = (rows & row).sum(axis=1)
        return np.asarray(np.where(united == 0, 0.0, 1.0 - shared / np.maximum(united, 1)), np.float64)


@dataclass(frozen=True)
class HyperplaneFamily(_VectorFamily):
    """Random hyperplanes for the angle in degrees: (d1, d2, 1 - d1/180, 1 - d2/180)-sensitive.

    A function is a plane through the origin. Its value is the side of the plane that a vector is on.

    Parameters
    ----------
    dimension : int
        Length of a vector.

    Notes
    -----
    Each function takes n x dimension multiplications. Source: Charikar, Similarity estimation techniques from rounding
    algorithms, STOC 2002.
    """

    @property
    def max_distance(self) -> float:
        """180 degrees."""
        return 180.0

    def least_probability(self, distance: float) -> float:
        """Return 1 - degrees / 180."""
        return 1.0 - self.check_distance(distance) / 180.0

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: float64 of shape (n, dimension), without rows of zeros.

        Each row is scaled by a power of two so that its largest absolute value is from 1/2 to 1. This does not change
        its direction, and prevents squares from overflowing.
        """
        rows = super().rows(data).astype(np.float64)
        if len(rows) and not rows.any(axis=1).all():
            raise InvalidParameter("data", "a vector of zeros has no direction")
        _, exponents = np.frexp(np.abs(rows).max(axis=1, keepdims=True, initial=0.0))
        return np.asarray(np.ldexp(rows, -exponents), np.float64)

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw`; values are 0 and 1."""
        random, count = drawn(seed, num)
        normals = random.standard_normal((self.dimension, count))
        return lambda data: (self.rows(data) @ normals > 0).astype(np.int64)

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return angles in degrees, accurate to the last digits even near 0 and 180."""
        # Computed from the two diagonals of the rhombus of unit vectors. Near 0 and 180, the arc cosine would lose half
        # of the digits, and the angle between equal vectors would not be 0.
        units = np.concatenate([row[np.newaxis], rows])
        units = units / np.linalg.norm(units, axis=1, keepdims=True)
        apart, along = (np.linalg.norm(diagonal, axis=1) for diagonal in (units[1:] - units[0], units[1:] + units[0]))
        return np.asarray(np.degrees(2.0 * np.arctan2(apart, along)), np.float64)


@dataclass(frozen=True)
class BitSamplingFamily(_VectorFamily):
    """Bit sampling for the Hamming distance: (d1, d2, 1 - d1/dimension, 1 - d2/dimension)-sensitive.

    A function is a position, and its value is the number at that position. Rows can contain any integers, not only
    bits.

    Parameters
    ----------
    dimension : int
        Number of positions in a row.

    Notes
    -----
    Each function takes n steps. Source: Indyk, Motwani, Approximate nearest neighbors, STOC 1998.
    """

    @property
    def max_distance(self) -> float:
        """`dimension`: all positions differ."""
        return float(self.dimension)

    def least_probability(self, distance: float) -> float:
        """Return 1 - distance / dimension."""
        return 1.0 - self.check_distance(distance) / self.dimension

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: int64 of shape (n, dimension)."""
        rows = super().rows(data)
        most = _MOST_IN_FLOAT if rows.dtype.kind == "f" else 2**63 - 1
        if (rows.size and rows.max() > most) or (rows.dtype.kind == "f" and (rows < -most).any()):
            raise InvalidParameter("data", f"integers beyond {most} are not exact in {rows.dtype}")
        if not (rows == np.floor(rows)).all():
            raise InvalidParameter("data", "rows must contain integers")
        return rows.astype(np.int64)

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw`."""
        random, count = drawn(seed, num)
        places = random.integers(0, self.dimension, count)
        return lambda data: np.asarray(self.rows(data)[:, places], np.int64)

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return the number of differing positions."""
        return np.asarray((rows != row).sum(axis=1), np.float64)


@dataclass(frozen=True)
class PStableFamily(_VectorFamily):
    """Projections on lines divided into intervals, for the Euclidean distance (p-stable, p = 2).

    A function is ``floor((a.x + b) / width)``, a of independent normal numbers and b uniform from 0 to `width`. Two
    vectors at distance c collide with probability ``1 - 2 F(-width/c) - 2 / (sqrt(2 pi) width/c) (1 - exp(-(width/c)**2
    / 2))``, F the normal distribution function.

    Parameters
    ----------
    dimension : int
        Length of a vector.
    width : float
        Width of an interval, in units of the distance; several times the distance at which vectors should collide.

    Notes
    -----
    Each function takes n x dimension multiplications. Source: Datar, Immorlica, Indyk, Mirrokni, Locality-sensitive
    hashing scheme based on p-stable distributions, SCG 2004, section 3.2.

    Examples
    --------
    >>> round(PStableFamily(10, width=4.0).least_probability(1.0), 4)
    0.8005
    """

    width: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < as_number("width", self.width) < math.inf:
            raise InvalidParameter("width", f"{self.width!r} is not above 0")

    @property
    def max_distance(self) -> float:
        """Infinity."""
        return math.inf

    def least_probability(self, distance: float) -> float:
        """Return P(collision) at a Euclidean distance."""
        if self.check_distance(distance) == 0:
            return 1.0
        ratio = self.width / distance
        if ratio == 0:
            return 0.0
        tails = math.erfc(ratio / math.sqrt(2.0))
        # 1 - exp(-x) by expm1: accurate even at large distances, where the ratio is tiny.
        return 1.0 - tails + 2.0 * math.expm1(-ratio * ratio / 2.0) / (math.sqrt(2.0 * math.pi) * ratio)

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw`."""
        random, count = drawn(seed, num)
        lines = random.standard_normal((self.dimension, count))
        starts = random.uniform(0.0, self.width, count)

        def hashes(data: ArrayLike) -> NDArray[np.int64]:
            with np.errstate(over="ignore", invalid="ignore"):
                stretches = np.floor((self.rows(data) @ lines + starts) / self.width)
            if not (np.abs(stretches) <= _MOST_IN_FLOAT).all():
                raise InvalidParameter("data", f"the numbers are too large for width {self.width}; increase the width")
            return stretches.astype(np.int64)

        return hashes

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: float64 of shape (n, dimension)."""
        return super().rows(data).astype(np.float64)

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return Euclidean distances."""
        return np.asarray(np.linalg.norm(rows - row, axis=1), np.float64)
