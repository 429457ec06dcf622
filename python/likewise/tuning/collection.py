"""Documents used for tuning: a small collection, or a sample of a large one, and the labeled documents."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from likewise._native import Texts
from likewise.arrays import slices
from likewise.batch.read.ingest import open_documents, read_into
from likewise.errors import InvalidInput, counted
from likewise.hamming.pairs import hamming_distance
from likewise.io.source.source import Source
from likewise.job.reading import RunContext, RunRules, scratch_for
from likewise.progress import Progress
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights, table_rules
from likewise.stages.features import features
from likewise.stages.sketch import sketch
from likewise.stages.verify import verify_pairs
from likewise.stages.weights import Sample
from likewise.tuning.grid import Candidate

# Maximum number of documents, for a matrix with one value per pair: 256 MB in single precision.
MOST_DOCUMENTS = 8000
# Maximum number of features of all documents; with more, their lists would take gigabytes.
MOST_FEATURES = 1 << 26
# Features, or pairs that share one, processed at once.
_PAIRS_AT_ONCE = 1 << 20
# Features in one matrix product.
_COLUMNS = 1024
# Features in more than 1/16 of the documents use the matrix product, which is faster there.
_SHARE_OF_WIDE = 16
_LEAST_WIDE = 32
# Integers below these bounds are exact in single and double precision, in any order of addition.
_EXACT_SINGLE, _EXACT_DOUBLE = 1 << 24, 1 << 53

# For a large collection, a quarter of the sample is drawn at random, and each of these adds its nearest documents.
_SHARE_OF_SEEDS = 4
_NEAREST_OF_SEED = 2
# Fingerprints of the whole collection that are compared with the seeds at once.
_AT_ONCE = 1 << 14
# Fewer pairs than this are measured one by one.
_LEAST_PAIRS_AT_ONCE = 1000


def similarity_of_all(
    texts: Texts, pairs: NDArray[np.int64], recipe: Recipe, *, measure: str, threads: int
) -> NDArray[np.float64] | None:
    """Return bit-equal results of ``verify_pairs`` for these pairs; None if this method does not apply.

    Shared weights are integers, added without rounding: pair by pair for features of few documents, by a matrix product
    for the others. Merging both feature lists of each pair takes several times as long.
    """
    offsets, values, weights = features(texts, recipe, threads=threads)
    num_documents = len(offsets) - 1
    if num_documents > MOST_DOCUMENTS or len(values) > MOST_FEATURES:
        return None
    documents = np.repeat(np.arange(num_documents, dtype=np.uint16), np.diff(offsets))
    sizes = weights.astype(np.float64)
    if measure == "cosine":
        sizes **= 2
    totals = np.bincount(documents, sizes, num_documents)
    del sizes
    largest = totals.max(initial=0.0)
    if largest >= _EXACT_DOUBLE:
        return None
    shared = np.zeros((num_documents, num_documents), np.float32 if largest < _EXACT_SINGLE else np.float64)
    for rows, starts, entries in _by_feature(values, documents, weights):
        counts = np.diff(starts)
        if measure == "jaccard":
            if (entries != np.repeat(entries[starts[:-1]], counts)).any():
                return None
            _add_shared(shared, rows, starts, np.ones(len(rows), np.uint32), entries)
        else:
            _add_shared(shared, rows, starts, entries, entries)
    found = np.empty(len(pairs))
    for part in slices(len(pairs), _PAIRS_AT_ONCE):
        a, b = np.minimum(pairs[part, 0], pairs[part, 1]), np.maximum(pairs[part, 0], pairs[part, 1])
        both = np.where(a == b, totals[a], shared[a, b])
        if measure == "jaccard":
            whole = totals[a] + totals[b] - both
        else:
            # The product is rounded once, as in the core, which takes no root if both totals are equal.
            whole = np.where(totals[a] == totals[b], totals[a], np.sqrt(totals[a] * totals[b]))
        # Two documents without features are equal; one without features has similarity 0 to others.
        both[(totals[a] == 0) & (totals[b] == 0)] = 1.0
        whole[whole == 0] = 1.0
        found[part] = both / whole
    return found


def _by_feature(
    values: NDArray[np.uint64], documents: NDArray[np.uint16], weights: NDArray[np.uint32]
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.uint32]]]:
    """Yield batches of features that several documents have: (documents, starts and end of the features, weights)."""
    num_parts = max(1, -(-len(values) // _PAIRS_AT_ONCE))
    for part in range(num_parts):
        some = np.flatnonzero(values % np.uint64(num_parts) == part) if num_parts > 1 else np.arange(len(values))
        some = some[np.argsort(values[some], kind="stable")]
        ordered = values[some]
        is_first = np.ones(len(some), bool)
        is_first[1:] = ordered[1:] != ordered[:-1]
        counts = np.diff(np.append(np.flatnonzero(is_first), len(some)))
        some = some[np.repeat(counts > 1, counts)]
        yield documents[some].astype(np.int64), np.concatenate([[0], np.cumsum(counts[counts > 1])]), weights[some]


def _add_shared(
    shared: NDArray[np.floating],
    rows: NDArray[np.int64],
    starts: NDArray[np.int64],
    left: NDArray[np.uint32],
    right: NDArray[np.uint32],
) -> None:
    """For each feature, add left * right to the entries of all pairs of its documents, above the diagonal."""
    num_documents, flat = len(shared), shared.reshape(-1)
    counts = np.diff(starts)
    least_wide = max(_LEAST_WIDE, num_documents // _SHARE_OF_WIDE)
    for count in np.unique(counts[counts < least_wide]).tolist():
        which = starts[:-1][counts == count]
        first, second = np.triu_indices(count, 1)
        step = max(1, _PAIRS_AT_ONCE // len(first))
        for begin in range(0, len(which), step):
            places = which[begin : begin + step, None] + np.arange(count)
            a, b = places[:, first].ravel(), places[:, second].ravel()
            weight = left[a].astype(shared.dtype) * right[b].astype(shared.dtype)
            np.add.at(flat, rows[a] * num_documents + rows[b], weight)
    wide = np.flatnonzero(counts >= least_wide)
    for begin in range(0, len(wide), _COLUMNS):
        some = wide[begin : begin + _COLUMNS]
        columns = np.repeat(np.arange(len(some)), counts[some])
        places = np.concatenate([np.arange(starts[one], starts[one + 1]) for one in some.tolist()])
        one_side = np.zeros((num_documents, len(some)), shared.dtype)
        one_side[rows[places], columns] = left[places]
        other_side = one_side
        if not np.array_equal(left[places], right[places]):
            other_side = np.zeros_like(one_side)
            other_side[rows[places], columns] = right[places]
        shared += one_side @ other_side.T


@dataclass(frozen=True, eq=False)
class Collection:
    """Documents used for tuning."""

    num_documents: int
    # Rows of the documents used, ascending
    rows: NDArray[np.int64]
    doc_ids: list[str]
    texts: Texts
    # Whether each is in the sample; the others are there because labels name them
    is_sampled: NDArray[np.bool_]
    # The whole input, on which weights are counted
    sources: Sequence[Source]
    # How the sources are read
    rules: RunRules
    progress: Progress
    _tables: dict[str, Weights] = field(default_factory=dict, init=False)

    @property
    def sample_pairs(self) -> NDArray[np.int64]:
        """All pairs of the sample, as positions in this collection: shape (m, 2)."""
        places = np.flatnonzero(self.is_sampled)
        first, second = np.triu_indices(len(places), 1)
        return np.stack([places[first], places[second]], axis=1)

    def similarity(self, candidate: Candidate, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return exact similarities of pairs of documents by a candidate; weights are those of the whole input.

        For Hamming distances, 1 - distance / bits, and 0 for pairs with few features that fail the additional check
        (`short_threshold`) at any radius.
        """
        threads = self.rules.threads
        recipe = candidate.features()
        if recipe.needs_counting:
            recipe = recipe.with_table(self._table(recipe))
        near = recipe.sketch
        if not isinstance(near, SimHashDistance):
            if len(pairs) >= _LEAST_PAIRS_AT_ONCE and len(pairs) * 4 >= len(self.texts) ** 2:
                found = similarity_of_all(self.texts, pairs, recipe, measure=candidate.measure, threads=threads)
                if found is not None:
                    return found
            return verify_pairs(self.texts, pairs, recipe, measure=candidate.measure, threads=threads)
        fingerprints = sketch(self.texts, recipe, threads=threads)
        array, num_features = fingerprints.array, fingerprints.num_features
        found = np.empty(len(pairs))
        for part in slices(len(pairs), _AT_ONCE * 16):
            found[part] = 1 - hamming_distance(array[pairs[part, 0]], array[pairs[part, 1]]) / near.bits
        few = np.flatnonzero(near.is_short(np.minimum(num_features[pairs[:, 0]], num_features[pairs[:, 1]])))
        if len(few):
            alike = verify_pairs(self.texts, pairs[few], recipe, threads=threads, once=True)
            found[few[alike < near.short_threshold]] = 0.0
        # An empty text matches only empty texts.
        differs = fingerprints.is_empty[pairs[:, 0]] != fingerprints.is_empty[pairs[:, 1]]
        found[differs] = 0.0
        return found

    def _table(self, recipe: Recipe) -> Weights:
        """Return the weights of features as a run counts them, once for all recipes with these features."""
        rules = table_rules("idf", recipe.to_dict())
        if rules not in self._tables:
            self._tables[rules] = self._counted.count(recipe, threads=self.rules.threads)
        return self._tables[rules]

    @cached_property
    def _counted(self) -> Sample:
        """The documents of the whole input in which a run counts weights."""
        sample = Sample()
        read_into(sample, self.sources, "weighing", RunContext(RunRules(self.rules.threads, "skip")))
        return sample


