"""Warning if the radius is close to the distances of unrelated fingerprints."""

import math

import numpy as np

from likewise import _native
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.recipe.methods import SimHashDistance

# Fewer documents say too little about unrelated ones.
_FEWEST = 20
_NUM_PAIRS = 1 << 16
# Quantile that gives the spread: near-duplicates are a smaller share of all pairs in all but the smallest collections.
_LOW, _LOW_DEVIATIONS = 0.1, 1.2815515655446004
# Expected number of unrelated documents within the radius of each document, from which the run warns.
_MOST_UNRELATED = 0.1


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
