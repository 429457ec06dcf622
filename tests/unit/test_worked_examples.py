"""Examples worked by hand in the literature; those of weights are in tests/oracle/test_weights.py."""

from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest

import likewise
from likewise import measures
from likewise.theory import MinHashFamily, PStableFamily


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (
            "1000010010101101111111100000101011010001001111100001001011001011",
            "1000010010101101011111100000101011010001001111100001101010001011",
        ),
        ("10101", "00110"),
    ],
)
def test_fingerprints_at_distance_3(a, b):
    codes = [np.array([int(bits, 2)], np.uint64) for bits in (a, b)]
    assert likewise.hamming_distance(*codes).tolist() == [3]
    assert likewise.hamming_pairs(np.concatenate(codes), within=3)[0].tolist() == [[0, 1]]
    assert len(likewise.hamming_pairs(np.concatenate(codes), within=2)[0]) == 0
    assert measures.similarity(list(a), list(b), "hamming") == 1 - 3 / len(a)


def test_min_hashes_are_equal_with_the_probability_of_the_jaccard_similarity():
    """For any two sets of up to five elements, over all 120 row permutations of their matrix."""
    orders = list(permutations(range(5)))
    columns = list(product([0, 1], repeat=5))
    first = {
        column: [min((order[row] for row in range(5) if column[row]), default=5) for order in orders]
        for column in columns
    }
    for a, b in product(columns, columns):
        united = sum(x | y for x, y in zip(a, b, strict=True))
        shared = sum(x & y for x, y in zip(a, b, strict=True))
        jaccard = Fraction(shared, united) if united else Fraction(1)
        num_equal = sum(x == y for x, y in zip(first[a], first[b], strict=True))
        assert Fraction(num_equal, 120) == jaccard
        family = MinHashFamily(5)
        distance = family.distances(family.rows(a)[0], family.rows(b))[0]
        assert family.least_probability(distance) == pytest.approx(float(jaccard))


def test_a_remainder_is_not_locality_sensitive():
    """Hash(x) = x % 8: 255 and 1023 collide though far apart, 255 and 257 do not though near."""
    near, far = (255, 257), (255, 1023)
    assert far[0] % 8 == far[1] % 8
    assert near[0] % 8 != near[1] % 8
    # No two numbers at distance 2 collide, and all at distance 768 do: p1 = 0 and p2 = 1, the wrong way round.
    numbers = np.arange(10_000)
    assert (numbers % 8 == (numbers + 2) % 8).mean() == 0.0
    assert (numbers % 8 == (numbers + 768) % 8).mean() == 1.0
    # Intervals of 8 at random offsets are locality sensitive.
    family = PStableFamily(1, width=8.0)
    values = family.draw(1, num=2000)([[255.0], [257.0], [1023.0]])
    meet_near, meet_far = ((values[0] == values[other]).mean() for other in (1, 2))
    assert meet_near == pytest.approx(family.least_probability(2.0), abs=0.04)
    assert meet_far == pytest.approx(family.least_probability(768.0), abs=0.04)
    assert meet_near > 0.75
    assert meet_far < 0.05
    assert family.sensitivity(2.0, 768.0).is_sensitive
