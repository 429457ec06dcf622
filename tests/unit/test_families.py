"""Families of locality-sensitive hashing: measured collision rates are close to the stated probabilities.

The bound: the share of N independent draws that collide, each with probability p, is farther than e from p with
probability at most 2 exp(-2 N e^2) (Hoeffding 1963). `MARGIN` is the e for which that is 1e-9: with fixed seeds, a
test fails because a formula is wrong, not by chance.
"""

import math

import numpy as np
import pytest

from likewise import _native
from likewise.errors import InvalidParameter
from likewise.theory import (
    BitSamplingFamily,
    EditFamily,
    HyperplaneFamily,
    LSHIndex,
    MinHashFamily,
    PStableFamily,
    amplified_for,
)
from tests.oracle import measures as oracle

NUM_DRAWS = 20_000
MARGIN = math.sqrt(math.log(2e9) / (2 * NUM_DRAWS))


def sets(num_shared, num_own, dimension):
    """Return two sets that share `num_shared` elements and have `num_own` more each."""
    rows = np.zeros((2, dimension), int)
    rows[:, :num_shared] = 1
    rows[0, num_shared : num_shared + num_own] = 1
    rows[1, num_shared + num_own : num_shared + 2 * num_own] = 1
    return rows


def at_angle(degrees):
    rows = np.zeros((2, 5))
    rows[0, 1] = 3.0
    rows[1, 1], rows[1, 4] = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return rows


def bits_apart(num, dimension):
    rows = np.zeros((2, dimension), int)
    rows[1, :num] = 7
    return rows


def at_length(length):
    rows = np.full((2, 3), 5.0)
    rows[1] += np.array([2.0, -1.0, 2.0]) * length / 3.0
    return rows


# Family, two elements, their distance, and collision probabilities by wrong formulas.
CASES = {
    "min-hash, near": (MinHashFamily(30), sets(9, 3, 30), 6 / 15, [3 / 12, (9 / 15) ** 2]),
    "min-hash, far": (MinHashFamily(30), sets(2, 8, 30), 16 / 18, [2 / 10]),
    "hyperplanes, 30 degrees": (HyperplaneFamily(5), at_angle(30), 30.0, [math.cos(math.pi / 6), 1 - 30 / 360]),
    "hyperplanes, 120 degrees": (HyperplaneFamily(5), at_angle(120), 120.0, [0.25, 1 - 120 / 360]),
    "bit sampling": (BitSamplingFamily(20), bits_apart(7, 20), 7.0, [(13 / 20) ** 2, 7 / 20]),
    # Without the factor 2 for both tails, and with width and distance confused.
    "p-stable, near": (PStableFamily(3, width=4.0), at_length(2.0), 2.0, [0.8005, 0.9772 - 0.3450]),
    "p-stable, far": (PStableFamily(3, width=2.0), at_length(6.0), 6.0, [0.2611, 1 / 3]),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_collisions_are_as_likely_as_stated(case):
    family, data, distance, others = case
    rows = family.rows(data)
    assert family.distances(rows[0], rows[1:])[0] == pytest.approx(distance)
    values = family.draw(11, num=NUM_DRAWS)(data)
    measured = (values[0] == values[1]).mean()
    assert abs(measured - family.least_probability(distance)) < MARGIN
    assert family.least_probability(distance) == family.greatest_probability(distance)
    for other in others:
        assert abs(measured - other) > MARGIN, other
    assert family.least_probability(0) == 1.0


AMPLIFIED = {
    "AND": (lambda f: f.all_of(3), lambda p: p**3),
    "OR": (lambda f: f.any_of(3), lambda p: 1 - (1 - p) ** 3),
    "AND-OR": (lambda f: f.all_of(4).any_of(5), lambda p: 1 - (1 - p**4) ** 5),
    "OR-AND": (lambda f: f.any_of(5).all_of(4), lambda p: (1 - (1 - p) ** 5) ** 4),
    "cascade": (
        lambda f: f.all_of(2).any_of(3).any_of(2).all_of(2),
        lambda p: (1 - (1 - p**2) ** 6) ** 2,
    ),
}


@pytest.mark.parametrize("name", AMPLIFIED)
def test_amplified_collisions_are_as_likely_as_stated(name):
    make, formula = AMPLIFIED[name]
    base = BitSamplingFamily(20)
    family, data = make(base), bits_apart(8, 20)
    assert family.least_probability(8) == pytest.approx(formula(0.6))
    num = NUM_DRAWS // 4
    values = family.draw(5, num=num * family.num_functions)(data).reshape(2, num, family.num_functions)
    measured = family.collisions(values[0], values[1]).mean()
    assert abs(measured - formula(0.6)) < 2 * MARGIN
    for other, (_, wrong) in AMPLIFIED.items():
        if abs(wrong(0.6) - formula(0.6)) > 0.15:
            assert abs(measured - wrong(0.6)) > 2 * MARGIN, other
    found = family.sensitivity(4, 12)
    assert found == (4, 12, pytest.approx(formula(0.8)), pytest.approx(formula(0.4)))


def test_the_textbook_s_table():
    """Mining of Massive Datasets, section 3.6.3: a (.2, .8, .8, .2)-sensitive family by 4-way AND, then 4-way OR."""
    base = MinHashFamily(10)
    assert base.sensitivity(0.2, 0.8) == (0.2, 0.8, 0.8, pytest.approx(0.2))
    and_or, or_and = base.all_of(4).any_of(4), base.any_of(4).all_of(4)
    similarities = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9]
    table = [0.0064, 0.0320, 0.0985, 0.2275, 0.4260, 0.6666, 0.8785, 0.9860]
    assert and_or.curve([1 - s for s in similarities]).round(4).tolist() == table
    table = [0.1215, 0.3334, 0.5740, 0.7725, 0.9015, 0.9680, 0.9936]
    assert or_and.curve([1 - s for s in similarities[:-1]]).round(4).tolist() == table
    cascade = or_and.all_of(4).any_of(4)
    assert cascade.least_probability(0.2) > and_or.least_probability(0.2)
    assert cascade.greatest_probability(0.8) < and_or.greatest_probability(0.8)
    assert base.sensitivity(0.2, 0.8).rho == pytest.approx(math.log(0.8) / math.log(0.2))
    assert base.all_of(4).sensitivity(0.2, 0.8).rho == pytest.approx(base.sensitivity(0.2, 0.8).rho)


