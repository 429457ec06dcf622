"""Pairs nominated for choosing a threshold: those that share a band, for each document the first by digest."""

import numpy as np
import pytest

from likewise import _native
from likewise.batch.decide.auto_threshold import MOST_PARTNERS, _Partners
from likewise.errors import InvalidParameter


@pytest.mark.parametrize("kind", [np.uint8, np.uint16, np.uint32])
def test_pairs_that_share_a_band_are_nominated_once(kind):
    random = np.random.default_rng(3)
    one, others = (random.integers(0, 40, (num, 128)).astype(kind) for num in (30, 50))
    others[7] = one[3]
    wanted = {
        (a, b, equal)
        for a, mine in enumerate(one.tolist())
        for b, theirs in enumerate(others.tolist())
        # Two neighboring slots (even, odd)
        if any(mine[i : i + 2] == theirs[i : i + 2] for i in range(0, 128, 2))
        and (equal := sum(map(int.__eq__, mine, theirs))) >= 4
    }
    assert 20 < len(wanted) < 1500
    bands = _native.SampledBands(one.view(np.uint8).reshape(-1), 128, one.itemsize)
    for gone in ([], [3, 8], range(30)):
        left = bands.without(np.array(gone, np.uint32))
        pairs = [side.tolist() for side in map(np.asarray, left.pairs(others.view(np.uint8).reshape(-1), 4))]
        found = set(zip(*pairs, strict=True))
        assert found == {pair for pair in wanted if pair[0] not in gone}
        assert len(pairs[0]) == len(found)


def test_signatures_of_another_size_are_refused():
    signatures = np.zeros(256, np.uint8)
    with pytest.raises(InvalidParameter, match="signatures: 255 bytes are not a number of rows"):
        _native.SampledBands(signatures, 128, 2).pairs(signatures[:255], 0)


def test_each_document_has_its_first_partners_by_digest():
    random = np.random.default_rng(4)
    found, every, gone = _Partners(5), {a: [] for a in range(5)}, set()
    for level in range(6):
        a = random.choice([0, 0, 0, 1, 2], 90)
        # Digests of later levels are higher. The last of two documents has a different digest in each of its copies.
        digests = random.integers(0, 60, 90).astype(np.uint64) + np.uint64(1000 * level)
        rows = digests.astype(np.int64) * 3 + random.integers(0, 2, 90)
        equal = rows % 128
        for start in range(0, 90, 17):
            part = slice(start, start + 17)
            found.add((a[part], rows[part], digests[part], equal[part]))
        for one, digest, row in zip(a.tolist(), digests.tolist(), rows.tolist(), strict=True):
            every[one].append((digest, row))
        gone |= set(found.settled().tolist())
    wanted = set()
    for one, partners in every.items():
        first = {digest: min(row for d, row in partners if d == digest) for digest, _ in partners}
        wanted |= {(one, first[digest]) for digest in sorted(first)[:MOST_PARTNERS]}
        assert (one in gone) == (len(first) >= MOST_PARTNERS)
    a, rows, equal = found.all()
    assert gone == {0, 1, 2}
    assert len(a) == len(wanted)
    assert set(zip(a.tolist(), rows.tolist(), strict=True)) == wanted
    assert (equal == rows % 128).all()
