"""Choice of the candidate search for a recipe."""

import math

import numpy as np

from likewise import _native
from likewise.batch.read.documents import Collapsed, Documents
from likewise.batch.search.bands import BandSearch, PrefixSearch
from likewise.batch.search.search import NoSearch, Search
from likewise.job.options import RunContext
from likewise.progress import Warned
from likewise.recipe.fields import EXCERPT_MEASURES
from likewise.recipe.methods import Bloom, Exact, MinHash, Shingles, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe

# Fewer documents say too little about unrelated ones.
_FEWEST = 20
_NUM_PAIRS = 1 << 16
# Quantile that gives the spread: near-duplicates are a smaller share of all pairs in all but the smallest collections.
_LOW, _LOW_DEVIATIONS = 0.1, 1.2815515655446004
# Expected number of unrelated documents within the radius of each document, from which the run warns.
_MOST_UNRELATED = 0.1

# Searches that take longer are announced.
_LONG_SECONDS = 60.0


def background_warning(documents: Documents, collapsed: Collapsed, near: SimHashDistance) -> str | None:
    """Return a warning if the radius includes unrelated documents, by the lower tail of random pairs, or None."""
    num = len(collapsed.order)
    if num < _FEWEST:
        return None
    random = np.random.default_rng(num)
    a, b = (collapsed.order[random.integers(0, num, _NUM_PAIRS)] for _ in range(2))
    distinct = a != b
    distances = np.asarray(_native.distances(documents.sketches, near.bits, a[distinct], b[distinct]))
    median, low = (float(value) for value in np.quantile(distances, [0.5, _LOW]))
    deviation = max(0.5, (median - low) / _LOW_DEVIATIONS)
    unrelated = (num - 1) * 0.5 * math.erfc((median - near.within - 0.5) / deviation / math.sqrt(2.0))
    if unrelated < _MOST_UNRELATED:
        return None
    return (
        f"two documents drawn at random differ in {median:.0f} of {near.bits} bits (median; a tenth of the pairs in at "
        f"most {low:.0f}), too close to the radius of {near.within}: expect unrelated documents among the removals; "
        "use --weights none, a larger --shingle or a lower --within, or compare texts with --threshold"
    )


def open_search(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
    *,
    exact_from: float | None = None,
) -> Search:
    """Return the search of a resolved recipe; warn about a distance search that is slow or finds unrelated documents.

    `exact_from` is the minimum similarity of pairs of documents with full buckets, if not what the recipe asks.
    """
    if isinstance(recipe.sketch, SimHashDistance):
        warning = background_warning(documents, collapsed, recipe.sketch)
        if warning is not None:
            context.progress(Warned(warning))
    match recipe.sketch:
        case Exact():
            return NoSearch()
        case Shingles():
            return PrefixSearch(documents, collapsed, recipe, context.threads)
        case Bloom() as filters:
            from likewise.batch.search.bloom import BloomSearch

            return BloomSearch(documents, collapsed, recipe, filters, context.threads)
        case MinHash() as signature:
            if recipe.measure in EXCERPT_MEASURES:
                context.progress(
                    Warned(
                        f"MinHash bands rarely bring texts of different sizes together, so most pairs by "
                        f"{recipe.measure} are missed; method shingles finds all of them"
                    )
                )
            return BandSearch(documents, collapsed, recipe, signature, context.threads, exact_from)
        case SimHash() as near:
            from likewise.batch.search.distance import DistanceSearch

            search = DistanceSearch(documents, collapsed, recipe, context.threads)
            if search.predicted_seconds > _LONG_SECONDS:
                context.progress(
                    Warned(
                        f"comparing all fingerprints within {near.within} of {near.bits} bits takes about "
                        f"{search.predicted_seconds:,.0f} s on {context.threads} threads"
                    )
                )
            return search
