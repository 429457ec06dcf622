"""Which search a recipe asks for."""

from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.batch.search.bands import BandSearch, BitBandSearch
from likewise.batch.search.bloom import BloomSearch
from likewise.batch.search.distance import open_distance_search
from likewise.batch.search.prefix import PrefixSearch
from likewise.batch.search.search import NoSearch, Search
from likewise.progress import Progress, Warned
from likewise.recipe.recipe import Recipe

# A search that takes longer is announced.
_LONG_SECONDS = 60.0


def open_search(
    documents: Documents,
    collapsed: Collapsed,
    recipe: Recipe,
    threads: int,
    progress: Progress,
    *,
    exact_from: float | None = None,
) -> Search:
    """Return the search of a resolved recipe; a distance search that will take long is announced.

    From `exact_from` on pairs of documents with full buckets are found, where it is not the recipe's threshold.
    """
    if recipe.method == "exact":
        return NoSearch()
    if recipe.method == "shingles":
        return PrefixSearch(documents, collapsed, recipe, threads)
    if recipe.method == "bloom":
        return BloomSearch(documents, collapsed, recipe, threads)
    if recipe.method == "minhash":
        return BandSearch(documents, collapsed, recipe, threads, exact_from)
    if recipe.bands is not None:
        return BitBandSearch(documents, collapsed, recipe, threads)
    search = open_distance_search(documents, collapsed, recipe, threads)
    if search.predicted_seconds > _LONG_SECONDS:
        advice = "; --recall 0.95 compares far fewer pairs" if recipe.is_distance_only else ""
        progress(
            Warned(
                f"comparing all fingerprints within {recipe.within} of {recipe.bits} bits takes about "
                f"{search.predicted_seconds:,.0f} s on {threads} threads{advice}"
            )
        )
    return search