def test_p_stable_against_the_integral():
    """Datar et al. 2004, 3.2: p(c) is the integral of f(t/c)/c (1 - t/w) over t from 0 to w, f that of |N(0, 1)|."""
    for width, distance in ((4.0, 1.0), (4.0, 9.0), (1.0, 0.3), (0.5, 20.0)):
        t = (np.arange(200_000) + 0.5) * width / 200_000
        density = math.sqrt(2 / math.pi) * np.exp(-((t / distance) ** 2) / 2) / distance
        integral = (density * (1 - t / width)).sum() * width / 200_000
        assert PStableFamily(2, width=width).least_probability(distance) == pytest.approx(integral, rel=1e-6)


def test_bands_are_chosen_as_for_signatures():
    for threshold, recall in ((0.8, 0.95), (0.55, 0.99), (0.3, 0.9)):
        found = amplified_for(MinHashFamily(50), 1 - threshold, recall=recall, num_functions=128)
        bands, rows, stated = _native.plan_bands(128, threshold, recall)
        assert (found.num, found.base.num) == (bands, rows)
        assert found.least_probability(1 - threshold) == pytest.approx(stated)
    with pytest.raises(InvalidParameter, match="do not reach"):
        amplified_for(MinHashFamily(50), 0.99, recall=0.9, num_functions=8)


def test_an_index_finds_what_its_recall_says():
    random = np.random.default_rng(7)
    family = amplified_for(PStableFamily(16, width=4.0), 1.0, recall=0.8, num_functions=40)
    index = LSHIndex(family, seed=3)
    held = random.uniform(0, 40, (3000, 16))
    assert index.add(held[:2000]).tolist() == list(range(2000))
    index.add(held[2000:])
    steps = random.standard_normal((3000, 16))
    queries = held + steps / np.linalg.norm(steps, axis=1, keepdims=True) * (1 - 1e-9)
    found = index.query(queries, within=1.0)
    assert index.recall(1.0) >= 0.8
    # Pairs share the drawn functions, so the share of one index varies more than a binomial; 5 points cover ten seeds.
    hits = {(q, r) for q, r in zip(found.queries.tolist(), found.rows.tolist(), strict=True) if q == r}
    assert abs(len(hits) / 3000 - index.recall(1.0)) < 0.05
    assert (found.distances <= 1.0).all()
    np.testing.assert_allclose(found.distances, np.linalg.norm(queries[found.queries] - held[found.rows], axis=1))
    assert found.num_candidates < 3000 * 3000 / 50
    assert index.query(held[:5], within=0.0).rows.tolist() == list(range(5))


