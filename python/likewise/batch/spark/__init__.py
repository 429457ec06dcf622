"""Deduplication on Spark; `likewise.spark` has the public names."""

from likewise.batch.spark import stages as _stages  # noqa: F401 - raises MissingExtra
