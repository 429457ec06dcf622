"""The scripts that the server runs, with the numbers of one layout in front."""

import functools
from importlib.resources import files

from likewise.redis.layout import ROWS_A_CHUNK, Layout

NAMES = ("begin", "commit", "create", "hold", "members", "remove", "trim")
# Pairs that a commit compares on the server; more are compared by the client, and the server goes on.
MAX_PAIRS_ON_SERVER = 1024
# Writes of which the server keeps what stands for the history up to them, and characters of each.
RING = 1024
MARK = 16
# Chunks whose time is over that one call takes away.
MAX_CHUNKS_PURGED = 64


def script(name: str, layout: Layout) -> str:
    """Return the text of a script for a layout."""
    constants = {
        "BYTES": layout.num_bytes,
        "RECORD": layout.record.itemsize,
        "END": layout.num_bytes + 12,
        "ROWS": ROWS_A_CHUNK,
        "WITHIN": layout.within,
        "CLASSIC": "true" if layout.is_classic else "false",
        "BLOCKS": "{" + ", ".join(map(str, layout.blocks)) + "}",
        "MAX_PAIRS": MAX_PAIRS_ON_SERVER,
        "RING": RING,
        "MARK": MARK,
        "MAX_PURGED": MAX_CHUNKS_PURGED,
    }
    head = "".join(f"local {name} = {value}\n" for name, value in constants.items())
    return head + _source("common") + _source(name)


@functools.cache
def _source(name: str) -> str:
    return files("likewise.redis").joinpath(f"{name}.lua").read_text("ascii")
