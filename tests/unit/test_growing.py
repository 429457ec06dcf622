"""Columns grow in place, without ever being held twice."""

import tracemalloc

import numpy as np

from likewise.arrays import GrowingArray


def test_what_was_appended_is_given_once():
    parts = [np.arange(n, dtype=np.uint32) for n in (0, 1, 5, 1000, 0, 3)]
    growing = GrowingArray(np.uint32)
    for part in parts:
        growing.append(part)
    taken = growing.take()
    assert np.array_equal(taken, np.concatenate(parts))
    assert (taken.dtype, taken.flags.writeable, taken.base) == (np.uint32, False, None)
    assert len(growing.take()) == 0


def test_memory_stays_near_the_result():
    part = np.ones(1 << 17)
    tracemalloc.start()
    growing = GrowingArray(np.float64)
    for _ in range(64):
        growing.append(part)
    taken = growing.take()
    now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert now < taken.nbytes + 100_000
    assert peak < 1.1 * taken.nbytes
