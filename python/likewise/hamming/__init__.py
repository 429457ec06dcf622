"""Fingerprints and Hamming search: pairs, joins, an index, streams, and search plans with their costs.

Names are loaded when they are first used, because planning a search does not need NumPy.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likewise.hamming.index import HammingIndex as HammingIndex
    from likewise.hamming.matches import Matches as Matches
    from likewise.hamming.pairs import WrittenPairs as WrittenPairs
    from likewise.hamming.pairs import hamming_distance as hamming_distance
    from likewise.hamming.pairs import hamming_join as hamming_join
    from likewise.hamming.pairs import hamming_pairs as hamming_pairs
    from likewise.hamming.plan import HammingPlan as HammingPlan
    from likewise.hamming.plan import PlannedSearch as PlannedSearch
    from likewise.hamming.plan import SearchKey as SearchKey
    from likewise.hamming.plan import bit_frequencies as bit_frequencies
    from likewise.hamming.plan import bit_statistics as bit_statistics
    from likewise.hamming.plan import plan_hamming as plan_hamming
    from likewise.hamming.stream import hamming_stream as hamming_stream

_MODULES = {
    "index": ("HammingIndex",),
    "matches": ("Matches",),
    "pairs": ("WrittenPairs", "hamming_distance", "hamming_join", "hamming_pairs"),
    "plan": ("HammingPlan", "PlannedSearch", "SearchKey", "bit_frequencies", "bit_statistics", "plan_hamming"),
    "stream": ("hamming_stream",),
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names}
__all__ = list(_HOMES)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'likewise.hamming' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(f"likewise.hamming.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
