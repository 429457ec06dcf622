"""Deduplication on Spark: the public name of `likewise.batch.spark`."""

from likewise.batch.spark import SparkDeduplication, SparkEngine, dedup, hamming_join, pairs, sketch

__all__ = ["SparkDeduplication", "SparkEngine", "dedup", "hamming_join", "pairs", "sketch"]
