"""Sets: samples of shingle sets, and resemblance and containment from them with their standard error.

Estimates are plain shares of the drawn hashes, or NaN if none were drawn. Dividing by the probability of drawing any
hash (FracMinHash) is right on average if sets without drawn hashes count as 0, but wrong for each set with some.
Standard errors are those of a smoothed share, and intervals use the score test, because sqrt(p (1 - p) / n) is 0 at 0
and 1.
"""

import math
import operator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import TextData
from likewise.errors import InvalidParameter, RecipeMismatch, check_choice, check_integer, num_threads
from likewise.recipe.methods import Exact
from likewise.recipe.recipe import GivenRecipe, Recipe, as_recipe
from likewise.stages.text import TextField, as_documents
from likewise.stages.weights import with_counted

# 95% of the normal distribution lie within this number of standard deviations.
_DEVIATIONS = 1.959963984540054


class Estimate(NamedTuple):
    """A similarity estimated from samples.

    Parameters
    ----------
    value : float
        0 to 1; NaN if the samples contain none of the relevant hashes.
    standard_error : float
        0 only if the value is exact, because a share of 0 or 1 among a few hashes may be different in the whole sets.
        NaN if the value is NaN.
    low, high : float
        The 95% interval. Both are equal to the value if it is exact, and 0 and 1 if nothing is known.
    is_exact : bool
        Whether the value is that of the complete sets.
    """

    value: float
    standard_error: float
    low: float
    high: float
    is_exact: bool

    @staticmethod
    def exact(value: float) -> "Estimate":
        """Return the exact value from complete sets."""
        return Estimate(value, 0.0, value, value, is_exact=True)

    @staticmethod
    def unknown() -> "Estimate":
        """Return the estimate from a sample without any draws."""
        return Estimate(math.nan, math.nan, 0.0, 1.0, is_exact=False)


def estimate_of_share(num_found: int, num_drawn: int, population: float = math.inf) -> Estimate:
    """Estimate a share of a population from `num_found` hits in `num_drawn` draws.

    Notes
    -----
    Source: Wilson, Probable inference, JASA 22 (1927); with continuity correction Newcombe, Statistics in Medicine 17
    (1998), method 4; without replacement Cochran, Sampling Techniques (1977), sections 2.6 and 3.6.

    Examples
    --------
    >>> found = estimate_of_share(64, 64)
    >>> found.value, round(found.standard_error, 3), round(found.low, 3), found.high
    (1.0, 0.015, 0.929, 1.0)
    """
    value = num_found / num_drawn
    # The share of the variance of draws with replacement that is left.
    left = 1.0 if math.isinf(population) else (population - num_drawn) / (population - 1.0) if population > 1 else 0.0
    if left <= 0:
        return Estimate.exact(value)
    smoothed = (num_found + 1) / (num_drawn + 2)
    error = math.sqrt(smoothed * (1 - smoothed) / num_drawn * left)
    step, effective = 0.5 / num_drawn, num_drawn / left
    low = 0.0 if num_found == 0 else _score_bound(value - step, effective, -_DEVIATIONS)
    high = 1.0 if num_found == num_drawn else _score_bound(value + step, effective, _DEVIATIONS)
    return Estimate(value, error, min(low, value), max(high, value), is_exact=False)


def _score_bound(share: float, num_draws: float, deviations: float) -> float:
    """Return the share p with ``share = p - deviations * sqrt(p (1 - p) / num_draws)``, within 0 and 1."""
    share = min(1.0, max(0.0, share))
    square = deviations * deviations / num_draws
    root = deviations * math.sqrt((share * (1 - share) + square / 4) / num_draws)
    return min(1.0, max(0.0, (share + square / 2 + root) / (1 + square)))


