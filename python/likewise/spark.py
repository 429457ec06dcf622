"""Deduplication on Spark, for collections too large for one machine; needs ``pip install "likewise[spark]"``.

Spark moves data, and the core decides: whole Arrow batches are passed to the functions of a local run. Spark adds rows
numbered in a sorted order, buckets by shuffle, and cells.

Examples
--------
>>> from likewise.spark import dedup  # doctest: +SKIP
>>> result = dedup(spark.read.parquet("crawl/"), checkpoint_dir="hdfs:///tmp/run")  # doctest: +SKIP
"""

from likewise.batch.budget.cluster_plans import HammingPairsPlan
from likewise.batch.spark.files.engine import SparkEngine
from likewise.batch.spark.frames import SparkDeduplication, dedup, pairs, sketch
from likewise.batch.spark.hamming.joining import hamming_join
from likewise.batch.spark.hamming.pairing import SparkHammingPairs, hamming_pairs

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
