"""Waiting for what another thread or process does.

The limits only end a test that hangs: no test depends on how busy the machine is.
"""

import time

LIMIT_S = 600


def wait_until(condition, limit_s=LIMIT_S):
    """Wait for a condition; return whether it became true."""
    end = time.monotonic() + limit_s
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True
