"""Collapsing: documents that no comparison could distinguish become one before pairing.

Documents with equal feature sets (128-bit digests) become one, so that ten thousand copies of a page are one candidate
instead of fifty million pairs. A collapsed document takes the verdict and the evidence of the earlier one. A kept
document between the two may be more similar than the one that the evidence names; the set of kept documents is the
same, and an index behaves in the same way.

Hamming-only recipes also collapse by fingerprint. Fingerprints of texts with few features may be equal by chance, so
pairs with a text of fewer than 64 features are also measured, counting each feature once. Counted in this way, a text
with more than 64 / `short_threshold` features cannot match a short one, so larger texts may collapse by fingerprint
alone.
"""

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.arrays import repeated_keys, slices
from likewise.batch.read.documents import Documents
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY

# Documents processed at once.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Documents in order of priority, with indistinguishable ones merged."""

    # For each row, the row of highest priority among those equal to it
    first: NDArray[np.int64]
    # These first rows in order of priority, without empty documents: position -> row
    order: NDArray[np.uint32]
    # The position of each row's `first`; -1 for empty documents
    position: NDArray[np.int64]
    # Row kept by decision (:attr:`Documents.stays`) that would have collapsed -> row into which it would have
    equal: dict[int, int] = field(default_factory=dict)


def collapse(documents: Documents, recipe: Recipe, ranked: NDArray[np.int64]) -> Collapsed:
    """Collapse equal feature sets; in a Hamming-only run, equal fingerprints, for short texts with equal sets too."""
    num_rows, space = len(documents), documents.room.space
    first_rank = space.zeros(num_rows, np.int64)
    for part in slices(num_rows, _AT_ONCE):
        first_rank[part] = np.arange(part.start, part.stop)
    for later, earlier in repeated_keys(
        lambda part: class_keys(documents, recipe, _as_slice(ranked[part])),
        num_rows,
        num_key_words(recipe),
        documents.room.buckets_bytes,
    ):
        first_rank[later] = earlier
    first = space.zeros(num_rows, np.int64)
    position = space.zeros(num_rows, np.int64)
    order = space.growing(np.uint32)
    equal: dict[int, int] = {}
    for part in slices(num_rows, _AT_ONCE):
        rows = ranked[part]
        firsts = ranked[first_rank[part]]
        if documents.stays is not None:
            alone = (firsts != rows) & documents.stays[rows]
            equal |= dict(zip(rows[alone].tolist(), firsts[alone].tolist(), strict=True))
            firsts = np.where(alone, rows, firsts)
        first[rows] = firsts
        # The best document of a group gets a position, unless it is empty.
        is_placed = (firsts == rows) & (documents.shapes[rows] != EMPTY)
        placed = rows[is_placed]
        position[rows] = -1
        position[placed] = np.arange(len(order), len(order) + len(placed))
        order.append(placed.astype(np.uint32))
    for part in slices(num_rows, _AT_ONCE):
        # A first row already has its position, and is its own first.
        position[part] = position[first[part]]
    return Collapsed(first, order.take(), position, equal)


class Sketched(Protocol):
    """The data of documents that determines which of them collapse; see :class:`Documents`."""

    @property
    def sketches(self) -> NDArray[Any]:
        """Concatenated native sketches."""

    @property
    def num_features(self) -> NDArray[np.uint32]:
        """Number of distinct features."""

    @property
    def digests(self) -> NDArray[np.uint64]:
        """Digests of the feature sets, two words per document."""

    @property
    def shapes(self) -> NDArray[np.uint8]:
        """Full, short or empty."""


def num_key_words(recipe: Recipe) -> int:
    """Return the number of words of the keys that :func:`class_keys` returns."""
    return 3 + (recipe.sketch.num_words if isinstance(recipe.sketch, SimHashDistance) else 0)


def _as_slice(rows: NDArray[np.int64]) -> NDArray[np.int64] | slice:
    """Return consecutive rows as a slice, whose data need not be gathered; other rows unchanged."""
    return slice(int(rows[0]), int(rows[-1]) + 1) if (np.diff(rows) == 1).all() else rows


def class_keys(documents: Sketched, recipe: Recipe, rows: NDArray[np.int64] | slice) -> NDArray[np.uint64]:
    """Return keys of shape (rows, words) that are equal exactly for documents that collapse into one."""
    digests = documents.digests.reshape(-1, 2)[rows]
    is_empty = documents.shapes[rows] == EMPTY
    keys = np.empty((len(digests), num_key_words(recipe)), np.uint64)
    near = recipe.sketch
    if not isinstance(near, SimHashDistance):
        keys[:, :2], keys[:, 2] = digests, is_empty
        return keys
    # Documents with more features cannot pass the short check with any short one (definitions, Decision).
    is_short = near.may_meet_short(documents.num_features[rows])
    keys[:, :-3] = documents.sketches.reshape(-1, near.num_words)[rows]
    keys[:, -3:-1] = np.where(is_short[:, None], digests, np.uint64(0))
    keys[:, -1] = is_empty.astype(np.uint64) * np.uint64(2) + is_short
    return keys
