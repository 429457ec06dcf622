"""Choice of a threshold from the documents of a run: which pairs are sampled, and what they imply.

A sample of documents is compared with all of them. Bands of two slots nominate pairs by MinHash signatures: those of
the run or, for other methods, signatures computed in an additional pass over the texts. Nominated pairs are measured
like those of verification. The sample and its pairs depend only on digests of the contents, not on the order of inputs,
threads, memory, or interruptions.

The recipe of the run then contains the threshold as a number, and later stages do not know that it was chosen.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import frozen, slices
from likewise.batch.decide.verification import Verifier
from likewise.batch.read.documents import Collapsed, Documents, each_part
from likewise.job.reading import RunContext
from likewise.recipe.fields import PACKAGE_HASHES
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.valley import Valley, find_valley, lowest_similarity
from likewise.stages.sketch import EMPTY, shaped, sketch_texts
from likewise.stages.verify import MatchRules

if TYPE_CHECKING:
    from likewise.batch.read.resume import RunParts

# Number of documents compared with all others, and maximum partners of each: larger families add no information.
MOST_SAMPLED = 4096
MOST_PARTNERS = 64
# Maximum number of measured pairs per estimate; if there are more, each one represents several.
_MOST_OF_ESTIMATE = 1000
# Number of slots used of a signature, in bands of two.
_SLOTS, _ROWS = 128, 2
# Lowest Jaccard similarity of interest.
_FLOOR = lowest_similarity("jaccard")
_BANDS = _SLOTS // _ROWS
# Size of the first level of documents that the sample is compared with, and the growth factor of levels.
_FIRST_LEVEL, _GROWTH = 64, 4
_AT_ONCE = 4096
_PAIRS_AT_ONCE = 1 << 20
_MIX = np.uint64(0x9E3779B97F4A7C15)
_KEPT = "threshold.json"


class ChosenThreshold(NamedTuple):
    """A chosen threshold, and the data that it was chosen from."""

    valley: Valley
    measure: str
    weights: str
    num_documents: int
    # Number of documents that were compared with all others
    num_sampled: int
    num_measured: int
    # Probability that a pair at the lower end of the density was nominated
    recall: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return the record of the choice as JSON values."""
        return {
            **self.valley.to_dict(),
            "measure": self.measure,
            "weights": self.weights,
            "num_documents": self.num_documents,
            "num_sampled": self.num_sampled,
            "num_measured": self.num_measured,
            "recall": None if self.recall is None else round(self.recall, 4),
        }


def with_chosen_threshold(
    recipe: Recipe,
    documents: Documents,
    context: RunContext,
    parts: RunParts | None = None,
) -> tuple[Recipe, dict[str, Any]]:
    """Return the resolved recipe with the threshold that it leaves open, and the summary fields about the choice."""
    facts = None if parts is None else _known(parts.directory)
    if parts is not None:
        parts.has_threshold = facts is not None
    if facts is None:
        with context.stage("choosing the threshold", "choosing_the_threshold", "documents"):
            facts = choose_threshold(documents, recipe, context).to_dict()
        if parts is not None and parts.directory.is_dir():
            unfinished = parts.directory / f"{_KEPT}.unfinished"
            kept = {"checksum": _checksum(facts), "facts": facts}
            unfinished.write_text(json.dumps(kept), encoding="utf-8", newline="\n")
            unfinished.replace(parts.directory / _KEPT)
    return recipe.with_threshold(facts["threshold"]), {"chosen_threshold": facts}


