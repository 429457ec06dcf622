"""Document counts of the n-grams of items, from a weight table."""

from bisect import bisect_right
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidParameter, RecipeMismatch
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import MAX_WEIGHT, Weights, check_table

#: Words per n-gram, as in :class:`likewise._native.ItemTable`.
NGRAM = 5
_COMMAND = f"likewise weights CORPUS --shingle {NGRAM} -o TABLE"
_NGRAMS_AT_ONCE = 1 << 16
_LEAST_DOCUMENTS = 20
_LONGEST_COUNT = 2**32 - 1
# Odd, so that multiplication is invertible.
_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def check_fits(weights: object) -> Weights:
    """Return the table if its features are the n-grams of items."""
    if not isinstance(weights, Weights):
        raise InvalidParameter(
            "weights", f"{weights!r} is not a weight table; read one with likewise.Weights.read, or make it: {_COMMAND}"
        )
    if weights.kind != "idf":
        raise InvalidParameter("weights", f"a lexicon has no document frequencies; make a table: {_COMMAND}")
    try:
        check_table(weights, Recipe.minhash(weights="idf", tokens="auto", shingle=NGRAM).fields)
    except RecipeMismatch as error:
        raise RecipeMismatch(
            f"the weight table does not have the n-grams of items; make one with `{_COMMAND}`", error.differences
        ) from error
    return weights


def document_counts(texts: _native.Texts, scanned: NDArray[np.uint32], weights: Weights) -> NDArray[np.uint32]:
    """Return the number of documents that contain each n-gram of the items.

    In a table of n documents, a weight covers a range of frequencies; their geometric mean is used. It is off by a
    factor of at most n^(1/30) (1.6 for a million documents), or n^(1/20) for the lowest weight, before rounding.
    An n-gram missing from the table counts as one document if a scanned document has it, otherwise as zero.
    """
    frequencies = _frequencies(weights.num_documents)
    rules = Recipe.minhash(weights="none", tokens="auto", shingle=NGRAM).feature_rules
    counts = [np.zeros(0, np.uint32)]
    for ngrams in _ngrams(texts):
        offsets, features, _ = map(np.asarray, _native.features(_native.Texts.from_list(ngrams), rules))
        # Without their neighbors, some words are cut differently, into several features or none; use the rarest.
        rarest = np.full(len(ngrams), MAX_WEIGHT)
        if len(features):
            has_any = np.diff(offsets) > 0
            rarest[has_any] = np.maximum.reduceat(weights.weigh(features), offsets[:-1][has_any])
        counts.append(frequencies[rarest])
    return np.maximum(np.concatenate(counts), np.minimum(scanned, 1))


def _ngrams(texts: _native.Texts) -> Iterator[list[str]]:
    """Yield the distinct n-grams as written in the items, in the order in which an ItemTable numbers them."""
    counts, starts, ends, hashes = map(np.asarray, _native.cut_words(texts))
    bounds = np.append(0, np.cumsum(counts.astype(np.int64)))
    num_places = np.maximum(counts.astype(np.int64) - NGRAM + 1, 0)
    owners = np.repeat(np.arange(len(counts)), num_places)
    places = np.arange(len(owners)) + (bounds[:-1] - np.cumsum(num_places) + num_places)[owners]
    keys = np.zeros(len(places), np.uint64)
    for word in range(NGRAM):
        keys = keys * _FACTOR + hashes[places + word]
    firsts = np.sort(np.unique(keys, return_index=True)[1])
    number, data = -1, b""
    for first in range(0, len(firsts), _NGRAMS_AT_ONCE):
        part, found = firsts[first : first + _NGRAMS_AT_ONCE], []
        begins, behind = starts[places[part]], ends[places[part] + NGRAM - 1]
        for owner, start, end in zip(owners[part].tolist(), begins.tolist(), behind.tolist(), strict=True):
            if owner != number:
                number, data = owner, str(texts[owner]).encode()
            found.append(data[start:end].decode())
        yield found


def _frequencies(num_documents: int) -> NDArray[np.uint32]:
    """Return the document frequency of each weight from 1; 0 for the highest, if at most one document has it."""
    # A feature weighs at least w if df^30 <= n^(31 - 2w), and at least 1, with n = 20 or more.
    frequencies = np.zeros(MAX_WEIGHT + 1, np.uint32)
    least = 1
    for weight in range(MAX_WEIGHT, 0, -1):
        most = num_documents if weight == 1 else _greatest(num_documents, 31 - 2 * weight)
        if weight < MAX_WEIGHT or most > 1:
            frequencies[weight] = min(round((least * max(least, most)) ** 0.5), _LONGEST_COUNT)
        least = most + 1
    return frequencies


def _greatest(num_documents: int, exponent: int) -> int:
    """Return the greatest df with ``df^30 <= n^exponent``."""
    bound = max(num_documents, _LEAST_DOCUMENTS) ** exponent
    return bisect_right(range(1, num_documents + 1), bound, key=lambda df: df**30)
