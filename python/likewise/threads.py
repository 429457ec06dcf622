"""How many threads a call may start."""

import os

from likewise.recipe_check import check_integer


def num_threads(threads: int | None) -> int:
    """Return the threads of a call: as asked, else one for each processor this process may use.

    Raises
    ------
    InvalidParameter
        If the number asked for is not from 1 to 1024.
    """
    if threads is not None:
        return check_integer("threads", threads, 1, 1024)
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