@contextmanager
def open_collection(
    sources: Sequence[Source],
    rules: RunRules,
    labeled_ids: Sequence[str],
    *,
    most_documents: int,
    seed: int,
    fold: Recipe,
    progress: Progress,
) -> Iterator[Collection]:
    """Read the sources once, and yield the texts of a sample and of the labeled documents, as a context."""
    with scratch_for(sources) as work:
        with open_documents(sources, fold, RunContext(rules, progress=progress), work=work) as documents:
            num_documents = len(documents)
            if num_documents < 2:
                raise InvalidInput(f"{counted(num_documents, 'document')} in the inputs; tuning needs at least two")
            fingerprints = documents.sketches.reshape(num_documents, -1)
            sampled = _sample(fingerprints, most_documents, seed)
            wanted = set(labeled_ids)
            labeled = []
            if wanted:
                for part in slices(num_documents, _AT_ONCE):
                    ids = documents.doc_ids(np.arange(part.start, part.stop)).to_pylist()
                    labeled += [part.start + i for i, doc_id in enumerate(ids) if doc_id in wanted]
            rows = np.union1d(sampled, np.array(labeled, np.int64))
            parts: list[tuple[slice, Texts]] = [(part, read()) for part, read in documents.texts(rows, 1)]
            order, batches = [], []
            for part, batch in parts:
                order.append(np.arange(part.start, part.stop))
                batches.append(batch)
            back = np.argsort(np.concatenate(order), kind="stable")
            held = Texts.concat(batches).take(back)
            doc_ids = documents.doc_ids(rows).to_pylist()
        # Weights are counted later, while the inputs can still be read.
        yield Collection(
            num_documents,
            rows,
            doc_ids,
            held,
            np.isin(rows, sampled),
            sources,
            rules._replace(duplicate_ids="allow"),
            progress,
        )


