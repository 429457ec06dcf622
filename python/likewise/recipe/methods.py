"""The methods of a recipe: how documents are represented in the search, and which pairs the search finds.

A recipe contains one of them as its :attr:`likewise.Recipe.sketch`. It has the fields that apply only to this method.
Fields that apply to all methods are in the recipe itself. `bands` and `rows`, the radius of measured fingerprints and
the size of filters may be None until they are chosen (:meth:`likewise.Recipe.resolve`).
"""

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from likewise import _native
from likewise.errors import InvalidParameter

# Maximum number of signature slots that nominate pairs of Bloom filters.
NOMINATING_SLOTS = 128
# Number of bucket levels; each is keyed by twice the rows of the previous one.
NUM_LEVELS = 3


class Asked(NamedTuple):
    """The condition that the pairs found by a search must meet."""

    measure: str
    weights: str
    # Minimum similarity for a match; 1 for Hamming-only recipes
    threshold: float

    @property
    def as_jaccard(self) -> float:
        """The threshold as the Jaccard similarity of two sets of equal size."""
        return self.threshold if self.measure == "jaccard" else self.threshold / (2.0 - self.threshold)

    @property
    def follows_jaccard(self) -> bool:
        """Whether the Jaccard similarity of a pair at the threshold is known, whatever its sizes."""
        # Dice is 2J / (1 + J) for any two sets; others depend on sizes.
        return self.measure in ("jaccard", "dice")


@dataclass(frozen=True, kw_only=True)
class _Method:
    """The interface of all methods, with the defaults for methods that find all matches."""

    name: ClassVar[str]

    def open_search(self, asked: Asked) -> dict[str, int]:
        """Return values for the fields of the search that are not set, chosen for the condition."""
        return {}

    def stated_recall(self, asked: Asked) -> float | None:
        """Return P(found) for a pair exactly at the threshold of a resolved recipe, or None without a model."""
        return 1.0

    def recall_of_crowd(self, asked: Asked, num_capped: int) -> float:
        """Return a lower bound of P(found) for a pair at the threshold of two documents in full buckets."""
        return 0.0


def _known(name: str, value: int | None) -> int:
    if value is None:
        raise InvalidParameter(name, f"{name} is not chosen yet; Recipe.resolve and runs choose it")
    return value


@dataclass(frozen=True, kw_only=True)
class _Banded(_Method):
    """A method that may compare pairs that agree in a band."""

    bands: int | None
    rows: int | None

    @property
    def banding(self) -> tuple[int, int]:
        """Number of bands and of rows per band, once they are chosen."""
        return _known("bands", self.bands), _known("rows", self.rows)


