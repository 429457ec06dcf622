"""What every search returns: candidate pairs of positions, a range of later positions at a time."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.batch.budget.timing import Timing

_FIRST_RANGE = 256
_RANGE = 16384
# Each range costs a few bits a position, so that of very many documents ranges are longer.
_MOST_RANGES = 2048
# Pairs decided at once: few enough that documents removed among them spare measurements of the next.
_PAIRS_AT_ONCE = 131072
# An exact join stops here until they are decided: where many documents match each other, most are removed as soon as
# some are decided, and the join meets every one that is not. With 65,536 pairs 30,000 documents, half of them from five
# forms, took a third longer.
PAIRS_BETWEEN_VERDICTS = 1 << 14


@dataclass(frozen=True, eq=False)
class Candidates:
    """Candidate pairs, sorted by (later, earlier).

    Parameters
    ----------
    later, earlier : ndarray of shape (m,), uint32
        Positions.
    distance : ndarray of shape (m,), uint32, optional
        Hamming distances; None for bands.
    num_considered : int
        Distinct pairs before any filter (bands), or those listed.
    end : int
        Later positions from here on were not looked at.
    """

    later: NDArray[np.uint32]
    earlier: NDArray[np.uint32]
    distance: NDArray[np.uint32] | None
    num_considered: int
    end: int

    def __len__(self) -> int:
        return len(self.later)

    def select(self, which: slice | NDArray[np.bool_]) -> "Candidates":
        """Return some of the pairs."""
        distance = None if self.distance is None else self.distance[which]
        return Candidates(self.later[which], self.earlier[which], distance, self.num_considered, self.end)

    def blocks(self, low: int, high: int) -> list[tuple[int, int, slice]]:
        """Cut the positions low..high into consecutive ranges of not too many pairs: (low, high, pairs)."""
        blocks = []
        start = 0
        while len(self) - start > _PAIRS_AT_ONCE:
            # All pairs of one later position stay together.
            last = self.later[start + _PAIRS_AT_ONCE]
            stop = int(np.searchsorted(self.later, last, "left"))
            if stop <= start:
                stop = int(np.searchsorted(self.later, last, "right"))
            if stop >= len(self):
                break
            middle = int(self.later[stop])
            blocks.append((low, middle, slice(start, stop)))
            low, start = middle, stop
        blocks.append((low, high, slice(start, len(self))))
        return blocks


_NONE = np.zeros(0, np.uint32)


class Search(ABC):
    """Candidate pairs of the positions of a run; what a search lacks of these stands here.

    Attributes
    ----------
    can_begin_late : bool
        Whether candidates of later positions may be asked for without those of earlier ones. A run that continues then
        begins behind the verdicts that it finds.
    """

    can_begin_late: bool = True

    @property
    def num_capped(self) -> int:
        """Documents that met a full last level, once for each band."""
        return 0

    @property
    def num_crowded(self) -> int:
        """Number of documents that reached a full bucket."""
        return 0

    @property
    def joined(self) -> NDArray[np.uint32]:
        """The positions, rising, among which an exact join beside the search finds every pair from the threshold on."""
        return _NONE

    @property
    def predicted_seconds(self) -> float:
        """About how long the search takes; 0 where that is not known beforehand."""
        return 0.0

    @abstractmethod
    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return pairs whose later position is in low..high, and where that ends.

        Parameters
        ----------
        low, high : int
            Later positions. Ranges are asked for one after the other.
        states : ndarray of shape (positions,), uint8, optional
            What is decided: pairs whose earlier document is removed are left out.
        max_pairs : int
            Where more are found the range ends earlier, after at least one position.
        """

    def pass_over(self, high: int) -> None:
        """Take positions up to high as earlier ones only, in place of asking for their candidates."""
        return

    def in_buckets(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return candidates as :meth:`candidates` does, without those of :attr:`joined` that only the join finds."""
        return self.candidates(low, high, states, max_pairs)


class NoSearch(Search):
    """No candidates: what matches has collapsed already (method exact)."""

    can_begin_late = False

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return no pairs."""
        return Candidates(_NONE, _NONE, None, 0, high)


def ranges_of_candidates(
    search: Search,
    num_positions: int,
    states: NDArray[np.uint8] | None,
    timing: Timing,
    max_pairs: int,
    first: int = 0,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions from `first` on with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided yet, then larger, and small again where pairs stand dense:
    documents of one template that are near each other and do not match would be thousands of pairs each. The next
    range is guessed from the last, and where it holds more the search stops. How they are cut is seen in no result.
    States are a view of what is decided while the ranges are gone through.
    """
    low, size = first, _FIRST_RANGE
    while low < num_positions:
        with timing.wall("candidates"):
            found = search.candidates(low, min(low + size, num_positions), states, max_pairs)
        yield low, found.end, found
        size = min(size * 2, max(_RANGE, num_positions // _MOST_RANGES))
        if len(found):
            size = min(size, max(1, (found.end - low) * max_pairs // len(found)))
        low = found.end
