"""Repeats inside documents: parts that stand elsewhere already are taken out, the first of each stays."""

from likewise.batch.parts.run import dedup_parts
from likewise.batch.parts.units import UNITS, PartRules

__all__ = ["UNITS", "PartRules", "dedup_parts"]
