"""Search of fingerprints on a Redis server by blocks and sorted sets, as it is usually implemented; for teaching.

Two fingerprints that differ in at most 3 of 64 bits agree in at least one of four blocks of 16 bits, by the pigeonhole
principle. Each value of a block has a sorted set of the fingerprints with this value, with their numbers of ones as
scores. Numbers of ones differ by no more than the distance, so a range of scores contains all candidates.

An index does not use it: :class:`likewise.redis.RedisIndex` needs less memory, and its checks and additions are atomic.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from likewise.errors import InvalidParameter, check_integer

_BLOCKS = 4
_BLOCK_BYTES = 2


class SortedSetSearch:
    """All fingerprints of 64 bits within a distance of at most 3, kept in sorted sets on a Redis server.

    The keys are the prefix, a block from 1 to 4, a colon, and the 2 bytes of the block.

    Parameters
    ----------
    client : redis.Redis
        A client of the package ``redis`` that does not decode replies.
    prefix : bytes
        Prefix of all keys.
    within : int
        Maximum distance in bits, 0 to 3.

    Raises
    ------
    InvalidParameter
        If `within` is out of range.

    Notes
    -----
    The four blocks of uniform fingerprints have 4 n / 65,536 candidates together. At distance 3, the scores exclude
    about half of them. Two clients that query and add at the same time can both miss the fingerprint of the other.
    """

    def __init__(self, client: Any, *, prefix: bytes = b"fingerprints:", within: int = 3) -> None:
        self._client, self._prefix = client, prefix
        self._within = check_integer("within", within, 0, _BLOCKS - 1)

    def add(self, fingerprints: NDArray[np.uint64]) -> None:
        """Add fingerprints, in one round trip. Fingerprints that already exist do not change.

        Parameters
        ----------
        fingerprints : ndarray of shape (n,), uint64
            The fingerprints.
        """
        members = _members(fingerprints)
        pipeline = self._client.pipeline(transaction=False)
        for member, num_ones in members:
            for key in self._keys(member):
                pipeline.zadd(key, {member: num_ones})
        pipeline.execute()

    def query(self, fingerprint: int) -> NDArray[np.uint64]:
        """Return all fingerprints within the distance of one of 64 bits, ascending, as uint64, in one round trip."""
        ((member, num_ones),) = _members(np.array([fingerprint], np.uint64))
        pipeline = self._client.pipeline(transaction=False)
        for key in self._keys(member):
            pipeline.zrangebyscore(key, num_ones - self._within, num_ones + self._within)
        candidates = {one for found in pipeline.execute() for one in found}
        words = np.frombuffer(b"".join(sorted(candidates)), "<u8").astype(np.uint64)
        return np.sort(words[np.bitwise_count(words ^ np.uint64(fingerprint)) <= self._within])

    def _keys(self, member: bytes) -> list[bytes]:
        starts = range(0, len(member), _BLOCK_BYTES)
        return [
            self._prefix + b"%d:" % (block + 1) + member[start : start + _BLOCK_BYTES]
            for block, start in enumerate(starts)
        ]


def _members(fingerprints: NDArray[np.uint64]) -> list[tuple[bytes, int]]:
    """Return each fingerprint as bytes, little-endian, and its number of ones."""
    words = np.asarray(fingerprints)
    if words.dtype != np.uint64 or words.ndim != 1:
        raise InvalidParameter("fingerprints", f"shape {words.shape} of {words.dtype}; expected (n,) of uint64")
    ones = np.bitwise_count(words).tolist()
    return [(word.tobytes(), num) for word, num in zip(words.astype("<u8"), ones, strict=True)]
