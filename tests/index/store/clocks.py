"""Indexes that ask a clock which the test moves."""

import contextlib
import functools
from unittest import mock

from likewise import _native


@contextlib.contextmanager
def clocked(clock, **fixed):
    """Let every index that is opened meanwhile ask `clock`, with further arguments of the native index in `fixed`."""
    made = functools.partial(_native.OnlineIndex, clock=clock, **fixed)
    made.describe = _native.OnlineIndex.describe
    with mock.patch.object(_native, "OnlineIndex", made):
        yield clock
