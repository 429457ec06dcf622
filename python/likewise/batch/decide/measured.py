"""The single loop that measures candidates: for decisions, lists of pairs, and stored pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.batch.budget.timing import Timing
from likewise.batch.decide.verification import Verifier
from likewise.batch.search.search import Candidates, Search, ranges_of_candidates


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive later positions, and the measured similarities of their pairs.

    Parameters
    ----------
    low, high : int
        Range of the positions.
    pairs : Candidates
        Pairs, measured from later to earlier document; if `is_turned`, the two are swapped.
    similarity : ndarray of shape (m,), float64
        Similarity of each matching pair; NaN for others.
    is_turned : bool
        Whether these are the pairs of the previous block in the opposite direction.
    """

    low: int
    high: int
    pairs: Candidates
    similarity: NDArray[np.float64]
    is_turned: bool = False

    def matching(self) -> tuple[Candidates, NDArray[np.float64]]:
        """Return the matching pairs and their similarities."""
        hits = ~np.isnan(self.similarity)
        return self.pairs.select(hits), self.similarity[hits]


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """A range of later positions.

    Parameters
    ----------
    high : int
        End of the range.
    num_considered : int
        Number of distinct pairs before any filter.
    blocks : iterator of Block
        Positions in order, measured lazily, since decisions on one block save measurements of the next.
    """

    high: int
    num_considered: int
    blocks: Iterator[Block]


def measured(
    search: Search,
    verifier: Verifier,
    num_positions: int,
    timing: Timing,
    max_pairs: int,
    *,
    states: NDArray[np.uint8] | None = None,
    first: int = 0,
    both_ways: bool = False,
    stage: str = "verification",
) -> Iterator[MeasuredRange]:
    """Yield consecutive ranges of later positions with their measured candidates.

    Parameters
    ----------
    search : Search
        Finds the candidates.
    verifier : Verifier
        Measures the candidates.
    num_positions : int
        End of the later positions.
    timing : Timing
        Receives seconds; those of measuring under `stage`.
    max_pairs : int
        Approximate number of pairs per range.
    states : ndarray of shape (positions,), uint8, optional
        A view of the current verdicts: pairs with a removed earlier document are not measured.
    first : int
        The first later position.
    both_ways : bool
        Whether each block is yielded a second time with its pairs swapped, for directed measures.

    Yields
    ------
    MeasuredRange
        All blocks of a range must be consumed before the next range.
    """
    for low, high, candidates in ranges_of_candidates(search, num_positions, states, timing, max_pairs, first):
        with timing.wall(stage):
            are_held = verifier.hold(candidates)

        def measure(pairs: Candidates, *, are_held: bool = are_held) -> NDArray[np.float64]:
            with timing.wall(stage):
                return verifier.matches(pairs, are_held=are_held, states=states)

        blocks = _blocks(candidates, low, high, measure, both_ways=both_ways)
        yield MeasuredRange(high, candidates.num_considered, blocks)


def _blocks(
    candidates: Candidates,
    low: int,
    high: int,
    measure: Callable[[Candidates], NDArray[np.float64]],
    *,
    both_ways: bool,
) -> Iterator[Block]:
    for block_low, block_high, which in candidates.blocks(low, high):
        pairs = candidates.select(which)
        yield Block(block_low, block_high, pairs, measure(pairs))
        if both_ways:
            turned = Candidates(pairs.earlier, pairs.later, pairs.distance, 0, pairs.end)
            yield Block(block_low, block_high, turned, measure(turned), is_turned=True)
