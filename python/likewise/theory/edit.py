"""A family for edit distance, through a random embedding into Hamming distance."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from likewise import _native
from likewise.arrays import ColumnData
from likewise.errors import InvalidParameter, check_integer
from likewise.theory.family import Family, HashFunctions, drawn

_MAX_LENGTH = 65_535
_MAX_SYMBOL = 2**32 - 1
# Padding after the end of a sequence.
_END = -1
_OUTPUTS_PER_SYMBOL = 3


@dataclass(frozen=True)
class EditFamily(Family):
    """Positions of a random embedding, for the edit distance of sequences (CGK).

    The embedding reads a sequence of up to n symbols in 3n steps. Each step writes the symbol under the head. A random
    bit for this step and symbol decides whether the head moves on. Both sequences of a pair are read with the same
    bits. So one head moves relative to the other only where their symbols differ, until both are aligned again. A
    function is a random embedding and one of its 3n positions. Its value is the symbol written at that position.

    Parameters
    ----------
    length : int
        Maximum length of a sequence, n.

    Notes
    -----
    **Distortion.** Sequences at edit distance k are embedded at a Hamming distance of at most O(k**2) with probability
    2/3 or more. The distance is at least k/2 unless a sequence is not read to its end, which has probability
    2 exp(-n/6) or less.

    **Collision.** If the heads read different symbols, the edit distance of the rest of both sequences decreases with
    probability 1/4 or more, and increases by 1 with probability 1/4 or less. Otherwise it does not change. So the
    number of differing positions is at most, in distribution, the time T that a lazy random walk (up, down: 1/4 each)
    takes to first reach k, with ``P(T > t) = P(-k <= B - t < k)``, B binomial with parameters 2t and 1/2. Hence ``p1 =
    1 - sum of P(T > t) over t < 3n / 3n``, about ``1 - 1.3 k / sqrt(n)``, and ``p2 = 1 - k / 6n + 2 exp(-n/6)``. These
    bounds apply to each pair. They separate only if d2 is more than about ``8 d1 sqrt(n)``. Unrelated texts collide far
    less often than p2.

    **Cost.** 3n steps over n_rows x num_functions heads: 1 s for 100 sequences of length 1,000 and 32 functions.

    Source: Chakraborty, Goldenberg, Koucky, Streaming algorithms for embedding and computing edit distance in the low
    distance regime, STOC 2016.

    Examples
    --------
    >>> family = EditFamily(1000)
    >>> found = family.sensitivity(1, 600)
    >>> round(found.p1, 3), round(found.p2, 3)
    (0.959, 0.9)
    """

    length: int

    def __post_init__(self) -> None:
        check_integer("length", self.length, 1, _MAX_LENGTH)

    @property
    def num_positions(self) -> int:
        """Length of an embedded sequence, 3n."""
        return _OUTPUTS_PER_SYMBOL * self.length

    @property
    def max_distance(self) -> float:
        """`length`."""
        return float(self.length)

    @property
    def is_exact(self) -> bool:
        """False: the embedding preserves bounds, not distances."""
        return False

    def least_probability(self, distance: float) -> float:
        """Return p1 for edit distances up to `distance`."""
        return float(1.0 - self.slip_probabilities(math.ceil(self.check_distance(distance))).sum() / self.num_positions)

    def greatest_probability(self, distance: float) -> float:
        """Return p2 for edit distances of `distance` or more."""
        unread = 2.0 * math.exp(-self.length / 6.0)
        return min(1.0, 1.0 - self.check_distance(distance) / 2.0 / self.num_positions + unread)

    def slip_probabilities(self, distance: int) -> NDArray[np.float64]:
        """Return bounds of P(more than t positions of the embeddings differ) for t = 0, 1, ..., 3n - 1, float64.

        They are P(T > t) of the walk for an edit distance; exact for an insertion before distinct symbols, far from the
        end.
        """
        time = np.arange(self.num_positions, dtype=np.float64)
        if distance == 0:
            return np.zeros(len(time))
        # Binomial probabilities at the middle, C(2t, t) / 4^t, then outward one by one.
        chance = np.cumprod(np.concatenate([[1.0], (2 * time[:-1] + 1) / (2 * time[:-1] + 2)]))
        total = chance.copy()
        for step in range(1, distance + 1):
            chance = chance * np.maximum(0.0, time - step + 1) / (time + step)
            total += chance if step == distance else 2 * chance
        return np.minimum(1.0, total)

    def rows(self, data: ColumnData) -> NDArray[Any]:
        """Return :meth:`Family.rows`: int64 of shape (n, length), with -1 after the end.

        Parameters
        ----------
        data : list of str, list of sequences of int, or ndarray of shape (n, length)
            Symbols are the scalars of a text, or numbers from 0.
        """
        if isinstance(data, np.ndarray) and data.ndim == 2 and data.shape[1] == self.length:
            if data.dtype.kind not in "biu":
                raise InvalidParameter("data", f"symbols must be integers, not {data.dtype}")
            return self._checked(data)
        if isinstance(data, str | bytes) or not isinstance(data, Iterable):
            raise InvalidParameter("data", f"{data!r:.40} is not a list of sequences")
        sequences = [_symbols(sequence) for sequence in data]
        rows = np.full((len(sequences), self.length), _END, np.int64)
        for row, symbols in zip(rows, sequences, strict=True):
            if len(symbols) > self.length:
                raise InvalidParameter(
                    "data", f"the sequence has length {len(symbols)}; the family has length {self.length}"
                )
            row[: len(symbols)] = symbols
        return self._checked(rows)

    def _checked(self, rows: NDArray[Any]) -> NDArray[np.int64]:
        is_end = rows == _END
        if (rows < _END).any() or (rows > _MAX_SYMBOL).any() or (is_end[:, :-1] & ~is_end[:, 1:]).any():
            raise InvalidParameter(
                "data", f"symbols must be from 0 to {_MAX_SYMBOL}; -1 is allowed only as padding at the end"
            )
        return rows.astype(np.int64)

    def draw(self, seed: int = 0, *, num: int | None = None) -> HashFunctions:
        """Return :meth:`Family.draw`: each function has its own embedding."""
        random, count = drawn(seed, num)
        positions = random.integers(0, self.num_positions, count)
        keys = random.integers(0, 2**64, count, dtype=np.uint64)

        def hashes(data: ArrayLike) -> NDArray[np.int64]:
            rows = self.rows(data)
            values = np.full((len(rows), count), _END, np.int64)
            for position, symbols in enumerate(self._embedded(rows, keys, int(positions.max(initial=0)) + 1)):
                here = positions == position
                values[:, here] = symbols[:, here]
            return values

        return hashes

    def embed(self, data: ColumnData, seed: int = 0, *, num: int = 1) -> NDArray[np.int64]:
        """Return random embeddings of sequences, as for :meth:`rows`: int64 of shape (n, num, 3 * length).

        Each of the `num` embeddings has its own bits. Values are symbols; -1 after the end of a sequence.
        """
        rows = self.rows(data)
        random, count = drawn(seed, num)
        keys = random.integers(0, 2**64, count, dtype=np.uint64)
        return np.stack(list(self._embedded(rows, keys, self.num_positions)), axis=2)

    def _embedded(
        self, rows: NDArray[np.int64], keys: NDArray[np.uint64], num_steps: int
    ) -> Iterator[NDArray[np.int64]]:
        """Yield the symbols of each step: int64 of shape (n, number of keys)."""
        heads = np.zeros((len(rows), len(keys)), np.int64)
        padded = np.concatenate([rows, np.full((len(rows), 1), _END, np.int64)], axis=1)
        offsets = np.arange(num_steps, dtype=np.uint64) * _ODD
        for step in range(num_steps):
            symbols = np.take_along_axis(padded, heads, axis=1)
            yield symbols
            x = (symbols.astype(np.uint64) + np.uint64(2)) * _ODD ^ (keys + offsets[step])
            for factor in (np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)):
                x = (x ^ (x >> np.uint64(33))) * factor
            moves = np.asarray(x >> np.uint64(63), np.int64)
            heads = np.minimum(heads + moves, self.length)

    def distances(self, row: NDArray[Any], rows: NDArray[Any]) -> NDArray[np.float64]:
        """Return exact edit distances (Levenshtein)."""
        own = row[row != _END].astype(np.uint32)
        others = [other[other != _END].astype(np.uint32) for other in rows]
        return np.array([_native.align_sequences(own, other)[0] for other in others], np.float64)


def _symbols(sequence: object) -> list[int]:
    """Return the symbols of a text or of a sequence of nonnegative integers."""
    if isinstance(sequence, str):
        return [ord(symbol) for symbol in sequence]
    if not isinstance(sequence, Sequence | np.ndarray):
        raise InvalidParameter("data", f"{sequence!r:.40} is not text or a sequence of integers")
    return [check_integer("data", symbol, 0, _MAX_SYMBOL) for symbol in sequence]


_ODD = np.uint64(0x9E3779B97F4A7C15)
