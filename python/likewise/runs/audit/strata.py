"""Strata of the sample: removed documents, kept documents that seem near another, and all other kept documents."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.read.collapse import Collapsed
from likewise.batch.read.documents import Documents
from likewise.recipe.methods import MinHash, SimHash
from likewise.recipe.recipe import Recipe
from likewise.stages.sketch import shaped

REMOVED, NEAR, OTHER = "removed", "kept, similar to another", "kept, others"
# Shares of the sample; if a stratum is too small, the rest goes to the others.
_SHARES = {REMOVED: 0.25, NEAR: 0.3, OTHER: 0.45}
# Number of sorts by random parts of the sketches, and standard deviations below the threshold that still seem near.
_SORTS = 12
_SLOTS_A_KEY = 3
_DEVIATIONS = 3.0
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True, eq=False)
class Stratum:
    """A subset of the documents, and a sample of it."""

    name: str
    num_documents: int
    # Sampled rows, ascending: all, or drawn at random without replacement
    rows: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def weight(self) -> float:
        """Number of documents that a sampled one represents."""
        return self.num_documents / len(self.rows) if len(self.rows) else 0.0


def strata_of(
    documents: Documents, collapsed: Collapsed, recipe: Recipe, kept: NDArray[np.bool_]
) -> dict[str, NDArray[np.int64]]:
    """Return the rows of each stratum of a run."""
    is_near = np.zeros(len(documents), bool)
    is_near[collapsed.order[_seem_near(documents, collapsed, recipe)]] = True
    # Reference documents are compared with, but the run decides nothing about them.
    is_own = np.arange(len(documents)) >= documents.num_references
    return {
        REMOVED: np.flatnonzero(~kept),
        NEAR: np.flatnonzero(is_own & kept & is_near),
        OTHER: np.flatnonzero(is_own & kept & ~is_near),
    }


def draw_strata(groups: dict[str, NDArray[np.int64]], *, num_sampled: int, seed: int) -> list[Stratum]:
    """Return a random sample of each stratum."""
    sizes = _sizes({name: len(rows) for name, rows in groups.items()}, num_sampled)
    random = np.random.default_rng(seed)
    return [
        Stratum(name, len(rows), np.sort(random.choice(rows, sizes[name], replace=False)))
        for name, rows in groups.items()
        if len(rows)
    ]


def _sizes(num_documents: dict[str, int], num_sampled: int) -> dict[str, int]:
    """Return the number of documents to draw from each stratum."""
    sizes = dict.fromkeys(num_documents, 0)
    open_names = {name for name, num in num_documents.items() if num}
    left = max(0, num_sampled)
    while open_names and left > 0:
        total = sum(_SHARES[name] for name in open_names)
        wanted = {name: left * _SHARES[name] / total for name in open_names}
        full = {name for name in open_names if sizes[name] + wanted[name] >= num_documents[name]}
        if not full:
            for name in open_names:
                sizes[name] += int(wanted[name])
            break
        for name in full:
            left -= num_documents[name] - sizes[name]
            sizes[name] = num_documents[name]
        open_names -= full
    return {name: max(size, min(2, num_documents[name])) for name, size in sizes.items()}


def _seem_near(documents: Documents, collapsed: Collapsed, recipe: Recipe) -> NDArray[np.int64]:
    """Return positions whose sketch is close to another one, by sorting by random parts other than the run's bands."""
    order = collapsed.order
    method = recipe.sketch
    if not isinstance(method, MinHash | SimHash) or len(order) < 2:
        return np.zeros(0, np.int64)
    parts = _bits(documents, method) if isinstance(method, SimHash) else shaped(documents.sketches, recipe)
    random = np.random.default_rng(recipe.seed)
    per_key = _SLOTS_A_KEY if isinstance(method, MinHash) else 4
    least = _least_equal(recipe, method)
    is_near = np.zeros(len(order), bool)
    for _ in range(_SORTS):
        chosen = random.choice(parts.shape[1], min(per_key, parts.shape[1]), replace=False)
        by_key = np.lexsort([parts[:, slot][order] for slot in chosen])
        for start in range(0, len(order) - 1, _ROWS_AT_ONCE):
            some = by_key[start : start + _ROWS_AT_ONCE + 1]
            equal = _num_equal(documents, order[some[1:]], order[some[:-1]], method)
            near = np.flatnonzero(equal >= least)
            is_near[some[near]] = True
            is_near[some[near + 1]] = True
    return np.flatnonzero(is_near)


def _bits(documents: Documents, method: SimHash) -> NDArray[np.uint8]:
    """Return the bytes of fingerprints: shape (n, bits / 8)."""
    words = np.ascontiguousarray(documents.sketches).view(np.uint64).reshape(-1, method.num_words)
    return words.astype("<u8", copy=False).view(np.uint8)[:, : method.bits // 8]


def _num_equal(
    documents: Documents, a: NDArray[np.uint32], b: NDArray[np.uint32], method: MinHash | SimHash
) -> NDArray[np.int64]:
    """Return the number of equal slots or bits of pairs of rows."""
    if isinstance(method, MinHash):
        equal = _native.num_equal(documents.sketches, method.num_slots, method.slot_bytes, a, b)
        return np.asarray(equal).astype(np.int64)
    return method.bits - np.asarray(_native.distances(documents.sketches, method.bits, a, b)).astype(np.int64)


def _least_equal(recipe: Recipe, method: MinHash | SimHash) -> float:
    """Return the number of equal slots or bits from which two documents seem near."""
    if isinstance(method, MinHash):
        num, share = method.num_slots, recipe.candidate_threshold
    else:
        num, share = method.bits, float(method.similarity(method.radius))
        if recipe.is_distance_only:
            return num * share
    return num * share - _DEVIATIONS * float(np.sqrt(num * share * (1.0 - share)))
