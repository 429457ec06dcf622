"""Choice of a threshold from the documents of a run: which pairs are sampled, and what they imply.

A sample of documents is compared with all of them. Bands of two slots nominate pairs by MinHash signatures: those of
the run or, for other methods, signatures computed in an additional pass over the texts. Nominated pairs are measured
like those of verification. The sample and its pairs depend only on digests of the contents, not on the order of inputs,
threads, memory, or interruptions.

The recipe of the run then contains the threshold as a number, and later stages do not know that it was chosen.
"""

import contextlib
import hashlib
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.arrays import distinct, slices
from likewise.batch.decide.verification import Verifier
from likewise.batch.read.documents import Collapsed, Documents, each_part
from likewise.batch.read.resume import RunParts
from likewise.job.options import RunContext, RunRules, Timing
from likewise.progress import StageFinished, StageStarted
from likewise.recipe.fields import PACKAGE_HASHES
from likewise.recipe.methods import Asked, MinHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.valley import Valley, find_valley, lowest_similarity
from likewise.stages.sketch import EMPTY, shaped, sketch_texts

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
_HITS_AT_ONCE = _PAIRS_AT_ONCE = 1 << 20
_FILTER_BITS, _PLACE_BITS = 22, 18
_OWNER_BITS = np.uint64(MOST_SAMPLED - 1)
_MIX, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xD6E8FEB86659FD93)
_KEPT = "threshold.json"


@dataclass(frozen=True)
class ChosenThreshold:
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
    """Return the resolved recipe with a numeric threshold, and the summary fields about the choice."""
    if not recipe.needs_threshold:
        return recipe, {}
    facts = None if parts is None else _known(parts.directory)
    if parts is not None:
        parts.has_threshold = facts is not None
    if facts is None:
        context.progress(StageStarted("choosing the threshold", 0, "documents"))
        began = Timing.now()
        with context.timing.wall("choosing_the_threshold"):
            facts = choose_threshold(documents, recipe, threads=context.threads).to_dict()
        context.progress(StageFinished("choosing the threshold", Timing.now() - began))
        if parts is not None and parts.directory.is_dir():
            _keep(parts.directory, facts)
    threshold = facts["threshold"]
    bands = recipe.sketch.open_search(Asked(recipe.measure, recipe.weights, threshold))
    return recipe.replace(threshold=threshold, **bands), {"chosen_threshold": facts}


def choose_threshold(documents: Documents, recipe: Recipe, *, threads: int) -> ChosenThreshold:
    """Compare a sample of documents with all of them, and find the valley of the similarities."""
    sample = _sampled(documents)
    a, b, equal = _nominated(documents, recipe, sample, threads)
    a, b, weight = _thinned(documents, sample, a, b, equal)
    similarity, penalty = _measured(documents, recipe, sample[a], b, threads)
    reaches = ~np.isnan(similarity)
    a, b, weight = a[reaches], b[reaches], weight[reaches]
    sizes = np.minimum(documents.num_features[sample[a]], documents.num_features[b])
    lowered = recipe.without_margin(similarity[reaches], sizes, penalty[reaches])
    valley = find_valley(lowered, a, weight, measure=recipe.measure, margin=_usual_margin(documents, recipe, sample))
    measure = recipe.measure
    recall = _native.s_curve(_FLOOR, _BANDS, _ROWS) if measure == "jaccard" else None
    return ChosenThreshold(valley, measure, recipe.weights, len(documents), len(sample), len(reaches), recall)


