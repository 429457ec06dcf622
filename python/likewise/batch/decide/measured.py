"""The single loop that measures candidates: for decisions, lists of pairs, and stored pairs."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise.batch.decide.verification import Verifier
from likewise.batch.search.search import Candidates, Search, ranges_of_candidates
from likewise.job.context import Timing


@dataclass(frozen=True, eq=False)
class Block:
    """Consecutive later positions, and the measured similarities of their pairs."""

    # Range of the positions
    low: int
    high: int
    # Pairs, measured from later to earlier document; if `is_turned`, the two are swapped
    pairs: Candidates
    # Similarity of each matching pair; NaN for others
    similarity: NDArray[np.float64]
    # Whether these are the pairs of the previous block in the opposite direction
    is_turned: bool = False

    def matching(self) -> tuple[Candidates, NDArray[np.float64]]:
        """Return the matching pairs and their similarities."""
        hits = ~np.isnan(self.similarity)
        return self.pairs.select(hits), self.similarity[hits]


@dataclass(frozen=True, eq=False)
class MeasuredRange:
    """A range of later positions."""

    high: int
    # Number of distinct pairs before any filter
    num_considered: int
    # Positions in order, measured lazily, since decisions on one block save measurements of the next
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
    """Yield consecutive ranges of later positions with their measured candidates."""
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
