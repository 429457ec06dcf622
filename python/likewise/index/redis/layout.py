"""The layout of an index on the server: prefix of keys, bytes of records, entries of buckets.

Records, ids and blocks are packed strings in a limited number of keys, since a key per document would cost 60 bytes or
more. Links between a kept document and its duplicates are in the records, so groups need no keys. All keys of
an index share a hash tag: a script cannot span nodes of a cluster, so an index is on one node.
"""

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter
from likewise.recipe.methods import SimHashDistance
from likewise.recipe.recipe import Recipe

FORMAT = 2
# Records in a chunk, which is one string on the server: fixed-size records first, then the concatenated ids.
ROWS_A_CHUNK = 64
# Small enough that the ends of the ids of a chunk fit in 16 bits.
MAX_ID_BYTES = 1000
BLOCK_BITS = 16
MAX_WITHIN = {"classic": 3, "packed": 7}
NO_ROW = 0xFFFFFFFF
MAX_ROWS = NO_ROW - 1
# An entry of the id table, whose keys are the low 16 bits of the id's hash; `hash` holds the next 16 bits.
ID_ENTRY = np.dtype([("hash", "<u2"), ("row", "<u4")])
NUM_BLOCKS = 4

# Flags of a document, one byte of its record; the scripts have the same values (common.lua). A document that STANDS
# represents its class.
KEPT, STANDS, SHORT, EMPTY, GONE, HAS_DIGEST = 1, 2, 4, 8, 16, 32


@dataclass(frozen=True, eq=False)
class Layout:
    """Layout of fingerprints of one width for one radius.

    Parameters
    ----------
    kind : {"classic", "packed"}
        Sorted sets of fingerprints scored by their number of ones, or packed strings of fingerprints and rows.
    bits, within : int
        Width and radius, in bits.

    Attributes
    ----------
    num_bytes : int
        Bytes of a fingerprint.
    blocks : tuple of int
        First byte of each block of 16 bits. Two fingerprints within the radius are near in at least one block.
    probes : tuple of ndarray, uint16
        The masks of bits to flip for each block: all masks with at most as many ones as the block's radius.
    record : dtype
        Record of a document.
    entry_bytes : int
        Bytes of an entry of a packed bucket: the fingerprint without the block, then the row.
    """

    kind: str
    bits: int
    within: int
    num_bytes: int
    blocks: tuple[int, ...]
    probes: tuple[NDArray[np.uint16], ...]
    record: np.dtype[np.void]
    entry_bytes: int

    @property
    def is_classic(self) -> bool:
        """Whether buckets are sorted sets."""
        return self.kind == "classic"

    @property
    def chunk_bytes(self) -> int:
        """Bytes of a chunk before its ids."""
        return ROWS_A_CHUNK * self.record.itemsize

    def fingerprint_bytes(self, words: NDArray[np.uint64]) -> NDArray[np.uint8]:
        """Return the bytes (n, num_bytes) of fingerprints given as words (n, words)."""
        return np.ascontiguousarray(words).view(np.uint8).reshape(len(words), 8 * words.shape[1])[:, : self.num_bytes]

    def fingerprint_words(self, raw: NDArray[np.uint8]) -> NDArray[np.uint64]:
        """Return the words (n, words) of fingerprints given as bytes (n, num_bytes)."""
        padded = np.zeros((len(raw), -(-self.num_bytes // 8) * 8), np.uint8)
        padded[:, : self.num_bytes] = raw
        return padded.view(np.uint64)

    def without_block(self, raw: NDArray[np.uint8], block: int) -> NDArray[np.uint8]:
        """Return fingerprints without the bytes of one block."""
        at = self.blocks[block]
        return np.concatenate([raw[:, :at], raw[:, at + 2 :]], axis=1)


def layout_of(recipe: Recipe, kind: str) -> Layout:
    """Return the layout for a Hamming-only recipe.

    If disjoint blocks have radii r with sum(r + 1) >= k + 1, two fingerprints within k bits are within the radius of
    at least one block: otherwise they would differ in k + 1 bits.

    Raises
    ------
    InvalidParameter
        If the layout does not exist, or does not support this radius or width.
    """
    if kind not in MAX_WITHIN:
        raise InvalidParameter("layout", f"{kind!r} is not one of {', '.join(map(repr, MAX_WITHIN))}")
    near = recipe.method_as(SimHashDistance)
    bits, within = near.bits, near.within
    if within > MAX_WITHIN[kind]:
        raise InvalidParameter(
            "within",
            f"{within} is too large; layout {kind} supports at most {MAX_WITHIN[kind]} bits"
            + (", layout packed at most 7" if kind == "classic" else "; an index in a directory supports any radius"),
        )
    num_blocks = min(NUM_BLOCKS, bits // BLOCK_BITS)
    if kind == "classic" and num_blocks < NUM_BLOCKS:
        raise InvalidParameter("bits", f"{bits} is too few; layout classic needs fingerprints of at least 64 bits")
    stride = bits // BLOCK_BITS // num_blocks
    blocks = tuple(2 * stride * i for i in range(num_blocks))
    radii = [(within + 1 - i + num_blocks - 1) // num_blocks - 1 for i in range(num_blocks)]
    num_bytes = bits // 8
    record = np.dtype(
        [
            ("fingerprint", "u1", num_bytes),
            ("leader", "<u4"),  # for a kept document: its newest member
            ("previous", "<u4"),  # the next older member of the same leader
            ("digest", "<u4"),
            ("end", "<u2"),
            ("flags", "u1"),
            ("distance", "u1"),
            ("arrival_s", "<u4"),  # never decreases from row to row
        ]
    )
    return Layout(
        kind, bits, within, num_bytes, blocks, tuple(_masks(radius) for radius in radii), record, num_bytes + 2
    )


def _masks(radius: int) -> NDArray[np.uint16]:
    """Return all 16-bit masks with at most `radius` ones, or none for radius -1."""
    masks = [
        sum(1 << bit for bit in bits) for num in range(radius + 1) for bits in combinations(range(BLOCK_BITS), num)
    ]
    return np.array(masks, np.uint16)


def prefix_bytes(prefix: str) -> bytes:
    """Return the common beginning of all keys of an index, in braces, so that a cluster keeps them on one node.

    Raises
    ------
    InvalidParameter
        If the prefix contains a brace, is empty, or is longer than 100 bytes.
    """
    encoded = prefix.encode("utf-8", "surrogatepass") if isinstance(prefix, str) else b""
    if not 1 <= len(encoded) <= 100 or b"{" in encoded or b"}" in encoded:
        raise InvalidParameter("prefix", f"{prefix!r} given; expected 1 to 100 bytes without braces")
    return b"{" + encoded + b"}:"
