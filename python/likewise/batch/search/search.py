"""What every search gives: candidate pairs of positions, a range of later positions at a time."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.batch.budget.timing import Timing

_FIRST_RANGE = 256
_RANGE = 16384
# Each range costs a few bits a position, so that of very many documents ranges are longer.
_MOST_RANGES = 2048
# Pairs decided at once: few enough that documents removed among them spare measurements of the next.
_PAIRS_AT_ONCE = 131072


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


class NoSearch:
    """No candidates: what matches has collapsed already (method exact)."""

    num_capped = num_crowded = 0

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return no pairs."""
        nothing = np.zeros(0, np.uint32)
        return Candidates(nothing, nothing, None, 0, high)


def ranges_of_candidates(
    search: Any,  # noqa: ANN401 - of one of six kinds
    num_positions: int,
    states: Callable[[], NDArray[np.uint8] | None],
    timing: Timing,
    max_pairs: int,
    first: int = 0,
) -> Iterator[tuple[int, int, Candidates]]:
    """Yield consecutive ranges of later positions from `first` on with their candidates: (low, high, pairs).

    Ranges are small at first, while nothing is decided yet, then larger, and small again where pairs stand dense:
    documents of one template that are near each other and do not match would be thousands of pairs each. The next
    range is guessed from the last, and where it holds more the search stops. How they are cut is seen in no result.
    """
    low, size = first, _FIRST_RANGE
    while low < num_positions:
        with timing.wall("candidates"):
            found = search.candidates(low, min(low + size, num_positions), states(), max_pairs)
        yield low, found.end, found
        size = min(size * 2, max(_RANGE, num_positions // _MOST_RANGES))
        if len(found):
            size = min(size, max(1, (found.end - low) * max_pairs // len(found)))
        low = found.end
