"""Repeats inside documents: parts that occur earlier are removed, and the first of each is kept."""

from likewise.batch.parts.run import dedup_parts
from likewise.batch.parts.units import UNITS, PartRules

__all__ = ["UNITS", "PartRules", "dedup_parts"]
