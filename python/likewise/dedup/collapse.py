"""Collapsing: documents that no comparison could tell apart become one before pairing."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from likewise.dedup.documents import Documents
from likewise.recipe import Recipe

# In a distance-only run a document with fewer features is also measured by them.
SHORT_FEATURES = 64
_MIX = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class Collapsed:
    """Documents in order of priority, the indistinguishable ones as one.

    Parameters
    ----------
    first : ndarray of shape (n,), int64
        For each row, the row of highest priority among those equal to it.
    order : ndarray of shape (positions,), uint32
        Such first rows in order of priority, empty documents left out: position -> row.
    position : ndarray of shape (n,), int64
        The position of each row's `first`; -1 for empty documents.
    rank : ndarray of shape (n,), int64
        Place of each row in the order of priority.
    """

    first: NDArray[np.int64]
    order: NDArray[np.uint32]
    position: NDArray[np.int64]
    rank: NDArray[np.int64]


def collapse(documents: Documents, recipe: Recipe, ranked: NDArray[np.int64]) -> Collapsed:
    """Collapse equal feature sets; in a distance-only run equal fingerprints, for short texts equal sets too.

    Parameters
    ----------
    documents : Documents
        All documents.
    recipe : Recipe
        Which rule holds.
    ranked : ndarray of shape (n,), int64
        All rows, best first.

    Returns
    -------
    Collapsed
        Positions for the search.
    """
    num_rows = len(documents)
    is_empty = documents.is_empty
    # The keys, as large as all that comes of them, live no longer than this call.
    groups = _sorted_groups([column[ranked] for column in class_keys(documents, recipe)])
    # Within a group the sort is stable, so that its first entry is the best.
    starts = np.flatnonzero(groups.is_start)
    first_of_entry = np.repeat(groups.entries[starts], np.diff(np.append(starts, num_rows)))
    first_rank = np.empty(num_rows, np.int64)
    first_rank[groups.entries] = first_of_entry
    del first_of_entry, groups, starts
    first = np.empty(num_rows, np.int64)
    first[ranked] = ranked[first_rank]
    del first_rank
    is_first = first[ranked] == ranked
    order = ranked[is_first & ~is_empty[ranked]]
    position = np.full(num_rows, -1, np.int64)
    position[order] = np.arange(len(order))
    rank = np.empty(num_rows, np.int64)
    rank[ranked] = np.arange(num_rows)
    return Collapsed(first, order.astype(np.uint32), position[first], rank)


@dataclass(frozen=True, eq=False)
class _Groups:
    entries: NDArray[np.int64]
    is_start: NDArray[np.bool_]


class Sketched(Protocol):
    """What of documents tells which of them collapse; as :class:`Documents` says."""

    @property
    def sketches(self) -> NDArray[Any]:
        """Native sketches end to end."""

    @property
    def num_features(self) -> NDArray[np.uint32]:
        """Distinct features."""

    @property
    def digests(self) -> NDArray[np.uint64]:
        """Of the feature sets, two words a document."""

    @property
    def is_empty(self) -> NDArray[np.bool_]:
        """Whether each normalised text is empty."""


def class_keys(documents: Sketched, recipe: Recipe) -> list[NDArray[np.uint64]]:
    """Return columns of shape (n,) that are all equal for documents which collapse into one."""
    digests = documents.digests.reshape(-1, 2)
    if not recipe.is_distance_only:
        return [digests[:, 0], digests[:, 1], documents.is_empty.astype(np.uint64)]
    words = documents.sketches.reshape(-1, recipe.num_words)
    assert recipe.short_threshold is not None
    # Documents with more features cannot pass the short check with any short one (definitions, Decision).
    is_short = documents.num_features * recipe.short_threshold < SHORT_FEATURES
    kind = documents.is_empty.astype(np.uint64) * np.uint64(2) + is_short
    masked = np.where(is_short[:, None], digests, np.uint64(0))
    return [*(words[:, i] for i in range(recipe.num_words)), masked[:, 0], masked[:, 1], kind]


def _sorted_groups(columns: list[NDArray[np.uint64]]) -> _Groups:
    """Sort entries by their keys, equal ones in their order; one hash is sorted unless two keys share it."""
    hashed = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashed = (hashed ^ column) * _MIX
        hashed ^= hashed >> np.uint64(29)
    entries = np.argsort(hashed, kind="stable")
    is_start = np.ones(len(entries), bool)
    is_start[1:] = hashed[entries[1:]] != hashed[entries[:-1]]
    same = _equals_previous(columns, entries)
    if np.array_equal(same, ~is_start):
        return _Groups(entries, is_start)
    entries = np.lexsort(tuple(columns))
    return _Groups(entries, ~_equals_previous(columns, entries))


def _equals_previous(columns: list[NDArray[np.uint64]], entries: NDArray[np.int64]) -> NDArray[np.bool_]:
    same = np.ones(len(entries), bool)
    same[:1] = False
    for column in columns:
        ordered = column[entries]
        same[1:] &= ordered[1:] == ordered[:-1]
    return same
