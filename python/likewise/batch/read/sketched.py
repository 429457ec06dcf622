"""Pieces of the input without their texts: sketches, or features held between two passes."""

import dataclasses
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.budget.room import MOST_HELD_BYTES
from likewise.io.source.source import Piece, Source
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe

_NO_TEXTS = _native.Texts.from_list([])
# Approximate bytes of a document's columns in addition to its features.
_BYTES_A_DOCUMENT = 60


@dataclass(frozen=True, eq=False)
class SketchedPiece:
    """Consecutive documents of one input as columns, without texts."""

    # Locations, ids and bad rows; its texts are empty
    piece: Piece
    # Concatenated native sketches
    sketches: NDArray[Any]
    # Full, short or empty; number of distinct features
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
    # Digests of the feature sets
    digests: NDArray[np.uint64]
    # Lengths in Unicode scalars, if `keep` needs them
    text_lengths: NDArray[np.uint32] | None
    # Handle of the texts in the spool
    handle: int | None

    @property
    def num_bytes(self) -> int:
        """Approximate memory of the columns in bytes."""
        arrays = (self.sketches, self.shapes, self.num_features, self.digests, self.piece.offsets)
        # 32 bytes for lines, lengths and ids.
        return sum(array.nbytes for array in arrays) + 32 * len(self.shapes)


def sketched_piece(
    piece: Piece, batch: _native.SketchBatch, lengths: NDArray[np.uint32] | None, handle: int | None
) -> SketchedPiece:
    """Return a piece with its sketches, without its texts."""
    return SketchedPiece(
        piece=dataclasses.replace(piece, texts=_NO_TEXTS),
        sketches=np.asarray(batch.sketches),
        shapes=np.asarray(batch.shapes),
        num_features=np.asarray(batch.num_features),
        digests=np.asarray(batch.digests),
        text_lengths=lengths,
        handle=handle,
    )


@dataclass(frozen=True, eq=False)
class HeldPiece:
    """A piece of the input with its features."""

    # Locations and ids; its texts are empty
    piece: Piece
    # Features of each text
    features: _native.HeldFeatures
    # Lengths in Unicode scalars, if `keep` needs them
    text_lengths: NDArray[np.uint32] | None

    @property
    def num_bytes(self) -> int:
        """Approximate memory of the features and columns in bytes."""
        return self.features.num_bytes + _BYTES_A_DOCUMENT * len(self.piece.lines)


class HeldDocuments:
    """Features or sketches of whole jobs of the first pass, up to a memory limit. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_HELD_BYTES, *, keeps: bool = False) -> None:
        self._most_bytes, self._keeps = most_bytes, keeps
        self._num_bytes = 0
        self._lock = threading.Lock()
        self._jobs: dict[tuple[int, int], Sequence[HeldPiece | SketchedPiece]] = {}
        self._needs_lengths = False

    def begin(self, recipe: Recipe, *, needs_lengths: bool) -> bool:
        """Return whether features of this recipe can be held: only those of MinHash with weights by rarity alone."""
        self._needs_lengths = needs_lengths
        return self._most_bytes > 0 and isinstance(recipe.sketch, MinHash) and recipe.weights == "idf"

    def has_room(self, source: Source | None = None) -> bool:
        """Return whether more may be held, and from this source: texts that are spooled must be read again anyway."""
        return self._num_bytes < self._most_bytes and (source is None or source.can_read_again)

    def piece(self, piece: Piece, features: _native.HeldFeatures) -> HeldPiece:
        """Return the data to hold for a piece, without its texts."""
        lengths = np.asarray(piece.texts.lengths()) if self._needs_lengths else None
        return HeldPiece(dataclasses.replace(piece, texts=_NO_TEXTS), features, lengths)

    def add(self, source: int, job: int, pieces: Sequence[HeldPiece | SketchedPiece]) -> bool:
        """Hold all pieces of a job, identified by source number and job number; return False if memory is short."""
        num_bytes = sum(one.num_bytes for one in pieces)
        with self._lock:
            has_room = self._num_bytes + num_bytes <= self._most_bytes
            if has_room:
                self._num_bytes += num_bytes
                self._jobs[source, job] = pieces
        return has_room

    def clear(self) -> None:
        """Release everything, since the recipe has other features."""
        self._jobs.clear()
        self._num_bytes = 0

    def all_features(self) -> list[_native.HeldFeatures]:
        """Return all held features."""
        return [one.features for pieces in self._jobs.values() for one in pieces if isinstance(one, HeldPiece)]

    def take(self, source: int, job: int) -> Sequence[HeldPiece | SketchedPiece] | None:
        """Return the pieces of a job and, unless they are kept, release them; None if they were not held."""
        return self._jobs.get((source, job)) if self._keeps else self._jobs.pop((source, job), None)

    def features(self, starts: NDArray[np.integer[Any]]) -> Iterator[tuple[range, _native.HeldFeatures]]:
        """Yield rows and features of all pieces of the sources that are held as a whole."""
        for source, keys in groupby(sorted(self._jobs), key=itemgetter(0)):
            pieces = [one for key in keys for one in self._jobs[key] if isinstance(one, HeldPiece)]
            ends = np.cumsum([starts[source], *(len(one.piece.lines) for one in pieces)]).tolist()
            if ends[-1] == starts[source + 1]:
                for one, low, high in zip(pieces, ends, ends[1:], strict=False):
                    yield range(low, high), one.features