@pytest.mark.parametrize(
    ("family", "data", "within"),
    [
        (MinHashFamily(40), np.random.default_rng(1).integers(0, 2, (60, 40)), 0.3),
        (HyperplaneFamily(8), np.random.default_rng(2).standard_normal((60, 8)), 40.0),
        (BitSamplingFamily(24), np.random.default_rng(3).integers(0, 2, (60, 24)), 7.0),
        (EditFamily(30), ["abcdefghijklmno"[i % 7 :] * (1 + i % 2) for i in range(60)], 2.0),
    ],
    ids=["min-hash", "hyperplanes", "bits", "edit"],
)
def test_an_index_of_each_family(family, data, within):
    index = LSHIndex(family.any_of(30), seed=1)
    index.add(data)
    found = index.query(data, within=within)
    rows = family.rows(data)
    exact = {(q, r): d for q in range(60) for r, d in enumerate(family.distances(rows[q], rows)) if d <= within}
    pairs = dict(zip(zip(found.queries.tolist(), found.rows.tolist(), strict=True), found.distances, strict=True))
    assert pairs.items() <= exact.items()
    assert len(pairs) >= 0.98 * len(exact)


def test_edit_distances_are_those_of_the_recurrence():
    family, texts = EditFamily(12), ["kitten", "sitting", "", "日本語", "kitten"]
    rows = family.rows(texts)
    for row, text in zip(rows, texts, strict=True):
        assert family.distances(row, rows).tolist() == [oracle.edit_distance(text, other) for other in texts]


def test_slips_of_an_insertion_are_distributed_as_the_walk():
    """An insertion before distinct symbols: the heads differ until they are in step again."""
    family = EditFamily(150)
    a = list(range(149))
    b = [9999, *a]
    stated = family.slip_probabilities(1)
    # By counting paths: P(no step down by 1 among the first t of a walk of +1, 0, 0, -1).
    alive = {1: 1.0}
    for time in range(12):
        assert stated[time] == pytest.approx(sum(alive.values()))
        spread = {}
        for place, chance in alive.items():
            for step, part in ((1, 0.25), (0, 0.5), (-1, 0.25)):
                if place + step > 0:
                    spread[place + step] = spread.get(place + step, 0.0) + chance * part
        alive = spread
    embedded = family.embed([a, b], seed=3, num=4000)
    num_slips = (embedded[0] != embedded[1]).sum(axis=1)
    margin = math.sqrt(math.log(2e9) / (2 * len(num_slips)))
    for time in (1, 2, 3, 10, 50):
        assert abs((num_slips > time).mean() - stated[time]) < margin
        assert abs((num_slips > time).mean() - family.slip_probabilities(2)[time]) > margin


def test_edit_collisions_stay_inside_their_bounds():
    random = np.random.default_rng(5)
    family = EditFamily(300)
    num = 1500
    margin = math.sqrt(math.log(1e9) / (2 * num))
    base = random.integers(0, 4, 280).tolist()
    for distance, edited in (
        (1, [*base[:100], 3 - base[100], *base[101:]]),
        (2, [5, *base[:150], *base[151:]]),
        (4, [*base[3:], 1]),
        (250, random.integers(10, 14, 250).tolist()),
    ):
        rows = family.rows([base, edited])
        true = family.distances(rows[0], rows[1:])[0]
        assert true <= max(distance, 280)
        values = family.draw(2, num=num)(rows)
        measured = (values[0] == values[1]).mean()
        assert family.least_probability(true) - margin < measured < family.greatest_probability(true) + margin
        # At least half of the edit distance if both are read to the end.
        embedded = family.embed([base, edited], seed=1, num=20)
        assert (embedded[:, :, -1] == -1).all()
        assert ((embedded[0] != embedded[1]).sum(axis=1) >= true / 2).all()
    assert family.least_probability(1) > 0.9
    assert EditFamily(10_000).sensitivity(1, 2000).is_sensitive
    assert not EditFamily(100).sensitivity(1, 20).is_sensitive


