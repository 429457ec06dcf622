"""Repeats inside documents: parts that stand elsewhere already are taken out, the first of each stays."""

from likewise.repeats.run import dedup_parts
from likewise.repeats.units import UNITS, PartRules

__all__ = ["UNITS", "PartRules", "dedup_parts"]
