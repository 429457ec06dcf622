"""Candidate pairs by the rarest features of documents: every pair that may reach the threshold."""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents, on_each_part, reading_pool
from likewise.batch.search.search import PAIRS_BETWEEN_VERDICTS, Candidates, Search
from likewise.recipe.recipe import Recipe


class PrefixSearch(Search):
    """Candidates by an exact join of the feature sets (docs/concepts/shingle-sets.md), whose texts are read again."""

    can_begin_late = False

    def __init__(self, documents: Documents, collapsed: Collapsed, recipe: Recipe, threads: int) -> None:
        assert documents.rarity is not None
        self._threads = threads
        num_positions = len(collapsed.order)
        join = _native.PrefixJoin(
            num_positions,
            recipe.feature_rules,
            documents.rarity,
            measure=recipe.measure,
            threshold=recipe.similarity_threshold,
            siblings=recipe.siblings is not None,
        )
        rows = np.sort(collapsed.order.astype(np.int64))
        positions = np.empty(len(documents), np.uint32)
        positions[collapsed.order] = np.arange(num_positions, dtype=np.uint32)
        with reading_pool(threads) as pool:
            if join.needs_marks:
                on_each_part(pool, documents, rows, threads, lambda _, texts: join.mark(texts))
            on_each_part(pool, documents, rows, threads, lambda some, texts: join.add(positions[rows[some]], texts))
        self._join = join.finish(threads=threads)

    def pass_over(self, high: int) -> None:
        """Add documents to the lists as earlier ones only."""
        self._join.pass_over(high)

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        if states is not None:
            max_pairs = min(max_pairs, PAIRS_BETWEEN_VERDICTS)
        return Candidates.of(self._join.candidates(low, high, states, max_pairs, threads=self._threads))
