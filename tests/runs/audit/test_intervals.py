"""Intervals: quantiles from tables, ratios by hand, and the limits of what a sample shows."""

import math

import numpy as np
import pytest

from likewise.runs.audit.intervals import StratumTotals, gamma_quantile
from likewise.runs.audit.intervals import share as share_of


def share(strata, *, least_part, least_other=None, known_total=0.0):
    least_other = least_part if least_other is None else least_other
    return share_of(strata, least_part=least_part, least_other=least_other, known_total=known_total)


def stratum(num_documents, totals, parts):
    return StratumTotals(num_documents, np.array(totals, float), np.array(parts, float))


# Chi-square quantiles from printed tables, twice those of gamma with half the degrees of freedom.
@pytest.mark.parametrize(
    ("degrees", "probability", "quantile"),
    [
        (1, 0.975, 5.02389),
        (1, 0.025, 0.000982),
        (2, 0.975, 7.37776),
        (2, 0.025, 0.050636),
        (10, 0.975, 20.48318),
        (10, 0.025, 3.24697),
        (30, 0.975, 46.97924),
        (100, 0.025, 74.22193),
        (100, 0.975, 129.56120),
    ],
)
def test_quantiles_are_those_of_tables(degrees, probability, quantile):
    assert 2 * gamma_quantile(degrees / 2, probability) == pytest.approx(quantile, rel=1e-4)


def test_quantiles_of_large_shapes_go_on_where_the_series_ends():
    below, above = gamma_quantile(9_999.0, 0.975), gamma_quantile(10_001.0, 0.975)
    assert above - below == pytest.approx(2.0, rel=0.02)


def test_the_share_weighs_strata_by_their_size():
    # Each sampled document represents 10 in the first stratum, 2 in the second: (10*1 + 2*3) of (10*4 + 2*6).
    found = share([stratum(20, [1, 3], [1, 0]), stratum(6, [2, 2, 2], [1, 1, 1])], least_part=0.5)
    assert found.value == pytest.approx(16 / 52)
    assert not found.is_exact
    assert found.low < found.value < found.high


def test_the_variance_is_that_of_the_linearized_ratio():
    totals, parts = [4.0, 2.0, 6.0, 8.0], [1.0, 1.0, 1.0, 2.0]
    # Residuals of the ratio 1/4: 0, .5, -.5, 0; their variance 1/6, of the sum of 40 documents 40^2 (1 - 1/10) / 4.
    variance = 40**2 * 0.9 * (0.5 / 3) / 4 / 200**2
    found = share([stratum(40, totals, parts)], least_part=0.5)

    def limit(mean, variance, probability):
        return gamma_quantile(mean**2 / variance, probability) * variance / mean

    # One more of 10 documents has 1.25 on average.
    one_more = 10 * 1.25 / 200
    assert found.high == pytest.approx(limit(0.25 + one_more, variance + one_more**2, 0.975))
    # Everything unknown belongs to others.
    assert found.low == 0.0
    certain = share([stratum(40, totals, parts)], least_part=0.5, known_total=200.0)
    residuals = np.array(parts) - 0.125 * np.array(totals)
    variance = 40**2 * 0.9 * residuals.var(ddof=1) / 4 / 400**2
    one_more = 10 * 3.75 / 400
    most_others = limit(0.875 + one_more, variance + one_more**2, 0.975)
    assert certain.low == pytest.approx(min(limit(0.125, variance, 0.025), 0.125 / (0.125 + most_others)))


def test_all_documents_leave_no_doubt():
    found = share([stratum(3, [1, 2, 3], [0, 1, 0])], least_part=0.5)
    assert (found.value, found.low, found.high, found.is_exact) == (1 / 6, 1 / 6, 1 / 6, True)


def test_none_seen_is_not_none_there():
    # By the Poisson distribution: 100 of 1000 documents were examined and none has a part.
    found = share([stratum(1000, [1] * 100, [0] * 100)], least_part=1.0)
    assert (found.value, found.low) == (0.0, 0.0)
    assert found.high == pytest.approx(-math.log(0.025) / 100)


def test_the_rest_has_the_same_interval_turned():
    found = share([stratum(1000, [1] * 100, [0] * 100)], least_part=1.0)
    assert (found.rest.value, found.rest.high, found.rest.low) == (1.0, 1.0, pytest.approx(1 - found.high))


def test_where_there_is_nothing_nothing_is_known():
    found = share([stratum(1000, [0] * 100, [0] * 100)], least_part=1.0)
    assert math.isnan(found.value)
    assert (found.low, found.high) == (0.0, 1.0)
    assert found.to_dict()["value"] is None


def test_what_is_known_beforehand_counts():
    found = share([stratum(100, [1, 0, 0, 0], [1, 0, 0, 0])], least_part=1.0, least_other=0.0, known_total=75.0)
    assert found.value == pytest.approx(25 / 100)
    assert 0 <= found.low < 0.25 < found.high <= 1


@pytest.mark.parametrize("rate", [0.01, 0.2, 0.5, 0.9])
def test_intervals_hold_the_truth_of_clustered_parts(rate):
    random = np.random.default_rng(5)
    sizes = np.minimum(random.geometric(0.4, 4000), 12)
    totals = np.repeat(sizes - 1, sizes) / 2.0
    parts = np.concatenate([random.binomial(n - 1, random.beta(4 * rate, 4 * (1 - rate)), n) for n in sizes]) / 2.0
    is_one = np.arange(len(totals)) % 5 == 0
    truth = parts.sum() / totals.sum()
    num_held = 0
    for _ in range(100):
        strata = []
        for which, num in ((np.flatnonzero(is_one), 150), (np.flatnonzero(~is_one), 250)):
            rows = random.choice(which, num, replace=False)
            strata.append(stratum(len(which), totals[rows], parts[rows]))
        found = share(strata, least_part=0.5)
        num_held += found.low <= truth <= found.high
    assert num_held >= 93
