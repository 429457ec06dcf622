"""Arriving documents: their sketches and the other data that decisions need."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.errors import InvalidInput, RecipeMismatch
from likewise.index.redis.layout import MAX_ID_BYTES, Layout
from likewise.index.redis.search import ShortSet
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe
from likewise.stages.documents import as_documents
from likewise.stages.sketch import EMPTY, Sketches


@dataclass(frozen=True, eq=False)
class Arrivals:
    """Some documents, sketched.

    Parameters
    ----------
    raw : ndarray of shape (n, bytes), uint8
        Fingerprints as bytes.
    words : ndarray of shape (n, words), uint64
        Fingerprints as words.
    is_empty : ndarray, bool
        Empty documents.
    sets : list of (ShortSet or None)
        Feature sets of documents with so few features that these are compared, too.
    digests : ndarray, uint32, optional
        Hashes of the texts, to distinguish texts with equal fingerprints. None if sketches were given.
    """

    raw: NDArray[np.uint8]
    words: NDArray[np.uint64]
    is_empty: NDArray[np.bool_]
    sets: list[ShortSet | None]
    digests: NDArray[np.uint32] | None

    def __len__(self) -> int:
        return len(self.raw)

    def part(self, start: int, stop: int) -> "Arrivals":
        """Return the documents ``start:stop``."""
        digests = None if self.digests is None else self.digests[start:stop]
        which = slice(start, stop)
        return Arrivals(self.raw[which], self.words[which], self.is_empty[which], self.sets[which], digests)

    def is_same_text(self, i: int, digest: int | None, fingerprint: bytes) -> bool:
        """Return whether document `i` has this fingerprint and, if both have a digest, this digest."""
        is_same = digest is None or self.digests is None or int(self.digests[i]) == digest
        return is_same and bool(self.raw[i].tobytes() == fingerprint)


def arrivals_of(documents: Any, recipe: Recipe, layout: Layout, threads: int) -> Arrivals:  # noqa: ANN401
    """Sketch documents: texts of any kind that :func:`likewise.sketch` accepts, or Sketches.

    Raises
    ------
    InvalidInput
        If an entry is not a text, or a sketch has so few features that its text is needed.
    RecipeMismatch
        If sketches were made with a different recipe.
    """
    if isinstance(documents, Sketches):
        return _of_sketches(documents, recipe, layout)
    texts = as_documents(documents, recipe)
    near = recipe.method_as(SimHashDistance)
    batch = _native.sketch_simhash(texts, recipe.feature_rules, bits=near.bits, sets=True, threads=threads)
    is_empty = np.asarray(batch.shapes) == EMPTY
    words = np.asarray(batch.sketches).reshape(-1, near.num_words)
    sets = _short_sets(texts, recipe, batch, is_empty)
    digests = np.asarray(texts.hashes(0)).astype(np.uint32)
    return Arrivals(layout.fingerprint_bytes(words), words, is_empty, sets, digests)


def _short_sets(
    texts: _native.Texts, recipe: Recipe, batch: _native.SketchBatch, is_empty: NDArray[np.bool_]
) -> list[ShortSet | None]:
    sets: list[ShortSet | None] = [None] * len(is_empty)
    few = np.flatnonzero(recipe.method_as(SimHashDistance).may_meet_short(np.asarray(batch.num_features)) & ~is_empty)
    if not len(few):
        return sets
    digests = np.asarray(batch.digests).reshape(-1, 2)
    part = texts if len(few) == len(texts) else texts.take(few.astype(np.uint32))
    # The short check counts each feature once.
    offsets, values, _ = (np.asarray(column) for column in _native.features(part, recipe.unweighted_rules))
    bounds = offsets.tolist()
    for i, row in enumerate(few.tolist()):
        sets[row] = ShortSet(digests[row].tobytes(), np.sort(values[bounds[i] : bounds[i + 1]]))
    return sets


def _of_sketches(sketches: Sketches, recipe: Recipe, layout: Layout) -> Arrivals:
    differing = recipe.sketch_differences(sketches.recipe)
    if differing:
        raise RecipeMismatch(
            "the sketches were made with a different recipe; sketch the texts again with the recipe of the index",
            differing,
        )
    near = recipe.method_as(SimHashDistance)
    few = np.flatnonzero(near.may_meet_short(sketches.num_features) & ~sketches.is_empty)
    if len(few):
        raise InvalidInput(
            f"a sketch of {sketches.num_features[few[0]]} features is too short to compare without its "
            "text; pass the text",
            row=int(few[0]),
        )
    words = np.ascontiguousarray(sketches.array, np.uint64).reshape(-1, near.num_words)
    return Arrivals(layout.fingerprint_bytes(words), words, sketches.is_empty, [None] * len(words), None)


def encoded_ids(ids: list[str]) -> list[bytes]:
    """Return ids as bytes.

    Raises
    ------
    InvalidInput
        If an id is empty or longer than 1,000 bytes.
    """
    encoded = []
    for row, doc_id in enumerate(ids):
        packed = doc_id.encode()
        if not 1 <= len(packed) <= MAX_ID_BYTES:
            raise InvalidInput(f"the id has {len(packed)} bytes; expected 1 to {MAX_ID_BYTES}", row=row)
        encoded.append(packed)
    return encoded
