"""Deduplication on Spark, for what one machine cannot hold; needs ``pip install "likewise[spark]"``.

Examples
--------
>>> from likewise.spark import dedup  # doctest: +SKIP
>>> result = dedup(spark.read.parquet("crawl/"), checkpoint_dir="hdfs:///tmp/run")  # doctest: +SKIP
"""

from likewise.batch.spark import session as _session  # noqa: F401 - first: says what is missing
from likewise.batch.spark.engine import SparkEngine
from likewise.batch.spark.frames import SparkDeduplication, dedup, pairs, sketch

__all__ = ["SparkDeduplication", "SparkEngine", "dedup", "pairs", "sketch"]