@dataclass(frozen=True, kw_only=True)
class MinHash(_Banded):
    """Signatures whose share of equal slots estimates the Jaccard similarity; pairs that agree in a band are compared.

    Parameters
    ----------
    num_slots, slot_bits : int
        Number of slots of a signature (1 to 65535), and number of bits stored per slot (8, 16 or 32).
    scheme : {"bucket", "classical", "affine32", "legacy"}
        How slots are filled; the last two are the schemes of the package datasketch.
    recall : float
        Probability of finding a pair exactly at the threshold, for which bands are chosen; above 0 and below 1.
    bands, rows : int, optional
        Number of bands, and of slots per band.
    overflow : {"exact", "levels"}
        How to compare documents that reach a full bucket, which holds 64 documents. ``exact``: with each other, by an
        exact join of their feature sets, so the stated recall also holds for them. ``levels``: in further levels of
        buckets keyed by more rows, which find fewer pairs the more documents share text.
    """

    name: ClassVar[str] = "minhash"
    num_slots: int
    slot_bits: int
    scheme: str
    recall: float
    overflow: str

    @property
    def slot_bytes(self) -> int:
        """Size of a slot in bytes."""
        return self.slot_bits // 8

    @property
    def num_bytes(self) -> int:
        """Size of a signature in bytes."""
        return self.num_slots * self.slot_bytes

    def found(self, similarity: float) -> float:
        """Return P(found) for a pair with this Jaccard similarity."""
        return _native.s_curve(similarity, *self.banding)

    def open_search(self, asked: Asked) -> dict[str, int]:  # noqa: D102
        if self.bands is not None:
            return {}
        bands, rows, _ = _native.plan_bands(self.num_slots, asked.as_jaccard, self.recall)
        return {"bands": bands, "rows": rows}

    def stated_recall(self, asked: Asked) -> float | None:  # noqa: D102
        return self.found(asked.as_jaccard) if asked.follows_jaccard else None

    def recall_of_crowd(self, asked: Asked, num_capped: int) -> float:
        """Return a lower bound of P(found) for a pair at the threshold of two documents in full buckets.

        With bucket levels, if no bucket of the last level was full, documents that share a key of the last level are
        compared. Keys without common slots are independent.
        """
        if num_capped:
            return 0.0
        num_rows = min(self.num_slots, self.banding[1] << (NUM_LEVELS - 1))
        return _native.s_curve(asked.as_jaccard, self.num_slots // num_rows, num_rows)


def _recall_within(bits: int, threshold: float, within: int) -> float:
    """Return P(Binomial(bits, acos(threshold)/pi) <= within): P(found) for a pair with this cosine."""
    low, high = 0.0, 1.0
    # Bisects the recall of the core's radius rule, so that the result does not depend on the system's logarithm.
    for _ in range(60):
        middle = (low + high) / 2
        if not 0.0 < middle < 1.0:
            break
        radius, recall = _native.radius_for(bits, threshold, middle)
        if radius == within:
            return recall
        low, high = (middle, high) if radius < within else (low, middle)
    return 1.0 if low > 0.5 else 0.0


@dataclass(frozen=True, kw_only=True)
class SimHash(_Method):
    """Fingerprints whose Hamming distance estimates the cosine; all pairs within a radius are found.

    Parameters
    ----------
    bits : int
        Width of a fingerprint: 32, 64, ... 256.
    within : int, optional
        Maximum Hamming distance of a candidate.
    """

    name: ClassVar[str] = "simhash"
    bits: int
    within: int | None

    @property
    def num_words(self) -> int:
        """Number of 64-bit words of a fingerprint."""
        return -(-self.bits // 64)

    def similarity(self, distance: Any) -> Any:
        """Return the share of equal bits at a distance."""
        return 1.0 - distance / self.bits

    @property
    def radius(self) -> int:
        """Maximum distance of a candidate, once it is chosen."""
        return _known("within", self.within)

    def found(self, cosine: float) -> float:
        """Return P(found) for a pair with this cosine, if all pairs within the radius are compared."""
        return _recall_within(self.bits, cosine, self.radius)


@dataclass(frozen=True, kw_only=True)
class SimHashMeasured(SimHash):
    """Fingerprints that find candidates, each of which is verified on the documents.

    Parameters
    ----------
    recall : float
        Probability of finding a pair exactly at the threshold, for which the radius is chosen; above 0 and below 1.
    """

    recall: float

    def open_search(self, asked: Asked) -> dict[str, int]:  # noqa: D102
        if self.within is not None:
            return {}
        within, _ = _native.radius_for(self.bits, asked.threshold, self.recall)
        return {"within": within}

    def stated_recall(self, asked: Asked) -> float | None:  # noqa: D102
        return self.found(asked.threshold) if asked.measure == "cosine" else None


@dataclass(frozen=True, kw_only=True)
class SimHashDistance(SimHash):
    """Fingerprints whose distance determines a match by itself, except for short documents.

    Parameters
    ----------
    short_threshold : float
        Minimum Jaccard similarity that is also required if either document has fewer than 64 features.
    """

    within: int
    short_threshold: float

    def is_short(self, num_features: Any) -> Any:
        """Return whether a pair is also compared by plain features, given the feature count of its smaller document."""
        return num_features < _native.SHORT_FEATURES

    def may_meet_short(self, num_features: Any) -> Any:
        """Return whether a document with this many features can reach ``short_threshold`` with a short one."""
        return num_features * self.short_threshold < _native.SHORT_FEATURES


@dataclass(frozen=True, kw_only=True)
class Bloom(_Banded):
    """Bloom filters; pairs that share as many bits as pairs at the threshold are compared.

    Parameters
    ----------
    filter_bits, num_hashes : int
        Number of bits of a filter, a multiple of 64 up to 65,536, and number of bits that a feature sets. If
        `filter_bits` is None, it is derived from the largest document: twice its features, rounded up to a multiple of
        512.
    recall : float
        Probability of finding a pair exactly at the threshold.
    bands, rows : int, optional
        Bands of the signatures that propose pairs; if None, all pairs are compared, up to 200,000 documents.
    """

    name: ClassVar[str] = "bloom"
    filter_bits: int | None
    num_hashes: int
    recall: float

    @property
    def num_bits(self) -> int:
        """Number of bits of a filter, once it is chosen."""
        return _known("filter_bits", self.filter_bits)

    @property
    def recall_of_filters(self) -> float:
        """P(a pair at the threshold shares enough bits); with bands, the square root of the recall."""
        return self.recall if self.bands is None else math.sqrt(self.recall)

    def nominating_bands(self, asked: Asked) -> dict[str, int]:
        """Return the bands and rows that nominate pairs of filters, as fields of a recipe."""
        bands, rows, _ = _native.plan_bands(NOMINATING_SLOTS, asked.as_jaccard, math.sqrt(self.recall))
        return {"bands": bands, "rows": rows}

    def stated_recall(self, asked: Asked) -> float | None:  # noqa: D102
        if asked.measure == "cosine" and asked.weights != "none":
            return None
        if self.bands is None:
            return self.recall
        found = _native.s_curve(asked.as_jaccard, *self.banding)
        return self.recall_of_filters * found if asked.follows_jaccard else None


class Shingles(_Method):
    """Complete feature sets, which find every pair at or above the threshold."""

    name: ClassVar[str] = "shingles"


class Exact(_Method):
    """Equality of normalized texts."""

    name: ClassVar[str] = "exact"


Sketch = MinHash | SimHashMeasured | SimHashDistance | Bloom | Shingles | Exact
_OF_NAME: Mapping[str, type[Sketch]] = {kind.name: kind for kind in (MinHash, SimHashMeasured, Bloom, Shingles, Exact)}


def sketch_of(fields: Mapping[str, Any]) -> Sketch:
    """Return the method of the checked fields of a recipe, with the fields that it uses."""
    kind = SimHashDistance if fields["measure"] == "hamming" else _OF_NAME[fields["method"]]
    return kind(**{one.name: fields[one.name] for one in dataclasses.fields(kind)})
