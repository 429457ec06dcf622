"""Pairs nominated for choosing a threshold: those that share a band, for each document the first by digest."""

import numpy as np
import pytest

from likewise.batch.decide import auto_threshold
from likewise.batch.decide.auto_threshold import MOST_PARTNERS, _Nominator, _Partners


def sharing(one, others):
    """Return pairs of signatures with two neighboring slots (even, odd) equal."""
    return {
        (a, b)
        for a, mine in enumerate(one.tolist())
        for b, theirs in enumerate(others.tolist())
        if any(mine[i : i + 2] == theirs[i : i + 2] for i in range(0, 128, 2))
    }


@pytest.mark.parametrize("place_bits", [2, 18])
@pytest.mark.parametrize("most_hits", [3, 1 << 20])
def test_pairs_that_share_a_band_are_nominated_once(monkeypatch, place_bits, most_hits):
    # So few leading bits that one place leads to many keys.
    monkeypatch.setattr(auto_threshold, "_PLACE_BITS", place_bits)
    monkeypatch.setattr(auto_threshold, "_HITS_AT_ONCE", most_hits)
    random = np.random.default_rng(3)
    one, others = (random.integers(0, 40, (num, 128)).astype(np.uint32) for num in (30, 50))
    others[7] = one[3]
    nominator = _Nominator(one)
    wanted = sharing(one, others)
    assert 20 < len(wanted) < 1500
    a, b = nominator.pairs(others)
    assert len(a) == len(wanted)
    assert set(zip(a.tolist(), b.tolist(), strict=True)) == wanted
    nominator.forget(np.array([3, 8]))
    assert set(zip(*(side.tolist() for side in nominator.pairs(others)), strict=True)) == {
        pair for pair in wanted if pair[0] not in (3, 8)
    }
    nominator.forget(np.arange(30))
    assert len(nominator.pairs(others)[0]) == 0


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
