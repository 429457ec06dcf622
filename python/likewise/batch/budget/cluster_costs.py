"""What runs and searches on Spark take: constants of one core, and a model of the stream tables.

The constants of runs are those of 100,000 documents in bench/results/spark.json, which include the start of about 30
Spark jobs, so that they are too high for large runs. Those of the search are checked by bench/spark_hamming.py. The
model chooses keys as the core does: m blocks of bits whose radii sum to ``within + 1 - m`` (generalized pigeonhole), or
the comparison of all pairs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import comb

# Core-seconds of stages in bench/results/spark.json, "minhash 100000": its wall seconds on two cores that were busy.
# Of a byte of text that is read, sketched and written; of a document that is ordered; of a document in a band; of a
# document whose candidates are verified; of a document that is decided.
SKETCHING_NS = 2 * 16.2634e9 / 239_907_809
ORDERING_NS = 2 * 2.7001e9 / 100_000
BAND_NS = 2 * 10.9619e9 / 100_000 / 32
VERIFYING_NS = 2 * 4.2353e9 / 100_000
DECIDED_NS = 2 * 0.7072e9 / 100_000
# Written stages by text, and text of a document in the same run.
STORED_SHARE = 196_169_141 / 239_907_809
# Bytes that a shuffle sends of a document beside its text or sketch, and of a document in a band.
SHUFFLED_ROW_BYTES, BAND_BYTES = 48, 20
# Share of documents that are sent again as candidates: an assumption, twice the share of documents that were removed.
CANDIDATES = 0.28
# Nanoseconds of one core: of a value of a key that is looked up, of a word of a candidate, and of a word where all are
# compared.
PROBE_NS = 24.0
CANDIDATE_NS = 0.5
SCAN_NS = 0.1
# Of a row that goes from Spark to Python, without its search; measured with busy cores, so that it is rather too high.
ROW_NS = 300.0
# Of a fingerprint that is grouped and written to a slab, and of one in tables that a worker builds; about two workers
# build the tables of a slab.
STORING_NS, BUILDING_NS, BUILDERS = 330.0, 220.0, 2
# Core-seconds of the jobs of a search of pairs, beside their rows: a run on 20,000 documents, of three times as many
# jobs, took 48.
PAIRS_JOBS_S = 10.0
# Of a row that is shuffled and sorted on the way to its cell, and its bytes beside the fingerprint: cell and number.
SHUFFLED_ROW_NS = 1500.0
CELL_BYTES = 12
# Tables are built in passes that hold a part twice.
BUILDING = 1.5
# What a slab of a run may take in a worker.
SLAB_BYTES = 1_000_000_000
# Deciding a slab by itself takes so many times as long as streaming it past its own tables.
DECIDING = 2.5
# Seconds of a round beside its work: two stages of Spark and their marks.
ROUND_S = 2.0


@dataclass(frozen=True)
class Keys:
    """Blocks of bits that are looked up.

    Parameters
    ----------
    num_keys : int
        Blocks; 0 where all pairs are compared.
    query_ns : float
        Of one fingerprint that streams past.
    table_bytes : int
        Of one fingerprint in the tables.
    """

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
    """Return how many values are within a radius of one; in floating point, since blocks differ in width by one."""
    return float(sum(comb(max(1, round(width)), errors) for errors in range(min(radius, round(width)) + 1)))


def most_in_tables(bits: int, within: int, memory_bytes: int) -> int:
    """Return how many fingerprints a worker can lay out."""
    # The number of keys hardly depends on how many there are: a second look takes the right one.
    num = 1e6
    for _ in range(2):
        num = max(1.0, memory_bytes / (BUILDING * best_keys(num, bits, within).table_bytes))
    return max(1, int(num))


def run_bytes(bits: int) -> int:
    """Return what a distinct document of a run takes in a worker that decides its slab."""
    words = -(-bits // 64)
    # Rank, features, order, verdict and evidence; fingerprints twice; tables as measured on 64, 128 and 256 bits.
    return 64 + 16 * words + 43 * words + 32 * words**2


def most_of_run(bits: int, memory_bytes: int) -> int:
    """Return how many documents a slab of a run has at most."""
    return max(1, memory_bytes // run_bytes(bits))
