"""The search by blocks and sorted sets finds all fingerprints within the distance, by brute force."""

import numpy as np
import pytest

from likewise.errors import InvalidParameter
from likewise.theory.sorted_sets import SortedSetSearch


@pytest.mark.parametrize("within", range(4))
def test_it_finds_what_brute_force_finds(running, within):
    generator = np.random.default_rng(within)
    base = generator.integers(0, 2**64, 40, dtype=np.uint64)
    near = [base]
    for distance in range(1, 6):
        flipped = base.copy()
        for i in range(len(base)):
            for bit in generator.choice(64, distance, replace=False).tolist():
                flipped[i] ^= np.uint64(1 << bit)
        near.append(flipped)
    fingerprints = np.concatenate(near)
    running.client.flushall()
    search = SortedSetSearch(running.client, within=within)
    search.add(fingerprints)
    search.add(fingerprints[:5])
    for query in [*fingerprints.tolist(), 0, 2**64 - 1]:
        distances = np.bitwise_count(fingerprints ^ np.uint64(query))
        expected = np.unique(fingerprints[distances <= within])
        assert search.query(query).tolist() == expected.tolist()
    # Four sorted sets contain each fingerprint.
    assert sum(running.client.zcard(key) for key in running.client.keys("fingerprints:*")) == 4 * len(fingerprints)


def test_what_it_does_not_support():
    with pytest.raises(InvalidParameter, match="within"):
        SortedSetSearch(None, within=4)
    for wrong in (np.zeros(3, np.int64), np.zeros((3, 1), np.uint64)):
        with pytest.raises(InvalidParameter, match="fingerprints"):
            SortedSetSearch(None).add(wrong)
