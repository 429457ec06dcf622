"""Deduplication on Spark: the public name of `likewise.batch.spark`."""

from likewise.batch.spark import (
    HammingPairsPlan,
    SparkDeduplication,
    SparkEngine,
    SparkHammingPairs,
    dedup,
    hamming_join,
    hamming_pairs,
    pairs,
    sketch,
)

__all__ = [
    "HammingPairsPlan",
    "SparkDeduplication",
    "SparkEngine",
    "SparkHammingPairs",
    "dedup",
    "hamming_join",
    "hamming_pairs",
    "pairs",
    "sketch",
]
