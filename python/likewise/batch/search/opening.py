"""Choice of the candidate search for a recipe."""

from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.background import background_warning
from likewise.batch.search.bands import BandSearch
from likewise.batch.search.bloom import BloomSearch
from likewise.batch.search.distance import DistanceSearch
from likewise.batch.search.prefix import PrefixSearch
from likewise.batch.search.search import NoSearch, Search
from likewise.job.context import RunContext
from likewise.progress import Warned
from likewise.recipe.fields import EXCERPT_MEASURES
from likewise.recipe.methods import Bloom, Exact, MinHash, Shingles, SimHash, SimHashDistance
from likewise.recipe.recipe import Recipe

# Searches that take longer are announced.
_LONG_SECONDS = 60.0


def open_search(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    context: RunContext,
    *,
    exact_from: float | None = None,
) -> Search:
    """Return the search of a resolved recipe; warn about a distance search that is slow or finds unrelated documents.

    `exact_from` is the minimum similarity of pairs of documents with full buckets, if not the recipe's threshold.
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
            search = DistanceSearch(documents, collapsed, recipe, context.threads)
            if search.predicted_seconds > _LONG_SECONDS:
                context.progress(
                    Warned(
                        f"comparing all fingerprints within {near.within} of {near.bits} bits takes about "
                        f"{search.predicted_seconds:,.0f} s on {context.threads} threads"
                    )
                )
            return search
