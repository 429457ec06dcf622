"""The rivals, in the order of the tables."""

from rivals import (
    datasketch_rival,
    datatrove_rival,
    fastsketch_rival,
    gaoya_rival,
    rensa_rival,
    shingles_alone,
    simhash_pybind_rival,
    simhash_rival,
    text_dedup_rival,
)
from rivals.protocol import Rival

MODULES = (
    datasketch_rival, rensa_rival, gaoya_rival, fastsketch_rival, shingles_alone, text_dedup_rival, simhash_rival,
    simhash_pybind_rival,
)  # fmt: skip
RIVALS: tuple[Rival, ...] = tuple(rival for module in MODULES for rival in module.RIVALS)
# Complete pipelines, which take minutes: only pipelines.py runs them.
PIPELINES: tuple[Rival, ...] = (*text_dedup_rival.PIPELINES, *datatrove_rival.PIPELINES)


def find(name: str, method: str) -> Rival:
    """Return the rival of that name and method."""
    for rival in (*RIVALS, *PIPELINES):
        if (rival.name, rival.method) == (name, method):
            return rival
    raise LookupError(f"no rival {name!r} for {method}; there are {[(r.name, r.method) for r in RIVALS]}")
