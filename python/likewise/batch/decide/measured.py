"""The one loop in which candidates are measured: for decisions, for lists of pairs, for stored pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.batch.budget.timing import Timing
from likewise.batch.decide.verification import Verifier
from likewise.batch.search.search import Candidates, Search, ranges_of_candidates


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive later positions, and what was measured of their pairs.

    Parameters
    ----------
    low, high : int
        The positions.
    pairs : Candidates
        Measured from the later to the earlier one; where `is_turned`, from what is called later here.
    similarity : ndarray of shape (m,), float64
        Of each pair that matches, NaN of the others.
    is_turned : bool
        Whether these are the pairs of the block before, the other way round.
    """

    low: int
    high: int
    pairs: Candidates
    similarity: NDArray[np.float64]
    is_turned: bool = False

    def matching(self) -> tuple[Candidates, NDArray[np.float64]]:
        """Return the pairs that match, and their similarity."""
        hits = ~np.isnan(self.similarity)
        return self.pairs.select(hits), self.similarity[hits]


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """A range of later positions.

    Parameters
    ----------
    high : int
        Where it ends.
    num_considered : int
        Distinct pairs before any filter.
    blocks : iterator of Block
        Its positions in order, measured as they are asked for: what is decided of one spares measures of the next.
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
    """Yield consecutive ranges of later positions, with their candidates measured.

    Parameters
    ----------
    search : Search
        Finds the candidates.
    verifier : Verifier
        Measures them.
    num_positions : int
        Later positions go up to here.
    timing : Timing
        Takes the seconds, those of measuring under `stage`.
    max_pairs : int
        Pairs of a range, about.
    states : ndarray of shape (positions,), uint8, optional
        A view of what is decided: pairs with a removed earlier document are not measured.
    first : int
        The first later position.
    both_ways : bool
        Whether each block comes a second time with its pairs turned: for measures that know a direction.

    Yields
    ------
    MeasuredRange
        All blocks of a range are to be taken before the next.
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
