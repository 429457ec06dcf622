"""Fingerprints and Hamming search: pairs, joins, an index, streams, and search plans with their costs.

Names are loaded when they are first used, because planning a search does not need NumPy.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.hamming.costs import Costs
    from likewise.hamming.index import HammingIndex
    from likewise.hamming.matches import Matches
    from likewise.hamming.pairs import WrittenPairs, hamming_distance, hamming_join, hamming_pairs
    from likewise.hamming.plan import (
        HammingPlan,
        PlannedSearch,
        SearchKey,
        bit_frequencies,
        bit_statistics,
        plan_hamming,
    )
    from likewise.hamming.stream import hamming_stream

__all__ = [
    "Costs",
    "HammingIndex",
    "HammingPlan",
    "Matches",
    "PlannedSearch",
    "SearchKey",
    "WrittenPairs",
    "bit_frequencies",
    "bit_statistics",
    "hamming_distance",
    "hamming_join",
    "hamming_pairs",
    "hamming_stream",
    "plan_hamming",
]

_HOMES = {
    "Costs": "costs",
    "HammingIndex": "index",
    "HammingPlan": "plan",
    "Matches": "matches",
    "PlannedSearch": "plan",
    "SearchKey": "plan",
    "WrittenPairs": "pairs",
    "bit_frequencies": "plan",
    "bit_statistics": "plan",
    "hamming_distance": "pairs",
    "hamming_join": "pairs",
    "hamming_pairs": "pairs",
    "hamming_stream": "stream",
    "plan_hamming": "plan",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise.hamming' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"likewise.hamming.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
