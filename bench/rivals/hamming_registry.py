"""The packages that search by Hamming distance, in the order of the tables."""

from rivals import hamming_faiss, hamming_simhash, hamming_usearch
from rivals.hamming_protocol import Searcher

RIVALS: tuple[type[Searcher], ...] = (
    hamming_faiss.MultiHash, hamming_faiss.Hash, hamming_faiss.Flat, hamming_usearch.Graph, hamming_usearch.Exact,
    hamming_simhash.Pybind, hamming_simhash.Index,
)  # fmt: skip


def find(name: str) -> type[Searcher]:
    """Return the rival of that name."""
    for rival in RIVALS:
        if rival.name == name:
            return rival
    raise LookupError(f"no rival {name!r}; there are {[rival.name for rival in RIVALS]}")
