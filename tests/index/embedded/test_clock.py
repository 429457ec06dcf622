"""Expiry by age: clocks that jump, machines that sleep or restart."""

import likewise
from likewise import _native
from tests.command import likewise_command
from tests.index.store.clocks import clocked

RECIPE = likewise.Recipe.simhash(within=3)
DAY = 86_400
TTL = 90 * DAY
YEARS = 3650 * DAY
T = 1_700_000_000


def filled(path):
    with likewise.Index(path, RECIPE, ttl=TTL) as index:
        index.add_batch(range(10), [f"text {number} of ten" for number in range(10)])


def test_a_clock_that_jumps_forgets_nothing(tmp_path):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(T)) as clock:
        filled(path)
        with likewise.Index(path) as index:
            for set_s in (T + YEARS, T - YEARS):
                clock.set(set_s)
                index.add(f"at {set_s}", f"something at {set_s}")
                assert "the clock was set" in index.stats["clock_warning"]
        with likewise.Index(path) as index:
            index.add("later", "something later")
            assert len(index) == 13
            clock.set(T)
            index.add("right", "all is right")
            assert index.stats["clock_warning"] is None
            arrivals = [index.get(name).arrival_s for name in ("9", f"at {T + YEARS}", f"at {T - YEARS}", "right")]
            assert max(arrivals) <= T + 60
            # Time that passes is not a jump, whatever the clock shows.
            clock.pass_time(TTL + 100)
            clock.set(T)
            index.add("last", "the last one")
            assert len(index) == 1


def test_suspend_and_short_rests_are_no_jumps(tmp_path):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(T)) as clock:
        filled(path)
        clock.restart(TTL // 2)
        with likewise.Index(path) as index:
            index.add("half", "half a life later")
            assert len(index) == 11
            assert index.stats["clock_warning"] is None
            clock.pass_time(TTL // 2 + 100)
            index.add("late", "late in the day")
            assert len(index) == 2
        clock.pass_time(3 * TTL)
        with likewise.Index(path) as index:
            index.add("after", "after all")
            assert len(index) == 1


def test_a_clock_far_ahead_after_a_start_must_hold(tmp_path):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(T)) as clock:
        filled(path)
        clock.restart(YEARS)
        for step in range(3):
            with likewise.Index(path) as index:
                index.add(f"new-{step}", f"number {step} of the new ones")
                assert len(index) == 11 + step
                assert "accept_clock" in index.stats["clock_warning"]
            clock.pass_time(1500)
        with likewise.Index(path) as index:
            index.add("held", "the clock has held")
            assert sorted(name for name in ("9", "new-0", "new-2", "held") if index.get(name)) == [
                "held",
                "new-0",
                "new-2",
            ]
            assert len(index) == 4
            assert index.stats["clock_warning"] is None
            assert index.get("new-0").arrival_s == T + YEARS
            assert not index.verify(full=True)
        with likewise.Index(path, read_only=True) as index:
            assert [index.get(f"new-{step}").arrival_s for step in range(3)] == [T + YEARS + 1500 * n for n in range(3)]
        # Documents that arrived while the clock was in doubt live as long as all others.
        clock.restart(TTL - 10_000)
        with likewise.Index(path) as index:
            index.add("late", "late in the day")
            assert len(index) == 5
            clock.pass_time(6000)
            index.add("later", "later in the day")
            assert index.get("new-0") is None
            assert index.get("held") is not None


def test_a_clock_that_was_wrong_at_a_start_did_no_harm(tmp_path):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(T)) as clock:
        filled(path)
        clock.restart(YEARS)
        with likewise.Index(path) as index:
            index.add("far", "added in years to come")
        clock.set(T + 100)
        with likewise.Index(path) as index:
            index.add("near", "added when it was right again")
            assert len(index) == 12
            assert index.stats["clock_warning"] is None
            assert index.get("near").arrival_s <= T + 100
            clock.pass_time(TTL + 1000)
            index.add("end", "the end of all")
            assert len(index) == 1


def test_a_clock_can_be_accepted(tmp_path):
    path = tmp_path / "index"
    with clocked(_native.ManualClock(T)) as clock:
        filled(path)
        clock.restart(YEARS)
        with likewise.Index(path, accept_clock=True) as index:
            assert index.stats["clock_warning"] is None
        with likewise.Index(path) as index:
            index.add("new", "something new")
            assert len(index) == 1
    assert likewise_command("index", "verify", path, "--accept-clock").status == 0
