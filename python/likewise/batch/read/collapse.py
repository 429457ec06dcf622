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

from likewise.arrays import slices, stable_order
from likewise.batch.read.documents import Documents
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import EMPTY

_MIX = np.uint64(0x9E3779B97F4A7C15)
# Documents processed at once.
_AT_ONCE = 1 << 18


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Documents in order of priority, with indistinguishable ones merged.

    Parameters
    ----------
    first : ndarray of shape (n,), int64
        For each row, the row of highest priority among those equal to it.
    order : ndarray of shape (positions,), uint32
        These first rows in order of priority, without empty documents: position -> row.
    position : ndarray of shape (n,), int64
        The position of each row's `first`; -1 for empty documents.
    equal : dict of int to int
        Row kept by decision (:attr:`Documents.stays`) that would have collapsed -> row into which it would have.
    """

    first: NDArray[np.int64]
    order: NDArray[np.uint32]
    position: NDArray[np.int64]
    equal: dict[int, int] = field(default_factory=dict)


def collapse(documents: Documents, recipe: Recipe, ranked: NDArray[np.int64]) -> Collapsed:
    """Collapse equal feature sets; in a Hamming-only run, equal fingerprints, for short texts with equal sets too.

    Parameters
    ----------
    documents : Documents
        All documents.
    recipe : Recipe
        Determines which rule applies.
    ranked : ndarray of shape (n,), int64
        All rows, best first.

    Returns
    -------
    Collapsed
        Positions for the search.
    """
    num_rows, space = len(documents), documents.room.space
    hashes = space.growing(np.uint64)
    for part in slices(num_rows, _AT_ONCE):
        hashes.append(_hashed(class_keys(documents, recipe, ranked[part])))
    keys = hashes.take()
    entries = stable_order(keys, space)
    first_rank = space.zeros(num_rows, np.int64)
    grouping = _Grouping()
    for part in slices(num_rows, _AT_ONCE):
        some = entries[part]
        first_rank[some] = grouping.firsts(some, keys[some], class_keys(documents, recipe, ranked[some]))
    del entries, keys
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


def class_keys(documents: Sketched, recipe: Recipe, rows: NDArray[np.int64]) -> list[NDArray[np.uint64]]:
    """Return columns of shape (rows,) that are all equal exactly for documents that collapse into one."""
    digests = documents.digests.reshape(-1, 2)[rows]
    is_empty = documents.shapes[rows] == EMPTY
    near = recipe.sketch
    if not isinstance(near, SimHashDistance):
        return [digests[:, 0], digests[:, 1], is_empty.astype(np.uint64)]
    words = documents.sketches.reshape(-1, near.num_words)[rows]
    # Documents with more features cannot pass the short check with any short one (definitions, Decision).
    is_short = near.may_meet_short(documents.num_features[rows])
    kind = is_empty.astype(np.uint64) * np.uint64(2) + is_short
    masked = np.where(is_short[:, None], digests, np.uint64(0))
    return [*(words[:, i] for i in range(near.num_words)), masked[:, 0], masked[:, 1], kind]


def _hashed(columns: list[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashed = (hashed ^ column) * _MIX
        hashed ^= hashed >> np.uint64(29)
    return hashed


class _Grouping:
    """Finds the first entry of each group of equal keys, among entries sorted by hash, ascending within a hash."""

    def __init__(self) -> None:
        # First entry of each key with the last hash so far. More than one key is a collision.
        self._hash: int | None = None
        self._firsts: dict[tuple[int, ...], int] = {}

    def firsts(
        self, entries: NDArray[np.int64], hashes: NDArray[np.uint64], columns: list[NDArray[np.uint64]]
    ) -> NDArray[np.int64]:
        """Return the first entry of each entry's group."""
        goes_on = self._hash is not None and int(hashes[0]) == self._hash
        is_new_hash = np.ones(len(entries), bool)
        is_new_hash[1:] = hashes[1:] != hashes[:-1]
        is_new_key = np.ones(len(entries), bool)
        is_new_key[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
        is_start = is_new_hash | is_new_key
        starts = np.flatnonzero(is_start)
        firsts = np.repeat(entries[starts], np.diff(np.append(starts, len(entries))))
        runs = np.flatnonzero(is_new_hash)
        # Runs of one hash with several keys; the run that continues from before is added below.
        odd = set(np.searchsorted(runs, np.flatnonzero(is_new_key & ~is_new_hash), "right").tolist())
        bounds = np.append(runs, len(entries))

        def key(place: int) -> tuple[int, ...]:
            return tuple(int(column[place]) for column in columns)

        for run in sorted(odd | ({1} if goes_on else set())):
            known = self._firsts if goes_on and run == 1 else {}
            start, end = int(bounds[run - 1]), int(bounds[run])
            if run in odd:
                for place in range(start, end):
                    firsts[place] = known.setdefault(key(place), int(entries[place]))
            else:
                firsts[start:end] = known.setdefault(key(start), int(entries[start]))
            if run == len(runs):
                self._hash, self._firsts = int(hashes[-1]), known
        if len(runs) not in odd and not (goes_on and len(runs) == 1):
            self._hash, self._firsts = int(hashes[-1]), {key(len(entries) - 1): int(firsts[-1])}
        return firsts