REFUSED = [
    lambda: MinHashFamily(0),
    lambda: PStableFamily(3, width=0.0),
    lambda: MinHashFamily(3).draw()([[0, 1, 2]]),
    lambda: MinHashFamily(3).draw()([[0, 1]]),
    lambda: HyperplaneFamily(2).draw()([[0.0, 0.0]]),
    lambda: BitSamplingFamily(2).draw()([[0.5, 1.0]]),
    lambda: PStableFamily(1).draw()([[math.nan]]),
    lambda: EditFamily(3).draw()(["four"]),
    lambda: EditFamily(3).draw()(np.array([[1, -1, 2]])),
    lambda: MinHashFamily(3).sensitivity(0.5, 0.2),
    lambda: MinHashFamily(3).all_of(0),
    lambda: MinHashFamily(3).least_probability(1.5),
    lambda: LSHIndex(MinHashFamily(3).any_of(2).all_of(3)),
]


@pytest.mark.parametrize("which", range(len(REFUSED)))
def test_refusals(which):
    with pytest.raises(InvalidParameter):
        REFUSED[which]()


def test_an_equal_vector_has_no_angle_and_is_found_at_distance_0():
    family = HyperplaneFamily(7)
    vectors = np.random.default_rng(4).standard_normal((200, 7)) * 10.0 ** np.arange(-300, 300, 3)[:, np.newaxis]
    rows = family.rows(vectors)
    assert all(family.distances(row, rows)[i] == 0.0 for i, row in enumerate(rows))
    assert family.distances(rows[0], family.rows(-vectors[:1])).tolist() == [180.0]
    # A millionth of a degree, which the arc cosine cannot resolve.
    turned = [math.cos(math.radians(1e-6)), math.sin(math.radians(1e-6)), 0, 0, 0, 0, 0]
    found = family.distances(family.rows([1.0, 0, 0, 0, 0, 0, 0])[0], family.rows(turned))
    assert found == pytest.approx(1e-6, rel=1e-9)
    index = LSHIndex(family.all_of(4).any_of(2))
    index.add(vectors)
    assert index.query(vectors, within=0.0).rows.tolist() == list(range(200))


def test_whole_numbers_are_never_rounded_together():
    family = BitSamplingFamily(2)
    rows = family.rows(np.array([[2**53, 0], [2**53 + 1, 0]]))
    assert family.distances(rows[0], rows).tolist() == [0.0, 1.0]
    for data in ([[2.0**53 + 2, 0]], [[-1e300, 0]], np.array([[2**64 - 1, 0]], np.uint64)):
        with pytest.raises(InvalidParameter):
            family.rows(data)


TWO = [[1, 0], [0, 1]]


REFUSED = [
    lambda: MinHashFamily(2).rows([{1}, {2}]),
    lambda: MinHashFamily(2).rows([[1, 0], [1]]),
    lambda: HyperplaneFamily(2).rows([["1", "0"]]),
    lambda: HyperplaneFamily(2).rows([[1j, 0]]),
    lambda: HyperplaneFamily(2).draw(-1),
    lambda: BitSamplingFamily(2).draw(0, num=0),
    lambda: LSHIndex(MinHashFamily(2)).query(TWO, within="1"),
    lambda: LSHIndex(MinHashFamily(2)).query(TWO, within=None),
    lambda: PStableFamily(2, width="4"),
    lambda: PStableFamily(2).draw()([[1e300, 0]]),
    lambda: LSHIndex(PStableFamily(2)).add([[1e20, 0]]),
    lambda: EditFamily(5).rows("abc"),
    lambda: EditFamily(5).rows([{1, 2}]),
    lambda: EditFamily(5).rows([[0.5]]),
    lambda: EditFamily(5).rows([[-1]]),
    lambda: EditFamily(5).rows([[2**32]]),
    lambda: EditFamily(2).rows(np.array([[0.5, 1.0]])),
    lambda: EditFamily(5).rows(None),
    lambda: amplified_for(MinHashFamily(2).all_of(2), 0.1, recall=0.9, num_functions=8),
    lambda: MinHashFamily(2).sensitivity("0", 1),
]


@pytest.mark.parametrize("refused", REFUSED, ids=range(len(REFUSED)))
def test_what_a_family_cannot_take_is_refused_by_name(refused):
    with pytest.raises(InvalidParameter):
        refused()


def test_infinitely_far_vectors_do_not_collide():
    assert PStableFamily(3).sensitivity(0, math.inf)[2:] == (1.0, 0.0)
