"""Clusters of real servers that fail while eight processes write: each history is one sequence with losses reported.

`LIKEWISE_CLUSTER_CAMPAIGN=200` runs that many rounds of the long test, from `LIKEWISE_CLUSTER_SEED` on.
"""

import os
import tempfile
from pathlib import Path

import pytest

from tests.index.redis.cluster.lag import ORDERS, Lag
from tests.index.redis.cluster.nemesis import WRONG, Campaign

# Long: `make test` leaves them out, `.ci/run` runs them.
pytestmark = pytest.mark.rounds

ROUNDS = int(os.environ.get("LIKEWISE_CLUSTER_CAMPAIGN", "44"))
SEED = int(os.environ.get("LIKEWISE_CLUSTER_SEED", "1"))


@pytest.fixture
def campaign(program):
    """Start a cluster with clients."""
    begun = []
    with tempfile.TemporaryDirectory(prefix="nemesis-") as folder:

        def begin(**options):
            begun.append(Campaign(program, Path(folder) / str(len(begun)), SEED, **options))
            return begun[-1]

        yield begin
        for one in begun:
            one.close()


def test_a_cluster_that_fails_over_and_is_moved(campaign):
    one = campaign(clients=3)
    one.play("move slots", replicas=0)
    one.play("kill master", replicas=1)
    assert one.counts["answers"]
    assert not one.counts["lost"]


def test_a_master_that_returns_with_its_file(campaign):
    one = campaign(clients=3, appends=True)
    for _ in range(2):
        one.play("kill and start again", replicas=1)
    assert one.counts["answers"]
    assert not one.counts["lost"]
    assert not one.counts["beyond"]


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("appends", [False, True])
def test_rounds_of_all_that_goes_wrong(campaign, appends):
    one = campaign(appends=appends)
    for number in range(ROUNDS // 2):
        one.play(WRONG[number % len(WRONG)])
    assert one.counts["rounds"] == ROUNDS // 2
    # Most losses must be repairable, except a master that returns empty.
    assert one.counts["beyond"] <= one.counts["rounds"] / 4


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("target", ["partition", "log"])
def test_a_replica_that_lags_by_hundreds_of_operations_takes_over(program, target):
    with tempfile.TemporaryDirectory(prefix="lag-") as folder:
        one = Lag(program, Path(folder), SEED)
        try:
            for how in ORDERS:
                counts = one.play(how, target, 1.0, 400)
                assert counts["lag_operations"] >= 400
                assert bool(counts["lost"]) == (target == "log")
        finally:
            one.close()