@dataclass(frozen=True, eq=False)
class SamplePair:
    """Two samples of one kind, and the sizes of their sets."""

    # As for ``Samples``
    kind: str
    size: int
    a: NDArray[np.uint64]
    b: NDArray[np.uint64]
    # Sizes of the sets
    total_a: int
    total_b: int
    is_whole: tuple[bool, bool]

    def resemblance(self) -> Estimate:
        """Return the Jaccard similarity of the sets."""
        special = self._of_empty()
        if special is not None:
            return special
        if all(self.is_whole):
            shared = self._num_shared(self.a, self.b)
            return Estimate.exact(shared / (self.total_a + self.total_b - shared))
        if self.kind == "min-wise":
            # Each permutation is one draw, with replacement.
            return estimate_of_share(int(np.count_nonzero(self.a == self.b)), self.size)
        mine, theirs = self._comparable()
        shared = self._num_shared(mine, theirs)
        num_drawn = len(mine) + len(theirs) - shared
        if not num_drawn:
            return Estimate.unknown()
        # At least one sample is not its whole set, so the union has members that were not drawn.
        population = (self.total_a + self.total_b) / (1 + shared / num_drawn)
        return estimate_of_share(shared, num_drawn, max(population, self.total_a, self.total_b, num_drawn + 1))

    def containment(self) -> Estimate:
        """Return the share of the first set found in the second."""
        special = self._of_empty()
        if special is not None:
            return special
        if all(self.is_whole):
            return Estimate.exact(self._num_shared(self.a, self.b) / self.total_a)
        if self.kind == "min-wise":
            return self._containment_by_resemblance()
        mine, theirs = self._comparable()
        if not len(mine):
            return Estimate.unknown()
        return estimate_of_share(self._num_shared(mine, theirs), len(mine), self.total_a)

    def _containment_by_resemblance(self) -> Estimate:
        found = self.resemblance()
        scale = (self.total_a + self.total_b) / self.total_a

        def contained(resemblance: float) -> float:
            # Shared features from the Jaccard similarity J: J (|A| + |B|) / (1 + J).
            return min(1.0, scale * resemblance / (1 + resemblance))

        error = scale * found.standard_error / (1 + found.value) ** 2
        return Estimate(contained(found.value), error, contained(found.low), contained(found.high), is_exact=False)

    def _comparable(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes of both samples, up to the value to which each sample contains all of its set."""
        if self.kind == "min-s":
            # Beyond the lowest `size` hashes of both, a hash missing from a sample may still be in its set.
            last = np.union1d(self.a, self.b)[: self.size][-1]
        else:
            # If no hash was drawn, the sample is the whole set, but the other one contains only hashes to this limit.
            last = np.uint64((2**64 - 1) // self.size)
        return self.a[self.a <= last], self.b[self.b <= last]

    def _of_empty(self) -> Estimate | None:
        """Return the value for empty documents: 1 if both are empty, 0 if one is; None if neither is."""
        if self.total_a and self.total_b:
            return None
        return Estimate.exact(float(self.total_a == self.total_b))

    @staticmethod
    def _num_shared(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> int:
        return len(np.intersect1d(a, b, assume_unique=True))


__all__ = ["KINDS", "Estimate", "Samples", "sample"]

KINDS = ("min-s", "mod-m", "min-wise")
# Fields of a recipe that determine sketches, but not sets.
_OF_SKETCHES = ("method", "bits", "num_slots", "slot_bits", "scheme")
_SIZES = {"min-s": 256, "mod-m": 16, "min-wise": 256}
_MOST = {"min-s": 2**32 - 1, "mod-m": 2**63, "min-wise": 65535}


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of the feature sets of several documents.

    Parameters
    ----------
    kind : {"min-s", "mod-m", "min-wise"}
        Kind of sample.
    size : int
        Number of hashes kept per set (min-s), modulus (mod-m), or number of slots (min-wise).
    recipe : Recipe
        Determines the features that were sampled.
    offsets : ndarray of shape (n + 1,), int64
        The sample of document i is ``hashes[offsets[i]:offsets[i + 1]]``.
    hashes : ndarray, uint64
        Ascending in each sample; for min-wise, the slots in their order.
    totals : ndarray of shape (n,), uint64
        Sizes of the complete sets: the sums of their weights.
    is_whole : ndarray of shape (n,), bool
        Whether a sample is the complete set.
    """

    kind: str
    size: int
    recipe: Recipe
    offsets: NDArray[np.int64]
    hashes: NDArray[np.uint64]
    totals: NDArray[np.uint64]
    is_whole: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.totals)

    def __getitem__(self, row: int) -> NDArray[np.uint64]:
        """Return the sample of one document."""
        row = self._row("row", row)
        return self.hashes[self.offsets[row] : self.offsets[row + 1]]

    def resemblance(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the Jaccard similarity of document `a` and document `b` (of `other`, if given).

        Parameters
        ----------
        a : int
            Row of these samples; negative ones count from the end.
        b : int
            Row of `other`.
        other : Samples, optional
            Samples made with the same settings; if None, these samples.

        Returns
        -------
        Estimate
            Exact if both samples are complete sets.

        Raises
        ------
        InvalidParameter
            If a row does not exist or is not an integer, or `other` is not Samples.
        RecipeMismatch
            If `other` was sampled with other settings.

        Examples
        --------
        >>> found = sample(["a b c d", "a b c e"]).resemblance(0, 1)
        >>> round(found.value, 3), found.standard_error, found.is_exact
        (0.333, 0.0, True)
        """
        return self._pair(a, b, other).resemblance()

    def containment(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the share of document `a`'s features found in document `b` (of `other`, if given).

        Parameters, Returns, Raises
            As for :meth:`resemblance`; the value is NaN if the sample of document `a` is empty.

        Examples
        --------
        >>> sample(["a b c", "a b c e"]).containment(0, 1).value
        1.0
        """
        return self._pair(a, b, other).containment()

    def _pair(self, a: int, b: int, other: "Samples | None") -> SamplePair:
        theirs = self._checked(other)
        mine, their = self._row("a", a), theirs._row("b", b)
        return SamplePair(
            self.kind,
            self.size,
            self[mine],
            theirs[their],
            int(self.totals[mine]),
            int(theirs.totals[their]),
            (bool(self.is_whole[mine]), bool(theirs.is_whole[their])),
        )

    def _row(self, name: str, row: int) -> int:
        try:
            if isinstance(row, (bool, np.bool_)):
                raise TypeError
            return range(len(self))[operator.index(row)]
        except TypeError as error:
            raise InvalidParameter(name, f"{row!r} is not an integer") from error
        except IndexError as error:
            raise InvalidParameter(name, f"row {row} is out of range; there are {len(self)} samples") from error

    def _checked(self, other: "Samples | None") -> "Samples":
        if other is None or other is self:
            return self
        if not isinstance(other, Samples):
            raise InvalidParameter("other", f"{type(other).__name__} is not Samples")
        found = self.recipe.sketch_differences(other.recipe)
        differing = {name: pair for name, pair in found.items() if name not in _OF_SKETCHES}
        pairs = {"kind": (self.kind, other.kind), "size": (self.size, other.size)}
        differing |= {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if differing:
            raise RecipeMismatch(
                "the samples were made with different settings; sample all texts with the same settings", differing
            )
        return other


def sample(
    texts: TextData,
    recipe: GivenRecipe | None = None,
    *,
    kind: str = "min-s",
    size: int | None = None,
    text_field: TextField = "text",
    threads: int | None = None,
) -> Samples:
    """Return a sample of each text's feature set.

    Parameters
    ----------
    texts, text_field, threads
        As for :func:`likewise.dedup`.
    recipe : Recipe or str, optional
        Determines the features; ``Recipe.shingles()`` if None. If weights by rarity have no table, they are counted on
        these texts, and the recipe of the samples names the table.
    kind : {"min-s", "mod-m", "min-wise"}
        ``min-s``: the lowest hashes of each set; for texts of similar size. ``mod-m`` (FracMinHash): one of `size`
        hashes; it grows with the text, and so estimates the containment of texts in larger ones, if the smaller text
        has many times `size` features. ``min-wise``: the lowest hash under each of `size` permutations.
    size : int, optional
        Number of hashes kept (min-s, default 256), modulus (mod-m, 16), or number of permutations (min-wise, 256).

    Returns
    -------
    Samples
        In the order of the texts.

    Raises
    ------
    InvalidInput
        If an entry is not a text.
    InvalidParameter
        If kind or size is out of range.

    Notes
    -----
    Source: Broder, On the resemblance and containment of documents, 1997; Mod-m as FracMinHash: Hera, Pierce-Ward,
    Koslicki, Genome Research 33, 2023. Formulas: docs/developers/definitions.md.

    Examples
    --------
    >>> len(sample(["one fine day in may"], size=2)[0])
    2
    """
    recipe = as_recipe(Recipe.shingles() if recipe is None else recipe)
    if isinstance(recipe.sketch, Exact):
        raise InvalidParameter("recipe", "method exact has no features to sample")
    check_choice("kind", kind, KINDS)
    size = check_integer("size", _SIZES[kind] if size is None else size, 1, _MOST[kind])
    batch, workers = as_documents(texts, recipe, text_field=text_field), num_threads(threads)
    recipe = with_counted(recipe, [batch], threads=workers)
    make = _min_wise if kind == "min-wise" else _least_hashes
    offsets, hashes, totals, is_whole = make(batch, recipe, kind, size, workers)
    return Samples(kind, size, recipe, offsets, hashes, totals, is_whole.astype(bool))


_Arrays = tuple[NDArray[np.int64], NDArray[np.uint64], NDArray[np.uint64], NDArray[Any]]


def _least_hashes(texts: _native.Texts, recipe: Recipe, kind: str, size: int, threads: int) -> _Arrays:
    parts = _native.sample_sets(texts, recipe.feature_rules, kind=kind, size=size, threads=threads)
    offsets, hashes, totals, is_whole = (np.asarray(part) for part in parts)
    return offsets, hashes, totals, is_whole


def _min_wise(texts: _native.Texts, recipe: Recipe, kind: str, size: int, threads: int) -> _Arrays:
    offsets, values, weights = (
        np.asarray(part) for part in _native.features(texts, recipe.feature_rules, threads=threads)
    )
    slots = _native.minhash_features(
        offsets, values, weights, num_slots=size, slot_bits=32, scheme="classical", seed=recipe.seed, threads=threads
    )
    ends = np.concatenate([[0], np.cumsum(weights, dtype=np.uint64)]).astype(np.uint64)
    totals = ends[offsets[1:]] - ends[offsets[:-1]]
    hashes = np.asarray(slots).view("<u4").astype(np.uint64)
    # A signature contains the whole set only if the set is empty.
    return np.arange(len(texts) + 1, dtype=np.int64) * size, hashes, totals, totals == 0
