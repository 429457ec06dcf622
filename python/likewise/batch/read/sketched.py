"""Pieces of the input without their texts, and those held between two passes."""

import dataclasses
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise import _native
from likewise.batch.budget.room import MOST_HELD_BYTES
from likewise.io.source.source import Piece

_NO_TEXTS = _native.Texts.from_list([])


@dataclass(frozen=True, eq=False)
class SketchedPiece:
    """Consecutive documents of one input as columns, without texts."""

    # Locations, ids and bad rows; its texts are empty
    piece: Piece
    sketches: NDArray[Any]
    # Full, short or empty; number of distinct features
    shapes: NDArray[np.uint8]
    num_features: NDArray[np.uint32]
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


class HeldDocuments:
    """Sketches of whole jobs of a first pass, up to a memory limit. Thread-safe."""

    def __init__(self, most_bytes: int = MOST_HELD_BYTES) -> None:
        self._most_bytes = most_bytes
        self._num_bytes = 0
        self._lock = threading.Lock()
        self._jobs: dict[tuple[int, int], Sequence[SketchedPiece]] = {}

    def has_room(self) -> bool:
        """Return whether more may be held."""
        return self._num_bytes < self._most_bytes

    def add(self, source: int, job: int, pieces: Sequence[SketchedPiece]) -> None:
        """Hold all pieces of a job, identified by source number and job number, unless memory is short."""
        num_bytes = sum(one.num_bytes for one in pieces)
        with self._lock:
            if self._num_bytes + num_bytes <= self._most_bytes:
                self._num_bytes += num_bytes
                self._jobs[source, job] = pieces

    def take(self, source: int, job: int) -> Sequence[SketchedPiece] | None:
        """Release the pieces of a job and return them; None if they were not held."""
        return self._jobs.pop((source, job), None)
