"""Removal of parts of documents: parts that occur earlier, and boilerplate of sites."""

from likewise.batch.parts.boilerplate import SITE_UNITS, BoilerplateRules, remove_boilerplate
from likewise.batch.parts.run import dedup_parts
from likewise.batch.parts.units import UNITS, PartRules

__all__ = ["SITE_UNITS", "UNITS", "BoilerplateRules", "PartRules", "dedup_parts", "remove_boilerplate"]
