"""Costs of runs and searches on Spark: constants of one core, and a model of the stream tables.

The constants of runs are from 100,000 documents in bench/results/spark.json. They include the start of about 30 Spark
jobs, so they are too high for large runs. bench/spark_hamming.py checks the constants of the search. The model chooses
keys like the core: m blocks of bits whose radii sum to ``within + 1 - m`` (generalized pigeonhole), or the comparison
of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

# Core-nanoseconds of stages in bench/results/spark.json, "minhash 100000", on two busy cores: per byte of text; per
# document ordered; per document and band; per document verified; per document decided.
SKETCHING_NS = 2 * 16.2634e9 / 239_907_809
ORDERING_NS = 2 * 2.7001e9 / 100_000
BAND_NS = 2 * 10.9619e9 / 100_000 / 32
VERIFYING_NS = 2 * 4.2353e9 / 100_000
DECIDED_NS = 2 * 0.7072e9 / 100_000
# Bytes of written stages per byte of text in the same run.
STORED_SHARE = 196_169_141 / 239_907_809
# Shuffled bytes per document in addition to its text or sketch, and per document and band.
SHUFFLED_ROW_BYTES, BAND_BYTES = 48, 20
# Share of documents sent again as candidates. An assumption: twice the share of removed documents.
CANDIDATES = 0.28
# Nanoseconds of one core: per key value looked up, per word of a candidate, and per word if all pairs are compared.
PROBE_NS = 24.0
CANDIDATE_NS = 0.5
SCAN_NS = 0.1
# Per row from Spark to Python, without its search; measured with busy cores, so probably too high.
ROW_NS = 300.0
# Per fingerprint of a slab, and in the tables of a worker; fitted to one run on 5,000,000 fingerprints.
STORING_NS, BUILDING_NS = 1300.0, 220.0
# Minimum fingerprints of a slab that a task streams, about a second of work within 3 bits, and tasks per core.
LEAST_PIECE, TASKS_A_CORE = 1 << 18, 4
# Core-seconds to start the Spark jobs of a search for pairs, on 20,000 documents.
PAIRS_JOBS_S = 10.0
# Per row shuffled and sorted into its cell, and its bytes in addition to the fingerprint: cell and number.
SHUFFLED_ROW_NS = 1500.0
CELL_BYTES = 12
# Memory factor of building tables, which holds a part twice.
BUILDING = 1.5
# Maximum bytes of a slab of a run in a worker.
SLAB_BYTES = 1_000_000_000
# Time of deciding a slab, relative to streaming it past its own tables.
DECIDING = 2.5
# Overhead of a round in seconds: two Spark stages and their markers.
ROUND_S = 2.0


@dataclass(frozen=True)
class Keys:
    """Blocks of bits used as lookup keys."""

    # Number of blocks; 0 if all pairs are compared
    num_keys: int
    query_ns: float
    table_bytes: int


def best_keys(num: float, bits: int, within: int) -> Keys:
    """Return the cheapest blocks for tables of `num` uniform fingerprints."""
    words = -(-bits // 64)
    best = Keys(0, SCAN_NS * words * num, 8 * words)
    for num_keys in range(1, min(within + 1, bits) + 1):
        width = bits / num_keys
        small, num_larger = divmod(within + 1, num_keys)
        probes = num_keys * _ball(width, small - 1)
        probes += num_larger * (_ball(width, small) - _ball(width, small - 1))
        candidates = probes * num / 2.0 ** min(width, 1000.0)
        query_ns = PROBE_NS * probes + CANDIDATE_NS * words * candidates
        if query_ns < best.query_ns:
            best = Keys(num_keys, query_ns, 8 * words * (num_keys + 1))
    return best


def _ball(width: float, radius: int) -> float:
    """Return the number of values within a radius of a value; as a float, since it is used for fractional widths."""
    return float(sum(comb(max(1, round(width)), errors) for errors in range(min(radius, round(width)) + 1)))


def most_in_tables(bits: int, within: int, memory_bytes: int) -> int:
    """Return the maximum number of fingerprints in the tables of a worker."""
    # The number of keys hardly depends on the number of fingerprints, so a second iteration suffices.
    num = 1e6
    for _ in range(2):
        num = max(1.0, memory_bytes / (BUILDING * best_keys(num, bits, within).table_bytes))
    return max(1, int(num))


def run_bytes(bits: int) -> int:
    """Return the bytes per distinct document in a worker that decides its slab."""
    words = -(-bits // 64)
    # Rank, features, order, verdict and evidence; fingerprints twice; tables as measured for 64, 128 and 256 bits.
    return 64 + 16 * words + 43 * words + 32 * words**2


def most_of_run(bits: int, memory_bytes: int) -> int:
    """Return the maximum number of documents in a slab of a run."""
    return max(1, memory_bytes // run_bytes(bits))
