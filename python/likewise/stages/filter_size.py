"""Filter size: the number of bits that Bloom filters need, from the largest feature set."""

import threading
from collections.abc import Sequence

from likewise import _native
from likewise.recipe.fields import MAX_FILTER_BITS
from likewise.recipe.methods import Bloom
from likewise.recipe.recipe import Recipe

# Bits of one vector register.
_STEP = 512


def propose_filter_bits(largest: int, num_hashes: int = 1) -> int:
    """Return the number of filter bits for feature sets of up to `largest` features, counted with weights.

    The number is twice `largest` times `num_hashes`, rounded up to a multiple of 512, and at most 65,536: the largest
    set then fills two fifths of its filter, and all others less. If a set has more than 32,768 features times hashes,
    it fills its filter more, which makes comparisons less precise.

    Examples
    --------
    >>> propose_filter_bits(900), propose_filter_bits(0)
    (2048, 512)
    """
    return min(MAX_FILTER_BITS, max(1, -(-2 * largest * num_hashes // _STEP)) * _STEP)


class FilterSize:
    """Finds the largest feature set, batch by batch."""

    def __init__(self, recipe: Recipe, filters: Bloom) -> None:
        self._rules = recipe.feature_rules
        self._num_hashes = filters.num_hashes
        self._largest = 0
        self._lock = threading.Lock()

    def add(self, texts: _native.Texts, *, threads: int = 1) -> None:
        """Add texts. Safe from several threads at once."""
        found = _native.largest_set(texts, self._rules, threads=threads)
        with self._lock:
            self._largest = max(found, self._largest)

    def finish(self) -> int:
        """Return the proposed number of bits."""
        return propose_filter_bits(self._largest, self._num_hashes)


def with_filter_bits(recipe: Recipe, batches: Sequence[_native.Texts], *, threads: int) -> Recipe:
    """Return the recipe with a filter size, which is proposed from these texts if the recipe names none."""
    match recipe.sketch:
        case Bloom(filter_bits=None) as filters:
            size = FilterSize(recipe, filters)
            for batch in batches:
                size.add(batch, threads=threads)
            return recipe.replace(filter_bits=size.finish())
        case _:
            return recipe
