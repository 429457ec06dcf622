"""What is kept of a piece of the input without its texts: sketches, or features held between two passes."""

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.budget.room import MOST_HELD_BYTES
from likewise.io.source.source import Piece, Source
from likewise.recipe.methods import MinHash
from likewise.recipe.recipe import Recipe
from likewise.recipe.weights import Weights

_NO_TEXTS = _native.Texts.from_list([])
# Columns of a document beside its features, about.
_BYTES_A_DOCUMENT = 60


@dataclass(frozen=True, eq=False)
class SketchedPiece:
    """Consecutive documents of one input as columns, their texts gone.

    Parameters
    ----------
    piece : Piece
        Places, ids and bad rows; its texts are empty.
    sketches : ndarray, flat
        Native sketches end to end.
    shapes, num_features : ndarray of shape (n,)
        Full, short or empty; distinct features.
    digests : ndarray of shape (2n,), uint64
        Of the feature sets.
    text_lengths : ndarray of shape (n,), uint32, optional
        Unicode scalars, where `keep` asks.
    handle : int, optional
        Of the texts in the spool.
    """

    piece: Piece
    sketches: NDArray[Any]
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
    digests: NDArray[np.uint64]
    text_lengths: NDArray[np.uint32] | None
    handle: int | None

    @property
    def num_bytes(self) -> int:
        """Memory of the columns, about."""
        arrays = (self.sketches, self.shapes, self.num_features, self.digests, self.piece.offsets)
        # Lines, lengths and ids of some twenty bytes.
        return sum(array.nbytes for array in arrays) + 32 * len(self.shapes)


def sketched_piece(
    piece: Piece, batch: _native.SketchBatch, lengths: NDArray[np.uint32] | None, handle: int | None
) -> SketchedPiece:
    """Return a piece, its texts gone, with its sketches."""
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
    """A piece of the input whose features are cut.

    Parameters
    ----------
    piece : Piece
        Places and ids; its texts are empty.
    features : HeldFeatures
        Of each text.
    text_lengths : ndarray of shape (n,), uint32, optional
        Unicode scalars, where `keep` asks.
    """

    piece: Piece
    features: _native.HeldFeatures
    text_lengths: NDArray[np.uint32] | None

    @property
    def num_bytes(self) -> int:
        """Memory of the features and columns, about."""
        return self.features.num_bytes + _BYTES_A_DOCUMENT * len(self.piece.lines)


class HeldDocuments:
    """Features or sketches of whole jobs of the first pass, up to a bound; safe to use from several threads at once.

    Parameters
    ----------
    most_bytes : int
        What is beyond is not held: the second pass cuts it again, to the same features.
    """

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._lock = threading.Lock()
        self._jobs: dict[tuple[int, int], Sequence[HeldPiece | SketchedPiece]] = {}
        self._needs_lengths = False

    def begin(self, recipe: Recipe, *, needs_lengths: bool) -> bool:
        """Return whether features by this recipe can be held: those of MinHash that are weighed by rarity alone."""
        self._needs_lengths = needs_lengths
        return self._most_bytes > 0 and isinstance(recipe.sketch, MinHash) and recipe.weights == "idf"

    def has_room(self, source: Source | None = None) -> bool:
        """Return whether more may be held, and of this source: texts that are put aside have to be read again."""
        return self._num_bytes < self._most_bytes and (source is None or source.can_read_again)

    def piece(self, piece: Piece, features: _native.HeldFeatures) -> HeldPiece:
        """Return what is held of a piece, its texts gone."""
        lengths = np.asarray(piece.texts.lengths()) if self._needs_lengths else None
        return HeldPiece(dataclasses.replace(piece, texts=_NO_TEXTS), features, lengths)

    def add(self, source: int, job: int, pieces: Sequence[HeldPiece | SketchedPiece]) -> None:
        """Hold all pieces of a job, by the number of its source and its own, if there is room."""
        num_bytes = sum(one.num_bytes for one in pieces)
        with self._lock:
            if self._num_bytes + num_bytes <= self._most_bytes:
                self._num_bytes += num_bytes
                self._jobs[source, job] = pieces

    def weigh(self, table: Weights, *, threads: int) -> None:
        """Weigh all features that are held by the table that was counted."""
        held = [one.features for pieces in self._jobs.values() for one in pieces if isinstance(one, HeldPiece)]
        _native.weigh_held(held, table.native, threads=threads)

    def take(self, source: int, job: int) -> Sequence[HeldPiece | SketchedPiece] | None:
        """Return the pieces of a job, which is held no more; None if it was not."""
        return self._jobs.pop((source, job), None)

    def clear(self) -> None:
        """Hold nothing: the recipe has other features now."""
        self._jobs.clear()