def choose_threshold(documents: Documents, recipe: Recipe, context: RunContext) -> ChosenThreshold:
    """Compare a sample of documents with all of them, and find the valley of the similarities."""
    # A row of each sampled document, in the order of their digests; copies are one, and references are left out.
    best, sample, shapes = np.zeros(0, np.uint64), np.zeros(0, np.int64), documents.shapes
    for part in slices(len(shapes), _AT_ONCE * 16):
        some = np.arange(part.start, part.stop)
        some = some[(shapes[part] != EMPTY) & (some >= documents.num_references)]
        best, first = np.unique(np.concatenate([best, _digests(documents, some)[:, 0]]), return_index=True)
        sample = np.concatenate([sample, some])[first]
        best, sample = best[:MOST_SAMPLED], sample[:MOST_SAMPLED]
    a, b, equal = _nominated(documents, recipe, sample, context.threads)
    # Each measured pair represents several if there are too many with its number of equal slots.
    of_estimate = np.bincount(equal, minlength=_SLOTS + 1)
    each = np.maximum(1, -(-of_estimate // _MOST_OF_ESTIMATE))[equal]
    mixed = (_digests(documents, sample[a])[:, 0] ^ _digests(documents, b)[:, 1]) * _MIX
    taken = (mixed >> np.uint64(32)) % each.astype(np.uint64) == 0
    a, b, weight = a[taken], b[taken], each[taken]
    similarity, penalty = _measured(documents, recipe, sample[a], b, context)
    reaches = ~np.isnan(similarity)
    a, b, weight = a[reaches], b[reaches], weight[reaches]
    sizes = np.minimum(documents.num_features[sample[a]], documents.num_features[b])
    lowered = recipe.without_margin(similarity[reaches], sizes, penalty[reaches])
    valley = find_valley(lowered, a, weight, measure=recipe.measure, margin=_usual_margin(documents, recipe, sample))
    measure = recipe.measure
    recall = _native.s_curve(_FLOOR, _BANDS, _ROWS) if measure == "jaccard" else None
    return ChosenThreshold(valley, measure, recipe.weights, len(shapes), len(sample), len(reaches), recall)


def _usual_margin(documents: Documents, recipe: Recipe, sample: NDArray[np.int64]) -> float:
    """Return the margin for short documents of the sampled document whose number of features is the median."""
    if recipe.short_margin is None or not len(sample):
        return 0.0
    median = int(np.sort(documents.num_features[sample])[len(sample) // 2])
    return float(recipe.short_margin / np.sqrt(max(median, 1)))


def _digests(documents: Documents, rows: slice | NDArray[np.int64]) -> NDArray[np.uint64]:
    return documents.digests.reshape(-1, 2)[rows]


def _nominated(
    documents: Documents, recipe: Recipe, sample: NDArray[np.int64], threads: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return pairs of a sampled document (its number) and a row, with the number of their equal slots.

    Each sampled document gets at most `MOST_PARTNERS` partners, the first ones in the order of the second half of the
    digests. Documents are processed in levels of that order, each several times as long as the previous one, and
    sampled documents with all their partners are left out of later levels. So a family of a million costs as much as
    one of a hundred.
    """
    own, min_equal = _digests(documents, sample), _native.min_equal_slots(_SLOTS, _FLOOR)
    found = _Partners(len(sample))
    if not len(sample):
        found.settled()
        return found.all()
    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-threshold") as pool:
        each = _each_signature(documents, recipe, pool, threads)
        signatures = np.zeros((len(sample), _SLOTS), np.uint32)
        by_row = np.argsort(sample)
        for rows, slots in each(sample[by_row], lambda rows, slots: (rows, slots)):
            # Narrow slots are compared in a fraction of the time.
            signatures = signatures.astype(slots.dtype, copy=False)
            signatures[by_row[np.searchsorted(sample[by_row], rows)]] = slots
        bands = _native.SampledBands(_row_bytes(signatures), _SLOTS, signatures.itemsize)

        def partners(rows: NDArray[np.int64], slots: NDArray[np.uint32]) -> tuple[NDArray[Any], ...]:
            a, which, equal = (np.asarray(column, np.int64) for column in bands.pairs(_row_bytes(slots), min_equal))
            digests = _digests(documents, rows[which])
            is_pair = (digests != own[a]).any(axis=1)
            return a[is_pair], rows[which[is_pair]], digests[is_pair, 1], equal[is_pair]

        for level in _levels(documents):
            for rows in level:
                for some in each(rows, partners):
                    found.add(some)
            bands = bands.without(found.settled().astype(np.uint32))
    return found.all()


def _row_bytes(signatures: NDArray[np.uint32]) -> NDArray[np.uint8]:
    return frozen(np.ascontiguousarray(signatures).view(np.uint8).reshape(-1))


def _levels(documents: Documents) -> Iterator[Iterator[NDArray[np.int64]]]:
    """Yield rows of non-empty documents in levels, by the second half of their digests, in parts of ascending rows."""
    size, bounds = len(documents.shapes), [2**64]
    while size > _FIRST_LEVEL:
        size //= _GROWTH
        bounds.append(bounds[-1] // _GROWTH)
    low = 0
    for high in reversed(bounds):
        yield _level(documents, low, high)
        low = high


def _level(documents: Documents, low: int, high: int) -> Iterator[NDArray[np.int64]]:
    shapes = documents.shapes
    for part in slices(len(shapes), _AT_ONCE * 16):
        keys = _digests(documents, part)[:, 1]
        is_in = (keys >= np.uint64(low)) & (keys <= np.uint64(high - 1)) & (shapes[part] != EMPTY)
        if is_in.any():
            yield np.flatnonzero(is_in) + part.start


_Result = TypeVar("_Result")
_Work = Callable[[NDArray[np.int64], NDArray[np.uint32]], _Result]


class _EachSignature(Protocol):
    def __call__(self, rows: NDArray[np.int64], work: _Work[_Result]) -> Iterator[_Result]:
        """Yield the results of `work` for ascending rows and their slots, part by part in order."""


def _each_signature(documents: Documents, recipe: Recipe, pool: ThreadPoolExecutor, threads: int) -> _EachSignature:
    """Return a function that iterates over signatures: those of the run, or newly computed from the texts."""
    if isinstance(recipe.sketch, MinHash) and recipe.sketch.num_slots >= _SLOTS:
        own = shaped(documents.sketches, recipe)

        def held(rows: NDArray[np.int64], work: _Work[_Result]) -> Iterator[_Result]:
            def of_part(part: slice) -> _Result:
                return work(rows[part], own[rows[part], :_SLOTS])

            # As many at a time as there are threads, since results wait in memory.
            parts = list(slices(len(rows), _AT_ONCE))
            for some in slices(len(parts), threads):
                yield from pool.map(of_part, parts[some])

        return held
    options = recipe.feature_options()
    if recipe.hash in PACKAGE_HASHES:
        options.pop("hash")
    minhash = Recipe.minhash(_FLOOR, **options, num_slots=_SLOTS)

    def made(rows: NDArray[np.int64], work: _Work[_Result]) -> Iterator[_Result]:
        def of_part(part: slice, texts: _native.Texts) -> _Result:
            batch = sketch_texts(texts, minhash, sets=False, threads=1)
            return work(rows[part], shaped(np.asarray(batch.sketches), minhash))

        yield from each_part(pool, documents, rows, threads, of_part)

    return made


class _Partners:
    """The partners of sampled documents: for each, at most `MOST_PARTNERS`, the first ones by digest."""

    def __init__(self, num_sampled: int) -> None:
        self._counts = np.zeros(num_sampled, np.int64)
        self._new: list[tuple[NDArray[Any], ...]] = []
        self._all: list[tuple[NDArray[Any], ...]] = []

    def add(self, some: tuple[NDArray[Any], ...]) -> None:
        """Add partners from the current level: documents, rows of their partners, digests of these, equal slots."""
        self._new.append(some)

    def settled(self) -> NDArray[np.int64]:
        """End a level; return the documents that reached the maximum number of partners in it."""
        nothing = np.zeros(0, np.int64)
        new = [(nothing, nothing, nothing.astype(np.uint64), nothing), *self._new]
        a, rows, digests, equal = map(np.concatenate, zip(*new, strict=True))
        order = np.lexsort((rows, digests, a))
        a, rows, digests, equal = a[order], rows[order], digests[order], equal[order]
        # Copies count as one document, the first of them.
        is_first = np.ones(len(a), bool)
        is_first[1:] = (a[1:] != a[:-1]) | (digests[1:] != digests[:-1])
        a, rows, equal = a[is_first], rows[is_first], equal[is_first]
        place = np.arange(len(a)) - np.searchsorted(a, a, "left") + self._counts[a]
        taken = place < MOST_PARTNERS
        self._all.append((a[taken], rows[taken], equal[taken]))
        before = self._counts
        self._counts = before + np.bincount(a[taken], minlength=len(before))
        self._new = []
        return np.flatnonzero((before < MOST_PARTNERS) & (self._counts == MOST_PARTNERS))

    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return all pairs by document: its number, the row of its partner, and the number of equal slots."""
        a, rows, equal = map(np.concatenate, zip(*self._all, strict=True))
        order = np.argsort(a, kind="stable")
        return a[order], rows[order], equal[order]


def _measured(
    documents: Documents, recipe: Recipe, a: NDArray[np.int64], b: NDArray[np.int64], context: RunContext
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the similarity of each pair of rows, NaN below the lowest one of interest, and its penalty."""
    order, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    sides = places.astype(np.uint32)
    nothing = np.zeros(0, np.int64)
    collapsed = Collapsed(documents, nothing, order.astype(np.uint32), nothing)
    with Verifier(collapsed, recipe, context) as verifier:
        found, penalties = [np.zeros(0)], [np.zeros(0)]
        for part in slices(len(a), _PAIRS_AT_ONCE):
            later, earlier = sides[: len(a)][part], sides[len(a) :][part]
            lowest = lowest_similarity(recipe.measure)
            found.append(verifier.similarities(later, earlier, MatchRules(recipe.measure, lowest)))
            reaches = ~np.isnan(found[-1])
            penalties.append(np.zeros(len(reaches)))
            penalties[-1][reaches] = verifier.differences(later[reaches], earlier[reaches], penalties_only=True)[0]
    return np.concatenate(found), np.concatenate(penalties)


def _known(parts: Path) -> dict[str, Any] | None:
    """Return the choice of a run that this one continues, if it is stored and undamaged."""
    with contextlib.suppress(OSError, ValueError, RecursionError, KeyError, TypeError):
        kept = json.loads((parts / _KEPT).read_text(encoding="utf-8"))
        facts: dict[str, Any] = kept["facts"]
        if kept["checksum"] == _checksum(facts):
            return facts
    return None


def _checksum(facts: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()