def _usual_margin(documents: Documents, recipe: Recipe, sample: NDArray[np.int64]) -> float:
    """Return the margin for short documents of the sampled document whose number of features is the median."""
    if recipe.short_margin is None or not len(sample):
        return 0.0
    median = int(np.sort(documents.num_features[sample])[len(sample) // 2])
    return float(recipe.short_margin / np.sqrt(max(median, 1)))


def _digests(documents: Documents, rows: slice | NDArray[np.int64]) -> NDArray[np.uint64]:
    return documents.digests.reshape(-1, 2)[rows]


def _sampled(documents: Documents) -> NDArray[np.int64]:
    """Return a row of each sampled document, in the order of their digests; copies are one, references are left out."""
    best, rows = np.zeros(0, np.uint64), np.zeros(0, np.int64)
    for part in slices(len(documents), _AT_ONCE * 16):
        some = np.arange(part.start, part.stop)
        some = some[(documents.shapes[part] != EMPTY) & (some >= documents.num_references)]
        best, first = np.unique(np.concatenate([best, _digests(documents, some)[:, 0]]), return_index=True)
        rows = np.concatenate([rows, some])[first]
        best, rows = best[:MOST_SAMPLED], rows[:MOST_SAMPLED]
    return rows


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
    with ThreadPoolExecutor(threads, thread_name_prefix="likewise-threshold") as pool:
        each = _each_signature(documents, recipe, pool, threads)
        signatures = np.zeros((len(sample), _SLOTS), np.uint32)
        by_row = np.argsort(sample)
        for rows, slots in each(sample[by_row], lambda rows, slots: (rows, slots)):
            # Narrow slots are compared in a fraction of the time.
            signatures = signatures.astype(slots.dtype, copy=False)
            signatures[by_row[np.searchsorted(sample[by_row], rows)]] = slots
        nominator = _Nominator(signatures)

        def partners(rows: NDArray[np.int64], slots: NDArray[np.uint32]) -> tuple[NDArray[Any], ...]:
            a, which = nominator.pairs(slots)
            equal = _num_equal(signatures, a, slots, which)
            digests = _digests(documents, rows[which])
            is_pair = (equal >= min_equal) & (digests != own[a]).any(axis=1)
            return a[is_pair], rows[which[is_pair]], digests[is_pair, 1], equal[is_pair]

        for level in _levels(documents):
            for rows in level:
                for some in each(rows, partners):
                    found.add(some)
            nominator.forget(found.settled())
    return found.all()


def _levels(documents: Documents) -> Iterator[Iterator[NDArray[np.int64]]]:
    """Yield rows of non-empty documents in levels, by the second half of their digests, in parts of ascending rows."""
    size, bounds = len(documents), [2**64]
    while size > _FIRST_LEVEL:
        size //= _GROWTH
        bounds.append(bounds[-1] // _GROWTH)
    low = 0
    for high in reversed(bounds):
        yield _level(documents, low, high)
        low = high


def _level(documents: Documents, low: int, high: int) -> Iterator[NDArray[np.int64]]:
    for part in slices(len(documents), _AT_ONCE * 16):
        keys = _digests(documents, part)[:, 1]
        is_in = (keys >= np.uint64(low)) & (keys <= np.uint64(high - 1)) & (documents.shapes[part] != EMPTY)
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


class _Nominator:
    """Finds which of some signatures share a band of two slots with given others."""

    def __init__(self, signatures: NDArray[np.uint32]) -> None:
        self._num = len(signatures)
        # The owner of a key is in its last bits.
        owners = np.arange(self._num, dtype=np.uint64)[:, None]
        self._take(np.sort((_band_keys(signatures) & ~_OWNER_BITS | owners).reshape(-1)))

    def _take(self, entries: NDArray[np.uint64]) -> None:
        self._entries = entries
        keys = entries & ~_OWNER_BITS
        starts = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else np.zeros(0, np.int64)
        self._keys, self._starts = keys[starts], np.append(starts, len(keys))
        self._owners = (entries & _OWNER_BITS).astype(np.int64)
        # For each value of the first bits of a key, whether there is one; of fewer bits, the first. Sized by the keys.
        bits = max(1, len(starts).bit_length())
        filter_bits, place_bits = min(_FILTER_BITS, bits + 4), min(_PLACE_BITS, bits)
        self._filter_shift, self._place_shift = np.uint64(64 - filter_bits), np.uint64(64 - place_bits)
        self._may_be = np.zeros(1 << filter_bits, bool)
        self._may_be[self._keys >> self._filter_shift] = True
        self._first = np.searchsorted(self._keys, np.arange(1 << place_bits, dtype=np.uint64) << self._place_shift)

    def forget(self, owners: NDArray[np.int64]) -> None:
        """Stop looking for partners of these documents."""
        if not len(owners):
            return
        is_gone = np.zeros(self._num, bool)
        is_gone[owners] = True
        self._take(self._entries[~is_gone[self._owners]])

    def pairs(self, signatures: NDArray[np.uint32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which sampled signatures share a band with which of these; each pair once."""
        keys = (_band_keys(signatures) & ~_OWNER_BITS).reshape(-1)
        hits = np.flatnonzero(self._may_be[keys >> self._filter_shift])
        hits, found = self._found(hits, keys[hits])
        hits //= _BANDS
        counts = self._starts[found + 1] - self._starts[found]
        ends, start = np.cumsum(counts), 0
        codes = [np.zeros(0, np.int64)]
        while start < len(found):
            before = int(ends[start - 1]) if start else 0
            stop = max(start + 1, int(np.searchsorted(ends, before + _HITS_AT_ONCE, "right")))
            some = counts[start:stop]
            within = np.arange(int(some.sum())) - np.repeat(np.cumsum(some) - some, some)
            owners = self._owners[np.repeat(self._starts[found[start:stop]], some) + within]
            codes.append(_distinct(np.repeat(hits[start:stop], some) * self._num + owners, len(signatures) * self._num))
            start = stop
        every = _distinct(np.concatenate(codes), len(signatures) * self._num)
        return every % self._num, every // self._num

    def _found(self, hits: NDArray[np.int64], keys: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which of some keys are among those of the sample, and their positions there."""
        places = np.minimum(self._first[keys >> self._place_shift], len(self._keys) - 1)
        found = [(hits[:0], places[:0])]
        # Few keys share their first bits, so this takes few iterations.
        while len(hits):
            there = self._keys[places]
            is_one = there == keys
            found.append((hits[is_one], places[is_one]))
            goes_on = (there < keys) & (places + 1 < len(self._keys))
            hits, keys, places = hits[goes_on], keys[goes_on], places[goes_on] + 1
        return np.concatenate([hits for hits, _ in found]), np.concatenate([places for _, places in found])


def _band_keys(signatures: NDArray[np.uint32]) -> NDArray[np.uint64]:
    """Return a hash of each band, which includes the number of the band: shape (n, bands)."""
    words = np.ascontiguousarray(signatures, np.uint32).view(np.uint64)
    keys = (words + np.arange(1, _BANDS + 1, dtype=np.uint64) * _MIX) * _OTHER
    keys ^= keys >> np.uint64(32)
    keys *= _MIX
    return keys


def _distinct(codes: NDArray[np.int64], num_cells: int) -> NDArray[np.int64]:
    """Return distinct codes below a bound, ascending; uses marks instead of sorting if there are many."""
    if num_cells > 16 * len(codes):
        return distinct(codes)
    marks = np.zeros(num_cells, bool)
    marks[codes] = True
    return np.flatnonzero(marks)


def _num_equal(
    signatures: NDArray[np.uint32], a: NDArray[np.int64], others: NDArray[np.uint32], b: NDArray[np.int64]
) -> NDArray[np.int64]:
    equal = np.zeros(len(a), np.int64)
    for part in slices(len(a), _AT_ONCE * 4):
        is_equal = signatures.take(a[part], 0) == others.take(b[part], 0)
        equal[part] = is_equal.view(np.uint8).sum(1, np.uint8)
    return equal


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
        a, rows, digests, equal = (np.concatenate(column) for column in zip(*new, strict=True))
        order = np.lexsort((rows, digests, a))
        a, rows, digests, equal = (column[order] for column in (a, rows, digests, equal))
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
        a, rows, equal = (np.concatenate(column) for column in zip(*self._all, strict=True))
        order = np.argsort(a, kind="stable")
        return a[order], rows[order], equal[order]


def _thinned(
    documents: Documents,
    sample: NDArray[np.int64],
    a: NDArray[np.int64],
    rows: NDArray[np.int64],
    equal: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the pairs to measure, and how many pairs each one represents; the number per estimate is limited."""
    of_estimate = np.bincount(equal, minlength=_SLOTS + 1)
    each = np.maximum(1, -(-of_estimate // _MOST_OF_ESTIMATE))[equal]
    mixed = (_digests(documents, sample[a])[:, 0] ^ _digests(documents, rows)[:, 1]) * _MIX
    taken = (mixed >> np.uint64(32)) % each.astype(np.uint64) == 0
    return a[taken], rows[taken], each[taken]


def _measured(
    documents: Documents, recipe: Recipe, a: NDArray[np.int64], b: NDArray[np.int64], threads: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the similarity of each pair of rows, NaN below the lowest one of interest, and its penalty."""
    order, places = np.unique(np.concatenate([a, b]), return_inverse=True)
    sides = places.astype(np.uint32)
    nothing = np.zeros(0, np.int64)
    collapsed = Collapsed(nothing, order.astype(np.uint32), nothing)
    with Verifier(documents, collapsed, recipe, RunContext(RunRules(threads))) as verifier:
        found, penalties = [np.zeros(0)], [np.zeros(0)]
        for part in slices(len(a), _PAIRS_AT_ONCE):
            later, earlier = sides[: len(a)][part], sides[len(a) :][part]
            lowest = lowest_similarity(recipe.measure)
            found.append(verifier.similarities(later, earlier, recipe.measure, lowest))
            reaches = ~np.isnan(found[-1])
            penalties.append(np.zeros(len(reaches)))
            penalties[-1][reaches] = verifier.differences(later[reaches], earlier[reaches], penalties_only=True)[0]
    return np.concatenate(found), np.concatenate(penalties)


def _keep(parts: Path, facts: dict[str, Any]) -> None:
    unfinished = parts / f"{_KEPT}.unfinished"
    kept = {"checksum": _checksum(facts), "facts": facts}
    unfinished.write_text(json.dumps(kept), encoding="utf-8", newline="\n")
    unfinished.replace(parts / _KEPT)


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
