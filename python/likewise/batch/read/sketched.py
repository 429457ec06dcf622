"""One sketched piece of the input: all that is kept of it once its texts are dropped."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.io.source.source import Piece


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
