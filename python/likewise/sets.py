"""Sets: samples of shingle sets, and resemblance and containment from them with their standard error."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.documents import as_documents
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe import Recipe
from likewise.recipe_check import check_choice, check_integer
from likewise.recipe_identity import SKETCH_FIELDS
from likewise.threads import num_threads
from likewise.weights import with_counted

KINDS = ("min-s", "mod-m", "min-wise")
# What of a recipe makes sketches, but no sets.
_OF_SKETCHES = ("method", "bits", "num_slots", "slot_bits", "scheme")
_SIZES = {"min-s": 256, "mod-m": 16, "min-wise": 256}
_MOST = {"min-s": 2**32 - 1, "mod-m": 2**63, "min-wise": 65535}


class Estimate(NamedTuple):
    """A similarity as samples tell it.

    Parameters
    ----------
    value : float
        0 to 1.
    standard_error : float
        0 where the value is exact; NaN where a sample is empty, and the value 0 for want of another.
    is_exact : bool
        Whether both samples hold their whole sets.
    """

    value: float
    standard_error: float
    is_exact: bool


@dataclass(frozen=True, eq=False)
class Samples:
    """Samples of the feature sets of several documents.

    Parameters
    ----------
    kind : {"min-s", "mod-m", "min-wise"}
        What was kept.
    size : int
        Hashes kept of a set (min-s), one hash in so many (mod-m), slots (min-wise).
    recipe : Recipe
        Whose features were sampled.
    offsets : ndarray of shape (n + 1,), int64
        The sample of document i is ``hashes[offsets[i]:offsets[i + 1]]``.
    hashes : ndarray, uint64
        Ascending in each sample; of min-wise the slots in their order.
    totals : ndarray of shape (n,), uint64
        Sizes of the whole sets: the sums of their weights.
    is_whole : ndarray of shape (n,), bool
        Whether a sample is the whole set.
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
        row = range(len(self))[row]
        return self.hashes[self.offsets[row] : self.offsets[row + 1]]

    def resemblance(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the Jaccard similarity of document `a` and document `b` (of `other`, where given).

        Returns
        -------
        Estimate
            Exact where both samples are whole.

        Raises
        ------
        RecipeMismatch
            If `other` was sampled in another way.

        Examples
        --------
        >>> sample(["a b c d", "a b c e"]).resemblance(0, 1)
        Estimate(value=0.3333333333333333, standard_error=0.0, is_exact=True)
        """
        return _Pair.of(self, a, self._checked(other), b).resemblance()

    def containment(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the share of document `a`'s features found in document `b` (of `other`, where given).

        Returns, Raises
            As :meth:`resemblance`.

        Examples
        --------
        >>> sample(["a b c", "a b c e"]).containment(0, 1).value
        1.0
        """
        return _Pair.of(self, a, self._checked(other), b).containment()

    def _checked(self, other: "Samples | None") -> "Samples":
        if other is None or other is self:
            return self
        names = [name for name in SKETCH_FIELDS if name not in _OF_SKETCHES]
        pairs = {name: (getattr(self.recipe, name), getattr(other.recipe, name)) for name in names}
        pairs |= {"kind": (self.kind, other.kind), "size": (self.size, other.size)}
        differing = {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
        if differing:
            raise RecipeMismatch("these samples were made in another way; sample the texts again in one", differing)
        return other


def sample(
    texts: Any,  # noqa: ANN401 - list of str, Arrow data, iterables
    recipe: Recipe | None = None,
    *,
    kind: str = "min-s",
    size: int | None = None,
    text_field: str = "text",
    threads: int | None = None,
) -> Samples:
    """Return a sample of each text's feature set.

    Parameters
    ----------
    texts : list of str, Arrow data, table, or iterable of str
        The texts.
    recipe : Recipe, optional
        Whose features are sampled; ``Recipe.shingles()`` where None. Weights by rarity that have no table yet are
        counted on these texts, and the recipe of the samples names the table.
    kind : {"min-s", "mod-m", "min-wise"}
        Min-s: the least hashes of each set; right for texts of like size. Mod-m (FracMinHash): one hash in so many;
        grows with the text, and so tells containment of small texts in large ones. Min-Wise: the least hash by each of
        so many permutations.
    size : int, optional
        Hashes kept (min-s, 256), one hash in so many (mod-m, 16), permutations (min-wise, 256).
    text_field : str
        Column of a table that holds the text.
    threads : int, optional
        Threads of this call; all processors where None.

    Returns
    -------
    Samples
        In the order of the texts.

    Raises
    ------
    InvalidInput
        If an entry is no text.
    InvalidParameter
        If kind or size is out of range.

    Notes
    -----
    Source: Broder, On the resemblance and containment of documents, 1997; for the correction of Mod-m Hera,
    Pierce-Ward, Koslicki, Genome Research 33, 2023. Formulas: docs/reference/definitions.md.

    Examples
    --------
    >>> len(sample(["one fine day in may"], size=2)[0])
    2
    """
    recipe = recipe or Recipe.shingles()
    if recipe.method == "exact":
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
    # A signature never tells all of a set but the empty one.
    return np.arange(len(texts) + 1, dtype=np.int64) * size, hashes, totals, totals == 0


@dataclass(frozen=True, eq=False)
class _Pair:
    """Two samples of one kind, and the sizes of their sets."""

    kind: str
    size: int
    a: NDArray[np.uint64]
    b: NDArray[np.uint64]
    total_a: int
    total_b: int
    is_whole: tuple[bool, bool]

    @staticmethod
    def of(samples: Samples, a: int, others: Samples, b: int) -> "_Pair":
        whole = bool(samples.is_whole[a]), bool(others.is_whole[b])
        return _Pair(
            samples.kind, samples.size, samples[a], others[b], int(samples.totals[a]), int(others.totals[b]), whole
        )

    def resemblance(self) -> Estimate:
        special = self._special()
        if special is not None:
            return special
        if all(self.is_whole):
            shared = len(np.intersect1d(self.a, self.b, assume_unique=True))
            return Estimate(shared / (self.total_a + self.total_b - shared), 0.0, is_exact=True)
        if self.kind == "min-wise":
            value = float(np.mean(self.a == self.b))
            # Permutations draw one by one, with replacement.
            return Estimate(value, math.sqrt(value * (1 - value) / self.size), is_exact=False)
        mine, theirs = self._comparable()
        united = np.union1d(mine, theirs)
        shared = len(mine) + len(theirs) - len(united)
        if not len(united):
            return _NOTHING
        value = shared / len(united)
        population = (self.total_a + self.total_b) / (1 + value)
        error = _hypergeometric_error(value, len(united), population)
        scale = self._correction(population)
        return Estimate(min(1.0, value / scale), error / scale, is_exact=False)

    def containment(self) -> Estimate:
        special = self._special()
        if special is not None:
            return special
        if all(self.is_whole):
            return Estimate(len(np.intersect1d(self.a, self.b, assume_unique=True)) / self.total_a, 0.0, is_exact=True)
        if self.kind == "min-wise":
            found = self.resemblance()
            # Shared features from the Jaccard similarity J: J (|A| + |B|) / (1 + J).
            scale = (self.total_a + self.total_b) / self.total_a
            value = min(1.0, scale * found.value / (1 + found.value))
            return Estimate(value, scale * found.standard_error / (1 + found.value) ** 2, is_exact=False)
        mine, theirs = self._comparable()
        if not len(mine):
            return _NOTHING
        value = len(np.intersect1d(mine, theirs, assume_unique=True)) / len(mine)
        error = _hypergeometric_error(value, len(mine), self.total_a)
        scale = self._correction(self.total_a)
        return Estimate(min(1.0, value / scale), error / scale, is_exact=False)

    def _comparable(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return the hashes of both up to which each sample holds all of its set."""
        if self.kind == "min-s":
            # Beyond the least `size` of both a hash of one that the other's sample lacks may still be in its set.
            last = np.union1d(self.a, self.b)[: self.size][-1]
        else:
            # A sample that would be empty is the whole set instead.
            last = np.uint64((2**64 - 1) // self.size)
        return self.a[self.a <= last], self.b[self.b <= last]

    def _special(self) -> Estimate | None:
        """Return what holds for empty documents: two are alike, one is like nothing else."""
        if self.total_a and self.total_b:
            return None
        return Estimate(float(self.total_a == self.total_b), 0.0, is_exact=True)

    def _correction(self, population: float) -> float:
        """Return 1 - (1 - 1/m)^n, by which Mod-m of n features errs low: the chance that any of them is kept."""
        return 1.0 if self.kind != "mod-m" else 1.0 - (1.0 - 1.0 / self.size) ** population


# Of Mod-m an empty sample counts as none found: the correction makes up for it on the average.
_NOTHING = Estimate(0.0, math.nan, is_exact=False)


def _hypergeometric_error(share: float, num_drawn: int, population: float) -> float:
    """Return the standard error of a share among `num_drawn` of `population` features, drawn without replacement."""
    left = max(0.0, population - num_drawn) / max(1.0, population - 1)
    return math.sqrt(share * (1 - share) / num_drawn * left)
