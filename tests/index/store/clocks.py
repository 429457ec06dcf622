"""Indexes with a clock that the test controls."""

import contextlib
import functools
from unittest import mock

from likewise import _native


@contextlib.contextmanager
def clocked(clock, **fixed):
    """Make every index opened meanwhile use `clock`, with the arguments `fixed` of the native index."""
    made = functools.partial(_native.OnlineIndex, clock=clock, **fixed)
    made.describe = _native.OnlineIndex.describe
    with mock.patch.object(_native, "OnlineIndex", made):
        yield clock