def _sample(fingerprints: NDArray[np.uint64], most: int, seed: int) -> NDArray[np.int64]:
    """Return sampled rows, ascending: all, or random seeds, their nearest documents, and others."""
    num_documents = len(fingerprints)
    if num_documents <= most:
        return np.arange(num_documents)
    order = np.random.default_rng(seed).permutation(num_documents)
    seeds = np.sort(order[: max(1, most // _SHARE_OF_SEEDS)])
    nearest = _nearest(fingerprints, seeds)
    chosen = np.union1d(seeds, nearest.ravel())[:most] if most < len(seeds) else np.union1d(seeds, nearest.ravel())
    others = order[~np.isin(order, chosen)][: max(0, most - len(chosen))]
    return np.union1d(chosen, others)


def _nearest(fingerprints: NDArray[np.uint64], seeds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the nearest rows of each seed, without itself: shape (seeds, 2). Scans all, 16 bytes per document."""
    best_rows = np.repeat(seeds[:, None], _NEAREST_OF_SEED, axis=1)
    best = np.full(best_rows.shape, 1 << 20, np.int64)
    for part in slices(len(fingerprints), _AT_ONCE):
        rows = np.arange(part.start, part.stop)
        distance = np.zeros((len(seeds), len(rows)), np.int64)
        for word in range(fingerprints.shape[1]):
            distance += np.bitwise_count(fingerprints[seeds, word][:, None] ^ fingerprints[part, word][None, :])
        distance[rows[None, :] == seeds[:, None]] = 1 << 20
        few = min(_NEAREST_OF_SEED, len(rows))
        near = np.argpartition(distance, few - 1, axis=1)[:, :few]
        both = np.concatenate([best, np.take_along_axis(distance, near, 1)], axis=1)
        all_rows = np.concatenate([best_rows, rows[near]], axis=1)
        keep = np.argsort(both, axis=1, kind="stable")[:, :_NEAREST_OF_SEED]
        best, best_rows = np.take_along_axis(both, keep, 1), np.take_along_axis(all_rows, keep, 1)
    return best_rows
