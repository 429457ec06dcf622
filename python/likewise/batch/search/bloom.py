"""Candidate pairs by shared bits of Bloom filters: all pairs are compared, or those that bands nominate.

If there are many documents, the run switches to bands and records them in its recipe, so that the recipe always states
the search that was used.
"""

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.search import Candidates, Search
from likewise.progress import Progress, Warned
from likewise.recipe.methods import NOMINATING_SLOTS, Bloom
from likewise.recipe.recipe import Recipe

# With more documents, comparing all pairs takes minutes: 2e10 pairs of 2,048 bits take one core a minute.
MOST_COMPARED = 200_000
_SLOT_BYTES = 2


def with_bands_where_many(recipe: Recipe, documents: Documents, progress: Progress) -> Recipe:
    """Return the recipe with bands that nominate pairs of filters, if it has none and there are many documents."""
    filters = recipe.sketch
    if not isinstance(filters, Bloom) or filters.bands is not None or len(documents) <= MOST_COMPARED:
        return recipe
    chosen = filters.nominating_bands(recipe.asked)
    progress(
        Warned(
            f"{len(documents):,} documents: with more than {MOST_COMPARED:,} filters, only pairs that share one of "
            f"{chosen['bands']} bands of {chosen['rows']} slots are compared"
        )
    )
    return recipe.replace(**chosen)


class BloomSearch(Search):
    """Candidates by shared bits (docs/concepts/bloom-filters.md)."""

    def __init__(self, collapsed: Collapsed, recipe: Recipe, filters: Bloom, threads: int) -> None:
        self._threads, documents = threads, collapsed.documents
        self._join = _native.BloomJoin(
            documents.sketches,
            filters.num_bits,
            collapsed.order,
            measure=recipe.measure,
            threshold=recipe.similarity_threshold,
            recall=filters.recall_of_filters,
        )
        self._buckets: _native.Searcher | None = None
        if filters.bands is not None:
            bands, rows = filters.banding
            signatures = _native.bloom_signatures(
                documents.sketches,
                filter_bits=filters.num_bits,
                num_slots=NOMINATING_SLOTS,
                seed=recipe.seed,
                threads=threads,
            )
            self._buckets = _native.search_bands(
                signatures, NOMINATING_SLOTS, _SLOT_BYTES, collapsed.order, bands=bands, rows=rows, threads=threads
            )
            self.num_capped, self.num_crowded = self._buckets.num_capped, len(np.asarray(self._buckets.crowded))

    def candidates(self, low: int, high: int, states: NDArray[np.uint8] | None, max_pairs: int) -> Candidates:
        """Return at most about `max_pairs` pairs with later positions in low..high, without removed earlier ones."""
        search = self._join.searcher() if self._buckets is None else self._buckets
        found = search.candidates(low, high, states, max_pairs, threads=self._threads)
        later, earlier = np.asarray(found.later), np.asarray(found.earlier)
        pairs = Candidates(later, earlier, None, found.num_considered, found.end)
        if self._buckets is None:
            return pairs
        passes = self._join.passes(later, earlier, threads=self._threads)
        return pairs.select(np.asarray(passes).astype(bool))
