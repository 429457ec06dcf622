"""The online index: has this document been seen before, and what is it a duplicate of."""

from likewise.index.online import Index
from likewise.index.verdicts import Document, Group, Neighbour, Removal, Verdict, Verdicts

__all__ = ["Document", "Group", "Index", "Neighbour", "Removal", "Verdict", "Verdicts"]
