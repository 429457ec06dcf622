"""Sets: samples of shingle sets, and resemblance and containment from them with their standard error."""

import operator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.documents import as_documents
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.estimates import Estimate, SamplePair
from likewise.recipe import Recipe, check_is_recipe
from likewise.recipe_check import check_choice, check_integer
from likewise.recipe_identity import SKETCH_FIELDS
from likewise.threads import num_threads
from likewise.weights import with_counted

__all__ = ["KINDS", "Estimate", "Samples", "sample"]

KINDS = ("min-s", "mod-m", "min-wise")
# What of a recipe makes sketches, but no sets.
_OF_SKETCHES = ("method", "bits", "num_slots", "slot_bits", "scheme")
_SIZES = {"min-s": 256, "mod-m": 16, "min-wise": 256}
_MOST = {"min-s": 2**32 - 1, "mod-m": 2**63, "min-wise": 65535}


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
        row = self._row("row", row)
        return self.hashes[self.offsets[row] : self.offsets[row + 1]]

    def resemblance(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the Jaccard similarity of document `a` and document `b` (of `other`, where given).

        Parameters
        ----------
        a : int
            Row of these samples; negative ones count from the end.
        b : int
            Row of `other`.
        other : Samples, optional
            Samples made in the same way; these where None.

        Returns
        -------
        Estimate
            Exact where both samples are whole.

        Raises
        ------
        InvalidParameter
            If a row does not exist or is no whole number, or `other` is no Samples.
        RecipeMismatch
            If `other` was sampled in another way.

        Examples
        --------
        >>> found = sample(["a b c d", "a b c e"]).resemblance(0, 1)
        >>> round(found.value, 3), found.standard_error, found.is_exact
        (0.333, 0.0, True)
        """
        return self._pair(a, b, other).resemblance()

    def containment(self, a: int, b: int, other: "Samples | None" = None) -> Estimate:
        """Estimate the share of document `a`'s features found in document `b` (of `other`, where given).

        Parameters, Returns, Raises
            As :meth:`resemblance`; the value is NaN where nothing was drawn of document `a`.

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
            raise InvalidParameter(name, f"{row!r} given; it must be a whole number") from error
        except IndexError as error:
            raise InvalidParameter(name, f"row {row} given; there are {len(self)} samples") from error

    def _checked(self, other: "Samples | None") -> "Samples":
        if other is None or other is self:
            return self
        if not isinstance(other, Samples):
            raise InvalidParameter("other", f"{type(other).__name__} given; it must be Samples")
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
        grows with the text, and so tells containment of texts in larger ones, where the smaller has many times `size`
        features. Min-Wise: the least hash by each of so many permutations.
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
    Source: Broder, On the resemblance and containment of documents, 1997; Mod-m as FracMinHash: Hera, Pierce-Ward,
    Koslicki, Genome Research 33, 2023. Formulas: docs/reference/definitions.md.

    Examples
    --------
    >>> len(sample(["one fine day in may"], size=2)[0])
    2
    """
    recipe = check_is_recipe(Recipe.shingles() if recipe is None else recipe)
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
